//! The decoder of chunks against random bytes.

use super::Chunk;
use crate::BlockId;
use crate::schema::NoComponents;
use proptest::prelude::*;

proptest! {
    /// Random bytes rarely have the right version, so a chunk with one changed byte is read too.
    #[test]
    fn any_bytes_are_a_chunk_or_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        (place, byte) in any::<(prop::sample::Index, u8)>(),
    ) {
        drop(Chunk::decode(&bytes, &NoComponents));
        let mut changed = Chunk::filled(BlockId::new(1), &NoComponents).unwrap().to_bytes();
        let place = place.index(changed.len());
        changed[place] = byte;
        if let Ok(chunk) = Chunk::decode(&changed, &NoComponents) {
            prop_assert_eq!(Chunk::decode(&chunk.to_bytes(), &NoComponents), Ok(chunk));
        }
    }
}
