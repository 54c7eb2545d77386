//! A counter that many threads increment without contention.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The number of parts. The first threads of the process have one of their own; the others share the last.
const STRIPES: usize = 64;

/// A sum in parts, each for one thread or the remaining ones.
#[derive(Debug)]
pub(crate) struct Count([Stripe; STRIPES]);

/// Aligned to a cache line and the neighbour that processors fetch along with it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe(AtomicU64);

impl Default for Count {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Stripe::default()))
    }
}

impl Count {
    #[inline]
    pub(crate) fn add_one(&self) {
        thread_local! {
            static STRIPE: usize = {
                static THREADS: AtomicUsize = AtomicUsize::new(0);
                THREADS.fetch_add(1, Relaxed).min(STRIPES - 1)
            };
        }
        STRIPE.with(|stripe| {
            let Stripe(count) = &self.0[*stripe];
            if *stripe < STRIPES - 1 {
                // No other thread ever writes it, so the addition need not be atomic.
                count.store(count.load(Relaxed) + 1, Relaxed);
            } else {
                count.fetch_add(1, Relaxed);
            }
        });
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.0.load(Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn nothing_is_lost_when_more_threads_count_than_have_a_part() {
        let (threads, each) = (2 * STRIPES as u64, 2000);
        let count = Count::default();
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..each).for_each(|_| count.add_one()));
            }
        });
        assert_eq!(count.sum(), threads * each);
    }
}
