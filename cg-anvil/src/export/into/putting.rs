//! Each region of the boxes against that of the save, and what follows from it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::backup::Backup;
use super::error::IntoError;
use super::options::{IntoOptions, IntoProgress};
use super::part::{Old, PartFile};
use super::plan::Plan;
use super::report::SlotCounts;
use super::same::Judge;
use super::search::Searched;
use super::target::Target;
use super::{IntoReport, lists};
use crate::export::ExportError;
use crate::export::scope::Columns;
use crate::export::slots::{Part, Slots};
use crate::nbt::{self, Document};
use crate::region::{RawSlot, Region, RegionPos, Slot, region_pos};

/// The files of a region in the order in which they are written.
const PARTS: [Part; 3] = [Part::Region, Part::Entities, Part::Points];

/// Entities to be taken out, by slot.
type Taken = BTreeMap<Slot, BTreeSet<Uuid>>;

/// Regions on their way into a save.
pub(super) struct Putting<'a> {
    pub(super) target: &'a Target,
    pub(super) options: &'a IntoOptions,
    pub(super) plan: &'a Plan,
    /// All that the world has in the boxes, and what the players have with them who are put.
    pub(super) entities: &'a HashSet<Uuid>,
    /// Those of them that are not put.
    pub(super) left_out: HashSet<Uuid>,
    /// Entities that are taken out of slots that are not put, by file.
    pub(super) taken: BTreeMap<PathBuf, (Searched, Taken)>,
    pub(super) backup: Option<Backup>,
    pub(super) judge: Judge,
    pub(super) report: IntoReport,
}

/// The files of one region.
pub(super) struct RegionParts<'p, 'a> {
    putting: &'p mut Putting<'a>,
    pos: RegionPos,
    files: BTreeMap<Part, PartFile>,
}

impl<'a> Putting<'a> {
    /// Counts the columns of the save that the world does not have.
    pub(super) fn count_kept(&mut self, columns: &Columns) -> Result<(), IntoError> {
        let folder = self.target.root.join(&self.target.folder).join(Part::Region.folder());
        if !folder.is_dir() {
            return Ok(());
        }
        let failed = |source| IntoError::Io { path: folder.clone(), source };
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let Some(pos) = region_pos(&path).filter(|pos| columns.touch(*pos)) else { continue };
            if path.file_name().is_none_or(|name| *name != *pos.file_name()) {
                continue;
            }
            let region = Region::open(&path).map_err(|source| IntoError::Io { path, source })?;
            let is_kept = |column| columns.contains(column) && !self.plan.knows(column);
            let kept = region.slots().filter(|slot| is_kept(pos.column(*slot))).count();
            self.report.kept_columns += kept as u64;
        }
        Ok(())
    }

    /// Opens the files of a region.
    pub(super) fn begin(&mut self, pos: RegionPos) -> Result<RegionParts<'_, 'a>, IntoError> {
        let folder = self.target.root.join(&self.target.folder);
        let open = |part| Ok((part, open(&folder, part, pos, self.options.dry_run)?));
        let files = PARTS.into_iter().map(open).collect::<Result<_, IntoError>>()?;
        Ok(RegionParts { putting: self, pos, files })
    }

    /// Takes entities out of the regions in which nothing else changes.
    pub(super) fn take_elsewhere(
        &mut self,
        watch: &mut dyn FnMut(IntoProgress<'_>),
    ) -> Result<(), IntoError> {
        for (path, (searched, taken)) in std::mem::take(&mut self.taken) {
            let folder = path.ancestors().nth(2).unwrap_or(Path::new(""));
            let mut file = open(folder, searched.part, searched.pos, self.options.dry_run)?;
            take(&mut file, &taken).map_err(|source| IntoError::Io { path, source })?;
            self.commit(file, watch)?;
        }
        Ok(())
    }

    fn commit(&mut self, file: PartFile, watch: &mut dyn FnMut(IntoProgress<'_>)) -> Result<(), IntoError> {
        let is_written = file.commit(self.backup.as_mut(), watch)?;
        self.report.files += u64::from(is_written);
        Ok(())
    }

    fn counts(&mut self, part: Part) -> &mut SlotCounts {
        match part {
            Part::Region => &mut self.report.columns,
            Part::Entities => &mut self.report.entity_slots,
            Part::Points => &mut self.report.points,
        }
    }

    /// Counts the entities of a slot that are gone with it.
    fn count_removed(&mut self, slot: &[u8]) {
        let gone = uuids(slot).into_iter().filter(|uuid| {
            // One without a UUID is another each time.
            uuid.is_none_or(|uuid| !self.entities.contains(&uuid))
        });
        self.report.removed_entities += gone.count() as u64;
    }
}

impl RegionParts<'_, '_> {
    /// Writes the files, once all slots of the region were given.
    pub(super) fn commit(mut self, watch: &mut dyn FnMut(IntoProgress<'_>)) -> Result<(), IntoError> {
        self.empty_slots();
        let Self { putting, mut files, .. } = self;
        for file in files.values_mut() {
            if let Some((_, taken)) = putting.taken.remove(file.path()) {
                take(file, &taken)
                    .map_err(|source| IntoError::Io { path: file.path().to_owned(), source })?;
            }
        }
        // A backup without a file says that the region had none. So one that stays is kept with one that changes.
        if files.values().any(PartFile::is_changed)
            && let Some(backup) = &mut putting.backup
        {
            let mut others = files.values_mut().filter(|file| !file.is_changed());
            others.try_for_each(|file| file.keep(backup)).map_err(|source| backup.failed(source))?;
        }
        for part in PARTS {
            if let Some(file) = files.remove(&part) {
                putting.commit(file, watch)?;
            }
        }
        Ok(())
    }

    /// Empties slots of entities and points of interest that the world does not have beside a column that it has.
    fn empty_slots(&mut self) {
        let Self { putting, pos, files } = self;
        for (slot, column) in putting.plan.columns_of(*pos) {
            for part in [Part::Entities, Part::Points] {
                if !putting.plan.has(column, Part::Region) || putting.plan.has(column, part) {
                    continue;
                }
                let Some(file) = files.get_mut(&part) else { continue };
                let mut bytes = Vec::new();
                match file.read(slot, &mut bytes) {
                    Old::Nothing => continue,
                    Old::Here if part == Part::Entities => putting.count_removed(&bytes),
                    Old::Here | Old::Unreadable => {}
                }
                file.remove(slot);
                putting.counts(part).removed += 1;
            }
        }
    }

    fn put_slot(&mut self, part: Part, slot: Slot, nbt: &[u8], timestamp: u32) -> io::Result<()> {
        let Self { putting, pos, files } = self;
        let Some(file) = files.get_mut(&part).filter(|_| putting.plan.has(pos.column(slot), part)) else {
            return Ok(());
        };
        let edited = if part == Part::Points { None } else { lists::without(nbt, &putting.left_out) };
        let nbt = edited.as_ref().map_or(nbt, |(edited, _)| edited);
        let mut bytes = Vec::new();
        match file.read(slot, &mut bytes) {
            Old::Here if file.timestamp(slot) == timestamp && putting.judge.is_same(&bytes, nbt) => {
                putting.counts(part).equal += 1;
                file.leave(slot);
                return Ok(());
            }
            Old::Nothing => putting.counts(part).new += 1,
            Old::Unreadable => putting.counts(part).replaced += 1,
            Old::Here => {
                putting.counts(part).replaced += 1;
                if part != Part::Points {
                    putting.count_removed(&bytes);
                }
            }
        }
        if part != Part::Points {
            putting.report.entities += uuids(nbt).len() as u64;
        }
        file.put(slot, nbt, timestamp)
    }
}

impl Slots for RegionParts<'_, '_> {
    fn put(&mut self, part: Part, slot: Slot, nbt: &[u8], timestamp: u32) -> Result<(), ExportError> {
        self.put_slot(part, slot, nbt, timestamp).map_err(|source| {
            let path = self.files.get(&part).map_or_else(PathBuf::new, |file| file.path().to_owned());
            ExportError::Io { path, source }
        })
    }

    /// The plan leaves its column out.
    fn put_raw(&mut self, _: Part, _: Slot, _: &RawSlot) -> Result<(), ExportError> {
        Ok(())
    }
}

/// Takes entities out of slots. One that cannot be read any more has none that the game would find.
fn take(file: &mut PartFile, taken: &Taken) -> io::Result<()> {
    let mut bytes = Vec::new();
    for (slot, gone) in taken {
        let Old::Here = file.read(*slot, &mut bytes) else { continue };
        let gone = gone.iter().copied().collect();
        if let Some((rest, _)) = lists::without(&bytes, &gone) {
            file.put(*slot, &rest, file.timestamp(*slot))?;
        }
    }
    Ok(())
}

fn open(folder: &Path, part: Part, pos: RegionPos, is_dry: bool) -> Result<PartFile, IntoError> {
    let path = || folder.join(part.folder()).join(pos.file_name());
    PartFile::open(folder, part, pos, is_dry).map_err(|source| IntoError::Io { path: path(), source })
}

/// The entities of a slot; none of one that is no NBT.
fn uuids(slot: &[u8]) -> Vec<Option<Uuid>> {
    let document = Document::parse(slot, &nbt::Limits::default());
    document.map_or_else(|_| Vec::new(), |document| lists::uuids(document.root))
}
