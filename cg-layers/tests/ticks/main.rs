//! Restores into stored worlds, overlays and segments within ticks, as a host uses them.

mod crash;
mod cycle;
mod layouts;
mod made;
mod meanwhile;
mod segments;
