//! Saves of Minecraft 26 and of the layout before: what is taken of them, where it goes back, what is said.
//!
//! Written from the wanted behaviour alone. Every test runs the `cg` binary on a save that it makes, or on a copy of a
//! shared one.

mod damaged_columns;
mod fields;
mod folder;
mod holders;
mod hostile_level;
mod hostile_object;
mod into;
mod kept_slots;
mod layout;
mod level;
mod linked;
mod lock;
mod merge_columns;
mod merge_files;
mod names;
mod old_chunks;
mod own_folder;
mod palettes;
mod points;
mod record;
mod region_names;
mod save;
mod shared;
mod strays;
mod taken;
mod test_dir;
mod three_folders;
mod tree;
mod unfinished;
mod unfinished_changed;
mod unread_side;
