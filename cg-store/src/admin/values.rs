//! Stored values that today's types do not allow.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::admin::Admin;
use crate::engine::ErrorKind;
use crate::kinds::entity::upgrade;
use crate::read::chunk::Area;
use crate::read::iterate::entities;
use crate::storage::error::Error;
use crate::storage::meta;
use crate::storage::value_check::{IllegalValue, in_chunk, in_entity};

/// The stored values that the [types](cg_registry::types) of their components do not allow. The lists are bounded by
/// [`MAX_SHOWN`](Self::MAX_SHOWN); the counts are not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueReport {
    /// The number of checked chunks and entities.
    pub checked: BTreeMap<&'static str, u64>,
    /// The number of illegal values.
    pub illegal: u64,
    /// The first of them.
    pub first: Vec<IllegalValue>,
    /// The number of chunks and entities that could not be read, and of places where more may be missing. Their values are
    /// not checked.
    pub damaged: u64,
    /// The first of them, each with its place and problem.
    pub first_damaged: Vec<String>,
}

impl ValueReport {
    /// The most values, and the most damaged rows, that are listed.
    pub const MAX_SHOWN: usize = 100;

    /// Whether every value could be read and is allowed.
    pub const fn is_ok(&self) -> bool {
        self.illegal == 0 && self.damaged == 0
    }

    fn illegal(&mut self, found: IllegalValue) -> ControlFlow<()> {
        self.illegal += 1;
        if self.first.len() < Self::MAX_SHOWN {
            self.first.push(found);
        }
        ControlFlow::Continue(())
    }

    fn damaged(&mut self, error: &Error) {
        self.damaged += 1;
        if self.first_damaged.len() < Self::MAX_SHOWN {
            self.first_damaged.push(error.to_string());
        }
    }

    /// Counts a checked value and returns how many are checked.
    fn count(&mut self, what: &'static str) -> u64 {
        *self.checked.entry(what).or_default() += 1;
        self.checked.values().sum()
    }
}

impl Admin<'_> {
    /// See [`WorldRegistry::check`](crate::WorldRegistry::check).
    pub(crate) fn check_values(&self, mut progress: impl FnMut(u64)) -> Result<ValueReport, Error> {
        self.commit.drain()?;
        let engine = self.shared.engine()?;
        let view = engine.snapshot()?;
        let catalog = meta::read_catalog(&view)?;
        let mut report = ValueReport::default();
        let mut tell = |checked: u64| {
            if checked.is_multiple_of(1024) {
                progress(checked);
            }
        };
        let walked = self.read.walk(&view, Area::World, |stored| {
            match stored.and_then(|stored| Ok((stored.at, self.read.decode(&catalog, stored)?))) {
                Ok((at, chunk)) => {
                    tell(report.count("chunks"));
                    let _ = in_chunk(&catalog, at, &chunk, |found| report.illegal(found));
                }
                Err(error) => report.damaged(&error),
            }
            ControlFlow::<()>::Continue(())
        });
        match walked {
            // The deltas cannot be read, so the content of the chunks is unknown.
            Err(error) if error.kind() == ErrorKind::Damaged => report.damaged(&error),
            walked => drop(walked?),
        }
        let upgrades = &self.shared.options.upgrades;
        entities(&view, |found| {
            let entity = found.and_then(|(id, entity)| Ok((id, upgrade(&catalog, upgrades, id, entity)?)));
            match entity {
                Ok((id, entity)) => {
                    tell(report.count("entities"));
                    let _ = in_entity(&catalog, id, &entity, |found| report.illegal(found));
                }
                Err(error) => report.damaged(&error),
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(report)
    }
}
