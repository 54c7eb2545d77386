//! Hosts over worlds in memory and on disk.

mod again;
mod columns;
mod damage;
mod entities;
mod groups;
mod held;
mod kept;
mod maker;
mod queue;
mod refused;
mod writes;
