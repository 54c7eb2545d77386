//! The client's side: a world of its own that holds what a server's does.

use std::collections::{BTreeMap, BTreeSet};

use cg_format::{ChunkAt, ChunkBox, ClusterPos, ClusterTier, Dimension};
use cg_registry::portable::{IdRemap, Names};
use cg_registry::{Catalog, ListKind};
use cg_store::objects::ObjectKey;
use cg_store::{Error, World};
use uuid::Uuid;

use super::applying::Applying;
use super::error::{MessageError, SyncError};
use super::messages::{
    AreaReply, AskedArea, AskedCube, CubeReply, KnownServer, NewNames, SyncReply, SyncRequest, decode_row,
    encode_row,
};
use super::outcome::SyncOutcome;
use super::place::{area_of, chunk_at, dimension_of, meets, place_of};
use super::state::{AreaRow, CUBES, CubeKey, CubeRow, HEAD, Head, STALE, area_key, names_key};
use parking_lot::Mutex;

/// At most this many rows of the cache are listed at once.
const PAGE: usize = 1024;
/// Names that a world may come to have by replies, unless the host says another count.
const MAX_NAMES: usize = 1 << 20;

/// A world as the cache of one server's.
///
/// The host connects the two: it sends what [`request`](Self::request) and its siblings give, and
/// [applies](Self::apply) what comes back. In between the cache is a world like any other; what the host writes into it
/// past the client is overwritten when the server has something newer, and is not sent.
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

/// What is known of the server, as it is stored.
#[derive(Debug, Clone, Default)]
struct State {
    head: Option<Head>,
    generation: u32,
    names: Names,
    /// Requests of this session have the numbers after the first, which no other session has.
    first_request: u64,
    requests: u64,
    /// The newest commit of which a reply of this session and incarnation told. A reply of an older one is late: what it
    /// says of a place without a known version may be over, and what it does not know may have been noted already.
    told: u64,
}

impl SyncClient {
    /// Makes a world the cache of a server's, or goes on as one. Reads the names that the server ever sent.
    ///
    /// # Errors
    /// [`SyncError::World`], and [`SyncError::Message`] if what an earlier release kept cannot be read.
    pub fn open(world: World) -> Result<Self, SyncError> {
        let first_request = Uuid::new_v4().as_u64_pair().0;
        let mut state = State { first_request, ..State::default() };
        if let Some(head) = world.objects().get(HEAD)? {
            let head: Head = decode_row(&head.bytes)?;
            for page in head.first_page..head.behind_page {
                let page = world.objects().get(names_key(page))?.ok_or(MessageError::NamesMissing)?;
                let page: NewNames = decode_row(&page.bytes)?;
                page.fold_into(&mut state.names, &mut state.generation)?;
            }
            state.head = Some(head);
        }
        Ok(Self { world, max_names: MAX_NAMES, state: Mutex::new(state) })
    }

    /// The client with another bound on names; a million is the default.
    ///
    /// Names are registered for ever, so a server that is not trusted must not be able to send them without end: a reply
    /// with which the cache's world, or what is kept of the server, came to more is refused.
    #[must_use]
    pub const fn with_max_names(mut self, max_names: usize) -> Self {
        self.max_names = max_names;
        self
    }

    /// The cache's world.
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// The server's world and its incarnation, once it has answered.
    pub fn server(&self) -> Option<(Uuid, Uuid)> {
        let head = self.state.lock().head?;
        Some((Uuid::from_bytes(head.uuid), Uuid::from_bytes(head.incarnation)))
    }

    /// The version that the server had of a chunk when it sent it; `None` for one that is not cached, or stale.
    ///
    /// # Errors
    /// [`SyncError::World`].
    pub fn version(&self, at: ChunkAt) -> Result<Option<u64>, SyncError> {
        let Some(head) = self.state.lock().head else { return Ok(None) };
        Ok(self.row(CubeKey::of(at), head.incarnation)?.and_then(|row| row.version(at)))
    }

    /// Asks about chunks, whether they are cached or not. Reads one row for each 4³ cube.
    ///
    /// # Errors
    /// [`SyncError::World`]; in it [`Error::UnknownDimension`] for a dimension that the cache's world does not have.
    pub fn request(&self, at: &[ChunkAt]) -> Result<SyncRequest, SyncError> {
        let (mut request, incarnation) = self.begin();
        let catalog = self.world.catalog();
        let mut cubes: BTreeMap<CubeKey, BTreeSet<ChunkAt>> = BTreeMap::new();
        for at in at {
            cubes.entry(CubeKey::of(*at)).or_default().insert(*at);
        }
        for (key, chunks) in cubes {
            let row = incarnation.map(|incarnation| self.row(key, incarnation)).transpose()?.flatten();
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

    /// Asks what changed in a box of chunks since it was asked last. Reads one row.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn request_area(&self, dimension: Dimension, area: ChunkBox) -> Result<SyncRequest, SyncError> {
        let (mut request, incarnation) = self.begin();
        let row = self.world.objects().get(area_key(dimension, &area))?;
        let row: Option<AreaRow> = row.map(|row| decode_row(&row.bytes)).transpose()?;
        let row = row.filter(|row| Some(row.incarnation) == incarnation);
        let (min, max) = (area.min(), area.max());
        request.areas.push(AskedArea {
            dimension: number_of(&mut request.dimensions, &self.world.catalog(), dimension)?,
            min: [min.x(), min.y(), min.z()],
            max: [max.x(), max.y(), max.z()],
            since: row.map(|row| row.commit),
        });
        Ok(request)
    }

    /// Asks about chunks of which the cache knows that it lacks the newest version, at most this many and those of one 4³ cube
    /// more; `None` if there are none. Survives reopening. Reads two rows for each 4³ cube.
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
                let Some(row) = self.row(key, head.incarnation)? else { continue };
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

    /// Applies the reply to a request: names that are new are registered, then one transaction stores chunks with the
    /// server's versions of them, deletes what is gone, and notes what is stale. It returns as any transaction of the world.
    ///
    /// Replies to requests of this client may be applied in any order, and twice: what is older than what is cached or
    /// noted changes nothing. Costs the size of
    /// what changed, and a look at every name that the server has; of an area whose base was unknown, also the rows of
    /// all cached cubes.
    ///
    /// # Errors
    /// [`SyncError`]; but for names, nothing was written then.
    pub fn apply(&self, request: &SyncRequest, reply: &SyncReply) -> Result<SyncOutcome, SyncError> {
        let mut state = self.state.lock();
        check(&state, request, reply)?;
        let mut next = state.clone();
        if reply.is_restart && state.head.is_none_or(|head| head.incarnation != reply.incarnation) {
            let State { first_request, requests, .. } = *state;
            next = State { first_request, requests, ..State::default() };
        }
        let is_late = reply.commit < next.told;
        next.told = next.told.max(reply.commit);
        let known_names = if reply.names.generation == next.generation { count(&next.names) } else { 0 };
        self.check_names(known_names + reply.names.count())?;
        let has_names = reply.names.fold_into(&mut next.names, &mut next.generation)?;
        let is_new_life = next.head.is_none();
        let page = state.head.map_or(0, |head| head.behind_page);
        let head = Head {
            uuid: reply.uuid,
            incarnation: reply.incarnation,
            first_page: next.head.map_or(page, |head| head.first_page),
            behind_page: page + u32::from(has_names),
        };
        next.head = Some(head);
        let catalog = self.registered(&next.names)?;
        let remap = IdRemap::new(&next.names, &catalog).map_err(|_| MessageError::NamesMissing)?;
        let cached = self.cached_in(request, reply, &catalog)?;
        let applied = self.world.transaction(|tx| {
            if state.head != Some(head) {
                tx.put_object(HEAD, encode_row(&head))?;
            }
            for old in
                state.head.iter().filter(|_| is_new_life).flat_map(|old| old.first_page..old.behind_page)
            {
                tx.delete_object(names_key(old))?;
            }
            if has_names {
                tx.put_object(names_key(page), encode_row(&reply.names))?;
            }
            let mut applying = Applying {
                tx,
                names: &next.names,
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
            applying.end()
        })?;
        *state = next;
        Ok(applied.value)
    }

    /// A request with nothing in it yet, and the incarnation whose versions it may name.
    fn begin(&self) -> (SyncRequest, Option<[u8; 16]>) {
        let mut state = self.state.lock();
        state.requests += 1;
        let known = state.head.map(|head| KnownServer {
            uuid: head.uuid,
            incarnation: head.incarnation,
            generation: state.generation,
            blocks: state.names.blocks.len() as u64,
            sides: state.names.sides.len() as u64,
        });
        let request = SyncRequest {
            number: state.first_request.wrapping_add(state.requests),
            known,
            dimensions: Vec::new(),
            cubes: Vec::new(),
            areas: Vec::new(),
        };
        (request, state.head.map(|head| head.incarnation))
    }

    fn row(&self, key: CubeKey, incarnation: [u8; 16]) -> Result<Option<CubeRow>, SyncError> {
        let row = self.world.objects().get(key.object(CUBES))?;
        row.map(|row| CubeRow::read(&row.bytes, incarnation)).transpose()
    }

    fn check_names(&self, names: usize) -> Result<(), SyncError> {
        let limit = self.max_names;
        if names > limit { Err(SyncError::TooManyNames { names, limit }) } else { Ok(()) }
    }

    /// The catalog, once it has all names.
    fn registered(&self, names: &Names) -> Result<std::sync::Arc<Catalog>, SyncError> {
        let catalog = self.world.catalog();
        let missing = names.missing_in(&catalog).len();
        if missing == 0 {
            return Ok(catalog);
        }
        self.check_names(
            ListKind::ALL.iter().map(|list| catalog.list(*list).len()).sum::<usize>() + missing,
        )?;
        Ok(self.world.registry().register(&names.registration(&catalog))?)
    }

    /// The cached cubes that may have chunks in areas of which everything is listed.
    fn cached_in(
        &self,
        request: &SyncRequest,
        reply: &SyncReply,
        catalog: &Catalog,
    ) -> Result<Vec<(Dimension, ClusterPos)>, SyncError> {
        let mut whole = Vec::new();
        for (asked, reply) in request.areas.iter().zip(&reply.areas) {
            if matches!(reply, AreaReply::Changed { is_whole: true, .. }) {
                whole.push((dimension_of(request, catalog, asked.dimension)?, area_of(asked)?));
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

/// How many names there are.
fn count(names: &Names) -> usize {
    names.blocks.len() + names.components.len() + names.sides.len()
}

/// Whether a reply is one to a request of this session, and of the server that is known.
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
        && request.cubes.iter().zip(&reply.cubes).all(chunks_fit);
    if !fits {
        return Err(SyncError::NotTheReply);
    }
    let Some(head) = &state.head else { return Ok(()) };
    if head.uuid != reply.uuid {
        let (expected, found) = (Uuid::from_bytes(head.uuid), Uuid::from_bytes(reply.uuid));
        return Err(SyncError::OtherServer { expected, found });
    }
    let follows =
        reply.is_restart && request.known.is_some_and(|known| known.incarnation == head.incarnation);
    if head.incarnation != reply.incarnation && !follows {
        return Err(SyncError::Outdated);
    }
    Ok(())
}

/// The number of a dimension in a request, which names it.
fn number_of(names: &mut Vec<Vec<u8>>, catalog: &Catalog, dimension: Dimension) -> Result<u16, Error> {
    let list = catalog.list(ListKind::Dimensions);
    let unknown = || Error::UnknownDimension { found: dimension.get(), issued: list.len() as u64 };
    let name = list.name(dimension.get()).ok_or_else(unknown)?.as_str().as_bytes();
    let number = names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_vec());
        names.len() - 1
    });
    u16::try_from(number).map_err(|_| unknown())
}
