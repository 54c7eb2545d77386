//! The client: a world that caches a server's world.

mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cg_format::{ChunkAt, ChunkBox, ClusterPos, ClusterTier, Dimension};
use cg_registry::portable::{IdRemap, Names, Used};
use cg_registry::{Catalog, ListKind};
use cg_store::engine::CommitSeq;
use cg_store::layer::Base;
use cg_store::objects::ObjectKey;
use cg_store::{Error, World};
use uuid::Uuid;

use super::applying::{Applying, SyncOutcome};
use super::error::{MessageError, SyncError};
use super::messages::{
    AreaReply, AskedArea, AskedCube, AskedDimension, CubeReply, KnownServer, NewNames, SyncReply,
    SyncRequest, count, count_in, decode_row, encode_row,
};
use super::place::{area_of, chunk_at, dimension_of, meets, place_of};
use super::state::{AreaRow, CUBES, CubeKey, CubeRow, HEAD, Head, POINT, Point, STALE, area_key, names_key};
use parking_lot::Mutex;

/// The maximum number of the cache's rows listed at once.
const PAGE: usize = 1024;
/// The default of [`SyncClient::with_max_names`].
const MAX_NAMES: usize = 1 << 20;

/// A world as the cache of a server's world.
///
/// The host connects the two: it sends the requests of [`request`](Self::request) and its siblings, and
/// [applies](Self::apply) the replies. The cache is a normal world. If the host writes into it directly, the server
/// does not learn of that, and a newer version of the server overwrites it.
///
/// ```
/// use cg_store::prelude::*;
/// use cg_sync::{SyncClient, SyncServer, SyncServerLimits};
/// let server = World::builder().in_memory()?;
/// let overworld = server.registry().register_dimension("game:overworld")?;
/// let [air, stone] = server.registry().register_blocks([":air", "game:stone"])?;
/// let at = ChunkAt::new(overworld, ChunkPos::new(0, 4, 0)?);
/// server.transaction(|tx| {
///     tx.save(at, Chunk::filled(stone, &tx.catalog().current_schema())?);
///     Ok::<_, Box<dyn std::error::Error>>(())
/// })?;
///
/// // Elsewhere, where stone has another id.
/// let world = World::builder().in_memory()?;
/// world.registry().register_blocks(["game:wool", "game:stone"])?;
/// let here = ChunkAt { dimension: world.registry().register_dimension("game:overworld")?, ..at };
/// let cache = SyncClient::open(world)?;
/// let request = cache.request(&[here])?;
/// let reply = SyncServer::new(server, SyncServerLimits::default()).answer(&request)?;
/// assert_eq!(cache.apply(&request, &reply)?.updated, 1);
/// let stone = cache.world().catalog().block_id("game:stone").expect("is registered");
/// assert_eq!(cache.world().load(here)?.expect("came").block(LocalPos::new(0, 0, 0)), stone);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SyncClient {
    world: World,
    max_names: usize,
    state: Mutex<State>,
}

/// The server's state that the client knows, as it is stored.
#[derive(Debug, Clone, Default)]
struct State {
    head: Option<Head>,
    generation: u32,
    renames: u64,
    names: Names,
    /// The requests of this session have the numbers after this one. It is random, so that no other session has them.
    first_request: u64,
    requests: u64,
    /// The newest commit of all replies of this life. A reply for an older commit is late. If a place has no known
    /// version, what the reply contains for it may be outdated. The reply may also lack changes that are recorded
    /// already.
    newest: Point,
}

impl SyncClient {
    /// Makes a world the cache of a server's world, or continues as one. Reads all names that the server has sent.
    ///
    /// # Errors
    /// [`SyncError::World`], and [`SyncError::Message`] if the rows of an earlier release cannot be decoded.
    pub fn open(world: World) -> Result<Self, SyncError> {
        let first_request = Uuid::new_v4().as_u64_pair().0;
        let mut state = State { first_request, ..State::default() };
        if let Some(head) = world.objects().get(HEAD)? {
            let head: Head = decode_row(&head.bytes)?;
            for page in head.first_page..head.behind_page {
                let page = world.objects().get(names_key(page))?.ok_or(MessageError::NamesMissing)?;
                let page = NewNames::decode_page(&page.bytes)?;
                page.fold_into(&mut state.names, (&mut state.generation, &mut state.renames))?;
            }
            state.head = Some(head);
            // Without it, the versions of an earlier release count for nothing.
            let point = world.objects().get(POINT)?.map(|point| decode_row(&point.bytes)).transpose()?;
            state.newest = point.unwrap_or_default();
        }
        Ok(Self { world, max_names: MAX_NAMES, state: Mutex::new(state) })
    }

    /// Sets the maximum number of names. The default is 2²⁰, about a million.
    ///
    /// Names are registered permanently, so an untrusted server must not be able to send an unlimited number. A reply
    /// is refused if it would give the cache's world, or the stored state of the server, more names than that. A name counts
    /// as one more for each 256 bytes of it and of what it stands for: a default value, fields, a block's components.
    #[must_use]
    pub const fn with_max_names(mut self, max_names: usize) -> Self {
        self.max_names = max_names;
        self
    }

    /// The cache's world.
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// The server's world, and its life that the cached versions belong to: another one after the server's world was put back
    /// from a copy or lost commits that the cache knew. `None` before the first reply.
    pub fn server(&self) -> Option<(Uuid, Uuid)> {
        let head = self.state.lock().head?;
        Some((Uuid::from_bytes(head.uuid), Uuid::from_bytes(head.life)))
    }

    /// The version that the server had of a chunk when it sent it: a commit of the server's world. `None` if the chunk
    /// is not cached, or stale.
    ///
    /// # Errors
    /// [`SyncError::World`].
    pub fn version(&self, at: ChunkAt) -> Result<Option<CommitSeq>, SyncError> {
        let Some(head) = self.state.lock().head else { return Ok(None) };
        Ok(self.row(CubeKey::of(at), head.life)?.and_then(|row| row.version(at)).map(CommitSeq::new))
    }

    /// Asks about chunks, cached or not. Reads one row per 4³ cube.
    ///
    /// # Errors
    /// [`SyncError::World`], with [`Error::UnknownDimension`] for a dimension that the cache's world does not have.
    pub fn request(&self, at: &[ChunkAt]) -> Result<SyncRequest, SyncError> {
        let (mut request, life) = self.begin();
        let catalog = self.world.catalog();
        let mut cubes: BTreeMap<CubeKey, BTreeSet<ChunkAt>> = BTreeMap::new();
        for at in at {
            cubes.entry(CubeKey::of(*at)).or_default().insert(*at);
        }
        for (key, chunks) in cubes {
            let row = life.map(|life| self.row(key, life)).transpose()?.flatten();
            let Some(first) = chunks.first() else { continue };
            let cube = first.pos.cluster(ClusterTier::L1);
            let known = |at: &ChunkAt| (place_of(at.pos), row.as_ref().and_then(|row| row.version(*at)));
            request.cubes.push(AskedCube {
                dimension: number_of(&mut request.dimensions, &catalog, first.dimension)?,
                cube: [cube.x(), cube.y(), cube.z()],
                as_of: row.as_ref().map(|row| row.as_of),
                chunks: chunks.iter().map(known).collect(),
            });
        }
        Ok(request)
    }

    /// Asks what changed in a box of chunks since the last such request. Reads one row.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn request_area(&self, dimension: Dimension, area: ChunkBox) -> Result<SyncRequest, SyncError> {
        let (mut request, life) = self.begin();
        let row = self.world.objects().get(area_key(dimension, &area))?;
        let row: Option<AreaRow> = row.map(|row| decode_row(&row.bytes)).transpose()?;
        let row = row.filter(|row| Some(row.life) == life);
        let (min, max) = (area.min(), area.max());
        request.areas.push(AskedArea {
            dimension: number_of(&mut request.dimensions, &self.world.catalog(), dimension)?,
            min: [min.x(), min.y(), min.z()],
            max: [max.x(), max.y(), max.z()],
            since: row.map(|row| row.commit),
        });
        Ok(request)
    }

    /// Asks about chunks whose newest version the cache knows to lack. `None` if there are none. Asks about at most
    /// `max_count` chunks, plus those of one 4³ cube. The list survives reopening. Reads two rows per 4³ cube.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn request_stale(&self, max_count: usize) -> Result<Option<SyncRequest>, SyncError> {
        let Some(head) = self.state.lock().head else { return Ok(None) };
        let (mut all, mut position) = (Vec::new(), None);
        loop {
            let page = self.world.objects().list(STALE, position.as_ref(), PAGE)?;
            for entry in &page.entries {
                let cube = CubeKey::from_object(STALE, entry.key.as_bytes());
                let Some((key, dimension, cube)) = cube else { continue };
                let Some(row) = self.row(key, head.life)? else { continue };
                for (place, _) in row.chunks.iter().filter(|(_, version)| version.is_none()) {
                    all.push(ChunkAt { dimension, pos: chunk_at(cube, *place)? });
                }
                if all.len() >= max_count {
                    return self.request(&all).map(Some);
                }
            }
            position = page.next;
            if position.is_none() {
                return if all.is_empty() { Ok(None) } else { self.request(&all).map(Some) };
            }
        }
    }

    /// Applies the reply to a request. Registers new names first. Then one transaction stores chunks with the
    /// server's versions, deletes chunks that the server no longer has, and records stale ones. The transaction
    /// commits like any other of the world.
    ///
    /// Replies to requests of this client may be applied in any order, and twice. State older than what is cached or
    /// recorded changes nothing. A reply of before the server changed its packs may be [`SyncError::Outdated`] after one of
    /// later: ask again. The cost grows with the size of the changes and with the number of the server's names. For an area
    /// with an unknown base it also reads the rows of all cached cubes.
    ///
    /// # Errors
    /// [`SyncError`]. Except for names, nothing was written.
    pub fn apply(&self, request: &SyncRequest, reply: &SyncReply) -> Result<SyncOutcome, SyncError> {
        let mut state = self.state.lock();
        check(&state, request, reply)?;
        let mut next = state.clone();
        if reply.is_restart && state.head.is_none_or(|head| head.life != reply.life) {
            let State { first_request, requests, .. } = *state;
            next = State { first_request, requests, ..State::default() };
        }
        let is_late = reply.commit < next.newest.commit;
        if !is_late {
            next.newest = Point { opening: reply.opening, commit: reply.commit };
        }
        let mut all = std::mem::take(&mut next.names);
        let (mut generation, mut renames) = (next.generation, next.renames);
        let is_other = (reply.names.generation, reply.names.renames) != (generation, renames);
        self.check_names(if is_other { 0 } else { count(&all) } + reply.names.count())?;
        let folded = reply.names.fold_into(&mut all, (&mut generation, &mut renames));
        let is_needed = folded.map_err(|error| match error {
            MessageError::NamesMissing if is_late => SyncError::Outdated,
            error => error.into(),
        })?;
        // Names that others took the place of translate their own reply and are not kept.
        let is_kept = !(is_other && is_late);
        let has_names = is_needed && is_kept;
        // The pages before these names are needed no more.
        let begins_anew = next.head.is_none() || has_names && is_other;
        let page = state.head.map_or(0, |head| head.behind_page);
        let head = Head {
            uuid: reply.uuid,
            life: reply.life,
            first_page: next.head.filter(|_| !begins_anew).map_or(page, |head| head.first_page),
            behind_page: page + u32::from(has_names),
        };
        next.head = Some(head);
        let catalog = self.registered(&all)?;
        let named = reply.value_names.decode()?;
        let catalog = self.registered_of_values(catalog, &named, reply.value_names.count())?;
        let remap = IdRemap::with_functions(&all, &catalog, Base::upgrades(&self.world))
            .map_err(|_| MessageError::NamesMissing)?;
        let cached = self.cached_in(request, reply, &catalog)?;
        let told = self.told(request, reply, &catalog, &named)?;
        let applied = self.world.transaction(|tx| {
            if state.head != Some(head) {
                tx.put_object(HEAD, encode_row(&head))?;
            }
            if state.newest != next.newest {
                tx.put_object(POINT, encode_row(&next.newest))?;
            }
            for old in
                state.head.iter().filter(|_| begins_anew).flat_map(|old| old.first_page..old.behind_page)
            {
                tx.delete_object(names_key(old))?;
            }
            if has_names {
                tx.put_object(names_key(page), reply.names.encode_page())?;
            }
            let mut applying = Applying {
                tx,
                names: &all,
                remap: &remap,
                catalog: &catalog,
                reply,
                is_late,
                rows: BTreeMap::new(),
                applied: SyncOutcome {
                    is_restart: reply.is_restart && state.head.is_some(),
                    ..SyncOutcome::default()
                },
            };
            for (asked, reply) in request.cubes.iter().zip(&reply.cubes) {
                applying.cube(request, asked, reply)?;
            }
            for (asked, reply) in request.areas.iter().zip(&reply.areas) {
                applying.area(request, asked, reply, &cached)?;
            }
            let mut applied = applying.end()?;
            told.apply(tx, request, is_late, &mut applied)?;
            Ok::<_, SyncError>(applied)
        })?;
        if is_kept {
            next = State { generation, renames, names: all, ..next };
        } else {
            next.names = std::mem::take(&mut state.names);
        }
        *state = next;
        Ok(applied.value)
    }

    /// An empty request, and the life whose versions it may contain.
    fn begin(&self) -> (SyncRequest, Option<[u8; 16]>) {
        let mut state = self.state.lock();
        state.requests += 1;
        let known = state.head.map(|head| KnownServer {
            uuid: head.uuid,
            life: head.life,
            opening: state.newest.opening,
            commit: state.newest.commit,
            generation: state.generation,
            renames: state.renames,
            blocks: state.names.blocks.len() as u64,
            sides: state.names.sides.len() as u64,
        });
        let request = SyncRequest {
            number: state.first_request.wrapping_add(state.requests),
            known,
            dimensions: Vec::new(),
            cubes: Vec::new(),
            areas: Vec::new(),
            values: Vec::new(),
            without: Vec::new(),
            max_bytes: None,
        };
        (request, state.head.map(|head| head.life))
    }

    fn row(&self, key: CubeKey, life: [u8; 16]) -> Result<Option<CubeRow>, SyncError> {
        let row = self.world.objects().get(key.object(CUBES))?;
        row.map(|row| CubeRow::read(&row.bytes, life)).transpose()
    }

    fn check_names(&self, names: usize) -> Result<(), SyncError> {
        let limit = self.max_names;
        if names > limit { Err(SyncError::TooManyNames { names, limit }) } else { Ok(()) }
    }

    /// Registers the names that are absent. Returns the catalog with all of them.
    fn registered(&self, names: &Names) -> Result<Arc<Catalog>, SyncError> {
        let catalog = self.world.catalog();
        let missing = names.missing_in(&catalog).len();
        if missing == 0 {
            return Ok(catalog);
        }
        self.check_names(count_in(&catalog) + missing)?;
        Ok(self.world.registry().register(&names.registration(&catalog))?)
    }

    /// The cached cubes that intersect areas whose chunks are all listed.
    fn cached_in(
        &self,
        request: &SyncRequest,
        reply: &SyncReply,
        catalog: &Catalog,
    ) -> Result<Vec<(Dimension, ClusterPos)>, SyncError> {
        let mut whole = Vec::new();
        for (asked, reply) in request.areas.iter().zip(&reply.areas) {
            if matches!(reply, AreaReply::Changed { is_whole: true, .. }) {
                let area = area_of([asked.min, asked.max])?;
                whole.push((dimension_of(request, catalog, asked.dimension)?, area));
            }
        }
        let (mut cubes, mut position): (_, Option<ObjectKey>) = (Vec::new(), None);
        while !whole.is_empty() {
            let page = self.world.objects().list(CUBES, position.as_ref(), PAGE)?;
            let found =
                page.entries.iter().filter_map(|entry| CubeKey::from_object(CUBES, entry.key.as_bytes()));
            let found = found.map(|(_, dimension, cube)| (dimension, cube));
            cubes.extend(found.filter(|(dimension, cube)| {
                whole.iter().any(|(wanted, area)| wanted == dimension && meets(area, *cube))
            }));
            position = page.next;
            if position.is_none() {
                break;
            }
        }
        Ok(cubes)
    }
}

/// Checks that a reply answers a request of this session, and comes from the known server.
fn check(state: &State, request: &SyncRequest, reply: &SyncReply) -> Result<(), SyncError> {
    let chunks_fit = |(asked, reply): (&AskedCube, &CubeReply)| match reply {
        CubeReply::UpToDate => true,
        CubeReply::Chunks(answers) => answers.len() == asked.chunks.len(),
    };
    let asked = request.number.wrapping_sub(state.first_request);
    let fits = reply.number == request.number
        && (1..=state.requests).contains(&asked)
        && reply.cubes.len() == request.cubes.len()
        && reply.areas.len() == request.areas.len()
        && reply.values.len() == request.values.len()
        && request.cubes.iter().zip(&reply.cubes).all(chunks_fit);
    if !fits {
        return Err(SyncError::NotTheReply);
    }
    let Some(head) = &state.head else { return Ok(()) };
    if head.uuid != reply.uuid {
        let (expected, found) = (Uuid::from_bytes(head.uuid), Uuid::from_bytes(reply.uuid));
        return Err(SyncError::OtherServer { expected, found });
    }
    let follows = reply.is_restart && request.known.is_some_and(|known| known.life == head.life);
    if head.life != reply.life && !follows {
        return Err(SyncError::Outdated);
    }
    Ok(())
}

/// The index of a dimension in a request. Adds its names if it is absent.
fn number_of(asked: &mut Vec<AskedDimension>, catalog: &Catalog, dimension: Dimension) -> Result<u16, Error> {
    let list = catalog.list(ListKind::Dimensions);
    let unknown = || Error::UnknownDimension { found: dimension.get(), issued: list.len() as u64 };
    let name = list.current_name(dimension.get()).ok_or_else(unknown)?.as_str().as_bytes();
    if let Some(number) = asked.iter().position(|known| known.name == name) {
        return u16::try_from(number).map_err(|_| unknown());
    }
    let used = Used { dimensions: [dimension].into(), ..Used::default() };
    let names = Names::of(catalog, &used).expect("nothing but a dimension is asked for");
    let aliases = names.aliases.values().flat_map(|names| names.iter());
    let aliases = aliases.map(|name| name.as_str().into()).collect();
    asked.push(AskedDimension { name: name.to_vec(), aliases });
    u16::try_from(asked.len() - 1).map_err(|_| unknown())
}
