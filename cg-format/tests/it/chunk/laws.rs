//! What holds for every chunk and for every input.

use cg_format::BlockId;
use cg_format::chunk::{Chunk, ChunkView};
use proptest::prelude::*;

use super::model::{Edit, Naive, TestSchema, block, edit};

fn edited(first: BlockId, edits: &[Edit]) -> (Naive, Chunk) {
    let mut naive = Naive::filled(first);
    let mut chunk = Chunk::filled(first, &TestSchema).unwrap();
    for edit in edits {
        naive.apply(&mut chunk, edit);
    }
    (naive, chunk)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn edits_do_what_they_do_to_a_naive_chunk(first in block(), edits in prop::collection::vec(edit(), 0..60)) {
        let (naive, chunk) = edited(first, &edits);
        prop_assert_eq!(chunk.validate(&TestSchema), Ok(()));
        let bytes = chunk.to_bytes();
        let view = ChunkView::new(&bytes, &TestSchema).unwrap();
        naive.check(&chunk, &view);

        let decoded = Chunk::decode(&bytes, &TestSchema).unwrap();
        prop_assert_eq!(decoded.validate(&TestSchema), Ok(()));
        naive.check(&decoded, &view);
        prop_assert_eq!(&decoded, &chunk);
        prop_assert_eq!(decoded.to_bytes(), bytes);
    }

    #[test]
    fn equal_content_gives_equal_bytes(first in block(), edits in prop::collection::vec(edit(), 0..60)) {
        let (naive, chunk) = edited(first, &edits);
        let other = naive.rebuild();
        prop_assert_eq!(&other, &chunk);
        prop_assert_eq!(other.to_bytes(), chunk.to_bytes());
    }
}
