//! Players in the files of a save: as they came where none was changed, and else as the world has them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use cg_format::entity::Entity;
use cg_format::{EntityId, Space};
use cg_registry::Catalog;
use cg_store::{Error, ErrorKind, World};
use uuid::Uuid;

use super::report::ExportReport;
use crate::entity;
use crate::import::TwoStates;
use crate::mapping::key::file_key;
use crate::mapping::player::{self, Current, PlayerFile, PlayerMark};
use crate::mapping::{Ids, StoredLevel, unless_damaged};
use crate::nbt::{self, Document, Tag};
use crate::region::{Compression, compress_as, decompress};
use crate::save::{LEVEL, Layout};

/// The largest file that is read; `level.dat` of large mod packs take a few megabytes.
const MAX_BYTES: usize = 64 << 20;

/// The players of a world on their way into the files of a save.
#[derive(Debug)]
pub(super) struct Players<'a> {
    world: &'a World,
    catalog: Arc<Catalog>,
    ids: Ids,
    /// The layout in which the game of the save looks for players. Files of the other one are files as any other.
    looks: Layout,
    all: BTreeSet<Uuid>,
    /// Those that are not as they came.
    changed: BTreeSet<Uuid>,
    deleted: BTreeSet<Uuid>,
    /// Those that have no NBT of Java Edition.
    unreadable: BTreeSet<Uuid>,
    two_states: Option<TwoStates>,
}

/// Tag and name of the root of a new file, which has none.
const NEW_HEAD: [u8; 3] = [Tag::Compound as u8, 0, 0];

/// A player whose files an import brought.
enum Found {
    /// The world has it.
    Here(Box<Entity>),
    /// The world had it.
    Deleted,
    /// Nothing tells: its files stand for themselves.
    Unknown,
}

impl<'a> Players<'a> {
    /// The players of a world, for a save in which the game looks so.
    pub(super) fn new(world: &'a World, all: BTreeSet<Uuid>, looks: Layout) -> Self {
        let catalog = world.catalog();
        let ids = Ids::find(&catalog);
        let (changed, deleted, unreadable) = Default::default();
        Self { world, catalog, ids, looks, all, changed, deleted, unreadable, two_states: None }
    }

    /// The players for whom no file of the save stands, with the path of the file that each gets.
    pub(super) fn without_file(&self, names: &[String]) -> Result<Vec<(Uuid, String)>, Error> {
        let layout = self.looks;
        let files = names.iter().filter_map(|name| PlayerFile::of(name)).filter(|file| !file.is_backup);
        let mut has: BTreeSet<_> = files.filter(|file| file.layout == layout).map(|file| file.uuid).collect();
        if layout == Layout::Old {
            has.extend(self.of_stored_level()?);
        }
        let left = self.all.iter().filter(|uuid| !has.contains(uuid));
        Ok(left.map(|uuid| (*uuid, PlayerFile::path(*uuid, layout))).collect())
    }

    /// The player who is in the stored `level.dat`.
    fn of_stored_level(&self) -> Result<Option<Uuid>, Error> {
        let Some(bytes) = StoredLevel::read(self.world)?.bytes else { return Ok(None) };
        let Some(raw) = tree(&bytes) else { return Ok(None) };
        let owner = Document::parse(&raw, &nbt::Limits::default()).ok().and_then(|level| {
            let (player, ..) = player::of_level(&level)?;
            entity::uuid(player)
        });
        let Some(owner) = owner else { return Ok(None) };
        let mark = PlayerMark::read(self.world, owner)?;
        Ok(mark.is_some_and(|mark| mark.is_of_level).then_some(owner))
    }

    /// The bytes of a file with the player as the world has it; `None` if the file is left out, because the player was
    /// deleted.
    pub(super) fn file<'b>(
        &mut self,
        name: &str,
        bytes: Cow<'b, [u8]>,
    ) -> Result<Option<Cow<'b, [u8]>>, Error> {
        if name == LEVEL && self.looks == Layout::Old {
            return self.level(bytes).map(Some);
        }
        let file = PlayerFile::of(name).filter(|file| file.layout == self.looks);
        let Some(PlayerFile { uuid, is_backup, .. }) = file else { return Ok(Some(bytes)) };
        match self.find(uuid)? {
            Found::Unknown => Ok(Some(bytes)),
            Found::Deleted => {
                self.deleted.insert(uuid);
                Ok(None)
            }
            Found::Here(_) if is_backup => Ok(Some(bytes)),
            Found::Here(entity) => {
                let raw = tree(&bytes).unwrap_or_default();
                let kept = Document::parse(&raw, &nbt::Limits::default()).ok();
                let kept_nbt = kept.map_or(&[][..], |kept| kept.root.raw());
                let changed = self.changed(uuid, &entity, Some(kept_nbt))?;
                Ok(Some(changed.and_then(|changed| with_player(&bytes, &changed)).map_or(bytes, Cow::Owned)))
            }
        }
    }

    /// The file of a player for whom no file of the save stands; `None` if nothing of it can be written.
    pub(super) fn new_file(&mut self, uuid: Uuid) -> Result<Option<Vec<u8>>, Error> {
        let Found::Here(entity) = self.find(uuid)? else { return Ok(None) };
        Ok(self.changed(uuid, &entity, None)?.map(|nbt| file_of(&NEW_HEAD, &nbt)))
    }

    /// Notes what became of the players.
    pub(super) fn finish(self, report: &mut ExportReport) {
        report.players = self.all.difference(&self.unreadable).count() as u64;
        report.changed_players = self.changed.len() as u64;
        report.deleted_players = self.deleted.len() as u64;
        // A change of either file is known once both are written.
        report.two_states =
            self.two_states.map(|two| TwoStates { is_replaced: self.changed.contains(&two.uuid), ..two });
        report.missed("players without NBT of Java Edition", self.unreadable.len() as u64);
    }

    fn find(&self, uuid: Uuid) -> Result<Found, Error> {
        match self.world.entity(EntityId::new(uuid)) {
            // It is counted where all entities are read.
            Err(error) if error.kind() == ErrorKind::Damaged => return Ok(Found::Unknown),
            Err(error) => return Err(error),
            Ok(Some(entity)) if player::is_player(&self.catalog, &self.ids, &entity) => {
                return Ok(Found::Here(Box::new(entity)));
            }
            Ok(_) => {}
        }
        let is_deleted = PlayerMark::read(self.world, uuid)?.is_some() && !self.is_quarantined(uuid)?;
        Ok(if is_deleted { Found::Deleted } else { Found::Unknown })
    }

    /// Whether the entity was damaged, and its row is in quarantine.
    fn is_quarantined(&self, uuid: Uuid) -> Result<bool, Error> {
        let rows = self.world.quarantine().list()?;
        Ok(rows.iter().any(|row| row.space == Space::Entity && row.key == uuid.as_bytes()))
    }

    /// The NBT of a player as it is now, if that is neither what a file says nor what came. A file that cannot be read says
    /// nothing: no bytes.
    fn changed<'e>(
        &mut self,
        uuid: Uuid,
        entity: &'e Entity,
        kept: Option<&[u8]>,
    ) -> Result<Option<Cow<'e, [u8]>>, Error> {
        let Some(current) = Current::of(&self.catalog, &self.ids, entity) else {
            self.unreadable.insert(uuid);
            return Ok(None);
        };
        if kept == Some(&*current.nbt) {
            return Ok(None);
        }
        let is_as_it_came = |mark: PlayerMark| current.is_in_place && mark.is_of(&current.nbt);
        // Of two files that say something else only one is the entity's.
        if kept.is_some() && PlayerMark::read(self.world, uuid)?.is_some_and(is_as_it_came) {
            return Ok(None);
        }
        self.changed.insert(uuid);
        Ok(Some(current.nbt))
    }

    /// A `level.dat` with its player as the world has it.
    fn level<'b>(&mut self, bytes: Cow<'b, [u8]>) -> Result<Cow<'b, [u8]>, Error> {
        let Some(mut raw) = tree(&bytes) else { return Ok(bytes) };
        let Ok(level) = Document::parse(&raw, &nbt::Limits::default()) else { return Ok(bytes) };
        let Some((kept, field, at)) = player::of_level(&level) else { return Ok(bytes) };
        let Some(uuid) = entity::uuid(kept) else { return Ok(bytes) };
        let Some(mark) = PlayerMark::read(self.world, uuid)?.filter(|mark| mark.is_of_level) else {
            return Ok(bytes);
        };
        let begin = at + field.offset_bytes;
        let end = begin + field.raw.len();
        let found = self.find(uuid)?;
        let (range, new) = match &found {
            Found::Unknown => return Ok(bytes),
            Found::Deleted => {
                self.deleted.insert(uuid);
                (begin..end, Cow::Borrowed(&[][..]))
            }
            Found::Here(entity) => {
                let changed = self.changed(uuid, entity, Some(kept.raw()))?;
                self.two_states = self.two_states((uuid, mark), kept.raw())?;
                let Some(changed) = changed else { return Ok(bytes) };
                (end - kept.raw().len()..end, changed)
            }
        };
        raw.splice(range, new.iter().copied());
        Ok(compress_as(Compression::Gzip, &raw).into())
    }

    /// The player of `level.dat` with the file that says something else of them, if there is one.
    fn two_states(
        &self,
        (uuid, mark): (Uuid, PlayerMark),
        in_level: &[u8],
    ) -> Result<Option<TwoStates>, Error> {
        let path = PlayerFile::path(uuid, self.looks);
        let own = unless_damaged(self.world.objects().get(file_key(&path)?))?.flatten();
        let Some(raw) = own.and_then(|own| tree(&own.bytes)) else { return Ok(None) };
        let Ok(own) = Document::parse(&raw, &nbt::Limits::default()) else { return Ok(None) };
        let level = LEVEL.to_owned();
        let (taken, other) = if mark.is_of(in_level) { (level, path) } else { (path, level) };
        let two = TwoStates { uuid, taken, other, is_replaced: false };
        Ok((own.root.raw() != in_level).then_some(two))
    }
}

/// The player of a `level.dat`.
#[derive(Debug, Default)]
pub(super) struct InLevel {
    /// The player; `None` if it has none, or one without a UUID.
    pub(super) uuid: Option<Uuid>,
    raw: Vec<u8>,
    /// Where the player's fields are in these.
    fields: Range<usize>,
}

impl InLevel {
    /// Looks into a file.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let raw = tree(bytes).unwrap_or_default();
        let found = Document::parse(&raw, &nbt::Limits::default()).ok().and_then(|level| {
            let (player, field, at) = player::of_level(&level)?;
            let end = at + field.offset_bytes + field.raw.len();
            Some((entity::uuid(player), end - player.raw().len()..end))
        });
        let (uuid, fields) = found.unwrap_or_default();
        Self { uuid, raw, fields }
    }

    /// The file with other fields of the player; `None` if it has these.
    pub(super) fn with(mut self, nbt: &[u8]) -> Option<Vec<u8>> {
        if self.raw.get(self.fields.clone()) == Some(nbt) {
            return None;
        }
        self.raw.splice(self.fields, nbt.iter().copied());
        Some(compress_as(Compression::Gzip, &self.raw))
    }
}

/// The file of a player with other NBT, under the name that the root of the old one has; `None` if that says the same.
pub(super) fn with_player(old: &[u8], nbt: &[u8]) -> Option<Vec<u8>> {
    let raw = tree(old).unwrap_or_default();
    let kept = Document::parse(&raw, &nbt::Limits::default()).ok();
    if kept.is_some_and(|kept| kept.root.raw() == nbt) {
        return None;
    }
    // Tag and length of the root's name come before it.
    let head = kept.and_then(|kept| raw.get(..3 + kept.name.0.len())).unwrap_or(&NEW_HEAD);
    Some(file_of(head, nbt))
}

/// The tree of a file.
fn tree(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut raw = Vec::new();
    decompress(Compression::Gzip, bytes, MAX_BYTES, &mut raw).ok().map(|()| raw)
}

/// A player's file: what stands before the fields of its root, and those.
fn file_of(head: &[u8], nbt: &[u8]) -> Vec<u8> {
    compress_as(Compression::Gzip, &[head, nbt].concat())
}
