//! Snapshots, seen from outside: captured, kept, carried elsewhere and put back.

mod arrival;
mod entities;
mod file;
mod laws;
mod made;
mod pack;
mod queue;
mod spec;
mod waiting;
