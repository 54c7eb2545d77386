//! The server's side: what of a client's cache is up to date.
//!
//! What did not change is told from change marks, one row per 4³ cube; what may have is told from the frames and the
//! directories of such a cube, without decompressing anything; only what is sent is read.

use cg_format::{ChunkAt, ChunkBox, ChunkPos, ClusterTier, Dimension, Lookup};
use cg_registry::Catalog;

use super::error::{MessageError, SyncError};
use super::messages::{
    Answer, AreaReply, AskedArea, AskedCube, ChangedCube, CubeReply, NewNames, SyncReply, SyncRequest, name,
};
use super::place::{chunk_at, position, wrong};
use crate::api::world::World;
use crate::commit::commit_log::CommitLog;
use crate::engine::Readable;
use crate::read::chunk::decode::upgrade;
use crate::read::chunk::find_many_in;
use crate::read::delta::fold_stored;
use crate::read::state::ReadState;
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// This many chunks are read before the next look whether there is room for more.
const READ_AT_ONCE: usize = 256;

/// How much a reply says at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncServerLimits {
    /// Bytes of chunks, of which the last may go beyond it; the client asks for the others again.
    pub chunk_bytes: usize,
    /// Changed chunks that are listed of all areas together.
    pub listed_chunks: usize,
    /// 4³ cubes that one request may ask about. Each costs the reading of its rows, up to a cluster of 16³ chunks.
    pub asked_cubes: usize,
    /// Areas that one request may ask about. Each costs a look at its marks.
    pub asked_areas: usize,
}

impl Default for SyncServerLimits {
    /// 16 MiB of chunks, and a million that are listed; 65,536 cubes and 256 areas.
    fn default() -> Self {
        Self { chunk_bytes: 16 << 20, listed_chunks: 1 << 20, asked_cubes: 1 << 16, asked_areas: 256 }
    }
}

impl World {
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
    pub fn answer(&self, request: &SyncRequest, limits: &SyncServerLimits) -> Result<SyncReply, SyncError> {
        let rooms = self.applied()?;
        rooms.shared.check_open()?;
        for (what, found, limit) in [
            ("cubes", request.cubes.len(), limits.asked_cubes),
            ("areas", request.areas.len(), limits.asked_areas),
        ] {
            if found > limit {
                return Err(MessageError::TooMany { what, found, limit }.into());
            }
        }
        let engine = rooms.commit.settled_engine()?;
        // Read before the view is taken, which so has at least that.
        let commit = engine.last_commit().get();
        let view = engine.snapshot().map_err(Error::from)?;
        // Read after it, as tombstones may go while it is held.
        let forgotten = self.tiers().tombstone_horizon();
        let catalog = rooms.shared.registry.catalog();
        // The names of the catalog, of which some may be newer than the view, are told too.
        let newest = engine.last_commit().get();
        let (uuid, incarnation) = (self.uuid().into_bytes(), self.incarnation().into_bytes());
        let known = request.known.filter(|known| known.uuid == uuid && known.incarnation == incarnation);
        let mut answering = Answering {
            read: &rooms.read,
            log: &rooms.commit.log,
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

/// A chunk that is to be sent: where its answer goes, and which it is.
struct Wanted {
    cube: usize,
    place: usize,
    at: ChunkAt,
}

pub(super) struct Answering<'a> {
    pub(super) read: &'a ReadState,
    pub(super) log: &'a CommitLog,
    pub(super) view: &'a dyn Readable,
    catalog: &'a Catalog,
    /// The commit that the reply is of; the view has it, and may have later ones.
    pub(super) commit: u64,
    /// By the request's numbers; `None` for one that is not known here.
    dimensions: Vec<Option<Dimension>>,
    /// Whether the client's versions are of this incarnation.
    is_known: bool,
    forgotten: u64,
    /// The newest commit that the reply tells of.
    newest: u64,
    listed: usize,
    limits: &'a SyncServerLimits,
    wanted: Vec<Wanted>,
}

impl Answering<'_> {
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
            let found = find_many_in(self.view, &self.read.shared.counters, &at, |stored| {
                if left_bytes == 0 {
                    return Ok(Answer::Later);
                }
                Counters::add(&self.read.shared.counters.chunks_decoded, 1);
                let (chunk, version) = fold_stored(self.view, self.catalog, stored)?;
                let mut chunk = upgrade(self.catalog, &self.read.shared.options.upgrades, stored, chunk)?;
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
                    Ok(Lookup::Found(answer)) => answer,
                    Ok(Lookup::Tombstone | Lookup::NotFound) => Answer::Gone,
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
        // Deletions of commits after `since` are certainly known if none of those is forgotten.
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
}
