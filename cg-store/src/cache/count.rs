//! A counter that many threads add to without waiting for each other.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

const STRIPES: usize = 16;

/// A sum in parts, each for some of the threads.
#[derive(Debug, Default)]
pub(crate) struct Count([Stripe; STRIPES]);

/// On a cache line of its own, and of the neighbour that processors fetch along with it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe(AtomicU64);

impl Count {
    #[inline]
    pub(crate) fn add_one(&self) {
        thread_local! {
            static STRIPE: usize = {
                static THREADS: AtomicUsize = AtomicUsize::new(0);
                THREADS.fetch_add(1, Relaxed) % STRIPES
            };
        }
        STRIPE.with(|stripe| self.0[*stripe].0.fetch_add(1, Relaxed));
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.0.load(Relaxed)).sum()
    }
}
