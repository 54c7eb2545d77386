//! Verification: checks the frame, key and content of every row, and both ends of every reference.
//!
//! Nothing is changed. A damaged row is a finding, and verification continues after it.

mod content;
mod opacity;
mod rows;
mod snapshot;

use std::collections::BTreeMap;
use std::fmt;

use cg_format::key::Family;
use cg_format::lineage::Lineage;
use cg_format::{ChunkAt, EntityId, Space};
use cg_registry::Catalog;

use crate::admin::Admin;
use crate::admin::quarantine::LostChunks;
use crate::maintain::opacity::is_rewritten_at_close;
use crate::rt::stats::Counters;
#[cfg(feature = "rocks")]
use crate::storage::directory;
use crate::storage::error::Error;
use crate::storage::meta;
use crate::storage::opacity_map::WHOLE;
use crate::storage::record_shape::RecordShape;

/// How much of a world is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyDepth {
    /// Keys and frames: every byte is read and its checksum verified, nothing is decoded.
    Quick,
    /// Everything: contents, references between chunks and entities, ids, versions, shadows, and whether the opacity
    /// map agrees with the chunks. Every chunk is decoded, and its blocks a second time for the map.
    Full,
}

/// The result of verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// The number of checked rows of each family, and of checked live chunks and references.
    pub checked: BTreeMap<&'static str, u64>,
    /// The problems; empty for a sound world.
    pub findings: Vec<Finding>,
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The number of the arena whose row it is; `None` in a world, and for rows that all arenas share.
    pub arena: Option<u32>,
    /// The family of the row.
    pub family: Family,
    /// The kind of row, if its key shows it.
    pub space: Option<Space>,
    /// Its key; empty for rows that cannot be listed.
    pub key: Vec<u8>,
    /// The problem and, if the row is damaged, its remedy, as a sentence.
    pub what: String,
    /// The chunks that it affects, for [`Quarantine::chunks_in`](crate::quarantine::Quarantine::chunks_in), or for
    /// `Overlay::reset_damaged` of an arena; `None` if it is not about chunks, or that would do nothing.
    pub lost: Option<LostChunks>,
}

impl VerifyReport {
    /// Whether there are no problems.
    pub fn is_ok(&self) -> bool {
        self.findings.is_empty()
    }
}

struct Verifier<'p> {
    counters: &'p Counters,
    last_commit: u64,
    lineage: &'p Lineage,
    report: VerifyReport,
    /// The registry, if it is needed and can be read.
    catalog: Option<Catalog>,
    /// Every entity that decodes, with the chunk that owns it.
    owners: BTreeMap<EntityId, Option<ChunkAt>>,
    /// The snapshot whose rows are being visited, if everything is checked.
    parts: Option<snapshot::Parts>,
    shape: RecordShape,
    rows: u64,
    /// The last decompressed hot row.
    buffer: Vec<u8>,
    progress: &'p mut dyn FnMut(u64),
}

impl Verifier<'_> {
    fn find(&mut self, space: Space, key: &[u8], what: impl Into<String>) {
        self.find_lost(space, key, what, None);
    }

    /// As [`find`](Self::find), where no key shows the kind of row.
    fn find_in(&mut self, family: Family, key: &[u8], what: impl Into<String>) {
        let (key, what) = (key.into(), what.into());
        self.report.findings.push(Finding { arena: None, family, space: None, key, what, lost: None });
    }

    /// As [`find`](Self::find), for a problem that affects chunks.
    fn find_lost(&mut self, space: Space, key: &[u8], what: impl Into<String>, lost: Option<LostChunks>) {
        let (family, key) = (space.family(), key.into());
        let what = what.into();
        self.report.findings.push(Finding { arena: None, family, space: Some(space), key, what, lost });
    }

    /// Reports a damaged row with its remedy.
    fn damaged(&mut self, space: Space, key: &[u8], problem: impl fmt::Display) {
        let is_rewritten = space == Space::WorldMeta && is_rewritten_at_close(key);
        let is_of_map = space == Space::WorldMeta && key == WHOLE.key.as_bytes();
        let remedy = match space {
            Space::WorldMeta if is_rewritten => "closing the world writes it anew",
            _ if is_of_map => remedy(Space::OpacityTile),
            _ => remedy(space),
        };
        self.find_lost(space, key, format!("{problem}; {remedy}"), LostChunks::of_row(space, key));
    }

    fn count(&mut self, what: &'static str) {
        *self.report.checked.entry(what).or_default() += 1;
    }
}

/// The remedy for a damaged row.
const fn remedy(space: Space) -> &'static str {
    match space {
        Space::ChunkL0 | Space::Entity | Space::Object | Space::Record | Space::RecordPlace => {
            "restore it from a checkpoint or set it aside with `cg quarantine`"
        }
        Space::ChunkDelta => {
            "its chunk is there without this change: set the change aside with `cg quarantine`, or restore it from a checkpoint"
        }
        Space::ClusterL1 | Space::ClusterL2 => {
            "restore it from a checkpoint or set its chunks aside with `cg quarantine`"
        }
        Space::OpacityTile | Space::OpacityPatch => "`cg opacity rebuild` draws the map anew",
        Space::ChangeMark | Space::Heat | Space::ColdHeat => "the next change there writes it anew",
        Space::ChangeLog => "end the log of changes and begin it anew",
        Space::Quarantine => "delete it with `cg quarantine delete`",
        Space::WorldMeta | Space::WorldProperty | Space::Snapshot | Space::Intent => {
            "restore it from a checkpoint"
        }
    }
}

/// The text of an error without the advice to verify the world.
fn in_words(error: &Error) -> String {
    match error {
        Error::Corrupt(damage) => damage.to_string(),
        error => error.to_string(),
    }
}

impl Admin<'_> {
    /// See [`World::verify`](crate::World::verify).
    pub(crate) fn verify(
        &self,
        depth: VerifyDepth,
        mut progress: impl FnMut(u64),
    ) -> Result<VerifyReport, Error> {
        self.commit.drain()?;
        let look = || (self.shared.lineage(), self.shared.map.is_whole());
        let (engine, (lineage, has_map)) = self.shared.engine_with(look)?;
        let view = engine.snapshot()?;
        let registry = (depth == VerifyDepth::Full).then(|| meta::read_catalog(&view));
        let (catalog, unreadable) = match registry {
            None => (None, None),
            Some(Ok(catalog)) => (Some(catalog), None),
            Some(Err(error)) => (None, Some(error)),
        };
        let mut verifier = Verifier {
            counters: &self.shared.counters,
            last_commit: engine.last_commit().get(),
            lineage: &lineage,
            report: VerifyReport::default(),
            catalog,
            owners: BTreeMap::new(),
            parts: None,
            shape: self.shared.record_shape,
            rows: 0,
            buffer: Vec::new(),
            progress: &mut progress,
        };
        for family in Family::ALL {
            verifier.rows(&view, family, depth)?;
        }
        view.check_columns(&mut |family, key, what| verifier.find_in(family, key, what))?;
        #[cfg(feature = "rocks")]
        if let Some(world) = self.shared.location.directory()
            && let Some(problem) = directory::floor_problem(world, &self.shared.file)
        {
            verifier.find_in(Family::WorldMeta, &[], problem.to_string());
        }
        if let Some(error) = unreadable {
            let why = in_words(&error);
            let what = format!(
                "ids, chunks and references were not checked, for the registry cannot be read: {why}"
            );
            verifier.find_in(Family::WorldMeta, &[], what);
        }
        if let Some(catalog) = verifier.catalog.take() {
            verifier.content(&view, self, &catalog)?;
            if has_map {
                verifier.opacity(&view, self, &catalog)?;
            }
        }
        Ok(verifier.report)
    }
}
