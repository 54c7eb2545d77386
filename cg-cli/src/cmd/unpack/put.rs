//! Objects and box of a checked pack, put into a world: at once if that fits, else in steps.

use std::io::{BufReader, Seek as _};

use cg_registry::{Catalog, Registration};
use cg_snapshot::pack::{ObjectPage, PackReader, PackedObject, Part};
use cg_snapshot::{DryRun, Merge, RestoreJob, RestoreOptions};
use cg_store::engine::RocksEngine;
use cg_store::{Durability, ObjectKey, Transaction};
use indicatif::ProgressBar;

use super::{Checked, Done, Tally};
use crate::args::DiskWorld;
use crate::cmd::snapshot::steps::{self, is_too_large};
use crate::output::Failure;

/// A box of more sections is put in steps: a pack comes from anywhere, and may be of many sections and few bytes.
const SECTIONS_TRIED: u64 = 1 << 16;

pub(super) fn name_count(registration: &Registration) -> u64 {
    let Registration { components, blocks, entities, structures, dimensions, sides } = registration;
    let names = [entities, structures, dimensions, sides].iter().map(|names| names.len()).sum::<usize>();
    (components.len() + blocks.len() + names) as u64
}

/// Refuses objects that another world's store keeps for itself: here they would say what is not so.
pub(super) fn check_keys(pack: &Checked) -> Result<(), Failure> {
    each_page(pack, |page| match page.iter().find(|object| object.key.starts_with(ObjectKey::STORES_OWN)) {
        None => Ok(()),
        Some(object) => Err(Failure::failed(format!(
            "object `{}` of the pack is a store's own and holds of no other world; nothing was written",
            object.key.escape_ascii()
        ))),
    })
}

/// What would be done, with names as if they were registered.
pub(super) fn dry_run(
    pack: &Checked,
    world: &DiskWorld,
    catalog: &Catalog,
    options: RestoreOptions,
) -> Result<Done, Failure> {
    let mut done = Done::default();
    each_page(pack, |page| {
        for object in page.iter() {
            let there = world.objects().get(object.key)?;
            done.objects.meet(there.as_ref().map(|there| &*there.bytes), &object, options.merge);
        }
        Ok(())
    })?;
    if let Some(mut job) = job(pack, catalog, options)? {
        let kinds = &mut done.kinds;
        let ran = world.still(|still| {
            let ran = job.run(&mut DryRun::new(still), &mut |change| kinds.count(&change));
            ran.map_err(Failure::failed)
        })?;
        done.region = ran?;
    }
    Ok(done)
}

pub(super) fn put(pack: &Checked, world: &DiskWorld, options: RestoreOptions) -> Result<Done, Failure> {
    let sections = pack.info.region.as_ref().map_or(0, |region| region.section_count);
    if pack.info.object_bytes > world.limits().batch_bytes || sections > SECTIONS_TRIED {
        return in_steps(pack, world, options);
    }
    match at_once(pack, world, options) {
        Err(failure) if is_too_large(&failure) => in_steps(pack, world, options),
        done => done,
    }
}

fn at_once(pack: &Checked, world: &DiskWorld, options: RestoreOptions) -> Result<Done, Failure> {
    let mut done = Done { transactions: 1, ..Done::default() };
    let mut job = job(pack, &world.catalog(), options)?;
    world.transaction(|tx| {
        each_page(pack, |page| put_objects(tx, page.iter(), options.merge, &mut done.objects))?;
        if let Some(job) = &mut job {
            let kinds = &mut done.kinds;
            done.region = job.run(tx, &mut |change| kinds.count(&change)).map_err(Failure::failed)?;
        }
        Ok::<_, Failure>(())
    })?;
    Ok(done)
}

fn in_steps(pack: &Checked, world: &DiskWorld, options: RestoreOptions) -> Result<Done, Failure> {
    let mut done = Done::default();
    each_page(pack, |page| {
        let mut step = |objects: &mut dyn Iterator<Item = PackedObject<'_>>| {
            let mut tally = done.objects;
            world.transaction_at(Durability::Process, |tx| {
                put_objects(tx, objects, options.merge, &mut tally)
            })?;
            done.objects = tally;
            done.transactions += 1;
            Ok::<_, Failure>(())
        };
        match step(&mut page.iter()) {
            Err(failure) if is_too_large(&failure) => {
                page.iter().try_for_each(|object| step(&mut std::iter::once(object)))
            }
            stepped => stepped,
        }
    })?;
    let Some(mut job) = job(pack, &world.catalog(), options)? else { return Ok(done) };
    let kinds = &mut done.kinds;
    let observe = &mut |change| kinds.count(&change);
    done.transactions += steps::in_steps(world, &mut job, observe, &ProgressBar::hidden())?;
    done.region = job.report().clone();
    Ok(done)
}

fn job(pack: &Checked, catalog: &Catalog, options: RestoreOptions) -> Result<Option<RestoreJob>, Failure> {
    let job = |region| RestoreJob::new(std::sync::Arc::clone(region), catalog, options);
    pack.region.as_ref().map(job).transpose().map_err(Failure::failed)
}

/// Reads the objects again, and ends with an error if the file is not the one that was checked.
fn each_page(
    pack: &Checked,
    mut visit: impl FnMut(&ObjectPage) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut file = &pack.file;
    file.rewind().map_err(Failure::failed)?;
    let mut reader = PackReader::open(BufReader::new(file), pack.limits).map_err(Failure::failed)?;
    while let Some(part) = reader.next_part().map_err(Failure::failed)? {
        if let Part::Objects(page) = part {
            visit(&page)?;
        }
    }
    if *reader.info() == pack.info {
        return Ok(());
    }
    Err(Failure::failed("the file was changed while it was unpacked"))
}

fn put_objects<'p>(
    tx: &mut Transaction<'_, RocksEngine>,
    objects: impl Iterator<Item = PackedObject<'p>>,
    merge: Merge,
    tally: &mut Tally,
) -> Result<(), Failure> {
    for object in objects {
        let there = tx.object(object.key)?;
        if tally.meet(there.as_ref().map(|there| &*there.bytes), &object, merge) {
            tx.put_object(object.key, object.bytes)?;
        }
    }
    Ok(())
}

impl Tally {
    /// Counts an object; whether it is to be put.
    fn meet(&mut self, there: Option<&[u8]>, object: &PackedObject<'_>, merge: Merge) -> bool {
        match (there, merge) {
            (Some(_), Merge::Keep) => self.kept += 1,
            (Some(there), Merge::Replace) if there == object.bytes => self.unchanged += 1,
            _ => {
                self.put += 1;
                return true;
            }
        }
        false
    }
}
