//! The integration tests of the formats, one module per behaviour.

mod agree;
mod naive;
