//! A column of a world as the slots of a save.

use std::collections::{BTreeMap, BTreeSet};

use cg_format::Dimension;
use cg_minecraft::name;
use cg_store::prelude::Property;
use cg_store::{Error, World};

use super::choice::{self, Beside};
use super::column::ColumnBuilder;
use super::entities::ColumnEntities;
use super::listed::{self, Listed};
use super::missed::Missed;
use super::parts::{ColumnParts, EncodedColumn, SlotContent};
use super::save::{dimension_name, stored};
use crate::mapping::Ids;
use crate::mapping::defaults::SECTION_Y;
use crate::mapping::kept::{Folder, Mapped};
use crate::mapping::origin::ListedIn;
use crate::region::ColumnPos;
use crate::write;

/// Slots that were kept as bytes and do not go back.
const DROPPED: &str = "slots that are kept as bytes, where the world has something else";

/// Builds the slots of a column; `None` if the world has nothing of it.
pub(super) fn encode(
    world: &World,
    entities: &ColumnEntities,
    (dimension, at): (Dimension, ColumnPos),
) -> Result<Option<EncodedColumn>, Error> {
    let catalog = world.catalog();
    let name = dimension_name(&catalog, dimension);
    let builder = ColumnBuilder::new(world, &catalog, dimension, &name);
    let kinds = Ids::find(&catalog);
    let mut all_missed = BTreeMap::new();
    let mut missed = Missed(&mut all_missed);
    let (heights, outside): (Vec<_>, Vec<_>) =
        stored(world, (dimension, at))?.into_iter().partition(|at| SECTION_Y.contains(&at.pos.y()));
    missed.add("chunks outside of what region files reach", outside.len() as u64);
    let mut ids: BTreeSet<_> = entities.of((dimension, at)).collect();
    for place in &heights {
        // A damaged chunk is an error, and so is one of its entities.
        let chunk = world.load(*place)?;
        ids.extend(chunk.iter().flat_map(|chunk| chunk.entities().to_vec()));
    }
    for id in &ids {
        let entity = world.entity(*id)?;
        let nbt = entity.as_ref().map(|entity| kinds.entity_nbt.and_then(|nbt| entity.component(nbt)));
        missed.add(choice::NEVER_SAVED, (nbt == Some(None)).into());
    }
    let ids: Vec<_> = ids.into_iter().collect();
    let mut lists = listed::listed(world, &ids, &mut missed)?;
    lists.retain(|(_, column), _| *column == at);
    listed::into_columns(&mut lists, entities.level);
    let heights: Vec<i32> = heights.iter().map(|at| at.pos.y() as i32).collect();
    let record = Property::Named(name::column_property(&name, at.x, at.z)?);
    let is_there = !heights.is_empty() || world.property(&record)?.is_some();
    let kept = builder.kept_slot(Folder::Region, at, &mut missed)?.map(|(kept, _)| kept);
    let mut parts = ColumnParts::default();
    let mut beside = Beside::Nothing;
    if is_there {
        let mut built = builder.build(at, &heights, &mut missed)?;
        if let Some((_, error)) = built.lost.pop() {
            return Err(error);
        }
        built.take(lists.get(&(ListedIn::Column, at)).map_or(&[][..], Vec::as_slice));
        let (as_kept, other): (Vec<_>, Vec<_>) = kept.into_iter().partition(|kept| kept.is_of(&built.column));
        missed.add(DROPPED, other.len() as u64);
        let as_kept = as_kept.into_iter().next();
        beside = if as_kept.is_some() { Beside::Same } else { built.beside() };
        parts.column = match as_kept {
            Some(kept) => Some(SlotContent::of(kept)),
            None => match built.nbt() {
                Ok((nbt, timestamp)) => Some(SlotContent::Nbt(nbt, timestamp)),
                Err(error) => {
                    missed.add(format!("column {at} of `{name}`: {error}"), 1);
                    None
                }
            },
        };
        if parts.column.is_some() {
            lists.remove(&(ListedIn::Column, at));
        }
    } else if let Some(kept) = kept {
        if kept.mapped == Mapped::Nothing {
            (parts.column, beside) = (Some(SlotContent::of(kept)), Beside::Same);
        } else {
            missed.add(DROPPED, 1);
        }
    }
    parts.points = points(&builder, at, beside, &mut missed)?;
    let listed = lists.into_values().flatten().collect();
    parts.entities = entity_slot(&builder, entities, at, listed, &mut missed)?;
    let encoded = EncodedColumn { pos: at, parts, missed: all_missed };
    Ok((!encoded.parts.is_empty() || !encoded.missed.is_empty()).then_some(encoded))
}

fn points(
    builder: &ColumnBuilder<'_>,
    at: ColumnPos,
    beside: Beside,
    missed: &mut Missed<'_>,
) -> Result<Option<SlotContent>, Error> {
    if let Some((kept, _)) = builder.kept_slot(Folder::Poi, at, missed)? {
        let is_back = beside.is_of_kept(&kept);
        missed.add(DROPPED, (!is_back).into());
        return Ok(is_back.then(|| SlotContent::of(kept)));
    }
    let Some(points) = builder.points_of_interest(at, missed)? else { return Ok(None) };
    if beside.is_of(&points) {
        return Ok(Some(SlotContent::Nbt(points.slot, points.timestamp)));
    }
    missed.add("points of interest of columns without blocks", (beside == Beside::Nothing).into());
    Ok(None)
}

fn entity_slot(
    builder: &ColumnBuilder<'_>,
    entities: &ColumnEntities,
    at: ColumnPos,
    listed: Vec<Listed>,
    missed: &mut Missed<'_>,
) -> Result<Option<SlotContent>, Error> {
    let (listed, homeless): (Vec<_>, Vec<_>) =
        listed.into_iter().partition(|listed| listed.may_be_in_file(entities.level));
    let homeless = homeless.iter().map(|listed| listed.count).sum();
    missed.add(choice::HOMELESS, homeless);
    if let Some((kept, _)) = builder.kept_slot(Folder::Entities, at, missed)? {
        if choice::is_of_entities(&kept, &listed) {
            return Ok(Some(SlotContent::of(kept)));
        }
        missed.add(DROPPED, 1);
    }
    let left = builder.entity_slot(at, missed)?;
    if listed.is_empty() && left.is_none() {
        return Ok(None);
    }
    let count = listed.iter().map(|listed| listed.count).sum();
    let choice = choice::entities(at, listed, left);
    missed.add(choice::OTHER_FIELDS, choice.lost_fields);
    if !choice.is_written {
        return Ok(None);
    }
    match write::entities(&choice.column) {
        Ok(nbt) => Ok(Some(SlotContent::Nbt(nbt, choice.timestamp))),
        Err(error) => {
            missed.add(format!("entities of column {at}: {error}"), count);
            Ok(None)
        }
    }
}
