//! Times, calls and round trips of one thing that is done many times.

use std::time::{Duration, Instant};

use cg_bench::order::percentile;
use cg_engine::conformance::Counter;

use crate::database::Network;

/// What was measured of each repetition.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    times: Vec<Duration>,
    calls: Vec<u64>,
    trips: Vec<u64>,
}

impl Sample {
    /// Does something once, and adds what it took. The calls are those of all threads of a world.
    pub(crate) fn measure<T>(&mut self, network: &Network, counter: &Counter, act: impl FnOnce() -> T) -> T {
        let (calls, trips) = (counter.calls(), network.trips());
        let begun = Instant::now();
        let value = act();
        self.times.push(begun.elapsed());
        self.calls.push((counter.calls() - calls).all());
        self.trips.extend(network.trips().zip(trips).map(|(after, before)| after - before));
        value
    }

    /// Does something once that uses no network, and adds its time.
    pub(crate) fn measure_alone<T>(&mut self, act: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let value = act();
        self.add(begun.elapsed());
        value
    }

    /// Adds a time alone.
    pub(crate) fn add(&mut self, time: Duration) {
        self.times.push(time);
    }

    /// Adds the calls of a repetition.
    pub(crate) fn add_calls(&mut self, calls: u64) {
        self.calls.push(calls);
    }

    /// A percentile of the times.
    pub(crate) fn time(&mut self, percent: f64) -> Duration {
        percentile(&mut self.times, percent)
    }

    /// The median of the calls; `None` if they were not counted.
    pub(crate) fn calls(&mut self) -> Option<u64> {
        median(&mut self.calls)
    }

    /// The largest number of calls.
    pub(crate) fn most_calls(&self) -> Option<u64> {
        self.calls.iter().max().copied()
    }

    /// The median of the round trips; `None` without a proxy that counts them.
    pub(crate) fn trips(&mut self) -> Option<u64> {
        median(&mut self.trips)
    }
}

fn median(values: &mut [u64]) -> Option<u64> {
    if values.is_empty() { None } else { Some(percentile(values, 50.0)) }
}
