//! What holds for any bytes that are taken for a cluster: in the seed form, and as directory and groups of a row whose
//! checksums are right.
//!
//! The first byte chooses tier and codec of the row.

use cg_format::cluster::{ClusterBuilder, ClusterView, Slot, StoredCluster, trace, trace_seed};
use cg_format::frame::{Codec, LEN_BYTES};
use cg_format::{ClusterTier, Limits, Space};

const KEY: &[u8] = b"key";
const BUDGET_BYTES: u64 = 16 << 20;

/// Opens bytes in both forms and says whether one of them is a cluster.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let is_seed = seed_form(bytes);
    let Some((choice, payload)) = bytes.split_first() else { return is_seed };
    let tier = if choice & 1 == 0 { ClusterTier::L1 } else { ClusterTier::L2 };
    let codec = Codec::ALL[usize::from(choice >> 1) % Codec::ALL.len()];
    stored_form(tier, &row(tier, codec, payload.to_vec())) || is_seed
}

fn seed_form(bytes: &[u8]) -> bool {
    let view = ClusterView::new(bytes);
    assert_eq!(trace_seed(bytes).1, view.map(|_| ()));
    let Ok(view) = view else { return false };
    for (slot, value) in view.chunks() {
        assert_eq!(view.chunk(slot), Some(value));
    }
    assert_eq!(
        ClusterView::encode(view.tier(), view.chunks()).as_deref(),
        Some(bytes),
        "one form for one cluster"
    );
    true
}

fn stored_form(tier: ClusterTier, row: &[u8]) -> bool {
    let opened = StoredCluster::open(tier, KEY, row);
    let (_, traced) = trace(tier, KEY, row);
    assert!(opened.is_ok() || traced.is_err());
    let Ok(cluster) = opened else { return false };
    assert_eq!(cluster.slots().count(), cluster.present_count());
    for group in cluster.groups() {
        if let Ok(group) = cluster.group(group, &mut Limits::new(BUDGET_BYTES)) {
            for (slot, value) in group.expect("it was listed").chunks() {
                assert!(!value.is_empty() && cluster.chunk_info(slot).is_some());
            }
        }
    }
    let Ok(seed) = cluster.to_seed_bytes(&mut Limits::new(BUDGET_BYTES)) else { return true };
    let view = ClusterView::new(&seed).expect("what is written is read");
    let info = |slot: Slot| cluster.chunk_info(slot).expect("the seed form has the same chunks");
    let draft = ClusterBuilder::from_seed(&view, info).finish(&mut Limits::default());
    let again =
        draft.expect("it was stored before").expect("it has chunks").seal(Space::of_cluster(tier), KEY, 1);
    let again = StoredCluster::open(tier, KEY, &again).expect("what is written is read");
    assert!(again.slots().eq(cluster.slots()));
    assert_eq!(again.to_seed_bytes(&mut Limits::default()), Ok(seed));
    true
}

/// A row of directory and groups, with every checksum made right.
fn row(tier: ClusterTier, codec: Codec, mut payload: Vec<u8>) -> Vec<u8> {
    let entries_len = tier.group_count() * 24;
    if payload.len() >= 8 + entries_len {
        payload[..2].copy_from_slice(&[1, tier.scale_level()]);
        let present =
            u32::from_le_bytes(payload[4..8].try_into().unwrap()) as usize % (tier.slot_count() + 1);
        let directory_len = 8 + entries_len + present * 12;
        if let Some((directory, groups)) = payload.split_at_mut_checked(directory_len) {
            for entry in directory[8..8 + entries_len].chunks_exact_mut(24) {
                let field = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap()) as usize;
                let (start, len) = (field(8), field(12));
                if let Some(stored) = groups.get(start..start.saturating_add(len)).filter(|_| len > 0) {
                    let sum = crc32c::crc32c(stored);
                    entry[20..].copy_from_slice(&sum.to_le_bytes());
                }
            }
            return framed(tier, codec, &payload, directory_len);
        }
    }
    let len = payload.len();
    framed(tier, codec, &payload, len)
}

fn framed(tier: ClusterTier, codec: Codec, payload: &[u8], directory_len: usize) -> Vec<u8> {
    let mut header = [0; LEN_BYTES];
    header[..3].copy_from_slice(&[1, 2, codec.byte()]);
    header[8] = 1;
    let sum = crc32c::crc32c(&payload[..directory_len]);
    let sum = crc32c::crc32c_append(sum, &[Space::of_cluster(tier).byte()]);
    let sum = crc32c::crc32c_append(crc32c::crc32c_append(sum, KEY), &header);
    header[4..8].copy_from_slice(&sum.to_le_bytes());
    [&header, payload].concat()
}
