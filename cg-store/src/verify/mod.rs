//! Verification: every row through frame, key and decoder, and every reference to its other end.
//!
//! Nothing is changed. A damaged row is a finding, and the search goes on behind it.

mod content;
mod entities;
mod rows;

use std::collections::BTreeMap;

use cg_format::entity::Entity;
use cg_format::key::Family;
use cg_format::{EntityId, Space};

use crate::engine::Engine;
use crate::error::Error;
use crate::meta;
use crate::world::World;

/// How closely a world is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyDepth {
    /// Keys and frames: every byte is read and summed, nothing is decoded.
    Quick,
    /// Everything: contents, references between chunks and entities, ids, versions and shadows.
    Full,
}

/// What verification found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// How many rows of each family, and how many live chunks and references, were looked at.
    pub checked: BTreeMap<&'static str, u64>,
    /// What is wrong; empty for a sound world.
    pub findings: Vec<Finding>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The family of the row.
    pub family: Family,
    /// What the row is, if its key says so.
    pub space: Option<Space>,
    /// Its key.
    pub key: Vec<u8>,
    /// What is wrong with it, as a sentence.
    pub what: String,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.findings.is_empty()
    }
}

impl<E: Engine> World<E> {
    /// Looks at every row of the world as it is now. Reads everything; `progress` is called with the rows so far.
    ///
    /// # Errors
    /// If the engine fails otherwise than by a damaged row.
    pub fn verify(&self, depth: VerifyDepth, mut progress: impl FnMut(u64)) -> Result<VerifyReport, Error> {
        let inner = self.inner();
        let view = inner.engine.snapshot();
        let mut verifier = Verifier {
            last_commit: inner.engine.last_commit().get(),
            report: VerifyReport::default(),
            entities: BTreeMap::new(),
            rows: 0,
            progress: &mut progress,
        };
        for family in Family::ALL {
            verifier.rows(&view, family, depth)?;
        }
        if depth == VerifyDepth::Full {
            match meta::read_catalog(&view) {
                Ok(catalog) => verifier.content(&view, inner, &catalog)?,
                Err(error) => verifier.find(Family::WorldMeta, None, &[], error.to_string()),
            }
        }
        Ok(verifier.report)
    }
}

struct Verifier<'p> {
    last_commit: u64,
    report: VerifyReport,
    /// The owner of every entity that decodes.
    entities: BTreeMap<EntityId, Entity>,
    rows: u64,
    progress: &'p mut dyn FnMut(u64),
}

impl Verifier<'_> {
    fn find(&mut self, family: Family, space: Option<Space>, key: &[u8], what: impl Into<String>) {
        self.report.findings.push(Finding { family, space, key: key.into(), what: what.into() });
    }

    fn count(&mut self, what: &'static str) {
        *self.report.checked.entry(what).or_default() += 1;
    }
}
