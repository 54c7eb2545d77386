//! Players of a save as entities of a world, beside the files that they came in.
//!
//! A player comes with the column in which they stand, if the import brings that; the others come with their files.

use std::collections::BTreeMap;

use cg_format::entity::{Entity, EntityPos};
use cg_format::{Dimension, EntityId};
use cg_minecraft::name;
use cg_store::objects::ObjectKey;
use cg_store::{Error, ErrorKind, World};
use uuid::Uuid;

use super::apply::{Importer, TRANSACTION_BYTES};
use super::begin::LEVEL;
use super::choices::Merge;
use super::entities::ENTITY_OVERHEAD_BYTES;
use super::error::ImportError;
use super::report::ImportReport;
use super::source::{self, Source};
use crate::entity;
use crate::mapping::key;
use crate::mapping::player::{self, Current, Place, PlayerFile, PlayerMark};
use crate::mapping::{TwoStates, place, unless_damaged};
use crate::nbt::{self, Compound, Document};
use crate::region::{ColumnPos, Compression, decompress};
use crate::save::{Layout, found_folder};

/// The largest `level.dat` that is read.
const MAX_LEVEL_BYTES: usize = 64 << 20;

/// The players of a save.
#[derive(Debug)]
pub(super) struct Players {
    /// The layout in which the game looks for them.
    layout: Layout,
    /// The numbers of their files, by the column in which they stand.
    by_column: BTreeMap<(String, ColumnPos), Vec<usize>>,
    of_level: Option<OfLevel>,
}

/// The player of `level.dat`.
#[derive(Debug, Clone, Copy)]
struct OfLevel {
    uuid: Uuid,
    /// Whether the state in their own file is the player.
    is_in_file: bool,
}

/// What a file says of a player.
#[derive(Debug)]
struct Read {
    uuid: Uuid,
    place: Place,
    nbt: Vec<u8>,
    /// The version of the game that wrote it; `None` before 1.9.
    data_version: Option<i32>,
    /// Whether `level.dat` has the player.
    is_of_level: bool,
}

/// Why a file gives no entity.
#[derive(Debug)]
enum Refused {
    /// It cannot be read.
    Damaged(String),
    /// It can, and says something else.
    Other(String),
}

/// What a player adds to the world.
#[derive(Debug, Default)]
pub(super) struct PutPlayer {
    pub(super) entity: Option<(EntityId, Entity)>,
    /// The object with their mark.
    pub(super) mark: Option<(ObjectKey, Vec<u8>)>,
    /// Whether the world keeps a player of its own.
    is_kept: bool,
    /// Whether that one is not as the file says.
    is_other: bool,
}

impl PutPlayer {
    /// About how many bytes it takes.
    pub(super) fn len_bytes(&self) -> usize {
        let nbt =
            self.entity.iter().flat_map(|(_, entity)| entity.components().map(|(_, bytes)| bytes.len()));
        let rows = usize::from(self.entity.is_some()) + usize::from(self.mark.is_some());
        nbt.sum::<usize>() + rows * ENTITY_OVERHEAD_BYTES as usize
    }
}

impl Players {
    /// Looks where the players of a save are, if they may come with their columns. Reads the file of each.
    pub(super) fn find(world: &World, source: &Source, merge: Option<Merge>) -> Self {
        let files = &source.others.files;
        let mut found = Self { layout: source.layout(), by_column: BTreeMap::new(), of_level: None };
        // What the world keeps is known when its files are compared.
        if merge == Some(Merge::Keep) {
            return found;
        }
        for index in 0..files.len() {
            let Some(read) = found.read_file(world, source, index) else { continue };
            let (name, _) = &files[index];
            if name == LEVEL {
                let path = PlayerFile::path(read.uuid, found.layout);
                let own = files.iter().position(|(name, _)| *name == path);
                let own = own.and_then(|own| found.read_file(world, source, own));
                found.of_level = Some(OfLevel::new(&read, own.as_ref()));
            }
            if found.is_stated_elsewhere(name, read.uuid) {
                continue;
            }
            if let Some(column) = column_of(&read.place) {
                found.by_column.entry((read.place.dimension, column)).or_default().push(index);
            }
        }
        found
    }

    /// The player of a file of the save; `None` if it is the file of none, or of one that gives no entity.
    fn read_file(&self, world: &World, source: &Source, index: usize) -> Option<Read> {
        let (name, path) = source.others.files.get(index)?;
        if !self.is_of_player(name) {
            return None;
        }
        let limits = world.limits();
        let (bytes, _) = source::read(path, limits.object_bytes).ok()?.ok()?;
        self.read(name, &bytes, limits.entity_bytes).and_then(Result::ok)
    }

    /// Whether another file than this says the state of a player.
    fn is_stated_elsewhere(&self, name: &str, uuid: Uuid) -> bool {
        self.of_level.is_some_and(|of_level| of_level.uuid == uuid && of_level.is_in_file == (name == LEVEL))
    }

    fn is_of_player(&self, name: &str) -> bool {
        let is_looked_at = |file: PlayerFile| file.layout == self.layout && !file.is_backup;
        name == LEVEL && self.layout == Layout::Old || PlayerFile::of(name).is_some_and(is_looked_at)
    }

    /// The player of a file with this name; `None` if it is the file of none.
    fn read(&self, name: &str, bytes: &[u8], limit_bytes: u64) -> Option<Result<Read, Refused>> {
        if name == LEVEL {
            if self.layout != Layout::Old {
                return None;
            }
            let mut raw = Vec::new();
            // A damaged one says nothing of a player.
            decompress(Compression::Gzip, bytes, MAX_LEVEL_BYTES, &mut raw).ok()?;
            let level = Document::parse(&raw, &nbt::Limits::default()).ok()?;
            let (fields, ..) = player::of_level(&level)?;
            let uuid =
                entity::uuid(fields).ok_or_else(|| Refused::Other("its player has no UUID".to_owned()));
            return Some(uuid.and_then(|uuid| Read::new(uuid, fields, (self.layout, true), limit_bytes)));
        }
        let file = PlayerFile::of(name).filter(|file| !file.is_backup)?;
        if file.layout != self.layout {
            let why = "the game of this save looks for players elsewhere";
            return Some(Err(Refused::Other(why.to_owned())));
        }
        let read = || {
            let damaged = |why: String| Refused::Damaged(format!("the player in it cannot be read: {why}"));
            let mut raw = Vec::new();
            let room_bytes = usize::try_from(limit_bytes).unwrap_or(usize::MAX);
            decompress(Compression::Gzip, bytes, room_bytes, &mut raw)
                .map_err(|why| damaged(why.to_string()))?;
            let document = Document::parse(&raw, &nbt::Limits::default());
            let fields = document.map_err(|why| damaged(why.to_string()))?.root;
            match entity::uuid(fields) {
                Some(uuid) if uuid != file.uuid => {
                    Err(Refused::Other(format!("the player in it has the UUID {uuid}")))
                }
                _ => {
                    let is_of_level = self.of_level.is_some_and(|of_level| of_level.uuid == file.uuid);
                    Read::new(file.uuid, fields, (self.layout, is_of_level), limit_bytes)
                }
            }
        };
        Some(read())
    }
}

impl OfLevel {
    /// The player of a `level.dat` beside their own file, if that gives a player.
    ///
    /// The file says their state. Every game writes it, and the game of one player writes the same into `level.dat`. So
    /// where they differ the file is the later one, unless its game is older.
    fn new(level: &Read, own: Option<&Read>) -> Self {
        Self { uuid: level.uuid, is_in_file: own.is_some_and(|own| own.data_version >= level.data_version) }
    }
}

impl Read {
    fn new(
        uuid: Uuid,
        fields: Compound<'_>,
        (layout, is_of_level): (Layout, bool),
        limit_bytes: u64,
    ) -> Result<Self, Refused> {
        let len_bytes = fields.raw().len() as u64 + ENTITY_OVERHEAD_BYTES;
        if len_bytes > limit_bytes {
            let why =
                format!("the player in it takes {len_bytes} bytes, more than the world's {limit_bytes}");
            return Err(Refused::Damaged(why));
        }
        let place = Place::of(fields)
            .filter(|place| position(place, Dimension::new(0)).is_some())
            .ok_or_else(|| Refused::Other("the player in it is at no place that a world has".to_owned()))?;
        if found_folder(&place.dimension, layout).is_none() || name::of(&place.dimension).is_err() {
            let why = "the player in it is in a dimension that no save can have";
            return Err(Refused::Other(why.to_owned()));
        }
        let data_version = fields.int("DataVersion");
        Ok(Self { uuid, place, nbt: fields.raw().to_vec(), data_version, is_of_level })
    }
}

fn position(place: &Place, dimension: Dimension) -> Option<EntityPos> {
    EntityPos::from_f64(dimension, place.pos).ok()
}

fn column_of(place: &Place) -> Option<ColumnPos> {
    place::column_of(position(place, Dimension::new(0))?.block().chunk())
}

impl Importer<'_> {
    /// Puts the players who stand in a column into its transaction, as far as that has room.
    pub(super) fn put_players_of(&mut self, column: ColumnPos) -> Result<(), ImportError> {
        let dimension = self.region().dimension.clone();
        let here = self.players.by_column.remove(&(dimension, column)).unwrap_or_default();
        for index in here {
            if self.pending.len_bytes > TRANSACTION_BYTES {
                break;
            }
            // What cannot be read any more is reported with its file.
            let Some(read) = self.players.read_file(self.world, self.source, index) else { continue };
            let id = EntityId::new(read.uuid);
            let Ok(put) = self.put_player(read)? else { continue };
            if self.world.entity_version(id)?.is_some() {
                // One that is put as it was keeps its version.
                self.met.insert(id.get());
                self.pending.met.push(id.get());
            }
            self.pending.len_bytes += put.len_bytes();
            self.pending.objects.extend(put.mark.map(|(key, mark)| (key, Some(mark))));
            if let Some((id, entity)) = put.entity {
                self.pending.deleted.remove(&id);
                self.pending.entities.insert(id, entity);
            }
        }
        Ok(())
    }

    /// Takes the player of a file as the world holds it now; reports why there is none. Returns what is not in the world yet.
    pub(super) fn player_of_file(
        &mut self,
        name: &str,
        bytes: &[u8],
        report: &mut ImportReport,
    ) -> Result<PutPlayer, ImportError> {
        let limit_bytes = self.world.limits().entity_bytes;
        let read = self.players.read(name, bytes, limit_bytes);
        if name == LEVEL {
            let read = read.as_ref().and_then(|read| read.as_ref().ok());
            self.players.of_level = read.map(|read| self.of_level(read, report)).transpose()?;
        }
        let read = match read {
            None => return Ok(PutPlayer::default()),
            Some(Ok(read)) if self.players.is_stated_elsewhere(name, read.uuid) => {
                return Ok(PutPlayer::default());
            }
            Some(read) => read,
        };
        let put = read.map_or_else(|refused| Ok(Err(refused)), |read| self.put_player(read))?;
        if put.is_err() && name == LEVEL {
            self.players.of_level = None;
        }
        match put {
            Ok(put) => {
                report.players += u64::from(!put.is_kept);
                report.kept_entities += u64::from(put.is_kept);
                // Neither of both states is the world's.
                report.two_states.take_if(|two| put.is_other && two.taken == name);
                return Ok(put);
            }
            Err(Refused::Damaged(why)) => report.note_unreadable(name, None, why),
            Err(Refused::Other(why)) => report.note_player_as_file(name, &why),
        }
        Ok(PutPlayer::default())
    }

    /// Which file says the state of the player of `level.dat`, among those that the world will have; reports whether
    /// another one says something else.
    fn of_level(&self, level: &Read, report: &mut ImportReport) -> Result<OfLevel, Error> {
        let path = PlayerFile::path(level.uuid, self.players.layout);
        let index = self.source.others.files.iter().position(|(name, _)| *name == path);
        let keeps = index.is_some() && self.head.choices.merge == Some(Merge::Keep);
        let kept = if keeps {
            unless_damaged(self.world.objects().get(key::file_key(&path)?))?.flatten()
        } else {
            None
        };
        let own = match kept {
            Some(kept) => {
                self.players.read(&path, &kept.bytes, self.world.limits().entity_bytes).and_then(Result::ok)
            }
            None => index.and_then(|index| self.players.read_file(self.world, self.source, index)),
        };
        let of_level = OfLevel::new(level, own.as_ref());
        if own.is_some_and(|own| own.nbt != level.nbt) {
            let level_path = LEVEL.to_owned();
            let (taken, other) = if of_level.is_in_file { (path, level_path) } else { (level_path, path) };
            report.two_states = Some(TwoStates { uuid: level.uuid, taken, other, is_replaced: false });
        }
        Ok(of_level)
    }

    /// What a player adds to the world.
    fn put_player(&self, read: Read) -> Result<Result<PutPlayer, Refused>, ImportError> {
        let Read { uuid, place, nbt, is_of_level, .. } = read;
        let id = EntityId::new(uuid);
        let stored = match self.world.entity(id) {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                let why = format!("the world keeps its entity {id}, which is damaged: {error}");
                return Ok(Err(Refused::Damaged(why)));
            }
            stored => stored?,
        };
        let catalog = self.world.catalog();
        let came = match self.pending.entities.get(&id) {
            Some(pending) => Some(pending),
            None if self.has_brought(id)? || self.met.contains(&uuid) => stored.as_ref(),
            None => None,
        };
        if came.is_some_and(|came| !player::is_player(&catalog, &self.ids, came)) {
            let why = format!("an entity of the save has the player's UUID {uuid}");
            return Ok(Err(Refused::Other(why)));
        }
        let known = PlayerMark::read(self.world, uuid)?;
        if stored.is_some() && came.is_none() && self.head.choices.merge == Some(Merge::Keep) {
            // That the world has a player of its own ends what the files say of them.
            let mark = known.is_none().then_some(PlayerMark { nbt: None, is_of_level });
            let mark = mark.map(|mark| (PlayerMark::key(uuid), mark.encode()));
            let current = stored.as_ref().and_then(|own| Current::of(&catalog, &self.ids, own));
            let is_other = current.is_none_or(|current| *current.nbt != nbt);
            return Ok(Ok(PutPlayer { entity: None, mark, is_kept: true, is_other }));
        }
        let dimension = name::of(&place.dimension).map_err(Error::from)?;
        let dimension = self.world.registry().register_dimension(dimension.as_str())?;
        let position = position(&place, dimension).expect("it was checked when it was read");
        let mark = PlayerMark::new(&nbt, is_of_level);
        let entity = player::made(self.world, &self.ids, position, nbt)?;
        let entity = (stored.as_ref() != Some(&entity)).then_some((id, entity));
        let mark = (known != Some(mark)).then(|| (PlayerMark::key(uuid), mark.encode()));
        Ok(Ok(PutPlayer { entity, mark, is_kept: false, is_other: false }))
    }
}
