//! What the registry promises, over real lists and stored chunks.

mod laws;
mod real_lists;
mod upgrades;
