//! Verifies a segmented world as a whole: each of its worlds, and what must hold between them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use cg_format::{EntityId, RecordId};
use cg_store::error::ConflictKey;
use cg_store::verify::{VerifyDepth, VerifyReport};
use cg_store::view::Area;
use cg_store::{Error, OpenError, World, WorldOptions};

use super::closed::ClosedWorld;
use super::departures::departures;
use super::disk::OnDisk;
use super::held::{Held, for_each_key};
use super::place::Place;
use super::pos::SegmentPos;
use super::read_base::ReadBase;
use super::rows::{ENTITY_PREFIX, place_property, transfer_property, whole};
use super::transfer::decode as decode_transfers;
use super::world::SegmentedWorld;
use crate::overlay::{Arenas, is_pool};

/// The result of [`SegmentedWorld::verify`].
#[derive(Debug)]
#[non_exhaustive]
pub struct SegmentedReport {
    /// The report of the root.
    pub root: VerifyReport,
    /// The reports of the segments, or why one cannot be read.
    pub segments: BTreeMap<SegmentPos, Result<VerifyReport, Error>>,
    /// The reports of pools of arenas, by directory, or why one cannot be opened over this world.
    pub arenas: BTreeMap<PathBuf, Result<VerifyReport, Error>>,
    /// What is wrong between the worlds, each as a sentence.
    pub findings: Vec<String>,
}

impl SegmentedReport {
    /// Whether there are no problems.
    pub fn is_ok(&self) -> bool {
        let mut all = self.segments.values().chain(self.arenas.values());
        let are_sound = all.all(|report| report.as_ref().is_ok_and(VerifyReport::is_ok));
        self.findings.is_empty() && self.root.is_ok() && are_sound
    }
}

impl SegmentedWorld<OnDisk> {
    /// Verifies a segmented world that no process has open. Changes nothing.
    ///
    /// The root and each segment are verified as [`World::verify`] does it. Then it is checked that the root knows every
    /// world in `segments`, and that those it knows are there and belong to it; that their names are the root's; that
    /// every chunk is in its segment; and that every entity, property, object and record of a segment is in one, the one
    /// that the root says. An entity in transit may be in two. With [`VerifyDepth::Quick`] these are not compared.
    ///
    /// Pools of arenas are verified as [`Arenas::verify`] does it: those in `arenas`, and those in directories beside
    /// `root`.
    ///
    /// Memory holds the id of every entity. `progress` gets the number of rows that were checked in the present world.
    ///
    /// # Errors
    /// [`SegmentError::NotSegmented`](crate::SegmentError::NotSegmented),
    /// [`SegmentError::DamagedRoot`](crate::SegmentError::DamagedRoot), and the errors of opening the root for reading.
    pub fn verify(
        dir: impl AsRef<Path>,
        depth: VerifyDepth,
        options: &WorldOptions,
        arenas: &[PathBuf],
        mut progress: impl FnMut(u64),
    ) -> Result<SegmentedReport, Error> {
        let closed = ClosedWorld::open(dir.as_ref(), options)?;
        let root = closed.root();
        let in_transit = match root.property(&transfer_property()?)? {
            Some(bytes) => whole("crossing", &bytes, decode_transfers)?.into_iter().map(|it| it.id).collect(),
            None => BTreeSet::new(),
        };
        let mut report = SegmentedReport {
            root: root.verify(depth, &mut progress)?,
            segments: BTreeMap::new(),
            arenas: BTreeMap::new(),
            findings: Vec::new(),
        };
        report.findings.extend(closed.findings()?);
        let departing = departures(root)?;
        let mut between = Between {
            side_chunks: closed.side_chunks(),
            in_transit,
            departing,
            entities: BTreeMap::new(),
            findings: Vec::new(),
        };
        for segment in closed.segments() {
            let verified = closed.segment(segment).and_then(|world| {
                if depth == VerifyDepth::Full {
                    between.visit(root, &world, segment)?;
                }
                world.verify(depth, &mut progress)
            });
            report.segments.insert(segment, verified);
        }
        between.compare(root)?;
        report.findings.extend(between.findings);
        let base = ReadBase::new(closed);
        let beside = pools_beside(dir.as_ref())?;
        for pool in beside.iter().chain(arenas) {
            let verified = Arenas::open_read_only(pool, base.clone(), options)
                .and_then(|arenas| arenas.verify(depth, &mut progress));
            report.arenas.insert(pool.clone(), verified);
        }
        Ok(report)
    }
}

/// The pools of arenas in the directory of a segmented world.
fn pools_beside(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let io = |source| Error::from(OpenError::Io { action: "list", path: dir.into(), source });
    let mut pools = Vec::new();
    for entry in fs::read_dir(dir).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if is_pool(&path) {
            pools.push(path);
        }
    }
    Ok(pools)
}

/// What must hold between the worlds.
struct Between {
    side_chunks: u32,
    in_transit: BTreeSet<EntityId>,
    /// Segments that have dead copies of records.
    departing: BTreeMap<RecordId, SegmentPos>,
    /// The segment in which each entity was met first.
    entities: BTreeMap<EntityId, SegmentPos>,
    findings: Vec<String>,
}

impl Between {
    /// Visits what a segment has. What is damaged is a finding of the segment itself.
    fn visit(&mut self, root: &World, world: &World, segment: SegmentPos) -> Result<(), Error> {
        world.read_view(|view| {
            view.for_each_place(Area::World, |met| {
                if let Ok(place) = met
                    && SegmentPos::of(place.at, self.side_chunks) != segment
                {
                    let of = SegmentPos::of(place.at, self.side_chunks);
                    self.findings.push(format!("{} is stored in {segment} and belongs to {of}", place.at));
                }
                ControlFlow::<()>::Continue(())
            })
        })?;
        let failed = for_each_key(world, |met| {
            // What is damaged is a finding of the segment itself.
            let Ok(key) = met else { return ControlFlow::Continue(()) };
            let compared = match key {
                ConflictKey::Entity(id) => {
                    self.met(id, segment);
                    Ok(())
                }
                ConflictKey::Record(id) if self.departing.get(&id) == Some(&segment) => Ok(()),
                key => self.compare_value(root, segment, &key),
            };
            compared.map_or_else(ControlFlow::Break, ControlFlow::Continue)
        })?;
        failed.map_or(Ok(()), Err)
    }

    fn met(&mut self, id: EntityId, segment: SegmentPos) {
        match self.entities.get(&id) {
            Some(first) if !self.in_transit.contains(&id) => {
                let what = format!(
                    "entity {id} is in {first} and in {segment}: delete it in one of them; a segment that was put back \
                     from a copy has the entities of then"
                );
                self.findings.push(what);
            }
            Some(_) => {}
            None => drop(self.entities.insert(id, segment)),
        }
    }

    /// Compares where a property, an object or a record is with what the root says, which names one segment at most.
    fn compare_value(&mut self, root: &World, segment: SegmentPos, key: &ConflictKey) -> Result<(), Error> {
        let said = root.property(&place_property(key)?)?;
        let said = said.map(|said| whole(format_args!("place of {key}"), &said, Place::read)).transpose();
        let also = match said {
            Ok(None) => "and the root names no segment".to_owned(),
            Ok(Some(said)) if said.segment != segment => {
                format!("and the root says that it is in {}", said.segment)
            }
            Ok(Some(_)) if Held::of(root, key)?.is_live() => {
                "and the root has another one of that key".to_owned()
            }
            Ok(Some(_)) => return Ok(()),
            Err(error) => error.to_string(),
        };
        self.findings
            .push(format!("{key} is in {segment}, {also}; take what is there by `cg segments accept`"));
        Ok(())
    }

    /// Compares where entities are with what the root says.
    fn compare(&mut self, root: &World) -> Result<(), Error> {
        root.read_view(|view| {
            view.for_each_property(ENTITY_PREFIX, |met| {
                // A damaged property is a finding of the root itself.
                let Ok((name, value)) = met else { return ControlFlow::<()>::Continue(()) };
                let id = name.strip_prefix(ENTITY_PREFIX).and_then(|id| id.parse().ok()).map(EntityId::new);
                let said = whole(name, value, SegmentPos::read);
                match (id.and_then(|id| Some((id, self.entities.remove(&id)?))), said) {
                    (Some((id, found)), Ok(said)) if found != said && !self.in_transit.contains(&id) => {
                        self.findings.push(format!(
                            "entity {id} is in {found}, and the root says that it is in {said}"
                        ));
                    }
                    (_, Err(error)) => self.findings.push(error.to_string()),
                    _ => {}
                }
                ControlFlow::Continue(())
            })
        })?;
        for (id, segment) in std::mem::take(&mut self.entities) {
            self.findings.push(format!(
                "entity {id} is in {segment}, and the root names no segment; take what is there by `cg segments accept`"
            ));
        }
        Ok(())
    }
}
