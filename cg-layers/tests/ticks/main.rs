//! Restores into stored worlds and overlays within ticks, as a host uses them.

mod crash;
mod cycle;
mod layouts;
mod made;
mod meanwhile;
