//! Warm rows: what is written now, byte for byte, and rows of earlier directory versions.

use cg_format::ClusterPos;
use cg_format::cluster::{ClusterBuilder, Slot, StoredCluster, join_groups};
use cg_format::{Limits, frame::Codec};
use proptest::prelude::*;

use super::cold::{self, builder, check_holds, info, seal};
use super::pieces::older;
use super::{KEY, row, row_in, slot, tier};
use crate::naive::cluster::directory::{self, Entry};
use crate::naive::cluster::{self, Stored};
use crate::naive::{Dice, hex};

fn codec(byte: u8) -> Codec {
    Codec::from_byte(byte).expect("a codec")
}

/// The row of a builder, whole and put together group by group.
fn both_ways(mut builder: ClusterBuilder<'_>, with: u8) -> [Vec<u8>; 2] {
    builder.set_codec(codec(with));
    let mut limits = Limits::default();
    let whole = builder.finish(&mut limits).expect("a small cluster");
    let groups: Vec<_> = (0..tier(1).group_count() as u8)
        .map(|group| builder.encode_group(group, &mut limits).expect("a small group"))
        .collect();
    let joined = join_groups(tier(1), codec(with), &groups).expect("a small cluster");
    [whole, joined].map(|draft| seal(1, draft))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_same_slabs_give_the_same_bytes(seed: u64, codec in 0_u8..2) {
        let naive = cold::random(&mut Dice(seed), 1);
        let theirs = row(&naive, codec);
        for ours in both_ways(builder(&naive), codec) {
            prop_assert!(ours == theirs, "ours first\n{}\n{}", hex(&ours), hex(&theirs));
        }
        check_holds(&theirs, &naive);
    }

    #[test]
    fn slabs_with_zstandard_are_read(seed: u64) {
        let naive = cold::random(&mut Dice(seed), 1);
        for row in both_ways(builder(&naive), 2) {
            prop_assert_eq!((row[2], row[24]), (2, 3), "codec, directory version");
            check_holds(&row, &naive);
        }
    }

    /// Rebuilt with no change, and with chunks put and removed.
    #[test]
    fn a_row_of_any_version_becomes_that_of_now(seed: u64, version in 1_u8..=3, codec in 0_u8..2) {
        let mut dice = Dice(seed);
        let mut naive = cold::random(&mut dice, 1);
        let older = match version {
            3 => row_in(3, &naive, codec),
            _ => older(&naive, version, codec, codec > 0 && dice.below(2) == 0),
        };
        prop_assert_eq!(older[24], version);
        check_holds(&older, &naive);
        let stored = StoredCluster::open(tier(1), KEY, &older).expect("a right row");
        let theirs = row(&naive, codec);
        for ours in both_ways(ClusterBuilder::over(&stored), codec) {
            prop_assert!(ours == theirs, "no change, ours first\n{}\n{}", hex(&ours), hex(&theirs));
        }

        let mut builder = ClusterBuilder::over(&stored);
        for index in naive.chunks.keys().copied().collect::<Vec<_>>() {
            if dice.below(4) == 0 {
                builder.remove(slot(1, index));
                naive.chunks.remove(&index);
            }
        }
        for (index, chunk) in cold::random(&mut dice, 1).chunks {
            builder.put(slot(1, index), info(&chunk), chunk.value.clone());
            naive.chunks.insert(index, chunk);
        }
        let theirs = row(&naive, codec);
        for ours in both_ways(builder, codec) {
            prop_assert!(ours == theirs, "changed, ours first\n{}\n{}", hex(&ours), hex(&theirs));
        }
    }
}

#[test]
fn equal_slabs_are_stored_once() {
    let chunk = |x: u16, value: u8| cluster::Slot {
        version: 100 + u64::from(x),
        schema_generation: x.into(),
        value: vec![value; 300],
    };
    // Slabs 0, 2 and 3 are alike; 1 has the same chunk at another place.
    let chunks =
        [(7, chunk(0, 5)), (16 + 8, chunk(1, 5)), (32 + 7, chunk(2, 5)), (48 + 7, chunk(3, 5))].into();
    let naive = Stored { scale_level: 1, chunks };
    for codec in 0..=2 {
        for row in both_ways(builder(&naive), codec) {
            let entries = directory::decode(&row[24..], codec).expect("a right directory").entries;
            assert_eq!([entries[2], entries[3]], [entries[0]; 2]);
            assert_ne!(entries[1].offset, 0);
            check_holds(&row, &naive);
        }
    }
}

/// A chunk's group is its x from the cluster's corner, its place what remains; both are seen in the bytes.
#[test]
fn a_chunk_is_where_its_coordinates_say() {
    let pos = ClusterPos::new(tier(1), -1, 0, 2).expect("near the origin");
    let corner = pos.min_chunk();
    for slot in Slot::all(tier(1)) {
        let chunk = slot.chunk(pos).expect("a slot of the tier");
        let [x, y, z] = [chunk.x() - corner.x(), chunk.y() - corner.y(), chunk.z() - corner.z()];
        let value = cluster::Slot { version: 1, schema_generation: 1, value: b"chunk".to_vec() };
        let naive = Stored { scale_level: 1, chunks: [(slot.index(), value)].into() };
        let slab = (x as usize, (y * 4 + z) as u16);
        let whole = (0, (x * 16 + y * 4 + z) as u16);
        let [now, _] = both_ways(builder(&naive), 1);
        for (row, (group, place)) in [(now, slab), (row(&naive, 1), slab), (row_in(1, &naive, 1), whole)] {
            let entries = directory::decode(&row[24..], 1).expect("a right directory").entries;
            for (index, entry) in entries.iter().enumerate() {
                if index == group {
                    assert_eq!(entry.presence, 1 << place, "{chunk}");
                } else {
                    assert_eq!(*entry, Entry::default(), "{chunk}");
                }
            }
            let stored = StoredCluster::open(tier(1), KEY, &row).expect("a right row");
            assert_eq!(usize::from(stored.group_of(slot)), group, "{chunk}");
            let group =
                stored.group(group as u8, &mut Limits::default()).expect("a right group").expect("a chunk");
            let expected = (1, [(place, b"chunk".to_vec())].into());
            assert_eq!(cluster::decode(group.bytes()), Ok(expected), "{chunk}");
            check_holds(&row, &naive);
        }
    }
}
