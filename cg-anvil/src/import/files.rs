//! Objects that an import makes: of what is left of columns, of points of interest, of what in slots of `entities/` is
//! no entity, and of files that are no regions.

use std::fs;
use std::path::Path;

use cg_format::EntityId;
use cg_format::entity::Entity;
use cg_store::objects::ObjectKey;
use cg_store::prelude::{Durability, Property};
use cg_store::settings::WorldSettings;
use cg_store::{Error, ErrorKind};

use super::Untested;
use super::apply::{CHANGED, Importer, TRANSACTION_BYTES};
use super::begin::LEVEL;
use super::choices::Merge;
use super::error::ImportError;
use super::ledger::Part;
use super::players::PutPlayer;
use super::progress::Stored;
use super::report::ImportReport;
use super::source;
use crate::Level;
use crate::mapping::kept::{Folder, slot_key};
use crate::mapping::layout::digest_of_level;
use crate::mapping::{Points, key};
use crate::region::{ColumnPos, Slot};
use crate::save::{self, OtherForm};
use crate::settings;

/// Bytes of a transaction besides an object's; an upper bound.
const OVERHEAD_BYTES: u64 = 4096;
/// Bytes of an object besides its key and its content; an upper bound.
const OBJECT_BYTES: usize = 512;

/// A property and its bytes, none to remove it.
type Change = (Property, Option<Vec<u8>>);

/// Files of the next transaction, with the players in them.
#[derive(Default)]
struct PendingFiles {
    objects: Vec<(ObjectKey, Vec<u8>)>,
    players: Vec<(EntityId, Entity)>,
    /// About how many bytes all this takes.
    len_bytes: usize,
}

impl PendingFiles {
    fn put(&mut self, key: ObjectKey, bytes: Vec<u8>) {
        // An empty file takes something too.
        self.len_bytes += bytes.len() + key.as_bytes().len() + OBJECT_BYTES;
        self.objects.push((key, bytes));
    }

    fn put_player(&mut self, player: PutPlayer) {
        self.len_bytes += player.len_bytes();
        self.players.extend(player.entity);
        self.objects.extend(player.mark);
    }
}

impl Importer<'_> {
    /// Puts what is left of a column into the next transaction, unless the world keeps its own.
    pub(super) fn put_leftovers(&mut self, column: ColumnPos, bytes: Vec<u8>) -> Result<(), ImportError> {
        let dimension = &self.dimension_name;
        let key = key::column_key(dimension, column);
        if self.head.choices.merge == Some(Merge::Replace)
            && let Ok(key) = &key
            && self.world.objects().get(key)?.is_none_or(|stored| *stored.bytes != *bytes)
        {
            // They belong to what is replaced, unless they came with this save.
            let points = key::poi_key(dimension, column);
            if !self.has_points(column) {
                self.pending.objects.extend(points.map(|key| (key, None)));
                self.pending.objects.extend(slot_key(Folder::Poi, dimension, column).map(|key| (key, None)));
            }
            let slot = key::entities_key(dimension, column);
            if !self.ledger.has(Part::EntitySlot, column) {
                self.pending.objects.extend(slot.map(|key| (key, None)));
                self.pending
                    .objects
                    .extend(slot_key(Folder::Entities, dimension, column).map(|key| (key, None)));
            }
        }
        self.put_object(key, bytes, "what is left of columns").map(drop)
    }

    /// Puts an object that goes with a column's slot into the next transaction, unless the world keeps its own. Says whether
    /// it did.
    pub(super) fn put_object(
        &mut self,
        key: Result<ObjectKey, Error>,
        bytes: Vec<u8>,
        what: &str,
    ) -> Result<bool, ImportError> {
        let Ok(key) = key else {
            self.lost(format!("{what}: the dimension's name is too long"));
            return Ok(false);
        };
        if self.head.choices.merge.is_some() {
            match self.world.objects().version(&key) {
                Ok(Some(_)) if self.head.choices.merge == Some(Merge::Keep) => return Ok(false),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    self.lost(format!("the world keeps its object `{key}`, which is damaged: {error}"));
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let limit_bytes = self.object_limit_bytes();
        if bytes.len() as u64 > limit_bytes {
            let len_bytes = bytes.len();
            self.lost(format!("{what}: {key} takes {len_bytes} bytes, more than {limit_bytes}"));
            self.pending.objects.insert(key, None);
            return Ok(false);
        }
        self.pending.objects.insert(key, Some(bytes));
        Ok(true)
    }

    /// Puts a slot of `region/` without a readable block into the next transaction: a column of before 1.13, or what
    /// cannot be read at all. Blocks that the world has are not replaced by it.
    pub(super) fn keep_region_slot(
        &mut self,
        slot: Slot,
        column: ColumnPos,
        bytes: Vec<u8>,
        is_old: bool,
    ) -> Result<(), ImportError> {
        if self.is_brought(column) {
            if is_old {
                self.unreadable(slot, format!("column {column} was met before in this save"));
            }
            return Ok(());
        }
        if !self.fits(bytes.len()) {
            self.unreadable(slot, self.too_large(bytes.len()));
            return Ok(());
        }
        self.ledger.note(Part::Column, column);
        let stored = match self.stored(column)? {
            Ok(stored) => stored,
            Err(why) => {
                self.ledger.note(Part::Kept, column);
                self.damaged_column(slot, column, &why);
                return Ok(());
            }
        };
        if stored.is_readable() {
            self.ledger.note(Part::Kept, column);
            if is_old && self.head.choices.merge != Some(Merge::Keep) {
                let reason = format!(
                    "column {column} is of before 1.13 and does not replace the blocks that the world has there"
                );
                self.unreadable(slot, reason);
            }
            return Ok(());
        }
        let is_put = if is_old {
            let key = slot_key(Folder::Region, &self.dimension_name, column);
            self.pending.len_bytes += bytes.len();
            let is_put = self.put_object(key, bytes, "columns of before 1.13")?;
            self.progress.report.old_slots += u64::from(is_put);
            is_put
        } else {
            self.put_kept(slot, Folder::Region, column, bytes)?
        };
        if !is_put {
            self.ledger.note(Part::Kept, column);
        }
        Ok(())
    }

    /// Forgets what the world keeps of a slot of `region/`, whose blocks arrive.
    pub(super) fn drop_old_slot(&mut self, column: ColumnPos) {
        let key = slot_key(Folder::Region, &self.dimension_name, column);
        self.pending.objects.extend(key.map(|key| (key, None)));
    }

    /// Whether this import met points of interest of a column.
    pub(super) fn has_points(&self, column: ColumnPos) -> bool {
        self.ledger.has(Part::Points, column)
    }

    /// Whether the save has points of interest without a column.
    pub(super) fn is_alone(&self, column: ColumnPos) -> bool {
        !self.is_brought(column) && !self.ledger.has(Part::Unread, column)
    }

    pub(super) fn points_of_interest(
        &mut self,
        slot: Slot,
        column: ColumnPos,
        mut points: Points,
    ) -> Result<(), ImportError> {
        if self.has_points(column) {
            let reason = format!("points of interest of column {column} were met before in this save");
            self.unreadable(slot, reason);
            return Ok(());
        }
        points.is_alone = self.is_alone(column);
        let bytes = points.encode();
        if !self.fits(bytes.len()) {
            return self.unread_again(slot, Folder::Poi, self.too_large(bytes.len()));
        }
        self.ledger.note(Part::Points, column);
        if self.is_of_other_blocks(column)? {
            return Ok(());
        }
        self.drop_kept(Folder::Poi, column)?;
        self.pending.len_bytes += bytes.len();
        let key = key::poi_key(&self.dimension_name, column);
        self.put_object(key, bytes, "points of interest").map(drop)
    }

    /// Puts what in a slot of `entities/` is no entity into the next transaction, unless the world keeps its own, or an
    /// earlier slot of the save was of the same column.
    pub(super) fn put_entity_slot(&mut self, column: ColumnPos, bytes: Vec<u8>) -> Result<(), ImportError> {
        if self.ledger.has(Part::EntitySlot, column) {
            self.lost(format!("fields of a second slot of entities/ for column {column}"));
            return Ok(());
        }
        self.ledger.note(Part::EntitySlot, column);
        if self.is_of_other_blocks(column)? {
            return Ok(());
        }
        self.pending.len_bytes += bytes.len();
        let key = key::entities_key(&self.dimension_name, column);
        self.put_object(key, bytes, "fields beside entities").map(drop)
    }

    /// Whether this import met a column that could be read.
    pub(super) fn is_brought(&self, column: ColumnPos) -> bool {
        self.ledger.has(Part::Column, column)
    }

    /// Whether the world has a column that this import did not bring. Versions do not tell: entities that are given to a
    /// chunk make it another.
    pub(super) fn is_of_other_blocks(&mut self, column: ColumnPos) -> Result<bool, ImportError> {
        if self.keeps(column)? {
            return Ok(true);
        }
        Ok(!self.is_brought(column) && self.stored(column)?.map_or(true, |stored| stored.is_there()))
    }

    /// Takes the save's files that are no regions; what the world has of them already is not written again, so that
    /// this can be done anew by an import that continues.
    pub(super) fn files(&mut self, report: &mut ImportReport) -> Result<(), ImportError> {
        let mut all = ImportReport::default();
        for (name, why) in &self.source.others.refused {
            all.note_left_out(name, why);
        }
        for OtherForm { folder, form, files, .. } in &self.source.save.other_forms {
            let name = match self.source.name(folder) {
                name if name.is_empty() => ".".to_owned(),
                name => name,
            };
            let noun = if *files == 1 { "file" } else { "files" };
            let reason = format!("chunks in {files} {noun} are not read: {form}; {}", form.advice());
            all.note_unreadable(&name, None, reason);
        }
        for (copy, of) in &self.source.save.copies {
            all.note_left_out(&self.source.name(copy), &format!("it is a copy of {of}"));
        }
        for name in &self.source.others.read_elsewhere {
            all.note_not_carried(&format!("file {name}: a region that is read by another path"));
        }
        for (name, path) in &self.source.others.worlds {
            if self.is_own_world(path) {
                all.note_not_carried(&format!("folder {name}: it is this world"));
            } else {
                all.note_left_out(name, "it is a world of CherryGrove");
            }
        }
        let mut pending = PendingFiles::default();
        let mut settings = WorldSettings::default();
        for (name, path) in &self.source.others.files {
            let Ok(key) = key::file_key(name) else {
                all.note_left_out(name, "its path is too long");
                continue;
            };
            let bytes = match source::read(path, self.object_limit_bytes()) {
                Ok(Ok((bytes, is_changed))) => {
                    if is_changed {
                        all.note_unreadable(name, None, CHANGED.to_owned());
                    }
                    bytes
                }
                Ok(Err(len_bytes)) => {
                    all.note_too_large(name, len_bytes);
                    continue;
                }
                Err(error) => {
                    all.note_unreadable(name, None, error.to_string());
                    continue;
                }
            };
            if name == LEVEL {
                self.level = Some(digest_of_level(&bytes));
                let data_version = Level::read(&bytes).and_then(|level| level.data_version);
                all.untested = data_version.and_then(|version| Untested::of(version, 0));
            }
            let stored = match self.world.objects().get(&key) {
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    let why = format!("the world keeps its own, which is damaged: {error}");
                    all.note_unreadable(name, None, why);
                    continue;
                }
                stored => stored?,
            };
            let is_there = stored.as_ref().is_some_and(|stored| *stored.bytes == *bytes);
            let is_kept = !is_there && self.head.choices.merge == Some(Merge::Keep);
            let kept = stored.filter(|_| is_kept);
            let player =
                self.player_of_file(name, kept.as_ref().map_or(&bytes, |kept| &kept.bytes), &mut all)?;
            if pending.len_bytes > 0 && pending.len_bytes + player.len_bytes() > TRANSACTION_BYTES {
                self.put_files(std::mem::take(&mut pending), &[])?;
            }
            pending.put_player(player);
            if kept.is_some() {
                all.kept_files += 1;
                continue;
            }
            all.imported_files += 1;
            settings::read(name, &bytes, &mut settings);
            if save::is_named_as_region(name) {
                all.note_region_as_file(name);
            }
            if is_there {
                continue;
            }
            if pending.len_bytes > 0 && pending.len_bytes + bytes.len() > TRANSACTION_BYTES {
                self.put_files(std::mem::take(&mut pending), &[])?;
            }
            pending.put(key, bytes);
        }
        let changed = self.changed_settings(&settings)?;
        if pending.len_bytes > 0 || !changed.is_empty() {
            self.put_files(pending, &changed)?;
        }
        report.add(all);
        Ok(())
    }

    /// Whether a folder is that of the world that the import is into.
    fn is_own_world(&self, folder: &Path) -> bool {
        let canonical = |path: &Path| fs::canonicalize(path).ok();
        self.world.directory().and_then(canonical).is_some_and(|own| canonical(folder) == Some(own))
    }

    /// What becomes of the settings by what the files of the save say. Settings that the world has stay if it keeps what it
    /// has. Otherwise a `level.dat` replaces all for which a save has a place.
    fn changed_settings(&self, said: &WorldSettings) -> Result<Vec<Change>, ImportError> {
        let (keeps, placed) = (self.head.choices.merge == Some(Merge::Keep), settings::placed());
        let mut changed = Vec::new();
        for (name, property) in WorldSettings::NAMES.iter().zip(WorldSettings::properties()) {
            let stored = match self.world.property(&property) {
                // No setting has these bytes.
                Err(error) if error.kind() == ErrorKind::Damaged => Some(vec![0xff]),
                stored => stored?,
            };
            let new = said.bytes(name);
            let is_of_save = new.is_some() || self.level.is_some() && placed.contains(name);
            let is_kept = keeps && stored.is_some();
            if is_of_save && !is_kept && new != stored {
                changed.push((property, new));
            }
        }
        Ok(changed)
    }

    /// Puts files and settings.
    fn put_files(&mut self, files: PendingFiles, settings: &[Change]) -> Result<(), ImportError> {
        self.world.transaction_at(Durability::Process, |tx| {
            for (id, player) in files.players {
                tx.put_entity(id, player);
            }
            for (property, bytes) in settings {
                tx.set_property(property.clone(), bytes.clone());
            }
            for (key, bytes) in files.objects {
                tx.put_object(key, bytes)?;
            }
            Stored::Ok(())
        })?;
        self.count_transaction()
    }

    /// Bytes that an object can have in a transaction of its own.
    pub(super) fn object_limit_bytes(&self) -> u64 {
        let limits = self.world.limits();
        limits.object_bytes.min(limits.batch_bytes).saturating_sub(OVERHEAD_BYTES)
    }
}
