//! How far a build is: drawn in place on a terminal, else said every half minute.

use std::io::{Write as _, stderr};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::context::Context;
use crate::setup::say;

/// How often a build without a terminal says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Progress {
    redraws: bool,
    start: Instant,
    spoken: Instant,
    file_count: usize,
}

impl Progress {
    /// Begins to count the time.
    pub(super) fn new(context: &Context, file_count: usize) -> Self {
        let now = Instant::now();
        Self { redraws: context.redraws(), start: now, spoken: now, file_count }
    }

    /// Says how many files are compiled, if it is time to; called a few times a second.
    pub(super) fn show(&mut self, done: impl FnOnce() -> usize) -> Result<()> {
        if self.redraws {
            eprint!("\r  {}", self.line(done()));
            stderr().flush()?;
        } else if self.spoken.elapsed() >= HEARTBEAT {
            self.spoken = Instant::now();
            say(self.line(done()));
        }
        Ok(())
    }

    /// Ends a line that was drawn in place, before something else is said.
    pub(super) fn pause(&self) {
        if self.redraws {
            eprintln!();
        }
    }

    pub(super) fn finish(self) {
        self.pause();
        say(format!("compiled in {}", minutes(self.start.elapsed())));
    }

    fn line(&self, done: usize) -> String {
        format!("{} elapsed, {done} of {} files compiled", minutes(self.start.elapsed()), self.file_count)
    }
}

fn minutes(elapsed: Duration) -> String {
    format!("{}:{:02} min", elapsed.as_secs() / 60, elapsed.as_secs() % 60)
}
