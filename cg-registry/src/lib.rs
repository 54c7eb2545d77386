//! Ids that never move, schemas that may: names, lists, manifests and reconciliation.
#![forbid(unsafe_code)]
