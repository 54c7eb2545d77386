//! Putting columns back from the first region to the last.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use cg_minecraft::name;
use cg_store::World;
use uuid::Uuid;

use super::backup::Backup;
use super::error::IntoError;
use super::options::{IntoOptions, IntoProgress};
use super::plan::{Plan, Planner};
use super::players::Players;
use super::putting::Putting;
use super::report::{Elsewhere, IntoReport};
use super::same::Judge;
use super::search::{self, Found, Searched};
use super::target::Target;
use crate::export::region::Region;
use crate::export::scope::{Columns, Scope};
use crate::export::survey::{Survey, survey};
use crate::export::{ExportError, ExportReport};
use crate::import::unfinished;
use crate::mapping::defaults::SECTION_Y;
use crate::save::{SaveLock, is_in_use};

/// Puts columns of a world into a save; `watch` is told how far it is.
///
/// Reads the columns twice, and of the save every slot that may hold entities, if any are put. Holds what changes of one
/// region, compressed, and the UUIDs of the entities that are put.
///
/// # Errors
/// [`IntoError`]. Each region file is the old one or the new one then, and what was replaced is kept.
pub fn export_into(
    world: &World,
    save: &Path,
    options: &IntoOptions,
    mut watch: impl FnMut(IntoProgress<'_>),
) -> Result<IntoReport, IntoError> {
    let catalog = world.catalog();
    let wanted = name::of(&options.dimension).ok().and_then(|name| catalog.dimension(name.as_str()));
    let dimension = wanted.ok_or_else(|| ExportError::NoDimension(options.dimension.clone()))?;
    let target = Target::find(save, &options.dimension)?;
    let _lock = lock(&target.root, options.dry_run)?;
    let columns = Columns::of(&options.boxes);
    let mut exported = ExportReport::default();
    let Survey { regions, riders, players, heights } =
        survey(world, &catalog, Scope::Columns(dimension, &columns), &mut exported)?;
    let count = regions.len();
    let region = |pos| Region {
        world,
        catalog: &catalog,
        dimension,
        dimension_name: options.dimension.clone(),
        pos,
        heights: heights.get(&dimension).cloned().unwrap_or(SECTION_Y),
        damaged: options.damaged,
        level: target.data_version,
        columns: Some(&columns),
    };
    let (mut plan, mut joined) = (Plan::default(), 0);
    for (done, ((_, pos), contents)) in regions.iter().enumerate() {
        let mut planner = Planner { plan: &mut plan, pos: *pos };
        joined += region(*pos).write(contents.clone(), &mut planner, &mut exported)?;
        watch(IntoProgress::Read { regions_done: done + 1, regions: count });
    }
    exported.missed(
        "entities that ride in a circle, or a vehicle that cannot be exported",
        riders.saturating_sub(joined),
    );
    exported.missed(
        "columns of which an import could not read a slot: the save keeps its own",
        plan.unread_count(),
    );
    exported.missed("slots that could not be read, and were changed since", exported.dropped_slot_count);
    let nothing = (count == 0 && (players.is_empty() || options.keep_players))
        .then(|| format!("the world has nothing of {} in the boxes", options.dimension));
    let mut report = IntoReport {
        dry_run: options.dry_run,
        dimension: options.dimension.clone(),
        layout: Some(target.looks),
        unfinished_import: unfinished(world)?,
        warnings: target
            .misfit(&options.dimension)
            .into_iter()
            .chain(target.unread_level())
            .chain(target.of_server(&options.dimension))
            .chain(nothing)
            .collect(),
        changed_columns: exported.changed_columns,
        not_exported: exported.not_exported,
        damaged_columns: exported.damaged_columns,
        ..IntoReport::default()
    };
    let damaged = std::mem::take(&mut report.damaged_columns);
    plan.leave_out(&damaged, &target, options.allow_newer, &mut report);
    report.damaged_columns = damaged;
    let entities = plan.entities();
    let mut players = Players::find((world, &catalog), (players, &plan), (&target, options), &mut report)?;
    let wanted = entities.iter().copied().chain(players.held()).collect();
    let mut found = elsewhere(&target, &plan, &wanted, options, &mut watch)?;
    let entities = players.leave_out(&mut found, entities, options.replace_entities, &mut report);
    let left_out = note(&target, &found, options.replace_entities, &mut report);
    let taken = if options.replace_entities { found.slots } else { BTreeMap::new() };
    let mut putting = Putting {
        target: &target,
        options,
        plan: &plan,
        entities: &entities,
        left_out,
        taken,
        backup: None,
        judge: Judge::default(),
        report,
    };
    let failed = |source| IntoError::Backup { path: target.root.clone(), source };
    if !options.dry_run && !options.no_backup {
        putting.backup = Some(Backup::find(&target.root).map_err(failed)?);
    }
    putting.count_kept(&columns)?;
    for (done, ((_, pos), contents)) in regions.into_iter().enumerate() {
        let mut parts = putting.begin(pos)?;
        region(pos).write(contents, &mut parts, &mut ExportReport::default())?;
        parts.commit(&mut watch)?;
        watch(IntoProgress::Wrote { regions_done: done + 1, regions: count });
    }
    putting.take_elsewhere(&mut watch)?;
    let Putting { mut report, mut backup, .. } = putting;
    players.put((options, &entities), backup.as_mut(), &mut report, &mut watch)?;
    if let Some(backup) = backup {
        let folders = backup.finish().map_err(failed)?;
        report.backups = folders.iter().map(|folder| folder.display().to_string()).collect();
    }
    Ok(report)
}

/// Keeps a game out while the save is changed, or asks whether one has it.
fn lock(root: &Path, is_dry: bool) -> Result<Option<SaveLock>, IntoError> {
    let failed = |source| IntoError::Io { path: root.join("session.lock"), source };
    let (lock, is_free) = if is_dry {
        (None, !is_in_use(root).map_err(failed)?)
    } else {
        let lock = SaveLock::take(root).map_err(failed)?;
        let is_free = lock.is_some();
        (lock, is_free)
    };
    if is_free { Ok(lock) } else { Err(IntoError::InUse(root.to_owned())) }
}

/// Finds the entities that are put in other places of the save.
fn elsewhere(
    target: &Target,
    plan: &Plan,
    entities: &HashSet<Uuid>,
    options: &IntoOptions,
    watch: &mut dyn FnMut(IntoProgress<'_>),
) -> Result<Found, IntoError> {
    if entities.is_empty() {
        return Ok(Found::default());
    }
    let files = search::files(&target.root, target.looks)?;
    let is_put =
        |file: &Searched, column| file.dimension == options.dimension && plan.changes(column, file.part);
    search::search(&target.root, &files, entities, is_put, watch)
}

/// Notes where entities are found; gives those that are not put.
fn note(target: &Target, found: &Found, is_taken: bool, report: &mut IntoReport) -> HashSet<Uuid> {
    report.unsearched_slots = found.unread;
    let name = |path: &Path| path.strip_prefix(&target.root).unwrap_or(path).display().to_string();
    let mut left_out = HashSet::new();
    for (path, (file, slots)) in &found.slots {
        for (slot, here) in slots {
            for &uuid in here {
                let place = Elsewhere { uuid, file: name(path), column: Some(file.pos.column(*slot)) };
                if is_taken {
                    report.taken.add(place);
                } else {
                    report.elsewhere.add(place);
                    left_out.insert(uuid);
                }
            }
        }
    }
    for (path, here) in &found.players {
        for &uuid in here {
            report.elsewhere.add(Elsewhere { uuid, file: name(path), column: None });
            left_out.insert(uuid);
        }
    }
    left_out
}
