//! Regions out of a world and back into it: paletted snapshots and schematics.
#![forbid(unsafe_code)]
