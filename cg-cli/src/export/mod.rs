//! A world as region files that other tools open.
