//! Objects and box of a checked pack, put into a world: at once, or in steps.

use std::fs::File;
use std::io::{BufReader, Seek as _};

use cg_anvil::mapping::layout::LAYOUT_PREFIX;
use cg_format::Limits;
use cg_registry::Catalog;
use cg_snapshot::pack::{ObjectPage, PackInfo, PackReader, PackedObject, Part};
use cg_snapshot::{DryRun, Merge, RestoreJob, RestoreOptions};
use cg_store::objects::ObjectKey;
use cg_store::{Durability, Transaction, World};
use indicatif::ProgressBar;
use sha2::{Digest as _, Sha256};

use super::{Checked, Done, Tally};
use crate::cmd::snapshot::steps::{self, StepsArg, too_much};
use crate::output::{Failure, bytes_text};

/// Bytes of an object in a transaction, beside its content, which is there twice: as a value and as a row.
const OBJECT_BYTES: u64 = 1024;

/// Reads a pack from its first byte to its last.
///
/// Objects that another world's store keeps for itself are refused: here they would say what is not so.
pub(super) fn check(file: File, limits: Limits) -> Result<Checked, Failure> {
    let (mut region, mut pages) = (None, Vec::new());
    let mut reader = PackReader::open(BufReader::new(&file), limits).map_err(Failure::failed)?;
    while let Some(part) = reader.next_part().map_err(Failure::failed)? {
        match part {
            Part::Region(snapshot) => region = Some(snapshot),
            Part::Objects(page) => {
                let own = page.iter().find(|object| object.key.starts_with(ObjectKey::STORES_OWN));
                if let Some(object) = own {
                    return Err(Failure::refused(format!(
                        "object `{}` of the pack is a store's own and holds of no other world; nothing was written",
                        object.key.escape_ascii()
                    )));
                }
                pages.push(known_by(&page));
            }
        }
    }
    let info = reader.info().clone();
    drop(reader);
    Ok(Checked { file, limits, info, region, pages })
}

/// Digest of a page of objects: the first 16 bytes of SHA-256 over all of it.
fn known_by(page: &ObjectPage) -> [u8; 16] {
    let mut hash = Sha256::new();
    for PackedObject { key, version, bytes } in page.iter() {
        hash.update((key.len() as u64).to_le_bytes());
        hash.update(key);
        hash.update(version.to_le_bytes());
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    let whole: [u8; 32] = hash.finalize().into();
    std::array::from_fn(|at| whole[at])
}

/// Counts what would be done, with names as if they were registered.
pub(super) fn dry_run(
    pack: &Checked,
    world: &World,
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
        done.region = world.read_view(|view| {
            let mut as_registered = DryRun::with_schema(view, catalog.current_schema());
            let ran = job.run(&mut as_registered, &mut |change| kinds.count(&change));
            ran.map_err(Failure::failed)
        })?;
    }
    Ok(done)
}

/// The memory that the objects of a pack leave to its box in one transaction.
pub(super) fn left_by_objects(pack: &Checked, steps: StepsArg) -> Result<u64, Failure> {
    let max_held_bytes = steps.max_held_bytes();
    let PackInfo { object_bytes, object_count, .. } = &pack.info;
    let held_bytes = object_bytes.saturating_mul(2).saturating_add(object_count.saturating_mul(OBJECT_BYTES));
    let known = || format!(", for its objects alone take {}", bytes_text(held_bytes));
    max_held_bytes.checked_sub(held_bytes).ok_or_else(|| too_much(max_held_bytes, &known()))
}

/// All of it as one transaction, of whatever size.
pub(super) fn at_once(pack: &Checked, world: &World, options: RestoreOptions) -> Result<Done, Failure> {
    let mut done = Done { transactions: 1, ..Done::default() };
    let mut job = job(pack, &world.catalog(), options)?;
    world.transaction(|tx| {
        each_page(pack, |page| put_objects(tx, page.iter(), options.merge, &mut done.objects))?;
        if let Some(job) = &mut job {
            let kinds = &mut done.kinds;
            steps::run(job, tx, &mut |change| kinds.count(&change), &ProgressBar::hidden())?;
            done.region = job.report().clone();
        }
        Ok::<_, Failure>(())
    })?;
    Ok(done)
}

/// Page by page of the objects, and the box in transactions of 64 sections.
pub(super) fn in_steps(pack: &Checked, world: &World, options: RestoreOptions) -> Result<Done, Failure> {
    let mut done = Done::default();
    each_page(pack, |page| {
        let mut tally = done.objects;
        world.transaction_at(Durability::Process, |tx| {
            put_objects(tx, page.iter(), options.merge, &mut tally)
        })?;
        done.objects = tally;
        done.transactions += 1;
        Ok(())
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

/// Reads the objects again. Ends with an error before the first page that is not as it was checked, and where the file is
/// another otherwise.
fn each_page(
    pack: &Checked,
    mut visit: impl FnMut(&ObjectPage) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut file = &pack.file;
    file.rewind().map_err(Failure::failed)?;
    let changed = || Failure::failed("the file was changed while it was unpacked");
    let mut reader = PackReader::open(BufReader::new(file), pack.limits).map_err(Failure::failed)?;
    let mut checked = pack.pages.iter();
    while let Some(part) = reader.next_part().map_err(Failure::failed)? {
        let Part::Objects(page) = part else { continue };
        if checked.next() != Some(&known_by(&page)) {
            return Err(changed());
        }
        visit(&page)?;
    }
    if *reader.info() == pack.info { Ok(()) } else { Err(changed()) }
}

fn put_objects<'p>(
    tx: &mut Transaction<'_>,
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
            // In which folders this world's save has its dimensions, another world does not know.
            (Some(_), _) if object.key.starts_with(LAYOUT_PREFIX.as_bytes()) => self.kept += 1,
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

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use cg_format::codec::Codec;
    use cg_snapshot::pack::PackWriter;
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
