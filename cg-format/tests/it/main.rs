//! Everything that a user of this crate can see, in one binary.

mod agree;
mod chunk;
mod cluster;
mod frame;
mod naive;
