//! The server: finds what of a client's cache is out of date.
//!
//! Change marks, one row per 4³ cube, exclude what did not change. The frames and directories of a cube show what may
//! have changed, without decompression. Only chunks to send are read.

mod values;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use cg_format::chunk::Chunk;
use cg_format::lineage::HistoryPoint;
use cg_format::{ChunkAt, ChunkBox, ChunkPos, ClusterTier, ComponentId, Dimension, Lookup, SchemaView as _};
use cg_registry::Schema;
use cg_registry::portable::Used;
use cg_store::engine::CommitSeq;
use cg_store::layer::values::{drop_change_log, keep_change_log};
use cg_store::layer::{Base, lineage, sync_to};
use cg_store::view::ReadView;
use cg_store::{Error, World};
use uuid::Uuid;
use values::{Set, Values};

use super::error::{MessageError, SyncError};
use super::messages::{
    Answer, AreaReply, AskedArea, AskedCube, ChangedCube, CubeReply, KnownServer, NewNames, SyncReply,
    SyncRequest, ValueNames, name,
};
use super::place::{chunk_at, place_of, position, wrong};

/// A request numbers its dimensions with a u16.
const MAX_DIMENSIONS: usize = 1 << 16;
/// The number of chunks read between two checks of the reply's size.
const READ_AT_ONCE: usize = 256;

/// Limits on what a server reads for a request and writes into a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncServerLimits {
    /// Bytes of chunks and values. The last one may exceed it. The client asks about the others again.
    pub chunk_bytes: usize,
    /// The maximum number of changed chunks listed in all areas together.
    pub listed_chunks: usize,
    /// The maximum number of 4³ cubes in a request. For each, the server reads its rows, up to a cluster of 16³
    /// chunks.
    pub asked_cubes: usize,
    /// The maximum number of areas in a request. For each, the server reads its change marks.
    pub asked_areas: usize,
    /// The maximum number of sets of values in a request.
    pub asked_sets: usize,
    /// The maximum number of values that are looked at for a request, told or not. The client asks again for the rest.
    pub looked_values: usize,
}

impl Default for SyncServerLimits {
    /// 16 MiB of chunks and values, 2²⁰ listed chunks, 65,536 cubes, 256 areas, 64 sets and 2¹⁸ values.
    fn default() -> Self {
        Self {
            chunk_bytes: 16 << 20,
            listed_chunks: 1 << 20,
            asked_cubes: 1 << 16,
            asked_areas: 256,
            asked_sets: 64,
            looked_values: 1 << 18,
        }
    }
}

/// A world that answers the requests of its caches.
#[derive(Debug, Clone)]
pub struct SyncServer {
    world: World,
    limits: SyncServerLimits,
}

impl SyncServer {
    /// A server of a world, which can be used as before at the same time.
    pub const fn new(world: World, limits: SyncServerLimits) -> Self {
        Self { world, limits }
    }

    /// Has the world log from now on which of its values other than chunks change, so that what changed since a client asked
    /// is found without a look at each. The world keeps the log until [`drop_log`](Self::drop_log), also when it is opened
    /// again. Each change of such a value writes a row more, deletes one, and reads a frame before.
    ///
    /// Without a log a server answers too, by a scan of all values of the kinds that were asked about.
    ///
    /// # Errors
    /// [`SyncError::World`]: those of a commit.
    pub fn keep_log(&self) -> Result<(), SyncError> {
        Ok(keep_change_log(&self.world)?)
    }

    /// Ends that log, and deletes it.
    ///
    /// # Errors
    /// As [`keep_log`](Self::keep_log).
    pub fn drop_log(&self) -> Result<(), SyncError> {
        Ok(drop_change_log(&self.world)?)
    }

    /// Answers a client's request from one state of the world.
    ///
    /// For chunks it reads the change mark of each 4³ cube of the request. For a changed cube it looks at the hot
    /// rows (up to 64, which it does not decompress or decode), deltas and cluster directories. Then it reads the
    /// chunks to send.
    ///
    /// For an area it costs the same as [`ReadView::for_each_changed`]. Syncs the world first if a power cut could
    /// take back a part of the reply.
    ///
    /// # Errors
    /// [`SyncError::Message`] for a request with places that no world has; errors of the engine. A damaged chunk
    /// fails no request: the reply reports it, and the client keeps its version.
    pub fn answer(&self, request: &SyncRequest) -> Result<SyncReply, SyncError> {
        self.check(request)?;
        let reply = self.world.read_view(|view| self.answer_of(view, request))?;
        sync_to(&self.world, CommitSeq::new(reply.commit))?;
        Ok(reply)
    }

    /// Refuses what asks for too much.
    fn check(&self, request: &SyncRequest) -> Result<(), SyncError> {
        for (what, found, limit) in [
            ("dimensions", request.dimensions.len(), MAX_DIMENSIONS),
            ("cubes", request.cubes.len(), self.limits.asked_cubes),
            ("areas", request.areas.len(), self.limits.asked_areas),
            ("sets of values", request.values.len(), self.limits.asked_sets),
            ("components", request.without.len(), values::MAX_WITHOUT),
        ] {
            if found > limit {
                return Err(MessageError::TooMany { what, found, limit }.into());
            }
        }
        request.values.iter().try_for_each(|asked| values::check(asked, self.limits.asked_areas))?;
        Ok(())
    }

    fn answer_of(&self, view: &ReadView<'_>, request: &SyncRequest) -> Result<SyncReply, SyncError> {
        let world = &self.world;
        let uuid = world.identity().uuid.into_bytes();
        let lineage = lineage(world);
        let HistoryPoint { opening, commit } = lineage.at(view.commit().get());
        let has = |known: &KnownServer| {
            let point = HistoryPoint { opening: u64::from_le_bytes(known.opening), commit: known.commit };
            known.uuid == uuid && known.commit <= commit && lineage.has(point)
        };
        let known = request.known.filter(has);
        // Versions of two lives are never compared. Replies of one opening to clients that know nothing are of one life.
        let begun = || world.identity().incarnation.as_u128() ^ u128::from(opening);
        let life = known.map_or_else(|| Uuid::from_u128(begun()).into_bytes(), |known| known.life);
        let max_bytes =
            request.max_bytes.map_or(usize::MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let mut answering = Answering {
            left_bytes: self.limits.chunk_bytes.min(max_bytes).max(1),
            view,
            dimensions: Vec::new(),
            is_known: known.is_some(),
            // Read after the view was taken, because tombstones may be purged while the view exists.
            forgotten: world.tiers().tombstone_horizon().get(),
            listed: 0,
            limits: &self.limits,
            without: values::components(view.catalog(), &request.without)?,
            wanted: Vec::new(),
        };
        for dimension in &request.dimensions {
            let names = std::iter::once(&dimension.name).chain(&dimension.aliases);
            let names = names.map(|text| name(text)).collect::<Result<Vec<_>, _>>()?;
            let found = names.iter().find_map(|name| view.catalog().dimension(name.as_str()));
            answering.dimensions.push(found);
        }
        let mut cubes = Vec::with_capacity(request.cubes.len());
        for (index, asked) in request.cubes.iter().enumerate() {
            cubes.push(answering.cube(index, asked)?);
        }
        answering.read(&mut cubes)?;
        let areas = request.areas.iter().map(|area| answering.area(area)).collect::<Result<_, _>>()?;
        let set = |asked| Set::new(asked, view.catalog(), &answering.dimensions);
        let sets = request.values.iter().map(set).collect::<Result<Vec<_>, _>>()?;
        let mut values = Values {
            view,
            sets: &sets,
            upgrades: Base::upgrades(world),
            is_known: known.is_some(),
            left_bytes: &mut answering.left_bytes,
            left_looks: self.limits.looked_values,
            used: Used::default(),
        };
        let asked = sets.iter().zip(&request.values);
        let told = asked.map(|(set, asked)| values.answer(set, asked.known.clone()));
        let told = told.collect::<Result<_, _>>()?;
        let value_names = ValueNames::of(view.catalog(), values.used);
        Ok(SyncReply {
            number: request.number,
            uuid,
            life,
            opening: opening.to_le_bytes(),
            commit,
            is_restart: known.is_none(),
            names: NewNames::behind(view.catalog(), known.as_ref()),
            cubes,
            areas,
            value_names,
            values: told,
        })
    }
}

/// Gives each block of a chunk the default of these components.
fn leave_out(without: &BTreeSet<ComponentId>, chunk: &mut Chunk, schema: &Schema) -> Result<(), Error> {
    if without.is_empty() {
        return Ok(());
    }
    let of_those = chunk.components().filter(|(component, ..)| without.contains(component));
    let cells: Vec<_> = of_those.map(|(component, cell, _)| (component, cell)).collect();
    for (component, cell) in cells {
        chunk.set_component(cell, component, schema.default_bytes(component))?;
    }
    Ok(())
}

/// A chunk to send, and the place of its answer.
struct Wanted {
    cube: usize,
    place: usize,
    at: ChunkAt,
    version: u64,
}

struct Answering<'a> {
    /// Room in the reply.
    left_bytes: usize,
    view: &'a ReadView<'a>,
    /// The dimensions by the request's numbers; `None` for an unknown one.
    dimensions: Vec<Option<Dimension>>,
    /// Whether the client's versions belong to this history.
    is_known: bool,
    forgotten: u64,
    listed: usize,
    limits: &'a SyncServerLimits,
    /// The components that no chunk is sent with.
    without: BTreeSet<ComponentId>,
    wanted: Vec<Wanted>,
}

impl Answering<'_> {
    fn dimension(&self, number: u16) -> Result<Option<Dimension>, MessageError> {
        let found = self.dimensions.get(usize::from(number)).copied();
        found.ok_or_else(|| wrong("it has no name for a dimension"))
    }

    /// Answers for a cube by its mark and its versions. Adds the chunks to send to `wanted`.
    fn cube(&mut self, index: usize, asked: &AskedCube) -> Result<CubeReply, SyncError> {
        let cube = position(ClusterTier::L1, asked.cube)?;
        if asked.chunks.len() > 64 || asked.chunks.iter().any(|(place, _)| *place >= 64) {
            return Err(wrong("a 4³ cube has places 0 to 63, each once").into());
        }
        let all = |answer: Answer| CubeReply::Chunks(vec![answer; asked.chunks.len()]);
        let Some(dimension) = self.dimension(asked.dimension)? else { return Ok(all(Answer::Gone)) };
        let mark = match self.view.last_change(dimension, cube) {
            Ok(Some(mark)) => mark.get(),
            // The last change of the cube is unknown, so everything in it may have changed.
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
                Some(chunk) if known == Some(chunk.version.get()) => Answer::UpToDate,
                Some(chunk) => {
                    let at = ChunkAt { dimension, pos: chunk_at(cube, *place)? };
                    let place = answers.len();
                    self.wanted.push(Wanted { cube: index, place, at, version: chunk.version.get() });
                    Answer::Later
                }
                None => Answer::Gone,
            });
        }
        Ok(CubeReply::Chunks(answers))
    }

    /// Reads the wanted chunks into their answers, until the reply is full.
    fn read(&mut self, cubes: &mut [CubeReply]) -> Result<(), SyncError> {
        let mut left_bytes = self.left_bytes;
        let (without, schema) = (&self.without, self.view.catalog().current_schema());
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
                leave_out(without, &mut chunk, &schema)?;
                let bytes = chunk.to_bytes();
                left_bytes = left_bytes.saturating_sub(bytes.len());
                // The version is that of the same view. It is set below.
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
        self.left_bytes = left_bytes;
        Ok(())
    }

    /// The changes of a box since a commit.
    fn area(&mut self, asked: &AskedArea) -> Result<AreaReply, SyncError> {
        let corner =
            |[x, y, z]: [i64; 3]| ChunkPos::new(x, y, z).map_err(|_| wrong("a box lies outside the world"));
        let area = ChunkBox::new(corner(asked.min)?, corner(asked.max)?);
        // All deletions after `since` are known if none of their tombstones was purged.
        let since = asked.since.filter(|since| self.is_known && since.saturating_add(1) >= self.forgotten);
        let (is_whole, since) = (since.is_none(), since.map_or(CommitSeq::NONE, CommitSeq::new));
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
                .map(|(pos, last)| (place_of(pos), (!last.is_deleted).then_some(last.version.get())))
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
