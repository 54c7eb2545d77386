//! One region of a world as the files of a save.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, RangeInclusive};

use cg_format::{ChunkBox, ChunkPos, Dimension};
use cg_registry::Catalog;
use cg_store::World;
use cg_store::view::Area;

use super::error::ExportError;
use super::kept::{KeptSlots, kept_slots, put_kept};
use super::options::Damaged;
use super::report::ExportReport;
use super::scope::Columns;
use super::slots::{Part, Slots};
use super::survey::Contents;
use crate::codec::{Beside, ColumnBuilder, Listed, Lists, choice, listed};
use crate::column::Column;
use crate::mapping::defaults::SECTION_Y;
use crate::mapping::kept::{Folder, Mapped};
use crate::mapping::origin::ListedIn;
use crate::region::{ColumnPos, RegionPos, Slot};
use crate::write;

/// The columns of a region with the heights of their chunks, in slot order.
type Heights = BTreeMap<Slot, (ColumnPos, Vec<i32>)>;

/// One region on its way out.
pub(super) struct Region<'a> {
    pub(super) world: &'a World,
    pub(super) catalog: &'a Catalog,
    pub(super) dimension: Dimension,
    pub(super) dimension_name: String,
    pub(super) pos: RegionPos,
    /// The sections between which the dimension has chunks.
    pub(super) heights: RangeInclusive<i64>,
    pub(super) damaged: Damaged,
    /// The version that `level.dat` says.
    pub(super) level: Option<i32>,
    /// The only columns that are written.
    pub(super) columns: Option<&'a Columns>,
}

impl Region<'_> {
    /// Gives the region's slots to `slots`; returns the count of entities that ride others in it.
    pub(super) fn write(
        &self,
        contents: Contents,
        slots: &mut dyn Slots,
        report: &mut ExportReport,
    ) -> Result<u64, ExportError> {
        let (mut columns, is_whole) = self.chunks()?;
        for column in contents.bare_columns {
            columns.entry(column.slot()).or_insert((column, Vec::new()));
        }
        let mut listed = listed::listed(self.world, &contents.entities, &mut report.misses())?;
        listed::into_columns(&mut listed, self.level);
        let riders = listed.values().flatten().map(|listed| listed.count - 1).sum();
        let builder = ColumnBuilder::new(self.world, self.catalog, self.dimension, &self.dimension_name);
        let points = contents.points.into_iter().chain(contents.kept_points.iter().copied());
        let mut with_points: BTreeMap<Slot, _> =
            points.map(|column| (column.slot(), (column, Beside::Nothing))).collect();
        let kept = kept_slots(&builder, Folder::Region, contents.kept_slots, report)?;
        let mut without_chunks = BTreeSet::new();
        if !is_whole {
            // Which chunks there are is only known of each place, and of some columns none may be left.
            for column in contents.imported {
                columns.entry(column.slot()).or_insert_with(|| {
                    without_chunks.insert(column.slot());
                    (column, Vec::new())
                });
            }
            let all: Vec<i32> = self.heights.clone().map(|y| y as i32).collect();
            for (_, heights) in columns.values_mut() {
                heights.clone_from(&all);
            }
        }
        let (mut kept, alone): (KeptSlots, KeptSlots) =
            kept.into_iter().partition(|(slot, _)| columns.contains_key(slot));
        for (slot, (column, kept, len_bytes)) in alone {
            if kept.mapped == Mapped::Nothing {
                put_kept(slots, Folder::Region, slot, (&kept, len_bytes), report)?;
                with_points.entry(slot).and_modify(|(_, beside)| *beside = Beside::Same);
            } else {
                self.drop_kept(Folder::Region, column, &kept, report);
            }
        }
        for (slot, (at, heights)) in columns {
            let mut built = builder.build(at, &heights, &mut report.misses())?;
            let kept = kept.remove(&slot);
            if built.is_part && self.columns.is_some() {
                slots.leave_out(slot);
                report.missed("columns that the world has only in part: the save keeps its own", 1);
                continue;
            }
            let of_part =
                "columns that the world has only in part: their version is not known, and 1.21.1 is stated";
            report.missed(of_part, built.is_part.into());
            if without_chunks.contains(&slot) && built.lost.is_empty() {
                // A host deleted it.
                if let Some((column, kept, _)) = kept {
                    self.drop_kept(Folder::Region, column, &kept, report);
                }
                continue;
            }
            // Entities whose column is not stored go to a file of their own.
            let in_column = listed.get(&(ListedIn::Column, at)).map_or(&[][..], Vec::as_slice);
            let entity_count = in_column.iter().map(|listed| listed.count).sum::<u64>();
            built.take(in_column);
            let mut count_column = |column: &Column, report: &mut ExportReport| {
                listed.remove(&(ListedIn::Column, at));
                report.columns += 1;
                report.chunks += column.sections.iter().filter(|it| it.blocks.is_some()).count() as u64;
                report.entities += entity_count;
            };
            let as_kept = kept.as_ref().filter(|(_, kept, _)| kept.is_of(&built.column));
            if let Some((_, kept, len_bytes)) = as_kept {
                put_kept(slots, Folder::Region, slot, (kept, *len_bytes), report)?;
                with_points.entry(slot).and_modify(|(_, beside)| *beside = Beside::Same);
                count_column(&built.column, report);
                continue;
            }
            with_points.entry(slot).and_modify(|(_, known)| *known = built.beside());
            if let Some((column, kept, _)) = &kept {
                self.drop_kept(Folder::Region, *column, kept, report);
            } else if built.is_torn {
                // An earlier release kept nothing of what it could not read.
                self.note_dropped(Folder::Region, at, "", report);
            }
            if !self.may_write(&mut built, report) {
                continue;
            }
            report.changed_columns += u64::from(built.is_changed);
            match built.nbt() {
                Ok((nbt, timestamp)) => {
                    slots.put(Part::Region, slot, &nbt, timestamp)?;
                    count_column(&built.column, report);
                }
                Err(error) => {
                    report.missed(format!("column {at} of `{}`: {error}", self.dimension_name), 1);
                }
            }
        }
        let kept = kept_slots(&builder, Folder::Poi, contents.kept_points, report)?;
        self.write_points(&builder, with_points, kept, slots, report)?;
        let kept = kept_slots(&builder, Folder::Entities, contents.kept_entities, report)?;
        self.write_entities(&builder, listed, contents.entity_slots, kept, slots, report)?;
        Ok(riders)
    }

    /// Writes points of interest: those of blocks that are as they were, and those that came without blocks.
    fn write_points(
        &self,
        builder: &ColumnBuilder<'_>,
        columns: BTreeMap<Slot, (ColumnPos, Beside)>,
        mut kept: KeptSlots,
        slots: &mut dyn Slots,
        report: &mut ExportReport,
    ) -> Result<(), ExportError> {
        for (slot, (at, beside)) in columns {
            if let Some((column, kept, len_bytes)) = kept.remove(&slot) {
                if beside.is_of_kept(&kept) {
                    put_kept(slots, Folder::Poi, slot, (&kept, len_bytes), report)?;
                } else {
                    self.drop_kept(Folder::Poi, column, &kept, report);
                }
                continue;
            }
            let Some(points) = builder.points_of_interest(at, &mut report.misses())? else { continue };
            if beside.is_of(&points) {
                slots.put(Part::Points, slot, &points.slot, points.timestamp)?;
            } else if beside == Beside::Nothing {
                report.missed("points of interest of columns without blocks", 1);
            }
        }
        Ok(())
    }

    fn write_entities(
        &self,
        builder: &ColumnBuilder<'_>,
        listed: Lists,
        entity_slots: Vec<ColumnPos>,
        mut kept: KeptSlots,
        slots: &mut dyn Slots,
        report: &mut ExportReport,
    ) -> Result<(), ExportError> {
        let mut columns = BTreeMap::<Slot, (ColumnPos, Vec<Listed>)>::new();
        for ((_, column), listed) in listed {
            let (listed, homeless): (Vec<_>, Vec<_>) =
                listed.into_iter().partition(|listed| listed.may_be_in_file(self.level));
            let homeless = homeless.iter().map(|listed| listed.count).sum();
            report.missed(choice::HOMELESS, homeless);
            if listed.is_empty() {
                continue;
            }
            columns.entry(column.slot()).or_insert_with(|| (column, Vec::new())).1.extend(listed);
        }
        for column in entity_slots.into_iter().chain(kept.values().map(|(column, ..)| *column)) {
            columns.entry(column.slot()).or_insert_with(|| (column, Vec::new()));
        }
        for (slot, (pos, listed)) in columns {
            if let Some((column, kept, len_bytes)) = kept.remove(&slot) {
                if choice::is_of_entities(&kept, &listed) {
                    put_kept(slots, Folder::Entities, slot, (&kept, len_bytes), report)?;
                    report.entities += listed.iter().map(|listed| listed.count).sum::<u64>();
                    continue;
                }
                self.drop_kept(Folder::Entities, column, &kept, report);
            }
            let slot_left = builder.entity_slot(pos, &mut report.misses())?;
            let count = listed.iter().map(|listed| listed.count).sum::<u64>();
            let choice = choice::entities(pos, listed, slot_left);
            report.missed(choice::OTHER_FIELDS, choice.lost_fields);
            if !choice.is_written {
                continue;
            }
            match write::entities(&choice.column) {
                Ok(nbt) => {
                    slots.put(Part::Entities, slot, &nbt, choice.timestamp)?;
                    report.entities += count;
                }
                Err(error) => report.missed(format!("entities of column {pos}: {error}"), count),
            }
        }
        Ok(())
    }

    /// The heights of the stored chunks of each column, ascending, and whether all of them could be told.
    fn chunks(&self) -> Result<(Heights, bool), ExportError> {
        let corner = |dx: i64, y: i64| {
            let (x, z) = (i64::from(self.pos.x()) * 32 + dx, i64::from(self.pos.z()) * 32 + dx);
            ChunkPos::new(x, y, z).expect("a region lies inside the world")
        };
        let area = ChunkBox::new(corner(0, *SECTION_Y.start()), corner(31, *SECTION_Y.end()));
        let (mut columns, mut is_whole) = (Heights::new(), true);
        self.world.read_view(|view| {
            view.for_each_place(Area::Box(self.dimension, area), |stored| {
                match stored {
                    Ok(stored) => {
                        let pos = stored.at.pos;
                        let column = ColumnPos::new(pos.x() as i32, pos.z() as i32);
                        if self.columns.is_some_and(|columns| !columns.contains(column)) {
                            return ControlFlow::<()>::Continue(());
                        }
                        columns.entry(column.slot()).or_insert((column, Vec::new())).1.push(pos.y() as i32);
                    }
                    Err(_) => is_whole = false,
                }
                ControlFlow::<()>::Continue(())
            })
        })?;
        for (_, heights) in columns.values_mut() {
            heights.sort_unstable();
        }
        Ok((columns, is_whole))
    }
}
