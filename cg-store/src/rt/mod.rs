//! Runtime support for every room that does not depend on worlds: threads, parking, answers, re-entrancy, counters, stopwatches.

pub(crate) mod answer;
pub(crate) mod arrivals;
pub(crate) mod lock_order;
pub(crate) mod parker;
pub(crate) mod pool;
pub(crate) mod reentry;
pub(crate) mod stats;
pub(crate) mod weak_world;
