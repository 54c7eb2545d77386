//! Keys against the naive ones.

use cg_format::key::{self, RecordLeaf, RecordPath};
use cg_format::{ChunkAt, ChunkPos, ClusterPos, ClusterTier, Dimension, RecordId, Space};
use proptest::prelude::*;

use crate::naive;

fn axis() -> impl Strategy<Value = i64> {
    prop_oneof![
        -3_i64..=3,
        ChunkPos::MIN..=ChunkPos::MAX,
        ChunkPos::MIN..=ChunkPos::MIN + 3,
        ChunkPos::MAX - 3..=ChunkPos::MAX
    ]
}

proptest! {
    #[test]
    fn keys_agree(dimension: u64, [x, y, z] in [axis(), axis(), axis()], seq: u64) {
        let at = ChunkAt::new(Dimension::new(dimension), ChunkPos::new(x, y, z).expect("inside the world"));
        prop_assert_eq!(key::chunk(at).to_vec(), naive::key::cube(dimension, [x, y, z]));
        prop_assert_eq!(key::delta(at, seq).to_vec(), naive::key::delta(dimension, [x, y, z], seq));
        let row = key::chunk(at);
        let set_aside = naive::key::quarantine(3, &row, seq);
        prop_assert_eq!(&key::quarantine(Space::ChunkL0, &row, seq), &set_aside);
        prop_assert_eq!(key::decode_quarantine(&set_aside), Ok((Space::ChunkL0, &row[..], seq)));
        prop_assert_eq!(key::opacity_tile(at).to_vec(), naive::key::opacity_tile(dimension, [x, y, z]));
        prop_assert_eq!(key::opacity_patch(at).to_vec(), naive::key::opacity_patch(dimension, [x, y, z]));
        for (tier, side) in [(ClusterTier::L1, 4), (ClusterTier::L2, 16)] {
            let scaled = [x, y, z].map(|axis| axis.div_euclid(side));
            let pos: ClusterPos = at.pos.cluster(tier);
            prop_assert_eq!(key::cluster(at.dimension, pos).to_vec(), naive::key::cube(dimension, scaled));
        }
    }

    #[test]
    fn keys_of_records_agree(
        dimension: u64, table in prop::array::uniform3(any::<i64>()), id: [u8; 16],
        numbers in prop::collection::vec(any::<u32>(), 1..=key::RECORD_MAX_LEVELS),
    ) {
        let path = numbers.iter().try_fold(RecordPath::EMPTY, |path, number| path.child(*number));
        let leaf = RecordLeaf { dimension: Dimension::new(dimension), table, path: path.expect("few levels") };
        let naive = naive::key::record(dimension, table, &numbers, id);
        prop_assert_eq!(key::record(&leaf, RecordId::from_bytes(id)), naive.clone());
        prop_assert_eq!(key::decode_record(&naive), Ok((leaf, RecordId::from_bytes(id))));
    }
}
