//! Both engines keep the promises of the trait; the one on disk keeps them over crashes and damage.

use cg_engine::{MemEngine, conformance};

#[test]
fn memory_keeps_the_promises() {
    conformance::run_all(|| MemEngine::new().with_max_batch_bytes(1 << 20));
}

mod remote;
#[cfg(feature = "rocks")]
mod rocks;
