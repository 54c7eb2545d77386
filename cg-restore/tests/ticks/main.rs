//! Restores into stored worlds and overlays within ticks, as a host uses them.

mod crash;
mod cycle;
mod made;
mod meanwhile;
