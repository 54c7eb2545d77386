//! One region file of the save: what of it changes, and how that reaches the disk.
//!
//! At any moment the file is the old one or the new one, and every slot of it can be read:
//!
//! 1. the new file and new `.mcc` files are written beside their places, and synced;
//! 2. the old ones are kept in the backup;
//! 3. `.mcc` files get their names. A slot that had none does not look for it. One that had one has its column in it from
//!    now on: it is compressed in the way that the old slot says;
//! 4. the region file gets its name;
//! 5. `.mcc` files that no slot refers to any more are deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::backup::Backup;
use super::disk::{self, Partial};
use super::error::IntoError;
use super::options::IntoProgress;
use crate::export::slots::Part;
use crate::region::{
    self, Compression, ReadLimits, Region, RegionPos, Slot, SlotChange, compress_as, is_external,
};

/// A region file on its way from what it is to what it will be.
pub(super) struct PartFile {
    folder: PathBuf,
    path: PathBuf,
    pos: RegionPos,
    old: Option<Region>,
    changes: BTreeMap<Slot, SlotChange>,
    externals: Vec<(PathBuf, Partial)>,
    /// Slots that have a `.mcc` file and will have none.
    inline: BTreeSet<Slot>,
    /// Slots that neither had nor will have one. A file of their name is of a run that was killed, if that kept it.
    never: BTreeSet<Slot>,
    is_dry: bool,
}

/// State of a slot of the save.
pub(super) enum Old {
    Nothing,
    Unreadable,
    /// Its NBT was read.
    Here,
}

impl PartFile {
    /// Opens the file, if it is there. `folder` is that of the dimension.
    pub(super) fn open(folder: &Path, part: Part, pos: RegionPos, is_dry: bool) -> io::Result<Self> {
        let folder = folder.join(part.folder());
        let path = folder.join(pos.file_name());
        let old = match Region::open(&path) {
            Ok(region) => Some(region),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let (changes, externals, inline, never) = Default::default();
        Ok(Self { folder, path, pos, old, changes, externals, inline, never, is_dry })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a slot as it was.
    pub(super) fn read(&mut self, slot: Slot, out: &mut Vec<u8>) -> Old {
        match self.old.as_mut().map(|old| old.read(slot, &ReadLimits::default(), out)) {
            None | Some(Ok(None)) => Old::Nothing,
            Some(Ok(Some(_))) => Old::Here,
            Some(Err(_)) => Old::Unreadable,
        }
    }

    pub(super) fn timestamp(&self, slot: Slot) -> u32 {
        self.old.as_ref().map_or(0, |old| old.timestamp(slot))
    }

    /// Leaves a slot as it is, but for a `.mcc` file that a run left that was killed.
    pub(super) fn leave(&mut self, slot: Slot) {
        if !self.is_external(slot) {
            self.never.insert(slot);
        }
    }

    /// Whether the slot refers to a `.mcc` file.
    fn is_external(&mut self, slot: Slot) -> bool {
        self.old.as_mut().and_then(|old| old.storage(slot)).is_some_and(|(_, is_external)| is_external)
    }

    /// Takes note that the slot will have no `.mcc` file.
    fn put_inside(&mut self, slot: Slot) {
        if self.is_external(slot) {
            self.inline.insert(slot);
        } else {
            self.never.insert(slot);
        }
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        self.put_inside(slot);
        self.changes.insert(slot, SlotChange::Remove);
    }

    pub(super) fn put(&mut self, slot: Slot, nbt: &[u8], timestamp: u32) -> io::Result<()> {
        if self.is_dry {
            // That there is a change is all that counts.
            self.changes.insert(slot, SlotChange::Remove);
            return Ok(());
        }
        let compression = Compression::Zlib;
        let stored = compress_as(compression, nbt);
        if !is_external(stored.len()) {
            self.put_inside(slot);
            self.changes.insert(slot, SlotChange::Put { stored, compression, timestamp });
            return Ok(());
        }
        let storage = self.old.as_mut().and_then(|old| old.storage(slot));
        let (compression, stored) = match storage.filter(|(_, is_external)| *is_external) {
            Some((other, _)) if other != compression => (other, compress_as(other, nbt)),
            _ => (compression, stored),
        };
        let path = self.external(slot);
        let partial = Partial::of(&path);
        disk::make_folder(&self.folder)?;
        let mut file = File::create(partial.path())?;
        file.write_all(&stored)?;
        disk::own_like(partial.path(), &self.folder);
        file.sync_all()?;
        self.externals.push((path, partial));
        self.changes.insert(slot, SlotChange::PutExternal { compression, timestamp });
        Ok(())
    }

    /// Whether a slot of it changes.
    pub(super) fn is_changed(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Keeps the file as it is, if it is there.
    pub(super) fn keep(&mut self, backup: &mut Backup) -> io::Result<()> {
        // One that is kept was changed by a run that was killed.
        if self.old.is_none() || backup.has(&self.path) {
            return Ok(());
        }
        let externals: Vec<_> = self.referenced().into_iter().collect();
        backup.keep_region(&self.path, &externals)
    }

    /// Writes the file, if it changes; says whether it does.
    pub(super) fn commit(
        mut self,
        backup: Option<&mut Backup>,
        watch: &mut dyn FnMut(IntoProgress<'_>),
    ) -> Result<bool, IntoError> {
        let is_changed = self.is_changed();
        let is_of_killed = |path: &PathBuf| backup.as_deref().is_some_and(|backup| backup.has(path));
        let never = self.never.iter().map(|slot| self.external(*slot)).filter(is_of_killed);
        let inline = self.inline.iter().map(|slot| self.external(*slot));
        let unreferenced: Vec<_> = inline.chain(never).filter(|path| path.is_file()).collect();
        if self.is_dry || !is_changed && unreferenced.is_empty() {
            return Ok(is_changed);
        }
        self.write(&unreferenced, backup, watch)?;
        Ok(is_changed)
    }

    fn write(
        &mut self,
        unreferenced: &[PathBuf],
        backup: Option<&mut Backup>,
        watch: &mut dyn FnMut(IntoProgress<'_>),
    ) -> Result<(), IntoError> {
        let path = self.path.clone();
        let failed = |source| IntoError::Io { path: path.clone(), source };
        // A link to a file stays one.
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        if self.changes.is_empty() {
            if let Some(backup) = backup {
                backup.keep_all(unreferenced, false).map_err(|source| backup.failed(source))?;
            }
            return self.delete(unreferenced, watch).map_err(failed);
        }
        disk::make_folder(&self.folder).map_err(failed)?;
        watch(IntoProgress::Changes(&target));
        let partial = Partial::of(&target);
        region::rewrite(&target, partial.path(), &self.changes).map_err(failed)?;
        disk::own_like(partial.path(), if target.is_file() { &target } else { &self.folder });
        watch(IntoProgress::Changes(&target));
        if let Some(backup) = backup {
            self.keep_changed(unreferenced, backup).map_err(|source| backup.failed(source))?;
        }
        self.rename(partial, &target, unreferenced, watch).map_err(failed)
    }

    /// Keeps all that writing the file changes.
    fn keep_changed(&mut self, unreferenced: &[PathBuf], backup: &mut Backup) -> io::Result<()> {
        let mut externals = self.referenced();
        externals.extend(unreferenced.iter().cloned());
        for (path, partial) in &self.externals {
            // One that is as it will be was put before a kill.
            if path.is_file() && !disk::same_bytes(path, partial.path())? {
                externals.insert(path.clone());
            }
        }
        let externals: Vec<_> = externals.into_iter().collect();
        if self.old.is_some() {
            backup.keep_region(&self.path, &externals)
        } else {
            backup.keep_all(&externals, false)
        }
    }

    /// Gives the new files their names.
    fn rename(
        &mut self,
        partial: Partial,
        target: &Path,
        unreferenced: &[PathBuf],
        watch: &mut dyn FnMut(IntoProgress<'_>),
    ) -> io::Result<()> {
        for (path, partial) in std::mem::take(&mut self.externals) {
            watch(IntoProgress::Changes(&path));
            partial.rename(&path)?;
        }
        watch(IntoProgress::Changes(target));
        partial.rename(target)?;
        self.delete(unreferenced, watch)
    }

    fn delete(&self, files: &[PathBuf], watch: &mut dyn FnMut(IntoProgress<'_>)) -> io::Result<()> {
        for path in files {
            watch(IntoProgress::Changes(path));
            fs::remove_file(path)?;
        }
        if files.is_empty() { Ok(()) } else { disk::sync_folder(&self.folder) }
    }

    /// The `.mcc` files of the region as it was.
    fn referenced(&mut self) -> BTreeSet<PathBuf> {
        let Some(old) = &mut self.old else { return BTreeSet::new() };
        let slots: Vec<_> = old.slots().collect();
        let external =
            slots.into_iter().filter(|slot| old.storage(*slot).is_some_and(|(_, external)| external));
        external.map(|slot| self.folder.join(self.pos.external_name(slot))).collect()
    }

    fn external(&self, slot: Slot) -> PathBuf {
        self.folder.join(self.pos.external_name(slot))
    }
}
