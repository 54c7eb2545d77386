//! Golden clusters: rows of both tiers, and the seed form.

use std::fmt::Write;
use std::path::PathBuf;

use cg_format::cluster::{
    ClusterBuilder, ClusterView, Slot, SlotInfo, StoredCluster, trace, trace_entries, trace_group, trace_seed,
};
use cg_format::frame::Codec;
use cg_format::schema::NoComponents;
use cg_format::wire::Span;
use cg_format::{BlockId, Chunk, ClusterPos, ClusterTier, Dimension, Limits, LocalPos, Space, key};

use crate::frame::{annotated, check_golden, fields};

/// A chunk value that says where it is; clusters do not look into it.
fn value(slot: Slot) -> Vec<u8> {
    format!("chunk {}{}", slot.index(), ".".repeat(usize::from(slot.index() % 7))).into_bytes()
}

fn info(slot: Slot) -> SlotInfo {
    SlotInfo { version: 1000 + u64::from(slot.index()), schema_generation: u32::from(slot.index() % 2) }
}

fn slots(tier: ClusterTier, indices: impl IntoIterator<Item = u16>) -> Vec<Slot> {
    indices.into_iter().map(|index| Slot::new(tier, index).unwrap()).collect()
}

fn check(name: &str, tier: ClusterTier, codec: Codec, slots: &[Slot]) {
    let mut builder = ClusterBuilder::new(tier);
    builder.set_codec(codec);
    for slot in slots {
        builder.put(*slot, info(*slot), value(*slot));
    }
    let draft = builder.finish(&mut Limits::default()).unwrap().unwrap();
    let (space, pos) = (Space::of_cluster(tier), ClusterPos::new(tier, -1, 0, 2).unwrap());
    let key = key::cluster(Dimension::new(1), pos);
    check_golden(&format!("cluster/{name}"), &draft.seal(space, &key, 5000), codec, |row| {
        describe(pos, &key, row)
    });
}

/// A row that an earlier draft wrote, which nothing writes any more.
fn check_old(name: &str, tier: ClusterTier, slots: &[Slot]) {
    let pos = ClusterPos::new(tier, -1, 0, 2).unwrap();
    let key = key::cluster(Dimension::new(1), pos);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/golden/draft/cluster").join(name);
    let row = std::fs::read(path.with_extension("bin")).unwrap();
    expect_test::expect_file![path.with_extension("txt")].assert_eq(&describe(pos, &key, &row));
    let cluster = StoredCluster::open(tier, &key, &row).unwrap();
    assert!(cluster.slots().eq(slots.iter().map(|slot| (*slot, info(*slot)))), "{name}");
}

/// The fields of a row, then its chunks.
fn describe(pos: ClusterPos, key: &[u8], row: &[u8]) -> String {
    let (tier, space) = (pos.tier(), Space::of_cluster(pos.tier()));
    let (spans, answer) = trace(tier, key, row);
    answer.unwrap();
    let mut text = annotated(space, key, row, &spans);
    if let Some((entries, spans)) = trace_entries(tier, key, row) {
        text += "-- entries, one after another, of groups with chunks and of chunks\n";
        let is_of_chunk = |span: &Span| span.field.starts_with("chunk");
        let of_group = |span: &Span| &entries[span.offset_bytes as usize / 24 * 24..][..24];
        let is_shown = |span: &Span| is_of_chunk(span) || of_group(span) != [0; 24];
        fields(&entries, &spans.into_iter().filter(is_shown).collect::<Vec<_>>(), &mut text);
    }
    text += "-- value\n";
    let cluster = StoredCluster::open(tier, key, row).unwrap();
    for group in cluster.groups() {
        let group = cluster.group(group, &mut Limits::default()).unwrap().unwrap();
        for (slot, value) in group.chunks() {
            let chunk = slot.chunk(pos).unwrap();
            let SlotInfo { version, schema_generation } = cluster.chunk_info(slot).unwrap();
            let value = value.escape_ascii();
            writeln!(text, "{chunk}: version {version}, generation {schema_generation}, {value}").unwrap();
        }
    }
    text
}

#[test]
fn golden_clusters_are_read_and_written() {
    let (l1, l2) = (ClusterTier::L1, ClusterTier::L2);
    check("slabs_l1_three_chunks", l1, Codec::None, &slots(l1, [1, 6, 62]));
    check("slabs_l1_one_chunk", l1, Codec::Lz4, &slots(l1, [63]));
    check("slabs_l1_full", l1, Codec::Lz4, &slots(l1, 0..64));
    check("short_l2_two_groups", l2, Codec::None, &slots(l2, [0, 1, 4095]));
    check("short_l2_three_groups", l2, Codec::Zstd, &slots(l2, [0, 1, 16, 2000, 4094, 4095]));
}

#[test]
fn golden_clusters_of_earlier_drafts_are_read() {
    let (l1, l2) = (ClusterTier::L1, ClusterTier::L2);
    // Warm clusters had one group.
    check_old("l1_three_chunks", l1, &slots(l1, [1, 6, 62]));
    check_old("l1_one_chunk", l1, &slots(l1, [63]));
    check_old("l1_full", l1, &slots(l1, 0..64));
    // Groups of cold clusters were whole cubes.
    check_old("l2_two_groups", l2, &slots(l2, [0, 1, 4095]));
    check_old("compact_l2_three_groups", l2, &slots(l2, [0, 1, 16, 2000, 4094, 4095]));
    // Planes of equal bytes were stored in full.
    check_old("halves_l2_two_groups", l2, &slots(l2, [0, 1, 4095]));
    check_old("halves_l2_three_groups", l2, &slots(l2, [0, 1, 16, 2000, 4094, 4095]));
    // Their directories were not compressed.
    check_old("l2_three_groups", l2, &slots(l2, [0, 1, 16, 2000, 4094, 4095]));
}

#[test]
fn the_golden_seed_form_is_read_and_written() {
    let tier = ClusterTier::L1;
    let chunks: Vec<_> = slots(tier, [1, 6, 62]).into_iter().map(|slot| (slot, value(slot))).collect();
    let seed = ClusterView::encode(tier, chunks.iter().map(|(slot, value)| (*slot, &value[..]))).unwrap();
    check_golden("cluster/seed_l1_three_chunks", &seed, Codec::None, |seed| {
        let (spans, answer) = trace_seed(seed);
        answer.unwrap();
        let mut text = String::new();
        fields(seed, &spans, &mut text);
        text += "-- value\n";
        for (slot, value) in ClusterView::new(seed).unwrap().chunks() {
            writeln!(text, "{slot:?}: {}", value.escape_ascii()).unwrap();
        }
        text
    });
}

/// A chunk of blocks 7 below blocks 9.
fn ground(height: u8) -> Vec<u8> {
    let mut chunk = Chunk::filled(BlockId::new(9), &NoComponents).unwrap();
    for cell in LocalPos::all().filter(|cell| cell.y() < height) {
        chunk.set_block(cell, BlockId::new(7), &NoComponents).unwrap();
    }
    chunk.to_bytes()
}

#[test]
fn the_golden_group_by_field_is_read_and_written() {
    let tier = ClusterTier::L2;
    let mut builder = ClusterBuilder::new(tier);
    let chunks = slots(tier, [0, 1, 16]).into_iter().zip([ground(0), ground(3), ground(16)]);
    for (slot, value) in chunks.clone() {
        builder.put(slot, info(slot), value);
    }
    let row = builder.finish(&mut Limits::default()).unwrap().unwrap().seal(Space::ClusterL2, b"key", 5000);
    let cluster = StoredCluster::open(tier, b"key", &row).unwrap();
    let group = cluster.group(0, &mut Limits::default()).unwrap().unwrap();
    assert!(group.chunks().map(|(slot, value)| (slot, value.into_owned())).eq(chunks));
    check_golden("cluster/fields_three_chunks", group.bytes(), Codec::None, |bytes| {
        let (spans, answer) = trace_group(bytes);
        answer.unwrap();
        let mut text = String::new();
        fields(bytes, &spans, &mut text);
        text
    });
}
