//! The store from outside, one module per behaviour.

mod engine;
mod world;
