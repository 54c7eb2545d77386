//! Snapshots, seen from outside: captured, kept, carried elsewhere and put back.

mod copy;
mod entities;
mod file;
mod laws;
mod made;
mod pack;
mod pack_values;
mod queue;
mod remap;
mod spec;
mod waiting;
