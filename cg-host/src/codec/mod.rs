//! Columns of a host become chunks and entities of a world, and come back.

mod biomes;
mod entities;
mod load;
mod save;
mod section;
mod strays;
mod ticks;

pub(crate) use entities::of_world as entity;
pub use load::OnDamage;
pub(crate) use load::load;
pub(crate) use save::Save;
