//! Box, records, properties and objects of a checked pack, put into a world: at once, or in steps.

use std::fs::File;
use std::io::{BufReader, Seek as _};

use cg_anvil::mapping::key::is_of_player;
use cg_anvil::mapping::layout::LAYOUT_PREFIX;
use cg_format::record::{Record, RecordView};
use cg_format::{Limits, RecordId};
use cg_registry::Catalog;
use cg_snapshot::pack::{PackInfo, PackReader, Part};
use cg_snapshot::{DryRun, Merge, RestoreJob, RestoreOptions};
use cg_store::objects::ObjectKey;
use cg_store::{Durability, Property, Transaction, World};
use indicatif::ProgressBar;
use sha2::{Digest as _, Sha256};

use super::{Checked, Done, Tallies, Tally};
use crate::cmd::pack::is_worlds_own;
use crate::cmd::snapshot::steps::{self, StepsArg, too_much};
use crate::output::{Failure, bytes_text};

/// Bytes of a value in a transaction, beside its content, which is there twice: as a value and as a row.
const VALUE_BYTES: u64 = 1024;

/// Reads a pack from its first byte to its last.
///
/// Objects and properties that another world's store keeps for itself are refused: here they would say what is not so.
pub(super) fn check(file: File, limits: Limits) -> Result<Checked, Failure> {
    let (mut region, mut pages) = (None, Vec::new());
    let mut reader = PackReader::open(BufReader::new(&file), limits).map_err(Failure::failed)?;
    while let Some(part) = reader.next_part().map_err(Failure::failed)? {
        if let Some(own) = worlds_own(&part) {
            return Err(Failure::refused(format!(
                "{own} of the pack is a store's own and holds of no other world; nothing was written"
            )));
        }
        pages.extend(known_by(&part));
        if let Part::Region(snapshot) = part {
            region = Some(snapshot);
        }
    }
    let info = reader.info().clone();
    drop(reader);
    Ok(Checked { file, limits, info, region, pages })
}

/// The first value of a part that says something of its own world.
fn worlds_own(part: &Part) -> Option<String> {
    match part {
        Part::Objects(page) => {
            let own = page.iter().find(|object| object.key.starts_with(ObjectKey::STORES_OWN))?;
            Some(format!("object `{}`", own.key.escape_ascii()))
        }
        Part::Properties(page) => {
            let (name, _) = page.iter().find(|(name, _)| is_worlds_own(name.as_str().as_bytes()))?;
            Some(format!("property `{name}`"))
        }
        Part::Region(_) | Part::Records(_) => None,
    }
}

/// Digest of a part after the box: the first 16 bytes of SHA-256 over its kind and all of it.
fn known_by(part: &Part) -> Option<[u8; 16]> {
    let (kind, bytes) = match part {
        Part::Objects(page) => (b"o", page.as_bytes()),
        Part::Records(page) => (b"r", page.as_bytes()),
        Part::Properties(page) => (b"p", page.as_bytes()),
        Part::Region(_) => return None,
    };
    let whole: [u8; 32] = Sha256::new().chain_update(kind).chain_update(bytes).finalize().into();
    Some(std::array::from_fn(|at| whole[at]))
}

/// Counts what would be done, with names as if they were registered.
pub(super) fn dry_run(
    pack: &Checked,
    world: &World,
    catalog: &Catalog,
    options: RestoreOptions,
) -> Result<Done, Failure> {
    let mut done = Done::default();
    let mut job = job(pack, catalog, options)?;
    each_page(pack, |page| count_page(world, page, job.as_ref(), options.merge, &mut done.values))?;
    if let Some(job) = &mut job {
        let kinds = &mut done.kinds;
        done.region = world.read_view(|view| {
            let mut as_registered = DryRun::with_schema(view, catalog.current_schema());
            let ran = job.run(&mut as_registered, &mut |change| kinds.count(&change));
            ran.map_err(Failure::failed)
        })?;
    }
    Ok(done)
}

/// The memory that the other values of a pack leave to its box in one transaction.
pub(super) fn left_by_values(pack: &Checked, steps: StepsArg) -> Result<u64, Failure> {
    let max_held_bytes = steps.max_held_bytes();
    let PackInfo { object_bytes, object_count, records, properties, .. } = &pack.info;
    let len_bytes = object_bytes.saturating_add(records.len_bytes).saturating_add(properties.len_bytes);
    let count = object_count.saturating_add(records.count).saturating_add(properties.count);
    let held_bytes = len_bytes.saturating_mul(2).saturating_add(count.saturating_mul(VALUE_BYTES));
    let known = || format!(", for its objects, records and properties alone take {}", bytes_text(held_bytes));
    max_held_bytes.checked_sub(held_bytes).ok_or_else(|| too_much(max_held_bytes, &known()))
}

/// All of it as one transaction, of whatever size.
pub(super) fn at_once(pack: &Checked, world: &World, options: RestoreOptions) -> Result<Done, Failure> {
    let mut done = Done { transactions: 1, ..Done::default() };
    let mut job = job(pack, &world.catalog(), options)?;
    world.transaction(|tx| {
        each_page(pack, |page| put_page(tx, page, job.as_ref(), options.merge, &mut done.values))?;
        if let Some(job) = &mut job {
            let kinds = &mut done.kinds;
            steps::run(job, tx, &mut |change| kinds.count(&change), &ProgressBar::hidden())?;
            done.region = job.report().clone();
        }
        Ok::<_, Failure>(())
    })?;
    Ok(done)
}

/// Part by part of the values, and the box in transactions of 64 sections.
pub(super) fn in_steps(pack: &Checked, world: &World, options: RestoreOptions) -> Result<Done, Failure> {
    let mut done = Done::default();
    let mut job = job(pack, &world.catalog(), options)?;
    each_page(pack, |page| {
        let mut values = done.values;
        world.transaction_at(Durability::Process, |tx| {
            put_page(tx, page, job.as_ref(), options.merge, &mut values)
        })?;
        done.values = values;
        done.transactions += 1;
        Ok(())
    })?;
    let Some(job) = &mut job else { return Ok(done) };
    let kinds = &mut done.kinds;
    let observe = &mut |change| kinds.count(&change);
    done.transactions += steps::in_steps(world, job, observe, &ProgressBar::hidden())?;
    done.region = job.report().clone();
    Ok(done)
}

fn job(pack: &Checked, catalog: &Catalog, options: RestoreOptions) -> Result<Option<RestoreJob>, Failure> {
    let job = |region| RestoreJob::new(std::sync::Arc::clone(region), catalog, options);
    pack.region.as_ref().map(job).transpose().map_err(Failure::failed)
}

/// Reads the parts after the box again. Ends with an error before the first part that is not as it was checked, and where the file is
/// another otherwise.
fn each_page(pack: &Checked, mut visit: impl FnMut(&Part) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut file = &pack.file;
    file.rewind().map_err(Failure::failed)?;
    let changed = || Failure::failed("the file was changed while it was unpacked");
    let mut reader = PackReader::open(BufReader::new(file), pack.limits).map_err(Failure::failed)?;
    let mut checked = pack.pages.iter();
    while let Some(part) = reader.next_part().map_err(Failure::failed)? {
        let Some(known) = known_by(&part) else { continue };
        if checked.next() != Some(&known) {
            return Err(changed());
        }
        visit(&part)?;
    }
    if *reader.info() == pack.info { Ok(()) } else { Err(changed()) }
}

/// A record of the box as it is in the world.
fn moved(
    job: Option<&RestoreJob>,
    id: RecordId,
    record: &RecordView<'_>,
) -> Result<(RecordId, Record), Failure> {
    let job = job.ok_or_else(|| Failure::failed("the pack has records and no box"))?;
    job.moved_record(id, record.to_record()).map_err(Failure::failed)
}

fn put_page(
    tx: &mut Transaction<'_>,
    page: &Part,
    job: Option<&RestoreJob>,
    merge: Merge,
    done: &mut Tallies,
) -> Result<(), Failure> {
    match page {
        Part::Objects(page) => {
            for object in page.iter().filter(|object| !is_of_player(object.key)) {
                let there = tx.object(object.key)?;
                let there = there.as_ref().map(|there| &*there.bytes);
                if done.objects.meet(there, object.bytes, of_object(object.key, merge)) {
                    tx.put_object(object.key, object.bytes)?;
                }
            }
        }
        Part::Records(page) => {
            for (id, record) in page.iter() {
                let (id, record) = moved(job, id, &record)?;
                if done.records.meet(tx.record(id)?.as_ref(), &record, merge) {
                    tx.put_record(id, record);
                }
            }
        }
        Part::Properties(page) => {
            for (name, bytes) in page.iter() {
                let property = Property::Named(name);
                if done.properties.meet(tx.property(&property)?.as_deref(), bytes, merge) {
                    tx.set_property(property, Some(bytes.to_vec()));
                }
            }
        }
        Part::Region(_) => {}
    }
    Ok(())
}

/// Counts what [`put_page`] would do.
fn count_page(
    world: &World,
    page: &Part,
    job: Option<&RestoreJob>,
    merge: Merge,
    done: &mut Tallies,
) -> Result<(), Failure> {
    match page {
        Part::Objects(page) => {
            for object in page.iter().filter(|object| !is_of_player(object.key)) {
                let there = world.objects().get(object.key)?;
                let there = there.as_ref().map(|there| &*there.bytes);
                done.objects.meet(there, object.bytes, of_object(object.key, merge));
            }
        }
        Part::Records(page) => {
            for (id, record) in page.iter() {
                let (id, record) = moved(job, id, &record)?;
                done.records.meet(world.records().get(id)?.as_ref(), &record, merge);
            }
        }
        Part::Properties(page) => {
            for (name, bytes) in page.iter() {
                let there = world.property(&Property::Named(name))?;
                done.properties.meet(there.as_deref(), bytes, merge);
            }
        }
        Part::Region(_) => {}
    }
    Ok(())
}

/// What happens to an object that is there: in which folders this world's save has its dimensions, another world does
/// not know.
fn of_object(key: &[u8], merge: Merge) -> Merge {
    if key.starts_with(LAYOUT_PREFIX.as_bytes()) { Merge::Keep } else { merge }
}

impl Tally {
    /// Counts a value; whether it is to be put.
    fn meet<V: PartialEq + ?Sized>(&mut self, there: Option<&V>, value: &V, merge: Merge) -> bool {
        match (there, merge) {
            (Some(_), Merge::Keep) => self.kept += 1,
            (Some(there), Merge::Replace) if there == value => self.unchanged += 1,
            _ => {
                self.put += 1;
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use cg_format::codec::Codec;
    use cg_snapshot::pack::{PackWriter, PackedObject};
    use cg_store::{World, WorldOptions};

    use super::*;

    /// A pack of three pages with one object each.
    fn pack(contents: [u8; 3]) -> Vec<u8> {
        let mut pack = PackWriter::new(Vec::new(), Codec::None).expect("memory is left");
        for (key, content) in ["a", "b", "c"].into_iter().zip(contents) {
            let bytes = vec![content; 1 << 18];
            pack.object(PackedObject { key: key.as_bytes(), version: 0, bytes: &bytes }).expect("in order");
        }
        pack.finish().expect("memory is left").0
    }

    fn options() -> RestoreOptions {
        RestoreOptions { merge: Merge::Replace, ..RestoreOptions::default() }
    }

    type Put = fn(&Checked, &World, RestoreOptions) -> Result<Done, Failure>;

    /// Outcome for a file that is another one when it is read again, equal in its first page: the error, and the
    /// objects that were put.
    fn put_of_changed(put: Put, later: &[u8]) -> (String, Vec<(String, u8)>) {
        let dir = tempfile::tempdir().expect("a directory");
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&pack([1, 2, 3])).expect("written");
        file.rewind().expect("a file");
        let checked = check(file.try_clone().expect("a file"), Limits::default()).expect("a pack");
        assert_eq!(checked.pages.len(), 3);
        file.set_len(0).expect("a file");
        file.rewind().expect("a file");
        file.write_all(later).expect("written");
        let world = World::builder()
            .options(&WorldOptions::process())
            .create(dir.path().join("world"))
            .expect("a world");
        let said = put(&checked, &world, options()).map(drop).expect_err("it was changed").to_string();
        let mut there = Vec::new();
        let walked = world.objects().for_each("", |object| {
            let (key, _, bytes) = object.expect("no damage");
            there.push((String::from_utf8_lossy(key).into_owned(), bytes[0]));
            std::ops::ControlFlow::<()>::Continue(())
        });
        walked.expect("no damage");
        (said, there)
    }

    #[test]
    fn nothing_is_committed_that_was_not_checked() {
        let changed = "the file was changed while it was unpacked";
        let first = vec![("a".to_owned(), 1)];
        assert_eq!(put_of_changed(in_steps, &pack([1, 9, 3])), (changed.to_owned(), first.clone()));
        assert_eq!(put_of_changed(at_once, &pack([1, 9, 3])), (changed.to_owned(), vec![]));
        assert_eq!(put_of_changed(in_steps, &pack([9, 2, 3])), (changed.to_owned(), vec![]));
        let mut torn = pack([1, 2, 3]);
        torn[(1 << 18) + 100] ^= 1;
        let (said, there) = put_of_changed(in_steps, &torn);
        assert!(said.contains("checksum"), "{said}");
        assert_eq!(there, first);
    }
}
