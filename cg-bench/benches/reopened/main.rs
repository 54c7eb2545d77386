//! Content that a server finds again: columns of a world that was closed, chunks after their deltas, entities on the
//! move.
//!
//! | group | reference | what is allowed |
//! |---|---|---|
//! | `reopened: a column of 24 chunks` | RocksDB with the same little memory fetches the same rows, and what was asked for is decoded | empty 15 µs from L1; terrain 1.3 × |
//! | `reopened: 11×11 columns` | the same, on a database that was just opened | empty 2 ms; terrain 1.3 × |
//! | `reopened: a chunk behind deltas` | a chunk without any | 1.5 × |
//! | `reopened: 1,000 crossings a second` | stated: what the caller waits for 50 of them in a tick, and what is written | |
//!
//! *Empty* are chunks of air alone. *Terrain* is the 11×11 columns of the real saves in `CG_WORLDS` that hold the most
//! chunks of more than one kind; without that folder they are generated hills, and the run says so.
#![allow(missing_docs, reason = "criterion's macros make public items")]

mod columns;
mod deltas;
mod transfers;

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(3))
        .warm_up_time(Duration::from_millis(500));
    targets = columns::columns, columns::areas, deltas::folded, transfers::crossings
}
criterion_main!(benches);
