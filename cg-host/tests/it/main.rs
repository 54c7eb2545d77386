//! Hosts over worlds in memory and on disk.

mod again;
mod columns;
mod crossing;
mod damage;
mod elided;
mod entities;
mod groups;
mod held;
mod kept;
mod maker;
mod pressure;
mod queue;
mod refused;
mod repaired;
mod scene;
mod shapes;
mod writes;
