//! A snapshot goes into a file and comes back; what is damaged is said, and costs no more than it must.

use std::fmt::Write as _;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use cg_format::Limits;
use cg_format::codec::Codec;
use cg_snapshot::file::{FileOptions, SnapshotFile, explain, read_info};
use cg_snapshot::memory::Memory;
use cg_snapshot::{Place, RestoreJob, RestoreOptions, Snapshot, SnapshotError, Unverifiable};
use proptest::prelude::*;

use super::made::{around, captured, catalog, damage, host, yard};

fn bytes(snapshot: &Snapshot) -> Vec<u8> {
    snapshot.to_bytes(&FileOptions::default()).expect("nothing is lost")
}

fn load(bytes: &[u8], unverifiable: Unverifiable) -> Result<Snapshot, SnapshotError> {
    SnapshotFile::open(Cursor::new(bytes), Limits::default())?.load(unverifiable)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn what_is_written_is_read(seed in 0_u64..1000, codec in 0..3_u8) {
        let codec = Codec::from_byte(codec).unwrap();
        let snapshot = captured(&host(seed), around());
        let bytes = snapshot.to_bytes(&FileOptions { codec }).unwrap();
        prop_assert_eq!(&load(&bytes, Unverifiable::Fail).unwrap(), &snapshot);
        prop_assert_eq!(&read_info(&bytes[..]).unwrap(), snapshot.info());
        let mut file = SnapshotFile::open(Cursor::new(&bytes), Limits::default()).unwrap();
        for (index, (_, place)) in snapshot.sections().enumerate().collect::<Vec<_>>().into_iter().rev() {
            let expected = if let Place::Kept(kept) = place { Some(kept) } else { None };
            prop_assert_eq!(file.section(index).unwrap(), expected);
        }
        prop_assert!(snapshot.verify().is_empty());
    }

    #[test]
    fn any_bytes_give_a_snapshot_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..300), head in any::<bool>()) {
        if head {
            let mut start = b"cherrygrove snapshot 1\n".to_vec();
            start.append(&mut bytes);
            bytes = start;
        }
        prop_assert!(load(&bytes, Unverifiable::Skip).is_err());
    }
}

#[test]
fn every_cut_and_every_changed_byte_is_noticed() {
    let good = bytes(&yard());
    for len in 0..good.len() {
        let error = load(&good[..len], Unverifiable::Fail).expect_err("cut off");
        assert!(error.to_string().contains(" are left (at byte "), "{len}: {error}");
    }
    let mut longer = good.clone();
    longer.push(7);
    let end = format!(
        "snapshot group: bytes after the last group must be zero or absent, found 7 (at byte {})",
        good.len()
    );
    assert_eq!(load(&longer, Unverifiable::Fail).expect_err("longer").to_string(), end);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        assert!(load(&bad, Unverifiable::Fail).is_err(), "byte {at}");
    }
}

#[test]
fn errors_say_what_and_where() {
    let good = bytes(&yard());
    let said = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bad = good.clone();
        change(&mut bad);
        load(&bad, Unverifiable::Fail).expect_err("changed").to_string()
    };
    let newer =
        "snapshot head: signature is 3, and this release reads up to 2; use a newer release (at byte 21)";
    assert_eq!(said(&|bad| bad[21] = b'3'), newer);
    let other = "snapshot head: signature is 116, but the rest of the value implies 115 (at byte 12)";
    assert_eq!(said(&|bad| bad[12] = b't'), other);
    assert!(said(&|bad| bad[40] ^= 1).starts_with("snapshot head: checksum is "));
    let cut = "snapshot head: head needs 123 bytes and 69 are left (at byte 31)";
    assert_eq!(said(&|bad| bad.truncate(100)), cut);
    let huge = "snapshot head: head len is 4294967295, allowed is up to 131,171 bytes (at byte 23)";
    assert_eq!(said(&|bad| bad[23..27].fill(255)), huge);
}

#[test]
fn a_bomb_is_refused_before_it_explodes() {
    let good = bytes(&yard());
    let error = SnapshotFile::open(Cursor::new(&good), Limits::new(100)).map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        "snapshot part: a part needs 240 bytes of memory, the limit leaves 100 (at byte 156)"
    );
}

#[test]
fn all_sections_together_are_bounded() {
    // Many sections, so that there are several groups.
    let mut live = host(1);
    (0..20).for_each(|seed| damage(&mut live, seed));
    let template = captured(&live, around());
    let good = bytes(&template);
    let all_bytes = template.info().unique_bytes;
    let mut file = SnapshotFile::open(Cursor::new(&good), Limits::new(all_bytes)).expect("parts are smaller");
    let index = template.sections().position(|(_, place)| matches!(place, Place::Kept(_))).expect("one");
    assert!(file.section(index).expect("one at a time fits").is_some());
    let error = file.load(Unverifiable::Skip).expect_err("with the parts it is more");
    let said = format!("snapshot index: all sections needs {all_bytes} bytes of memory, the limit leaves ");
    assert!(error.to_string().starts_with(&said), "{error}");
}

#[test]
fn a_damaged_group_costs_its_sections_and_the_rest_is_restored() {
    // Many sections, so that there are several groups.
    let mut live = host(1);
    for seed in 0..20 {
        damage(&mut live, seed);
    }
    let template = captured(&live, around());
    let good = bytes(&template);
    let mut bad = good.clone();
    // Groups end the file, and none is as short as that.
    let near_end = bad.len() - 20;
    bad[near_end] ^= 1;
    let error = load(&bad, Unverifiable::Fail).expect_err("damaged");
    assert!(error.to_string().starts_with("snapshot group: checksum is "), "{error}");
    let lossy = load(&bad, Unverifiable::Skip).expect("the rest is sound");
    let lost = lossy.lost_count();
    assert!(lost > 0 && lost < template.info().present_count, "{lost}");
    assert!(matches!(lossy.to_bytes(&FileOptions::default()), Err(SnapshotError::Lost { .. })));

    let before = live.clone();
    damage(&mut live, 77);
    let job = |unverifiable| {
        let options = RestoreOptions { unverifiable, ..RestoreOptions::default() };
        RestoreJob::new(Arc::new(lossy.clone()), &catalog(), options).expect("it fits")
    };
    let error = job(Unverifiable::Fail).run(&mut live.clone(), &mut |_| {}).expect_err("lost sections");
    assert!(error.to_string().ends_with(" was not readable in the snapshot's file"), "{error}");
    let damaged = live.clone();
    let report = job(Unverifiable::Skip).run(&mut live, &mut |_| {}).expect("skipped");
    assert_eq!(report.unverifiable.len() as u64, lost);
    for (section, place) in lossy.sections() {
        let expected: &Memory = if place == Place::Lost { &damaged } else { &before };
        let chunk =
            |host: &Memory| cg_format::ChunkSource::lookup(host, section.at).unwrap_or_else(|e| match e {});
        assert_eq!(chunk(&live), chunk(expected), "{}", section.at);
    }
    // Cut off in the groups, what was before the cut is there.
    let cut = load(&good[..good.len() - 5], Unverifiable::Skip).expect("the rest is sound");
    assert_eq!(cut.lost_count(), lost);
}

/// A chunk of a block that was renamed twice, in a dimension that was renamed.
fn renamed() -> Snapshot {
    let mut catalog = catalog();
    let pack = cg_registry::PackManifest::from_json(
        r#"{"pack":"game","version":"2","namespaces":["game"],"blocks":[{"name":"game:slate"}],"dimensions":["game:ring"],
            "renamed":[{"list":"blocks","old":"game:stone","new":"game:rock"},
                {"list":"blocks","old":"game:rock","new":"game:slate"},
                {"list":"dimensions","old":"game:arena","new":"game:ring"}]}"#,
    );
    let plan = cg_registry::reconcile(&catalog, &[pack.expect("sound")], &cg_registry::Policy::default());
    plan.apply(&mut catalog).expect("is accepted");
    let at = cg_format::ChunkAt::new(
        catalog.dimension("game:ring").expect("renamed"),
        cg_format::ChunkPos::constant(0, 0, 0),
    );
    let stone = catalog.block_id("game:slate").expect("renamed");
    let mut host = Memory::new(&catalog);
    host.insert(at, cg_format::chunk::Chunk::filled(stone, &catalog.current_schema()).expect("known"));
    let area =
        cg_format::BlockBox::new(cg_format::BlockPos::new(0, 0, 0), cg_format::BlockPos::new(15, 15, 15));
    let region = cg_snapshot::Region::new(at.dimension, area);
    let captured =
        cg_snapshot::capture(&host, &catalog, region, &cg_snapshot::CaptureOptions::named("renamed"))
            .expect("captured");
    let names: Vec<String> = captured.names().aliases.iter().map(|it| format!("{it:?}")).collect();
    assert_eq!(captured.info().dimension.as_str(), "game:ring");
    expect_test::expect![[r#"
        [
            "((Blocks, 1), [Name(\"game:rock\"), Name(\"game:stone\")])",
            "((Dimensions, 0), [Name(\"game:arena\")])",
        ]
    "#]]
    .assert_debug_eq(&names);
    captured
}

/// Formats the content of a golden as text.
fn text(snapshot: &Snapshot) -> String {
    let mut out = format!("{:#?}\n", snapshot.info());
    for (id, name) in snapshot.names().blocks() {
        writeln!(out, "block {} {name}", id.get()).unwrap();
    }
    for (section, place) in snapshot.sections() {
        match place {
            Place::Kept(kept) => {
                let chunk = snapshot.decode(section.at, kept).expect("sound");
                writeln!(out, "{} {:#010x} {chunk:?}", section.at, kept.checksum()).unwrap();
            }
            other => writeln!(out, "{} {other:?}", section.at).unwrap(),
        }
    }
    for (id, entity) in snapshot.entities() {
        writeln!(out, "{id} {entity:?}").unwrap();
    }
    out
}

#[test]
fn goldens_decode_to_their_text_and_encode_to_their_bytes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/golden/draft/snapshot");
    let catalog = catalog();
    let nothing =
        cg_format::BlockBox::new(cg_format::BlockPos::new(-1, 0, 0), cg_format::BlockPos::new(0, 0, 0));
    let nothing = captured(&Memory::new(&catalog), nothing);
    let plain = FileOptions { codec: Codec::None };
    for (name, snapshot, options) in [
        ("nothing", &nothing, plain),
        ("yard", &yard(), plain),
        ("yard_lz4", &yard(), FileOptions::default()),
        ("renamed", &renamed(), plain),
    ] {
        let (bin, txt) = (folder.join(format!("{name}.bin")), folder.join(format!("{name}.txt")));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&bin, snapshot.to_bytes(&options).unwrap()).unwrap();
            std::fs::write(&txt, text(snapshot)).unwrap();
        }
        let golden = std::fs::read(&bin).unwrap_or_else(|error| panic!("{}: {error}", bin.display()));
        let (_, read) = explain(&golden, Limits::default());
        let read = read.expect("sound");
        assert_eq!(text(&read), std::fs::read_to_string(&txt).unwrap(), "{name}");
        assert_eq!(read.to_bytes(&options).unwrap(), golden, "{name}");
        assert_eq!(&read, snapshot, "{name}");
    }
}
