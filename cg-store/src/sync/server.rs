//! The server's side: what of a client's cache is up to date.
//!
//! What did not change is told from change marks, one row per 4³ cube; what may have is told from the frames and the
//! directories of such a cube, without decompressing anything; only what is sent is read.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use cg_format::cluster::{Slot, StoredCluster};
use cg_format::frame::{self, FrameView};
use cg_format::key::{self, Family};
use cg_format::{ChunkAt, ChunkBox, ChunkPos, ClusterPos, ClusterTier, Dimension, Lookup, Space};
use cg_registry::Catalog;

use super::error::{MessageError, SyncError};
use super::messages::{
    Answer, AreaReply, AskedArea, AskedCube, ChangedCube, CubeReply, NewNames, SyncReply, SyncRequest, name,
};
use crate::chunk::decode::upgrade;
use crate::chunk::{find_many_in, hot};
use crate::delta::fold_stored;
use crate::engine::{Engine, ReadView};
use crate::error::{Damage, Error};
use crate::stats::Counters;
use crate::world::{Inner, World};

/// So many chunks are read before it is seen whether there is room for more.
const READ_AT_ONCE: usize = 256;
/// Marks of so many 16³ cubes are asked for one by one; those of a larger box are scanned.
const NAMED_CUBES: u128 = 64;

/// How much a reply says at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerLimits {
    /// Bytes of chunks, of which the last may go beyond it; the client asks for the others again.
    pub chunk_bytes: usize,
    /// Changed chunks that are listed of all areas together.
    pub listed_chunks: usize,
    /// 4³ cubes that one request may ask about. Each costs the reading of its rows, up to a cluster of 16³ chunks.
    pub asked_cubes: usize,
    /// Areas that one request may ask about. Each costs a look at its marks.
    pub asked_areas: usize,
}

impl Default for AnswerLimits {
    /// 16 MiB of chunks, and a million that are listed; 65,536 cubes and 256 areas.
    fn default() -> Self {
        Self { chunk_bytes: 16 << 20, listed_chunks: 1 << 20, asked_cubes: 1 << 16, asked_areas: 256 }
    }
}

impl<E: Engine> World<E> {
    /// Answers what a client's cache asks, of one state of the world.
    ///
    /// Costs for chunks one read for each 4³ cube that is asked about, a look at the hot rows, deltas and cluster
    /// directories of each cube that changed since (up to 64 hot rows, of which nothing is decompressed or decoded), and
    /// the reading of what is sent.
    ///
    /// Costs for an area one read for each chunk that changed, where the commits since are remembered: up to 65,536 chunks are,
    /// from the first time on that the world is asked about an area. Of older commits it costs the marks of its 16³ cubes,
    /// those of the 4³ cubes in each that changed, and the same look at each 4³ cube that did: what is visited is bounded by
    /// the rows of the changed 4³ cubes, so up to 64 rows for one changed chunk. An area of more than 64 cubes of 16³ has the marks scanned between its corners in Morton order, which may pass over some
    /// that lie beside it. Syncs the world first if the reply tells of what a power cut could take back.
    ///
    /// # Errors
    /// [`SyncError::Message`] for a request that names what no world has; what the engine says. A chunk that is damaged
    /// fails no request: the reply says so, and the client keeps what it has.
    pub fn answer(&self, request: &SyncRequest, limits: &AnswerLimits) -> Result<SyncReply, SyncError> {
        let inner = self.settled()?;
        inner.check_open()?;
        for (what, found, limit) in [
            ("cubes", request.cubes.len(), limits.asked_cubes),
            ("areas", request.areas.len(), limits.asked_areas),
        ] {
            if found > limit {
                return Err(MessageError::TooMany { what, found, limit }.into());
            }
        }
        let engine = inner.settled_engine()?;
        // Read before the view is taken, which so has at least that.
        let commit = engine.last_commit().get();
        let view = engine.snapshot().map_err(Error::from)?;
        // Read after it, as marks of deletions may go while it is held.
        let forgotten = self.forgotten_before();
        let catalog = inner.registry.catalog();
        // The names of the catalog, of which some may be newer than the view, are told too.
        let newest = engine.last_commit().get();
        let (uuid, incarnation) = (self.uuid().into_bytes(), self.incarnation().into_bytes());
        let known = request.known.filter(|known| known.uuid == uuid && known.incarnation == incarnation);
        let mut answering = Answering {
            world: inner,
            view: &view,
            catalog: &catalog,
            commit,
            dimensions: Vec::new(),
            is_known: known.is_some(),
            forgotten,
            newest,
            listed: 0,
            limits,
            wanted: Vec::new(),
        };
        for dimension in &request.dimensions {
            let name = name(dimension)?;
            answering.dimensions.push(catalog.dimension(name.as_str()));
        }
        let mut cubes = Vec::with_capacity(request.cubes.len());
        for (index, asked) in request.cubes.iter().enumerate() {
            cubes.push(answering.cube(index, asked)?);
        }
        answering.read(&mut cubes)?;
        let areas = request.areas.iter().map(|area| answering.area(area)).collect::<Result<_, _>>()?;
        let caps = engine.caps();
        if caps.durable && !caps.read_only && engine.last_synced().get() < answering.newest {
            engine.sync().map_err(Error::from)?;
        }
        Ok(SyncReply {
            number: request.number,
            uuid,
            incarnation,
            commit,
            is_restart: known.is_none(),
            names: NewNames::behind(&catalog, known.as_ref()),
            cubes,
            areas,
        })
    }
}

/// A chunk, and the last commit that changed it.
type Changed = (ChunkAt, u64);
/// A 4³ cube in which something changed, and what, if that is remembered.
type ChangedIn = (ClusterPos, Option<Vec<Changed>>);

/// A chunk that is to be sent: where its answer goes, and which it is.
struct Wanted {
    cube: usize,
    place: usize,
    at: ChunkAt,
}

struct Answering<'a, E: Engine, V> {
    world: &'a Inner<E>,
    view: &'a V,
    catalog: &'a Catalog,
    /// The commit that the reply is of; the view has it, and may have later ones.
    commit: u64,
    /// By the request's numbers; `None` for one that is not known here.
    dimensions: Vec<Option<Dimension>>,
    /// Whether the client's versions are of this incarnation.
    is_known: bool,
    forgotten: u64,
    /// The newest commit that the reply tells of.
    newest: u64,
    listed: usize,
    limits: &'a AnswerLimits,
    wanted: Vec<Wanted>,
}

impl<E: Engine, V: ReadView> Answering<'_, E, V> {
    fn dimension(&self, number: u16) -> Result<Option<Dimension>, MessageError> {
        let found = self.dimensions.get(usize::from(number)).copied();
        found.ok_or_else(|| wrong("it has no name for a dimension"))
    }

    /// What is known of a cube from marks and versions. What is to be sent is noted as wanted.
    fn cube(&mut self, index: usize, asked: &AskedCube) -> Result<CubeReply, SyncError> {
        let cube = position(ClusterTier::L1, asked.cube)?;
        if asked.chunks.len() > 64 || asked.chunks.iter().any(|(place, _)| *place >= 64) {
            return Err(wrong("a 4³ cube has places 0 to 63, each once").into());
        }
        let all = |answer: Answer| CubeReply::Chunks(vec![answer; asked.chunks.len()]);
        let Some(dimension) = self.dimension(asked.dimension)? else { return Ok(all(Answer::Gone)) };
        let mark = match self.mark(dimension, cube) {
            Ok(Some(mark)) => mark,
            // What changed there last is not known, so all of it may have.
            Ok(None) | Err(Error::Corrupt(_)) => u64::MAX,
            Err(error) => return Err(error.into()),
        };
        let is_newest =
            |known: &Option<u64>| known.is_some_and(|known| mark <= known.max(asked.as_of.unwrap_or(0)));
        if self.is_known && asked.chunks.iter().all(|(_, known)| is_newest(known)) {
            return Ok(CubeReply::UpToDate);
        }
        let places = match self.places(dimension, cube) {
            Ok(places) => places,
            Err(Error::Corrupt(_)) => return Ok(all(Answer::Damaged)),
            Err(error) => return Err(error.into()),
        };
        let mut answers = Vec::with_capacity(asked.chunks.len());
        for (place, known) in &asked.chunks {
            let known = known.filter(|_| self.is_known);
            answers.push(match places.get(place) {
                Some((version, true)) if known == Some(*version) => Answer::UpToDate,
                Some((version, true)) => {
                    let at = ChunkAt { dimension, pos: chunk_at(cube, *place)? };
                    self.newest = self.newest.max(*version);
                    self.wanted.push(Wanted { cube: index, place: answers.len(), at });
                    Answer::Later
                }
                Some((_, false)) | None => Answer::Gone,
            });
        }
        Ok(CubeReply::Chunks(answers))
    }

    /// Reads what is wanted, as far as there is room, and puts it into its answers.
    fn read(&mut self, cubes: &mut [CubeReply]) -> Result<(), SyncError> {
        let mut left_bytes = self.limits.chunk_bytes;
        for wanted in std::mem::take(&mut self.wanted).chunks(READ_AT_ONCE) {
            if left_bytes == 0 {
                break;
            }
            let at: Vec<_> = wanted.iter().map(|wanted| wanted.at).collect();
            let found = find_many_in(self.view, &self.world.counters, &at, |stored| {
                if left_bytes == 0 {
                    return Ok(Answer::Later);
                }
                Counters::add(&self.world.counters.chunks_decoded, 1);
                let (chunk, version) = fold_stored(self.view, self.catalog, stored)?;
                let mut chunk = upgrade(self.catalog, &self.world.options.upgrades, stored, chunk)?;
                if chunk.has_unread_components() {
                    return Ok(Answer::Damaged);
                }
                for entity in chunk.entities().to_vec() {
                    chunk.remove_entity(entity);
                }
                let bytes = chunk.to_bytes();
                left_bytes = left_bytes.saturating_sub(bytes.len());
                Ok(Answer::Newer { version, bytes })
            });
            for (wanted, found) in wanted.iter().zip(found) {
                let answer = match found {
                    Ok(Lookup::Here(answer)) => answer,
                    Ok(Lookup::Deleted | Lookup::NotHere) => Answer::Gone,
                    Err(Error::Corrupt(_) | Error::NotUpgraded { .. } | Error::UnknownGeneration { .. }) => {
                        Answer::Damaged
                    }
                    Err(error) => return Err(error.into()),
                };
                if let Some(CubeReply::Chunks(answers)) = cubes.get_mut(wanted.cube)
                    && let Some(place) = answers.get_mut(wanted.place)
                {
                    *place = answer;
                }
            }
        }
        Ok(())
    }

    /// What changed in a box since a commit.
    fn area(&mut self, asked: &AskedArea) -> Result<AreaReply, SyncError> {
        let corner =
            |[x, y, z]: [i64; 3]| ChunkPos::new(x, y, z).map_err(|_| wrong("a box lies outside the world"));
        let area = ChunkBox::new(corner(asked.min)?, corner(asked.max)?);
        // Deletions of commits behind `since` are certainly known if none of those is forgotten.
        let since = asked.since.filter(|since| self.is_known && since.saturating_add(1) >= self.forgotten);
        let (is_whole, since) = (since.is_none(), since.unwrap_or(0));
        let (mut cubes, mut damaged) = (Vec::new(), Vec::new());
        let Some(dimension) = self.dimension(asked.dimension)? else {
            return Ok(AreaReply::Changed { is_whole: true, cubes, damaged });
        };
        for (cube, changed) in self.changed_cubes(dimension, &area, since)? {
            let at = [cube.x(), cube.y(), cube.z()];
            let places = match self.places_of(dimension, cube, changed.as_deref()) {
                Ok(places) => places,
                Err(Error::Corrupt(_)) => {
                    damaged.push(at);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let mut chunks = Vec::new();
            for (place, (version, is_here)) in places {
                let is_told = version > since && (is_here || !is_whole);
                if is_told && area.contains(chunk_at(cube, place)?) {
                    self.newest = self.newest.max(version);
                    chunks.push((place, is_here.then_some(version)));
                }
            }
            self.listed += chunks.len();
            if self.listed > self.limits.listed_chunks {
                return Ok(AreaReply::TooMany);
            }
            if !chunks.is_empty() {
                cubes.push(ChangedCube { cube: at, chunks });
            }
        }
        Ok(AreaReply::Changed { is_whole, cubes, damaged })
    }

    /// The 4³ cubes of a box in which something changed, in the order of their keys; with the chunks that did and the
    /// commits that changed them, as far as that is remembered.
    fn changed_cubes(
        &self,
        dimension: Dimension,
        area: &ChunkBox,
        since: u64,
    ) -> Result<Vec<ChangedIn>, Error> {
        let commits = &self.world.commits;
        let wants = |at: ChunkAt| at.dimension == dimension && area.contains(at.pos);
        let Some(recent) = commits.changed_since(since, self.commit, wants) else {
            let mut cubes = Vec::new();
            for large in self.changed_16(dimension, area, since)? {
                let found = self.changed_in(dimension, large, area, since)?;
                cubes.extend(found.into_iter().map(|cube| (cube, None)));
            }
            return Ok(cubes);
        };
        let mut cubes: BTreeMap<_, (ClusterPos, Vec<Changed>)> = BTreeMap::new();
        for (at, commit) in recent {
            let cube = at.pos.cluster(ClusterTier::L1);
            let entry = cubes.entry(key::cluster(dimension, cube)).or_insert((cube, Vec::new()));
            entry.1.push((at, commit));
        }
        Ok(cubes.into_values().map(|(cube, changed)| (cube, Some(changed))).collect())
    }

    /// As [`places`](Self::places), of those that are known to have changed. One read for each that is hot, as it is unless it
    /// was moved since; otherwise all are looked at.
    fn places_of(
        &self,
        dimension: Dimension,
        cube: ClusterPos,
        changed: Option<&[Changed]>,
    ) -> Result<BTreeMap<u8, (u64, bool)>, Error> {
        let Some(changed) = changed else { return self.places(dimension, cube) };
        let mut places = BTreeMap::new();
        for (at, commit) in changed {
            let row_key = key::chunk(*at);
            Counters::add(&self.world.counters.engine_reads, 1);
            let row = self.view.get(Space::ChunkL0, &row_key)?;
            // Changed again behind the reply's commit: a delta of that is not in the row.
            let Some(row) = row.filter(|_| *commit <= self.commit) else {
                return self.places(dimension, cube);
            };
            Counters::add(&self.world.counters.bytes_read, row.len() as u64);
            let is_here = matches!(hot(*at, &row_key, &row)?, Lookup::Here(_));
            let version = frame::version_of(&row).unwrap_or(0).max(*commit);
            places.insert(place_of(at.pos), (version, is_here));
        }
        Ok(places)
    }

    /// The 16³ cubes of a box in which something changed.
    fn changed_16(
        &self,
        dimension: Dimension,
        area: &ChunkBox,
        since: u64,
    ) -> Result<Vec<ClusterPos>, Error> {
        let (min, max) = (area.min().cluster(ClusterTier::L2), area.max().cluster(ClusterTier::L2));
        let side = |min: i64, max: i64| u128::from(max.abs_diff(min)) + 1;
        let sides = [side(min.x(), max.x()), side(min.y(), max.y()), side(min.z(), max.z())];
        if sides.into_iter().fold(1_u128, u128::saturating_mul) > NAMED_CUBES {
            return self.marked(dimension, [min, max], area, since);
        }
        let mut found = Vec::new();
        for x in min.x()..=max.x() {
            for y in min.y()..=max.y() {
                for z in min.z()..=max.z() {
                    let cube = ClusterPos::new(ClusterTier::L2, x, y, z)?;
                    match self.mark(dimension, cube) {
                        Ok(mark) if mark.is_none_or(|mark| mark <= since) => {}
                        Ok(_) | Err(Error::Corrupt(_)) => found.push(cube),
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Ok(found)
    }

    /// The 4³ cubes of a 16³ cube and a box in which something changed.
    fn changed_in(
        &self,
        dimension: Dimension,
        large: ClusterPos,
        area: &ChunkBox,
        since: u64,
    ) -> Result<Vec<ClusterPos>, Error> {
        let ends = [large.min_chunk(), large.max_chunk()].map(|chunk| chunk.cluster(ClusterTier::L1));
        self.marked(dimension, ends, area, since)
    }

    /// The cubes between two in the order of keys whose marks are newer than a commit, or damaged, and that meet a box.
    fn marked(
        &self,
        dimension: Dimension,
        [first, last]: [ClusterPos; 2],
        area: &ChunkBox,
        since: u64,
    ) -> Result<Vec<ClusterPos>, Error> {
        let (first, last) = (key::change_mark(dimension, first), key::change_mark(dimension, last));
        let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        let mut found = Vec::new();
        self.view.scan(Family::Index, range, |row_key, row| {
            Counters::add(&self.world.counters.keys_scanned, 1);
            let is_newer = FrameView::open(Space::ChangeMark, row_key, row)
                .map_or(true, |frame| frame.header().version > since);
            if is_newer
                && let Ok((_, cube)) = key::decode_change_mark(row_key)
                && meets(area, cube)
            {
                found.push(cube);
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(found)
    }

    /// The commit that last changed something in a cube; `None` if nothing ever did.
    fn mark(&self, dimension: Dimension, cube: ClusterPos) -> Result<Option<u64>, Error> {
        let row_key = key::change_mark(dimension, cube);
        Counters::add(&self.world.counters.engine_reads, 1);
        let Some(row) = self.view.get(Space::ChangeMark, &row_key)? else { return Ok(None) };
        let frame = FrameView::open(Space::ChangeMark, &row_key, &row);
        let damage = |problem| Damage::of_row(Space::ChangeMark, &row_key, cube.to_string(), problem);
        Ok(Some(frame.map_err(damage)?.header().version))
    }

    /// The chunks of a 4³ cube by their places: the version, and whether it is there or was deleted. Costs two reads and
    /// two scans; reads of clusters their directories alone.
    fn places(&self, dimension: Dimension, cube: ClusterPos) -> Result<BTreeMap<u8, (u64, bool)>, Error> {
        let counters = &self.world.counters;
        let mut places = BTreeMap::new();
        // Hotter tiers hide colder ones, so they come later.
        for tier in [ClusterTier::L2, ClusterTier::L1] {
            let cluster = cube.min_chunk().cluster(tier);
            let (space, row_key) = (Space::of_cluster(tier), key::cluster(dimension, cluster));
            Counters::add(&counters.engine_reads, 1);
            let Some(row) = self.view.get(space, &row_key)? else { continue };
            Counters::add(&counters.clusters_read, 1);
            Counters::add(&counters.bytes_read, row.len() as u64);
            let stored = StoredCluster::open(tier, &row_key, &row)
                .map_err(|problem| Damage::of_row(space, &row_key, cluster.to_string(), problem))?;
            let group = Slot::of(cube.min_chunk(), tier).group();
            for place in 0..64 {
                let info = Slot::in_group_of(tier, group, place).and_then(|slot| stored.chunk_info(slot));
                if let Some(info) = info {
                    places.insert(place, (info.version, true));
                }
            }
        }
        let keys = key::chunks_of_cluster(dimension, cube);
        self.scan(Family::ChunkL0, [&keys.start()[..], &keys.end()[..]], |row_key, row| {
            Counters::add(&counters.bytes_read, row.len() as u64);
            let damage = |problem| Damage::of_row(Space::ChunkL0, row_key, cube.to_string(), problem);
            let at = key::decode_chunk(row_key).map_err(damage)?;
            let is_here = matches!(hot(at, row_key, row)?, Lookup::Here(_));
            let version = frame::version_of(row).unwrap_or(0);
            places.insert(place_of(at.pos), (version, is_here));
            Ok(())
        })?;
        let [first, last] = [(cube.min_chunk(), 0), (cube.max_chunk(), u64::MAX)]
            .map(|(pos, commit)| key::delta(ChunkAt { dimension, pos }, commit));
        self.scan(Family::ChunkDelta, [&first, &last], |row_key, _| {
            if let Ok((at, commit)) = key::decode_delta(row_key)
                && let Some((version, true)) = places.get_mut(&place_of(at.pos))
            {
                *version = commit.max(*version);
            }
            Ok(())
        })?;
        Ok(places)
    }

    fn scan(
        &self,
        family: Family,
        [first, last]: [&[u8]; 2],
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let range = (Bound::Included(first), Bound::Included(last));
        let failed = self.view.scan(family, range, |key, row| {
            Counters::add(&self.world.counters.keys_scanned, 1);
            match each(key, row) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            }
        });
        failed?.map_or(Ok(()), Err)
    }
}

fn wrong(reason: &str) -> MessageError {
    MessageError::Fields { reason: reason.into() }
}

fn position(tier: ClusterTier, [x, y, z]: [i64; 3]) -> Result<ClusterPos, MessageError> {
    ClusterPos::new(tier, x, y, z).map_err(|_| wrong("a cube lies outside the world"))
}

/// The place of a chunk in its 4³ cube.
pub(super) fn place_of(chunk: ChunkPos) -> u8 {
    Slot::of(chunk, ClusterTier::L1).in_group()
}

/// The chunk at a place of a 4³ cube.
pub(super) fn chunk_at(cube: ClusterPos, place: u8) -> Result<ChunkPos, MessageError> {
    let slot = Slot::new(ClusterTier::L1, place.into());
    slot.and_then(|slot| slot.chunk(cube)).ok_or_else(|| wrong("a 4³ cube has places 0 to 63"))
}

/// Whether a cube has a chunk in a box.
pub(super) fn meets(area: &ChunkBox, cube: ClusterPos) -> bool {
    let (min, max) = (cube.min_chunk(), cube.max_chunk());
    let (from, to) = (area.min(), area.max());
    let overlap = |min: i64, max: i64, from: i64, to: i64| min <= to && from <= max;
    overlap(min.x(), max.x(), from.x(), to.x())
        && overlap(min.y(), max.y(), from.y(), to.y())
        && overlap(min.z(), max.z(), from.z(), to.z())
}
