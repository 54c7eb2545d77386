//! Laws for any bytes that are taken for a key of each kind: what decodes encodes to the same.

use cg_format::{ChunkAt, ClusterTier, key};

/// Decodes bytes as every kind of key and says whether they are one.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let mut is_key = false;
    if let Ok(at) = key::decode_chunk(bytes) {
        is_key = true;
        assert_eq!(key::chunk(at), bytes);
    }
    for tier in [ClusterTier::L1, ClusterTier::L2] {
        if let Ok((dimension, pos)) = key::decode_cluster(tier, bytes) {
            is_key = true;
            assert_eq!(key::cluster(dimension, pos), bytes);
            let children = key::chunks_of_cluster(dimension, pos);
            for pos in [pos.min_chunk(), pos.max_chunk()] {
                assert!(children.contains(&key::chunk(ChunkAt { dimension, pos })));
            }
        }
    }
    if let Ok(id) = key::decode_entity(bytes) {
        is_key = true;
        assert_eq!(key::entity(id), bytes);
    }
    if let Ok(at) = key::decode_opacity_patch(bytes) {
        is_key = true;
        assert_eq!(key::opacity_patch(at), bytes);
        assert!(bytes.starts_with(&key::opacity_tile(at)));
    }
    if let Ok((at, commit_seq)) = key::decode_delta(bytes) {
        is_key = true;
        assert_eq!(key::delta(at, commit_seq), bytes);
        assert!(bytes.starts_with(&key::chunk(at)));
    }
    if let Ok((dimension, pos)) = key::decode_change_mark(bytes) {
        is_key = true;
        assert_eq!(key::change_mark(dimension, pos), bytes);
    }
    if let Ok((dimension, pos)) = key::decode_heat(bytes) {
        is_key = true;
        assert_eq!(key::heat(ChunkAt { dimension, pos: pos.min_chunk() }), bytes);
    }
    if let Ok((dimension, pos)) = key::decode_cold_heat(bytes) {
        is_key = true;
        assert_eq!(key::cold_heat(ChunkAt { dimension, pos: pos.min_chunk() }), bytes);
    }
    if let Ok(number) = key::decode_intent(bytes) {
        is_key = true;
        assert_eq!(key::intent(number), bytes);
    }
    if let Ok((number, part)) = key::decode_staged(bytes) {
        is_key = true;
        assert_eq!(key::staged(number, part), bytes);
    }
    if let Ok((space, row, commit_seq)) = key::decode_quarantine(bytes) {
        is_key = true;
        assert_eq!(key::quarantine(space, row, commit_seq), bytes);
        assert!(key::quarantine_copies(space, row).contains(&bytes.to_vec()));
    }
    if let Ok((leaf, id)) = key::decode_record(bytes) {
        is_key = true;
        assert_eq!(key::record(&leaf, id), bytes);
        assert!(bytes.starts_with(&key::record_leaf(&leaf)));
    }
    if let Ok(id) = key::decode_record_place(bytes) {
        is_key = true;
        assert_eq!(key::record_place(id), bytes);
    }
    // A tile's key says nothing of the world's bounds, so it is only decoded.
    key::decode_opacity_tile(bytes).is_ok() || is_key
}
