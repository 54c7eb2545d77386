//! Verification: every row through frame, key and decoder, and every reference to its other end.
//!
//! Nothing is changed. A damaged row is a finding, and the search goes on behind it.

mod opacity;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use cg_format::cluster::{Slot, SlotInfo, StoredCluster};
use cg_format::entity::{Entity, Owner};
use cg_format::frame::{FrameView, version_of};
use cg_format::key::{self, Family};
use cg_format::opacity::{Patch, TileView};
use cg_format::{ChunkAt, ClusterPos, ClusterTier, DecodeError, EntityId, Limits, Space};
use cg_registry::{Catalog, ListKind};

use crate::chunk::decode::row_of;
use crate::chunk::{Area, walk};
use crate::engine::{ALL_KEYS, Engine, EngineError, ReadView};
use crate::error::Error;
use crate::meta;
use crate::world::{Inner, World};

/// How closely a world is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyDepth {
    /// Keys and frames: every byte is read and summed, nothing is decoded.
    Quick,
    /// Everything: contents, references between chunks and entities, ids, versions and shadows, and whether the
    /// opacity map says what the chunks say. Every chunk is decoded, and its blocks once more for the map.
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
                Ok(catalog) => {
                    verifier.content(&view, inner, &catalog)?;
                    verifier.opacity(&view, inner, &catalog)?;
                }
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

    /// Every row of a family by itself. A row that the engine itself cannot read ends the family.
    fn rows<V: ReadView>(&mut self, view: &V, family: Family, depth: VerifyDepth) -> Result<(), Error> {
        let scanned = view.scan(family, ALL_KEYS, |key, row| {
            self.rows += 1;
            if self.rows.is_multiple_of(1024) {
                (self.progress)(self.rows);
            }
            self.count(family.name());
            let Some(space) = Space::of_row(family, key) else {
                self.find(family, None, key, "a key that this release does not know; the row is left alone");
                return ControlFlow::<()>::Continue(());
            };
            if let Err(problem) = self.row(view, space, key, row, depth) {
                self.find(family, Some(space), key, problem.to_string());
            }
            ControlFlow::Continue(())
        });
        match scanned {
            Ok(_) => Ok(()),
            Err(error @ EngineError::Corrupt { .. }) => {
                self.find(family, None, &[], format!("the rest of the family cannot be read: {error}"));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn row<V: ReadView>(
        &mut self,
        view: &V,
        space: Space,
        key: &[u8],
        row: &[u8],
        depth: VerifyDepth,
    ) -> Result<(), DecodeError> {
        let frame = FrameView::open(space, key, row)?;
        if frame.header().version > self.last_commit {
            let (version, last) = (frame.header().version, self.last_commit);
            self.find(
                space.family(),
                Some(space),
                key,
                format!("version {version} is newer than the last commit, {last}"),
            );
        }
        match space {
            Space::ChunkL0 => drop(key::decode_chunk(key)?),
            Space::ClusterL1 => self.cluster(view, ClusterTier::L1, key, &frame, depth)?,
            Space::ClusterL2 => self.cluster(view, ClusterTier::L2, key, &frame, depth)?,
            Space::Entity => {
                let id = key::decode_entity(key)?;
                if depth == VerifyDepth::Full {
                    let entity = Entity::decode(frame.payload())?;
                    self.entities.insert(id, entity);
                }
            }
            Space::OpacityTile => {
                key::decode_opacity_tile(key)?;
                TileView::new(frame.payload())?;
            }
            Space::OpacityPatch => {
                key::decode_opacity_patch(key)?;
                Patch::decode(frame.payload())?;
            }
            Space::ChunkDelta => drop(key::decode_delta(key)?),
            Space::ChangeMark => drop(key::decode_change_mark(key)?),
            Space::Quarantine => drop(key::decode_quarantine(key)?),
            _ => {}
        }
        Ok(())
    }

    /// Every slot of a cluster: readable, no newer than the last commit, and no newer than a copy that hides it.
    fn cluster<V: ReadView>(
        &mut self,
        view: &V,
        tier: ClusterTier,
        key: &[u8],
        frame: &FrameView<'_>,
        depth: VerifyDepth,
    ) -> Result<(), DecodeError> {
        let (dimension, pos) = key::decode_cluster(tier, key)?;
        let cluster = StoredCluster::new(tier, frame)?;
        let space = Space::of_cluster(tier);
        let mut warm = WarmVersions::default();
        for (slot, SlotInfo { version, .. }) in cluster.slots() {
            let Some(pos) = slot.chunk(pos) else {
                self.find(space.family(), Some(space), key, format!("{slot:?} lies outside the world"));
                continue;
            };
            let at = ChunkAt { dimension, pos };
            if version > self.last_commit {
                let what =
                    format!("{at} has version {version}, newer than the last commit, {}", self.last_commit);
                self.find(space.family(), Some(space), key, what);
            } else if depth == VerifyDepth::Full {
                let hot = version_in(view, Space::ChunkL0, &key::chunk(at));
                let hiding = hot.or_else(|| (tier == ClusterTier::L2).then(|| warm.of(view, at))?);
                if let Some(hiding) = hiding.filter(|hiding| *hiding < version) {
                    let what = format!(
                        "{at} has version {version}, but a hotter copy with version {hiding} hides it"
                    );
                    self.find(space.family(), Some(space), key, what);
                }
            }
        }
        if depth == VerifyDepth::Full {
            for index in cluster.groups() {
                if let Err(problem) = cluster.group(index, &mut Limits::default()) {
                    self.find(space.family(), Some(space), key, problem.to_string());
                }
            }
        }
        Ok(())
    }

    /// Every live chunk decoded, and every reference followed both ways.
    fn content<V: ReadView, E: Engine>(
        &mut self,
        view: &V,
        world: &Inner<E>,
        catalog: &Catalog,
    ) -> Result<(), Error> {
        let mut referrers: BTreeMap<EntityId, ChunkAt> = BTreeMap::new();
        walk(view, &world.counters, Area::World, |stored| {
            // A row that does not open was found by itself already.
            let Ok(stored) = stored else { return ControlFlow::<()>::Continue(()) };
            self.count("chunks");
            let (space, row) = row_of(stored.at, stored.tier);
            let mut find = |what: String| self.find(space.family(), Some(space), &row, what);
            let chunk = match world.decode(catalog, stored) {
                Ok(chunk) => chunk,
                Err(error) => {
                    find(error.to_string());
                    return ControlFlow::Continue(());
                }
            };
            let issued = |list| catalog.list(list).len() as u64;
            let dimension = stored.at.dimension.get();
            if dimension >= issued(ListKind::Dimensions) {
                find(format!("dimension {dimension} was never issued"));
            }
            for entry in chunk.palette() {
                if entry.block.get() >= issued(ListKind::Blocks) {
                    find(format!("block id {} was never issued", entry.block.get()));
                }
            }
            for (kind, _) in chunk.sides() {
                if u64::from(kind.get()) >= issued(ListKind::Sides) {
                    find(format!("kind {} of side data was never issued", kind.get()));
                }
            }
            for id in chunk.entities() {
                self.count("references");
                if let Some(other) = referrers.insert(*id, stored.at) {
                    let what = format!("entity {id} is referred to by {other} too");
                    self.find(space.family(), Some(space), &row, what);
                }
            }
            ControlFlow::Continue(())
        })?;
        self.references(catalog, &referrers);
        Ok(())
    }

    /// A chunk refers to an entity exactly if that entity's owner is the chunk.
    fn references(&mut self, catalog: &Catalog, referrers: &BTreeMap<EntityId, ChunkAt>) {
        let entities = std::mem::take(&mut self.entities);
        for (id, at) in referrers {
            if !entities.contains_key(id) {
                let what = format!("{at} refers to entity {id}, which is not stored or damaged");
                self.find(Family::ChunkL0, Some(Space::ChunkL0), &key::chunk(*at), what);
            }
        }
        let kinds = catalog.list(ListKind::Entities).len() as u64;
        for (id, entity) in &entities {
            let referrer = referrers.get(id).copied();
            let owner = match &entity.owner {
                Owner::Chunk(at) => Some(*at),
                Owner::Detached(_) => None,
            };
            let row = key::entity(*id);
            if owner != referrer {
                let name = |at: Option<ChunkAt>| at.map_or("no chunk".into(), |at| at.to_string());
                let what = format!("its owner is {}, but {} refers to it", name(owner), name(referrer));
                self.find(Family::Entity, Some(Space::Entity), &row, what);
            }
            if entity.kind.get() >= kinds {
                let what = format!("entity type {} was never issued", entity.kind.get());
                self.find(Family::Entity, Some(Space::Entity), &row, what);
            }
        }
    }
}

/// The versions of warm chunks, one cluster at a time.
#[derive(Default)]
struct WarmVersions {
    cluster: Option<(ClusterPos, BTreeMap<Slot, u64>)>,
}

impl WarmVersions {
    /// The version of a warm chunk; `None` if there is none that can be read.
    fn of<V: ReadView>(&mut self, view: &V, at: ChunkAt) -> Option<u64> {
        let pos = at.pos.cluster(ClusterTier::L1);
        let versions = match &mut self.cluster {
            Some((known, versions)) if *known == pos => versions,
            cluster => &mut cluster.insert((pos, Self::read(view, at).unwrap_or_default())).1,
        };
        versions.get(&Slot::of(at.pos, ClusterTier::L1)).copied()
    }

    fn read<V: ReadView>(view: &V, at: ChunkAt) -> Option<BTreeMap<Slot, u64>> {
        let key = key::cluster(at.dimension, at.pos.cluster(ClusterTier::L1));
        let row = view.get(Space::ClusterL1, &key).ok()??;
        let cluster = StoredCluster::open(ClusterTier::L1, &key, &row).ok()?;
        Some(cluster.slots().map(|(slot, info)| (slot, info.version)).collect())
    }
}

/// The version of a row; `None` if there is none that can be read.
fn version_in<V: ReadView>(view: &V, space: Space, key: &[u8]) -> Option<u64> {
    version_of(&view.get(space, key).ok()??)
}
