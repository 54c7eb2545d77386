//! Which regions a world, or a part of it, has: one look at every key and every entity before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, RangeInclusive};

use cg_format::{BlockPos, Dimension, EntityId};
use cg_minecraft::content::GAME;
use cg_minecraft::name;
use cg_registry::{Catalog, ListKind};
use cg_store::objects::ObjectKey;
use cg_store::settings::WorldSettings;
use cg_store::{Error, World};
use uuid::Uuid;

use super::report::ExportReport;
use super::scope::Scope;
use crate::codec::{choice, listed};
use crate::import::PROGRESS_PREFIX;
use crate::mapping::defaults::SECTION_Y;
use crate::mapping::key::{self, COLUMN_PREFIX, ENTITIES_PREFIX, POI_PREFIX};
use crate::mapping::{kept, place};
use crate::region::{ColumnPos, RegionPos};

/// Name under which an export counts kept slots that cannot be read.
const DAMAGED_SLOTS: &str = "damaged objects of kept slots";

/// Contents of a region besides chunks.
#[derive(Debug, Clone, Default)]
pub(super) struct Contents {
    /// Columns that an import brought; asked for only where rows of chunks are damaged.
    pub(super) imported: Vec<ColumnPos>,
    /// Columns that have no chunk.
    pub(super) bare_columns: Vec<ColumnPos>,
    /// Columns whose points of interest are kept.
    pub(super) points: Vec<ColumnPos>,
    /// Columns whose slot of `region/` is kept as bytes.
    pub(super) kept_slots: Vec<ColumnPos>,
    /// Columns whose slot of `entities/` is kept as bytes.
    pub(super) kept_entities: Vec<ColumnPos>,
    /// Columns whose slot of `poi/` is kept as bytes.
    pub(super) kept_points: Vec<ColumnPos>,
    /// Columns of whose slot of `entities/` something is kept beside entities.
    pub(super) entity_slots: Vec<ColumnPos>,
    /// Entities that ride nothing.
    pub(super) entities: Vec<EntityId>,
}

/// Contents of a world that are to be exported.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) regions: BTreeMap<(Dimension, RegionPos), Contents>,
    /// Entities that go into the vehicles they ride.
    pub(super) riders: u64,
    /// Players, if the whole world is written.
    pub(super) players: BTreeSet<Uuid>,
    /// The sections between which each dimension has chunks.
    pub(super) heights: BTreeMap<Dimension, RangeInclusive<i64>>,
}

/// The regions of a part of a world.
pub(super) fn survey(
    world: &World,
    catalog: &Catalog,
    scope: Scope<'_>,
    report: &mut ExportReport,
) -> Result<Survey, Error> {
    let mut regions = BTreeMap::<(Dimension, RegionPos), Contents>::new();
    let (mut riders, mut players) = (0, BTreeSet::new());
    let wanted = |dimension: Dimension| scope.has(dimension);
    let (mut outside, mut damaged) = (0, 0);
    let mut heights = BTreeMap::<_, RangeInclusive<i64>>::new();
    for area in scope.areas() {
        world.read_view(|view| {
            view.for_each_place(area, |stored| {
                match stored {
                    Err(_) => damaged += 1,
                    Ok(stored) if !wanted(stored.at.dimension) => {}
                    Ok(stored) => {
                        let pos = stored.at.pos;
                        match place::column_of(pos)
                            .and_then(region_of)
                            .filter(|_| SECTION_Y.contains(&pos.y()))
                        {
                            Some(region) => {
                                regions.entry((stored.at.dimension, region)).or_default();
                                let known = heights.entry(stored.at.dimension).or_insert(pos.y()..=pos.y());
                                *known = pos.y().min(*known.start())..=pos.y().max(*known.end());
                            }
                            None => outside += 1,
                        }
                    }
                }
                ControlFlow::<()>::Continue(())
            })
        })?;
    }
    report.missed("chunks outside of what region files reach", outside);
    report.missed("damaged rows of chunks", damaged);
    world.read_view(|view| {
        view.for_each_property(name::COLUMN_PROPERTY, |property| {
            let column = property.map(|(property, _)| name::column_of_property(property));
            let column = column.map(|found| found.map(|(dimension, x, z)| (dimension, ColumnPos::new(x, z))));
            match column {
                Ok(Some((_, column))) if !scope.has_column(column) => {}
                Ok(Some((dimension, column))) => {
                    let dimension =
                        name::of(&dimension).ok().and_then(|name| catalog.dimension(name.as_str()));
                    let place = dimension.filter(|found| wanted(*found)).zip(region_of(column));
                    if let Some(place) = place {
                        regions.entry(place).or_default().bare_columns.push(column);
                    }
                }
                Ok(None) => {}
                Err(_) => report.missed("damaged properties of columns", 1),
            }
            ControlFlow::<()>::Continue(())
        })
    })?;
    not_for_saves(world, scope, report)?;
    for (number, name) in (0..).zip(catalog.list(ListKind::Dimensions).names()) {
        let dimension = Dimension::new(number);
        if wanted(dimension) {
            let name = name::text(name.as_str());
            kept_slots(world, (dimension, scope), &name, damaged > 0, &mut regions, report)?;
        }
    }
    let failed = world.read_view(|view| {
        view.for_each_entity(|entity| {
            let Ok((id, entity)) = entity else {
                report.missed("damaged entities", 1);
                return ControlFlow::Continue(());
            };
            if !wanted(entity.position.dimension()) {
                return ControlFlow::Continue(());
            }
            let is_here = is_in_columns(scope, entity.position.block());
            match listed::root(world, catalog, id, &entity) {
                Err(error) => return ControlFlow::Break(error),
                Ok(listed::Root::Rides) if scope.columns().is_none() => riders += 1,
                Ok(listed::Root::Rides) => match listed::vehicle_column(world, catalog, &entity) {
                    Err(error) => return ControlFlow::Break(error),
                    Ok(column) => {
                        riders += u64::from(column.map_or(is_here, |column| scope.has_column(column)));
                    }
                },
                Ok(listed::Root::Player) if scope.columns().is_some() && !is_here => {}
                Ok(listed::Root::Player) if scope.columns().is_none() && scope.dimension().is_some() => {}
                Ok(listed::Root::Player) => drop(players.insert(id.get())),
                Ok(listed::Root::NoNbt) => {
                    report.missed(choice::NEVER_SAVED, is_here.into());
                }
                Ok(listed::Root::In(_, column)) if !scope.has_column(column) => {}
                Ok(listed::Root::In(_, column)) => match region_of(column) {
                    Some(region) => {
                        let region = regions.entry((entity.position.dimension(), region)).or_default();
                        region.entities.push(id);
                    }
                    None => report.missed("entities outside of what region files reach", 1),
                },
            }
            ControlFlow::Continue(())
        })
    })?;
    failed.map_or(Ok(Survey { regions, riders, players, heights }), Err)
}

/// Counts what no save has a place for. What belongs to no dimension counts only if all are exported.
fn not_for_saves(world: &World, scope: Scope<'_>, report: &mut ExportReport) -> Result<(), Error> {
    world.records().for_each(|record| {
        match record {
            Ok((_, record)) if !scope.has(record.position.dimension()) => {}
            Ok((_, record)) if !is_in_columns(scope, record.position.block()) => {}
            Ok(_) => report.missed("records", 1),
            Err(_) => report.missed("damaged records", 1),
        }
        ControlFlow::<()>::Continue(())
    })?;
    if scope.dimension().is_some() {
        return Ok(());
    }
    world.objects().for_each([], |object| {
        match object {
            // What an import made is written, or counted, with what it belongs to.
            Ok((key, ..)) if key::is_of_import(key) || key.starts_with(ObjectKey::STORES_OWN) => {}
            Ok(_) => report.missed("objects of the host", 1),
            Err(Error::Corrupt(damage)) if key::is_of_import(&damage.key) => {}
            Err(_) => report.missed("damaged objects", 1),
        }
        ControlFlow::<()>::Continue(())
    })?;
    // Settings are written, or counted, with the files that hold them.
    let settings: Vec<_> = WorldSettings::properties().iter().map(ToString::to_string).collect();
    world.read_view(|view| {
        view.for_each_property("", |property| {
            // Damaged ones of columns are counted with the columns.
            if let Ok((name, _)) = property
                && !settings.iter().any(|setting| setting == name)
                && name != GAME
                && ![":", name::COLUMN_PROPERTY, PROGRESS_PREFIX].iter().any(|own| name.starts_with(own))
            {
                report.missed("properties", 1);
            }
            ControlFlow::<()>::Continue(())
        })
    })?;
    report.missed("snapshots", world.snapshots().list()?.len() as u64);
    Ok(())
}

/// Finds the slots with objects that an import kept.
fn kept_slots(
    world: &World,
    (dimension, scope): (Dimension, Scope<'_>),
    name: &str,
    with_columns: bool,
    regions: &mut BTreeMap<(Dimension, RegionPos), Contents>,
    report: &mut ExportReport,
) -> Result<(), Error> {
    type Columns = fn(&mut Contents) -> &mut Vec<ColumnPos>;
    let imported: (_, Columns, _) =
        (COLUMN_PREFIX, |contents| &mut contents.imported, "damaged objects of columns");
    let kinds: [(&str, Columns, &str); 5] = [
        (POI_PREFIX, |contents| &mut contents.points, "damaged objects of points of interest"),
        (kept::REGION_PREFIX, |contents| &mut contents.kept_slots, DAMAGED_SLOTS),
        (kept::ENTITIES_PREFIX, |contents| &mut contents.kept_entities, DAMAGED_SLOTS),
        (kept::POI_PREFIX, |contents| &mut contents.kept_points, DAMAGED_SLOTS),
        (ENTITIES_PREFIX, |contents| &mut contents.entity_slots, "damaged objects of slots of entities/"),
    ];
    for (prefix, columns, damaged) in kinds.into_iter().chain(with_columns.then_some(imported)) {
        let prefix = key::dimension_prefix(prefix, name);
        world.objects().for_each(&prefix, |object| {
            match object {
                Ok((key, ..)) => {
                    let column = key::column_of(key, &prefix);
                    if let Some(column) = column.filter(|column| scope.has_column(*column)) {
                        let region = regions.entry((dimension, column.region()));
                        columns(region.or_default()).push(column);
                    }
                }
                // Of a column whose chunks are there, it is counted with them.
                Err(_) if prefix.starts_with(COLUMN_PREFIX) => {}
                Err(_) => report.missed(damaged, 1),
            }
            ControlFlow::<()>::Continue(())
        })?;
    }
    Ok(())
}

/// Whether a block is in one of the columns that are written.
fn is_in_columns(scope: Scope<'_>, block: BlockPos) -> bool {
    place::column_of(block.chunk())
        .map_or_else(|| scope.columns().is_none(), |column| scope.has_column(column))
}

fn region_of(column: ColumnPos) -> Option<RegionPos> {
    let pos = column.region();
    RegionPos::new(pos.x(), pos.z())
}
