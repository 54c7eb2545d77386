//! Clusters: 4³ or 16³ chunks under one key.

pub(crate) mod directory;
