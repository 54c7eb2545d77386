//! Saves made with every awkward shape that no shared world has.

use cg_anvil::column::{Blocks, Column, EntityColumn, Place, Section, cell};
use cg_anvil::region::{ColumnPos, ReadLimits, RegionPos, RegionWriter};
use cg_anvil::{EntityRecord, Region, SlotError, entity, nbt, write};
use expect_test::expect;
use proptest::prelude::*;
use tempfile::tempdir;

use crate::maker::{self, Stored, block_entity, patterned};
use crate::worlds;

const CHEST: &str = "minecraft:chest[facing=north,type=single,waterlogged=false]";

fn bytes(column: &Column) -> Vec<u8> {
    write::column(column).expect("a column of the game's form")
}

#[test]
fn every_compression_gives_the_same_column() {
    let dir = tempdir().expect("a directory");
    let columns: Vec<_> = (0..5).map(|x| maker::column(x, 0, [patterned(0, 20)])).collect();
    let payloads = [
        (1, maker::gzip(&bytes(&columns[0]))),
        (2, cg_anvil::region::compress(&bytes(&columns[1]))),
        (3, bytes(&columns[2])),
        (4, maker::lz4_blocks(&bytes(&columns[3]), 64 << 10)),
        (4, maker::lz4_blocks(&bytes(&columns[4]), 100)),
    ];
    let slots: Vec<_> = payloads
        .into_iter()
        .zip(0..)
        .map(|((compression, payload), x)| Stored { slot: ColumnPos::new(x, 0).slot(), compression, payload })
        .collect();
    let reading = worlds::read(&maker::region(&dir.path().join("r.0.0.mca"), &slots));
    assert!(reading.lost.is_empty(), "{:?}", reading.lost);
    let found: Vec<_> = reading.columns.into_iter().map(|(_, column)| column).collect();
    assert_eq!(found, columns);
    assert_eq!(serde_json::json!(reading.compression), serde_json::json!({"1": 1, "2": 1, "3": 1, "4": 2}));
}

#[test]
fn a_column_too_large_for_its_region_lies_beside_it() {
    let dir = tempdir().expect("a directory");
    let pos = RegionPos::new(-1, 2).expect("in range");
    let mut large = maker::column(-1, 64, [patterned(3, 300)]);
    // Noise does not compress: more than 255 sectors of it.
    let mut noise = 1u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (noise >> 56) as u8
    })
    .take(1_100_000)
    .collect();
    let mut book = block_entity("minecraft:lectern", [-1, 48, 1024]);
    book.nbt = nbt::payload(|out| {
        out.raw_fields(&book.nbt[..book.nbt.len() - 1]);
        out.byte_array("pages", &noise);
    });
    large.block_entities.push(book);
    let small = maker::column(-2, 64, [patterned(0, 2)]);

    let mut writer = RegionWriter::create(dir.path(), pos).expect("a file");
    for column in [&large, &small] {
        writer.put(column.pos.slot(), &bytes(column), 1).expect("written");
    }
    let path = writer.finish().expect("finished");
    let external = dir.path().join("c.-1.64.mcc");
    assert!(external.is_file());
    assert_eq!(std::fs::metadata(&path).expect("there").len(), 8192 + 2 * 4096);

    let reading = worlds::read(&path);
    let found: Vec<_> = reading.columns.into_iter().map(|(_, column)| column).collect();
    assert!(found == [small.clone(), large], "both columns come back");

    std::fs::remove_file(external).expect("removed");
    let reading = worlds::read(&path);
    assert_eq!(reading.columns.len(), 1);
    let reasons: Vec<_> = reading.lost.values().map(ToString::to_string).collect();
    assert_eq!(reasons, ["the column lies in c.-1.64.mcc, which is missing"]);
}

#[test]
fn sections_reach_as_low_and_high_as_a_save_can_say() {
    let dir = tempdir().expect("a directory");
    let tall = maker::column(0, 0, (-128..=127).map(|y| patterned(y, if y % 2 == 0 { 1 } else { 3 })));
    let slots = [maker::zlib((0, 0), &bytes(&tall))];
    let reading = worlds::read(&maker::region(&dir.path().join("r.0.0.mca"), &slots));
    assert_eq!(reading.columns[0].1, tall);
    assert_eq!(tall.state(0, -2048, 0).map(|state| &**state), Some("test:block[n=0]"));
    assert_eq!(tall.state(1, 2047, 0).map(|state| &**state), Some("test:block[n=1]"));

    let beyond = maker::column(0, 0, [Section::new(128)]);
    let error = write::column(&beyond).expect_err("no byte says 128");
    expect!["section 128 lies outside the -128 to 127 that a save can hold"].assert_eq(&error.to_string());
}

#[test]
fn every_width_of_index_comes_back_in_both_packings() {
    for data_version in [1976, 2566, maker::DATA_VERSION] {
        for states in [1, 2, 16, 17, 32, 33, 64, 65, 128, 129, 256, 257, 512, 513, 1025, 2049, 4096] {
            let column = Column { data_version, ..maker::column(1, 1, [patterned(0, states)]) };
            let read = cg_anvil::Decoder::default().decode(&bytes(&column)).expect("a column");
            // 1.14 and 1.16 store indices even for one state, which say nothing.
            assert!(read == cg_anvil::Payload::Column(column), "{data_version}, {states} states");
        }
    }
}

#[test]
fn block_entities_are_told_apart_by_their_place() {
    let dir = tempdir().expect("a directory");
    let mut column = maker::column(
        2,
        -1,
        [
            Section { blocks: Some(Blocks::uniform(CHEST)), ..Section::new(0) },
            Section { blocks: Some(Blocks::uniform("minecraft:stone")), ..Section::new(1) },
            Section { sky_light: Some(vec![255; 2048]), ..Section::new(2) },
        ],
    );
    column.block_entities = vec![
        block_entity("minecraft:chest", [33, 1, -2]),
        // Stale: its block is stone now.
        block_entity("minecraft:furnace", [34, 20, -16]),
        // A second one at the first one's position.
        block_entity("minecraft:chest", [33, 1, -2]),
        // Above the blocks, in another column, and nowhere.
        block_entity("minecraft:bell", [33, 40, -2]),
        block_entity("minecraft:bell", [0, 1, 0]),
        cg_anvil::column::BlockEntity { pos: None, kind: String::new(), nbt: vec![0] },
    ];
    let slots = [maker::zlib((2, -1), &bytes(&column))];
    let reading = worlds::read(&maker::region(&dir.path().join("r.0.-1.mca"), &slots));
    let found = &reading.columns[0].1;
    assert_eq!(found.block_entities, column.block_entities, "every one arrives, byte for byte");
    let first = cell(33, 1, -2);
    assert_eq!(
        found.block_entity_places(),
        [
            Place::Cell { section: 0, cell: first },
            Place::Cell { section: 1, cell: cell(34, 20, -16) },
            Place::Doubled { section: 0, cell: first },
            Place::NoSection,
            Place::Elsewhere,
            Place::Elsewhere,
        ]
    );
    // A chest without a block entity is a cell of that state that no place names.
    assert_eq!(found.state(40, 0, -9).map(|state| &**state), Some(CHEST));
}

#[test]
fn riders_three_deep_and_a_uuid_met_twice_are_records_of_their_own() {
    let dir = tempdir().expect("a directory");
    let baby = maker::entity("minecraft:zombie", [0, 0, 0, 4], [1.0, 66.0, 1.0], &[]);
    let twin = maker::entity("minecraft:bat", [0, 0, 0, 4], [1.0, 67.0, 1.0], &[]);
    let chicken = maker::entity("minecraft:chicken", [0, 0, 0, 3], [1.0, 65.0, 1.0], &[baby]);
    let boat = maker::entity("minecraft:boat", [0, 0, 0, 2], [1.0, 64.5, 1.0], &[chicken, twin]);
    let cart = maker::entity("minecraft:minecart", [-1, 0, 0, 1], [1.5, 3000.25, 1.5], &[boat]);
    let entities = EntityColumn {
        pos: ColumnPos::new(0, 0),
        data_version: maker::DATA_VERSION,
        stated: None,
        entities: vec![cart.clone()],
        list: Some(nbt::Tag::End),
        left: None,
    };
    let slots = [maker::zlib((0, 0), &write::entities(&entities).expect("entities"))];
    let reading = worlds::read(&maker::region(&dir.path().join("r.0.0.mca"), &slots));
    assert!(reading.columns.is_empty(), "entities make no column");
    assert_eq!(reading.entities, [(ColumnPos::new(0, 0).slot(), entities)]);

    let records =
        entity::split(&reading.entities[0].1.entities[0], &nbt::Limits::default()).expect("an entity");
    let seen: Vec<_> = records
        .iter()
        .map(|EntityRecord { uuid, kind, pos, riders, .. }| {
            let riders = riders.as_ref().map_or(&[][..], |riders| &riders.ids);
            format!("{} {kind} {:?} {riders:?}", uuid.expect("a UUID"), pos.expect("a position"))
        })
        .collect();
    expect![[r#"
        ffffffff-0000-0000-0000-000000000001 minecraft:minecart [1.5, 3000.25, 1.5] [1]
        00000000-0000-0000-0000-000000000002 minecraft:boat [1.0, 64.5, 1.0] [2, 4]
        00000000-0000-0000-0000-000000000003 minecraft:chicken [1.0, 65.0, 1.0] [3]
        00000000-0000-0000-0000-000000000004 minecraft:zombie [1.0, 66.0, 1.0] []
        00000000-0000-0000-0000-000000000004 minecraft:bat [1.0, 67.0, 1.0] []"#]]
    .assert_eq(&seen.join("\n"));
    assert_eq!(entity::join(&records[0], |&id| records.get(id)), Ok(cart));
}

#[test]
fn bombs_end_at_the_limit() {
    let dir = tempdir().expect("a directory");
    let zeros = vec![0; 64 << 20];
    let lz4 = maker::lz4_blocks(&zeros, 4 << 20);
    let slots = [
        maker::zlib((0, 0), &zeros),
        Stored { slot: ColumnPos::new(1, 0).slot(), compression: 4, payload: lz4 },
    ];
    let path = maker::region(&dir.path().join("r.0.0.mca"), &slots);
    let limits = ReadLimits { raw_bytes: 1 << 20, ..ReadLimits::default() };
    let mut region = Region::open(&path).expect("opens");
    for slot in region.slots().collect::<Vec<_>>() {
        let mut out = Vec::new();
        let error = region.read(slot, &limits, &mut out).expect_err("64 MiB");
        assert!(matches!(error, SlotError::TooLarge { limit_bytes: 1_048_576 }), "{error}");
        assert!(out.capacity() <= 4 << 20, "{} bytes were taken", out.capacity());
    }
    let limits = ReadLimits { stored_bytes: 100, ..ReadLimits::default() };
    let error =
        region.read(ColumnPos::new(0, 0).slot(), &limits, &mut Vec::new()).expect_err("more than 100 bytes");
    assert!(matches!(error, SlotError::TooLarge { limit_bytes: 100 }), "{error}");
}

/// Writes where slots begin into the header of a region file, in sectors.
#[expect(clippy::big_endian_bytes, reason = "region files are big-endian by their own definition")]
fn point(path: &std::path::Path, first_sectors: impl IntoIterator<Item = (u16, u32)>) {
    let mut bytes = std::fs::read(path).expect("readable");
    for (slot, sector) in first_sectors {
        let at = usize::from(slot) * 4;
        bytes[at..at + 4].copy_from_slice(&(sector << 8 | 1).to_be_bytes());
    }
    std::fs::write(path, bytes).expect("written");
}

#[test]
fn bytes_that_many_slots_share_are_not_read_for_each() {
    let dir = tempdir().expect("a directory");
    let column = |x| bytes(&maker::column(x, 0, [patterned(0, 20)]));
    let path = maker::region(
        &dir.path().join("r.0.0.mca"),
        &[maker::zlib((0, 0), &column(0)), maker::zlib((9, 0), &column(9))],
    );
    // Two slots of one column are told apart by what the column says.
    point(&path, [(1, 2)]);
    let reading = worlds::read(&path);
    assert_eq!((reading.columns.len(), reading.lost.len(), reading.misplaced.len()), (3, 0, 1));
    point(&path, (1..1024).filter(|slot| *slot != 9).map(|slot| (slot, 2)));
    let reading = worlds::read(&path);
    assert_eq!(reading.columns.iter().map(|(_, column)| column.pos.x).collect::<Vec<_>>(), [9]);
    let reasons: std::collections::BTreeSet<_> = reading.lost.values().map(ToString::to_string).collect();
    assert_eq!(reading.lost.len(), 1023);
    assert_eq!(Vec::from_iter(reasons), ["1023 slots point at sector 2, where one belongs"]);
}

#[test]
fn a_slot_is_not_read_past_many_others() {
    let dir = tempdir().expect("a directory");
    let noise = (0..12_000_u32).map(|n| n.wrapping_mul(2_654_435_761) as u8 ^ (n >> 3) as u8);
    let long = maker::Stored { slot: ColumnPos::new(0, 0).slot(), compression: 3, payload: noise.collect() };
    let mut short = bytes(&maker::column(0, 0, [patterned(0, 2)]));
    short = cg_anvil::region::compress(&short);
    short.resize(12_000, 7);
    let short = maker::Stored { slot: ColumnPos::new(0, 0).slot(), compression: 2, payload: short };
    for (stored, reason) in [
        (long, Some("its 12000 bytes overlap more than three other slots, the fourth after 4091 bytes")),
        (short, None),
    ] {
        let path = maker::region(&dir.path().join("r.0.0.mca"), &[stored]);
        let read = || {
            let mut region = Region::open(&path).expect("opens");
            region.read(ColumnPos::new(0, 0).slot(), &ReadLimits::default(), &mut Vec::new())
        };
        for others in 1..=5 {
            point(&path, [(others, 3)]);
            let found = read().err().map(|error| error.to_string());
            assert_eq!(found.as_deref(), reason.filter(|_| others > 3), "{others} others");
        }
    }
}

/// A small region of every compression, to be damaged.
fn sample(dir: &std::path::Path) -> Vec<u8> {
    let column = |x| bytes(&maker::column(x, 0, [patterned(0, 5)]));
    let slots = [
        maker::zlib((0, 0), &column(0)),
        Stored { slot: ColumnPos::new(1, 0).slot(), compression: 3, payload: column(1) },
        Stored {
            slot: ColumnPos::new(2, 0).slot(),
            compression: 4,
            payload: maker::lz4_blocks(&column(2), 700),
        },
    ];
    std::fs::read(maker::region(&dir.join("r.0.0.mca"), &slots)).expect("readable")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn damage_never_panics_and_never_adds_a_column(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..8),
        keep in any::<prop::sample::Index>(),
    ) {
        let dir = tempdir().expect("a directory");
        let mut bytes = sample(dir.path());
        for (at, flip) in flips {
            // Half of the flips go to the entries and slots, where the bytes mean something.
            let at = at.index(bytes.len());
            let at = if flip % 2 == 0 { at } else { at % 16 };
            bytes[at] ^= flip;
        }
        bytes.truncate(keep.index(bytes.len() * 2).max(1));
        let path = dir.path().join("r.0.0.mca");
        std::fs::write(&path, &bytes).expect("written");
        let reading = worlds::read(&path);
        let columns = reading.columns.len() + reading.entities.len() + reading.other;
        let slots = Region::open(&path).expect("opens").slots().count();
        prop_assert_eq!(columns + reading.lost.len() + reading.refused.len(), slots);
    }
}
