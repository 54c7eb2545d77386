//! Segmented worlds as one stream: everything there and back, cuts, flipped bits, restores that stop and go on, and
//! archives that lie.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cg_format::Limits;
use cg_format::archive::{LINE_BYTES, Piece, SegmentAt, SegmentsReader, SegmentsWriter, is_of_segments};
use cg_layers::SegmentedWorld;
use cg_store::CheckpointFiles;
use cg_store::error::ArchiveError;
use cg_store::prelude::*;
use cg_store::verify::VerifyDepth;
use cg_store::view::{Area, Copied, DamagedRows};
use expect_test::{Expect, expect};

use super::{block, create, dir, open, put, save, segments};
use crate::fixture::{Disk, filled, options, uuid};

/// Three segments with chunks and everything that lies beside them, and a root with an object and properties.
fn full() -> (Disk, Vec<u8>) {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    for x in [-20, 0, 20] {
        save(&world, ids.at(x, 0, 0), filled(world.root(), ids.stone));
    }
    put(&world, 1, ids.cow_in(ids.at(0, 0, 0)));
    world.transfer_entities([(uuid(1), ids.cow_in(ids.at(20, 0, 0)))]).expect("transfers");
    let at = ids.at(-20, 0, 0);
    let stored = world.transaction(at, |tx| {
        tx.put_object("chest/1", b"gold".to_vec())?;
        tx.set_property(Property::of_key(b"game:weather").expect("a name"), Some(b"rain".to_vec()));
        Ok::<_, Error>(())
    });
    stored.expect("commits");
    world.root().objects().put("avatar/7", *b"red hat").expect("commits");
    world.close().expect("closes");
    drop(world);
    let bytes = archived(&dir(&disk));
    (disk, bytes)
}

fn archived(world: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    let archived = SegmentedWorld::archive(world, &mut out, DamagedRows::Refuse, &options(), |_| {});
    let archived = archived.expect("it is sound");
    assert_eq!((archived.written_bytes, archived.damaged_count), (out.len() as u64, 0));
    out
}

fn restore(from: impl Read + Send, to: &Path) -> Result<Copied, ArchiveError> {
    SegmentedWorld::restore(from, to, &options(), |_| {})
}

/// Root and segments, with the hash of each.
fn hashes(world: &Path) -> Vec<(PathBuf, String)> {
    let mut worlds = vec![PathBuf::from("root")];
    let segments = fs::read_dir(world.join("segments")).expect("listed");
    worlds.extend(segments.map(|entry| Path::new("segments").join(entry.expect("listed").file_name())));
    worlds.sort();
    let hash = |name: PathBuf| {
        let one = World::builder().options(&options()).open_read_only(world.join(&name)).expect("opens");
        let hash = one.content_hash(Area::World).expect("hashes").to_string();
        (name, hash)
    };
    worlds.into_iter().map(hash).collect()
}

/// Where each part begins, and where the last one ends.
fn borders(archive: &[u8]) -> Vec<usize> {
    let mut starts = vec![LINE_BYTES];
    while let Some(head) = archive.get(starts[starts.len() - 1]..).filter(|rest| !rest.is_empty()) {
        let stored = u32::from_le_bytes(head[6..10].try_into().expect("four bytes"));
        starts.push(starts[starts.len() - 1] + 14 + stored as usize);
    }
    starts
}

#[test]
fn an_archive_of_all_segments_gives_them_all_back() {
    let (disk, bytes) = full();
    assert!(is_of_segments(&bytes));
    let to = disk.root().join("restored");
    let mut last = Copied::default();
    let copied = SegmentedWorld::restore(&bytes[..], &to, &options(), |now| {
        assert!(now.row_count >= last.row_count);
        last = *now;
    });
    let copied = copied.expect("restores");
    assert!(!copied.is_continued && copied.row_count > 20, "{copied:?}");
    assert_eq!(copied, last);
    assert_eq!(hashes(&to), hashes(&dir(&disk)));
    assert_eq!(hashes(&to).len(), 4);
    let verified = SegmentedWorld::verify(&to, VerifyDepth::Full, &options(), &[], |_| {});
    assert!(verified.as_ref().is_ok_and(cg_layers::SegmentedReport::is_ok), "{verified:?}");
    let again = archived(&to);
    assert!(again == bytes, "of a restored world the archive is the same");

    let world = SegmentedWorld::open(&to, &[], &segments()).expect("opens");
    assert_eq!(world.root().last_commit(), copied.commit);
    let ids = crate::fixture::Ids::of(world.root());
    assert_eq!(block(&world, ids.at(20, 0, 0)), Some(ids.stone));
    let cow = world.entity(uuid(1)).expect("reads").expect("it is there");
    assert_eq!(cow.owner, Owner::Chunk(ids.at(20, 0, 0)));
    save(&world, ids.at(20, 0, 1), filled(world.root(), ids.glass));
    world.transfer_entities([(uuid(1), ids.cow_in(ids.at(-20, 0, 0)))]).expect("transfers");
    world.close().expect("closes");
    drop(world);
    let world = SegmentedWorld::open(&to, &[], &segments()).expect("opens");
    assert_eq!(block(&world, ids.at(20, 0, 1)), Some(ids.glass));
    world.close().expect("closes");
    drop(world);
    // It was written since.
    let said = restore(&bytes[..], &to).expect_err("there is another world").to_string();
    assert!(
        said.ends_with(" already holds files; a world is created in an empty or missing directory"),
        "{said}"
    );
}

#[test]
fn a_checkpoint_of_a_world_in_use_is_archived() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    save(&world, ids.at(0, 0, 0), filled(world.root(), ids.stone));
    let refused = SegmentedWorld::archive(dir(&disk), Vec::new(), DamagedRows::Refuse, &options(), |_| {});
    let refused = refused.expect_err("it is open");
    assert!(
        matches!(&refused, ArchiveError::Store(error) if error.kind() == cg_store::engine::ErrorKind::Busy),
        "{refused}"
    );
    let (copy, to) = (disk.root().join("copy"), disk.root().join("restored"));
    world.checkpoint(&copy, CheckpointFiles::Linked).expect("copies");
    save(&world, ids.at(0, 0, 1), filled(world.root(), ids.stone));
    restore(&archived(&copy)[..], &to).expect("restores");
    let restored = SegmentedWorld::open(&to, &[], &segments()).expect("opens");
    assert_eq!([0, 1].map(|z| block(&restored, ids.at(0, 0, z))), [Some(ids.stone), None]);
}

#[test]
fn no_cut_and_no_flipped_bit_at_a_border_makes_a_world() {
    let (disk, good) = full();
    let borders = borders(&good);
    let to = disk.root().join("restored");
    let refused = |bytes: &[u8], what: String| {
        let said = restore(bytes, &to).expect_err("it is not whole");
        let ArchiveError::Fault(fault) = said else { panic!("{what}: {said}") };
        assert!(!to.exists(), "{what}");
        fault
    };
    assert!(borders.len() >= 10, "the root, three segments, the end: {borders:?}");
    // Before and after it, and in each field of the part that begins there.
    let near = |border: usize| [border - 1, border, border + 1, border + 6, border + 10, border + 14];
    for &border in &borders {
        for at in near(border).into_iter().filter(|at| *at < good.len()) {
            let fault = refused(&good[..at], format!("cut at {at}"));
            assert!(
                matches!(fault.error.problem, cg_format::Problem::Truncated { .. }),
                "cut at {at}: {fault}"
            );
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            let fault = refused(&bad, format!("changed at {at}"));
            let part = borders.iter().rev().find(|start| **start <= at).map_or(0, |start| start + 14);
            assert!(
                fault.part_at.is_none() && fault.error.offset_bytes <= at.max(part) as u64,
                "changed at {at}: {fault}"
            );
        }
    }
    let said = refused(&[&good[..], b"x"].concat(), "longer".into()).to_string();
    assert_eq!(
        said,
        format!(
            "archive end: bytes after the end must be zero or absent, found 120 (at byte {})",
            good.len()
        )
    );
    fs::create_dir(&to).expect("it is new");
    restore(&good[..good.len() - 1], &to).expect_err("it is not whole");
    assert_eq!(fs::read_dir(&to).expect("it stays").count(), 0);
}

/// Fails after a number of bytes, as a disk or a network does.
struct Stops<'b>(&'b [u8]);

impl Read for Stops<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::Error::other("the cable was pulled"));
        }
        self.0.read(buffer)
    }
}

#[test]
fn a_restore_that_stops_at_any_border_goes_on() {
    let (disk, good) = full();
    let expected = hashes(&dir(&disk));
    let whole_rows = restore(&good[..], &disk.root().join("whole")).expect("restores").row_count;
    let borders = borders(&good);
    let (mut begun, mut fewer) = (0, 0);
    for (number, &border) in borders[1..].iter().enumerate() {
        for (at, name) in
            [(border - 1, "before"), (border, "at")].into_iter().filter(|(at, _)| *at < good.len())
        {
            let to = disk.root().join(format!("{number} {name}"));
            let said = restore(Stops(&good[..at]), &to).expect_err("it stops").to_string();
            assert_eq!(said, "the cable was pulled");
            let opened = SegmentedWorld::open(&to, &[], &segments()).map(drop);
            assert!(
                matches!(&opened, Err(error) if error.to_string().ends_with("it has no directory `root`")),
                "{number} {name}: {opened:?}"
            );
            let is_begun = to.join("root.unfinished").is_dir();
            begun += usize::from(is_begun);
            // A cut copy takes nothing away.
            assert!(matches!(restore(&good[..at], &to), Err(ArchiveError::Fault(_))));
            let restored = restore(&good[..], &to).unwrap_or_else(|error| panic!("{number} {name}: {error}"));
            assert_eq!(restored.is_continued, is_begun, "{number} {name}");
            fewer += usize::from(restored.row_count < whole_rows);
            assert_eq!(hashes(&to), expected, "{number} {name}");
            // What was finished is finished again, from the head of the root alone.
            let again = restore(Stops(&good[..borders[4]]), &to).expect("it is there");
            assert_eq!((again.row_count, again.commit, again.is_continued), (0, restored.commit, true));
        }
    }
    assert!(begun == fewer && fewer >= 6, "{begun} went on, {fewer} behind worlds that were there");
}

#[test]
fn a_part_of_another_archive_is_not_taken_for_one_of_this() {
    let (disk, good) = full();
    let (other, others) = full();
    let to = disk.root().join("half");
    let borders = borders(&good);
    restore(Stops(&good[..borders[9]]), &to).expect_err("it stops");
    let said = restore(&others[..], &to).expect_err("it is of another world");
    assert!(matches!(said, ArchiveError::Store(Error::Open(OpenError::NotEmpty { .. }))), "{said}");
    // The same world, after a segment was written.
    let world = open(&disk);
    let ids = crate::fixture::Ids::of(world.root());
    save(&world, ids.at(-20, 0, 0), filled(world.root(), ids.glass));
    world.close().expect("closes");
    drop(world);
    let said = restore(&archived(&dir(&disk))[..], &to).expect_err("it is of another moment");
    assert!(matches!(said, ArchiveError::Store(Error::Open(OpenError::NotEmpty { .. }))), "{said}");
    assert!(restore(&good[..], &to).expect("goes on").is_continued);
    drop(other);
}

/// The worlds of an archive, each with its place and its archive.
type Worlds = Vec<(Option<SegmentAt>, Vec<u8>)>;

fn worlds(archive: &[u8]) -> Worlds {
    let mut worlds = Worlds::new();
    let mut reader = SegmentsReader::open(archive, Limits::default()).expect("sound");
    while let Some(piece) = reader.next_piece().expect("sound") {
        match piece {
            Piece::Root => worlds.push((None, Vec::new())),
            Piece::Segment(at) => worlds.push((Some(at), Vec::new())),
            Piece::Bytes(bytes) => worlds.last_mut().expect("one has begun").1.extend(bytes),
        }
    }
    worlds
}

/// An archive of these worlds, whose checksums are right.
fn sealed(worlds: &[(Option<SegmentAt>, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = SegmentsWriter::new(&mut out).expect("fits");
    for (at, bytes) in worlds {
        if let Some(at) = at {
            writer.segment(*at, &mut out).expect("ascends");
        }
        writer.bytes(bytes, &mut out).expect("fits");
    }
    writer.finish(&mut out).expect("fits");
    out
}

#[test]
fn an_archive_that_lies_is_no_world() {
    let (disk, good) = full();
    let sound = worlds(&good);
    assert_eq!(sound.len(), 4);
    let to = disk.root().join("restored");
    let check = |change: &dyn Fn(&mut Worlds), expected: Option<Expect>| {
        let mut worlds = sound.clone();
        change(&mut worlds);
        let said = restore(&sealed(&worlds)[..], &to).expect_err("it lies");
        assert!(matches!(said, ArchiveError::NoWorld { .. }), "{said}");
        match expected {
            Some(expected) => expected.assert_eq(&said.to_string()),
            None => assert!(said.to_string().contains(": segment 0 0 0 of dimension 0: archive "), "{said}"),
        }
        assert!(!to.exists());
    };
    check(
        &|worlds| drop(worlds.pop()),
        Some(expect![
            "the archive holds no world that this release could open: segment 1 0 0 of dimension 0: its root knows it, and the archive has it not"
        ]),
    );
    check(
        &|worlds| {
            let mut more = worlds[3].clone();
            more.0.as_mut().expect("a segment").at[2] += 7;
            worlds.push(more);
        },
        Some(expect![
            "the archive holds no world that this release could open: segment 1 0 7 of dimension 0: its root does not know it"
        ]),
    );
    check(
        &|worlds| worlds[1].1 = worlds[2].1.clone(),
        Some(expect![
            "the archive holds no world that this release could open: segment -2 0 0 of dimension 0: segment 0 0 0 of dimension 0 lies in the place of segment -2 0 0 of dimension 0; put it back"
        ]),
    );
    check(
        &|worlds| worlds[0].1 = worlds[1].1.clone(),
        Some(expect![
            "the archive holds no world that this release could open: the root: it says nothing of segments"
        ]),
    );
    check(
        &|worlds| worlds[1].1.truncate(100),
        Some(expect![
            "the archive holds no world that this release could open: segment -2 0 0 of dimension 0: archive part: part head needs 14 bytes and 2 are left (at byte 98)"
        ]),
    );
    check(
        &|worlds| {
            let at = worlds[2].1.len() / 2;
            worlds[2].1.truncate(at);
            worlds[2].1.extend(&sound[3].1[at..]);
        },
        None,
    );
    check(
        &|worlds| worlds[1].1 = good.clone(),
        Some(expect![
            "the archive holds no world that this release could open: segment -2 0 0 of dimension 0: archive line: line is 2, allowed is 1 for one world; 2 is a segmented world, and is restored as one (at byte 20)"
        ]),
    );
    let said = restore(&sound[0].1[..], &to).expect_err("it is of one world").to_string();
    expect!["archive line: line is 1, allowed is 2 for a segmented world; 1 is one world, and is restored as one (at byte 20); nothing was restored"].assert_eq(&said);
    let said =
        World::builder().restore(&good[..], &to, |_| {}).expect_err("it is of many worlds").to_string();
    expect!["archive line: line is 2, allowed is 1 for one world; 2 is a segmented world, and is restored as one (at byte 20); nothing was restored"].assert_eq(&said);
    assert!(!to.exists());
}

#[test]
fn what_is_no_segmented_world_or_lacks_a_segment_is_not_archived() {
    let (disk, _) = full();
    let archive = |world: &Path| {
        SegmentedWorld::archive(world, Vec::new(), DamagedRows::Refuse, &options(), |_| {})
            .expect_err("refused")
    };
    let said = archive(&dir(&disk).join("root"));
    assert!(
        matches!(said, ArchiveError::Store(Error::Layer { .. }))
            && said.to_string().ends_with("it has no directory `root`"),
        "{said}"
    );
    fs::remove_dir_all(dir(&disk).join("segments/0.0.0.0")).expect("it is there");
    let said = archive(&dir(&disk)).to_string();
    assert!(said.contains("0.0.0.0"), "{said}");
}
