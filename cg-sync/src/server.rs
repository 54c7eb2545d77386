//! The server's side: what of a client's cache is up to date.
//!
//! Change marks, one row for each 4³ cube, tell what did not change. The frames and directories of a cube tell what may
//! have, without decompressing anything. Only what is sent is read.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use cg_format::{ChunkAt, ChunkBox, ChunkPos, ClusterTier, Dimension, Lookup};
use cg_store::layer::sync_to;
use cg_store::view::ReadView;
use cg_store::{Error, World};

use super::error::{MessageError, SyncError};
use super::messages::{
    Answer, AreaReply, AskedArea, AskedCube, ChangedCube, CubeReply, NewNames, SyncReply, SyncRequest, name,
};
use super::place::{chunk_at, place_of, position, wrong};

/// This many chunks are read before the next look whether there is room for more.
const READ_AT_ONCE: usize = 256;

/// Limits of what a server reads for a request and puts into a reply.
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

/// A world that caches of it ask.
#[derive(Debug, Clone)]
pub struct SyncServer {
    world: World,
    limits: SyncServerLimits,
}

impl SyncServer {
    /// A server of a world. The world is used as before by others meanwhile.
    pub const fn new(world: World, limits: SyncServerLimits) -> Self {
        Self { world, limits }
    }

    /// Answers what a client's cache asks, of one state of the world.
    ///
    /// Costs for chunks one read for each 4³ cube that is asked about, a look at the hot rows, deltas and cluster
    /// directories of each cube that changed since (up to 64 hot rows, of which nothing is decompressed or decoded), and
    /// the reading of what is sent.
    ///
    /// Costs for an area what [`ReadView::for_each_changed`] costs. Syncs the world first if the reply tells of what a power
    /// cut could take back.
    ///
    /// # Errors
    /// [`SyncError::Message`] for a request that names what no world has; what the engine reports. A chunk that is damaged
    /// fails no request: the reply says so, and the client keeps what it has.
    pub fn answer(&self, request: &SyncRequest) -> Result<SyncReply, SyncError> {
        for (what, found, limit) in [
            ("cubes", request.cubes.len(), self.limits.asked_cubes),
            ("areas", request.areas.len(), self.limits.asked_areas),
        ] {
            if found > limit {
                return Err(MessageError::TooMany { what, found, limit }.into());
            }
        }
        let reply = self.world.read_view(|view| self.answer_of(view, request))?;
        sync_to(&self.world, reply.commit)?;
        Ok(reply)
    }

    fn answer_of(&self, view: &ReadView<'_>, request: &SyncRequest) -> Result<SyncReply, SyncError> {
        let world = &self.world;
        let (uuid, incarnation) =
            (world.identity().uuid.into_bytes(), world.identity().incarnation.into_bytes());
        let known = request.known.filter(|known| known.uuid == uuid && known.incarnation == incarnation);
        let mut answering = Answering {
            view,
            dimensions: Vec::new(),
            is_known: known.is_some(),
            // Read after the view was taken, as tombstones may be purged while it is held.
            forgotten: world.tiers().tombstone_horizon(),
            listed: 0,
            limits: &self.limits,
            wanted: Vec::new(),
        };
        for dimension in &request.dimensions {
            let name = name(dimension)?;
            answering.dimensions.push(view.catalog().dimension(name.as_str()));
        }
        let mut cubes = Vec::with_capacity(request.cubes.len());
        for (index, asked) in request.cubes.iter().enumerate() {
            cubes.push(answering.cube(index, asked)?);
        }
        answering.read(&mut cubes)?;
        let areas = request.areas.iter().map(|area| answering.area(area)).collect::<Result<_, _>>()?;
        Ok(SyncReply {
            number: request.number,
            uuid,
            incarnation,
            commit: view.commit(),
            is_restart: known.is_none(),
            names: NewNames::behind(view.catalog(), known.as_ref()),
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
    version: u64,
}

struct Answering<'a> {
    view: &'a ReadView<'a>,
    /// By the request's numbers; `None` for one that is not known here.
    dimensions: Vec<Option<Dimension>>,
    /// Whether the client's versions are of this incarnation.
    is_known: bool,
    forgotten: u64,
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
        let mark = match self.view.last_change(dimension, cube) {
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
        let places: BTreeMap<_, _> = match self.view.chunk_versions(dimension, cube) {
            Ok(chunks) => chunks.into_iter().map(|(pos, version)| (place_of(pos), version)).collect(),
            Err(Error::Corrupt(_)) => return Ok(all(Answer::Damaged)),
            Err(error) => return Err(error.into()),
        };
        let mut answers = Vec::with_capacity(asked.chunks.len());
        for (place, known) in &asked.chunks {
            let known = known.filter(|_| self.is_known);
            answers.push(match places.get(place).filter(|chunk| !chunk.is_deleted) {
                Some(chunk) if known == Some(chunk.version) => Answer::UpToDate,
                Some(chunk) => {
                    let at = ChunkAt { dimension, pos: chunk_at(cube, *place)? };
                    let place = answers.len();
                    self.wanted.push(Wanted { cube: index, place, at, version: chunk.version });
                    Answer::Later
                }
                None => Answer::Gone,
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
            let found = self.view.read_many(&at, |_, mut chunk| {
                if left_bytes == 0 {
                    return Ok(Answer::Later);
                }
                if chunk.has_unread_components() {
                    return Ok(Answer::Damaged);
                }
                for entity in chunk.entities().to_vec() {
                    chunk.remove_entity(entity);
                }
                let bytes = chunk.to_bytes();
                left_bytes = left_bytes.saturating_sub(bytes.len());
                // The version is that of the same view, and is filled in below.
                Ok(Answer::Newer { version: 0, bytes })
            });
            for (wanted, found) in wanted.iter().zip(found) {
                let answer = match found {
                    Ok(Lookup::Found(Answer::Newer { bytes, .. })) => {
                        Answer::Newer { version: wanted.version, bytes }
                    }
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
        let too_many = self.view.for_each_changed(dimension, &area, since, |cube, changed| {
            let cube = [cube.x(), cube.y(), cube.z()];
            let Ok(changed) = changed else {
                damaged.push(cube);
                return ControlFlow::Continue(());
            };
            let told = changed.into_iter().filter(|(_, version)| !(is_whole && version.is_deleted));
            let chunks: Vec<_> = told
                .map(|(pos, version)| (place_of(pos), (!version.is_deleted).then_some(version.version)))
                .collect();
            self.listed += chunks.len();
            if !chunks.is_empty() {
                cubes.push(ChangedCube { cube, chunks });
            }
            if self.listed > self.limits.listed_chunks {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        Ok(match too_many {
            Some(()) => AreaReply::TooMany,
            None => AreaReply::Changed { is_whole, cubes, damaged },
        })
    }
}
