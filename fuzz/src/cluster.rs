//! Laws for any bytes that are taken for a cluster: in the seed form, and as directory and groups of a row whose
//! checksums are right.
//!
//! The first byte chooses tier and codec of the row, and whether it has the groups of now or, as in earlier drafts,
//! groups of 64 chunks. What is a group by field is read in a cold row, too.

use cg_format::cluster::{ClusterBuilder, ClusterView, Slot, StoredCluster, trace, trace_group, trace_seed};
use cg_format::codec::{Effort, compress};
use cg_format::frame::{Codec, LEN_BYTES};
use cg_format::{ClusterTier, Limits, Space};

const KEY: &[u8] = b"key";
const BUDGET_BYTES: u64 = 16 << 20;
/// Longer groups are not compressed with much effort.
const MAX_ENCODED_BYTES: usize = 64 << 10;

/// Opens bytes in both forms and says whether one of them is a cluster.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let is_seed = seed_form(bytes) || by_field(bytes);
    let Some((choice, payload)) = bytes.split_first() else { return is_seed };
    let tier = if choice & 1 == 0 { ClusterTier::L1 } else { ClusterTier::L2 };
    let codec = Codec::ALL[usize::from(choice >> 1 & 0x3f) % Codec::ALL.len()];
    let version = match tier {
        _ if choice & 0x80 == 0 => 1,
        ClusterTier::L1 => 3,
        ClusterTier::L2 if choice & 0x40 == 0 => 4,
        ClusterTier::L2 => 5,
    };
    stored_form(tier, &row(tier, version, codec, payload.to_vec())) || is_seed
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

/// A group by field, as the only one of a cold row.
fn by_field(bytes: &[u8]) -> bool {
    let Some(presence) = bytes.get(8..16).filter(|_| trace_group(bytes).1.is_ok() && bytes[0] == 2) else {
        return false;
    };
    let (tier, codec) = (ClusterTier::L2, Codec::Zstd);
    let mut stored = Vec::new();
    compress(codec, Effort::Fast, bytes, &mut stored);
    if stored.len() >= bytes.len() {
        return false;
    }
    let stored_len = stored.len();
    let places = u64::from_le_bytes(presence.try_into().unwrap());
    let present = places.count_ones();
    // Half a cube, or a cube of an earlier draft.
    let is_half = places >> 32 == 0;
    let (version, group_count) = if is_half { (5, 128) } else { (1, 64) };
    let mut payload = vec![version, 2, 0, 0];
    payload.extend(present.to_le_bytes());
    payload.extend(presence);
    payload.extend(
        [0, stored.len() as u32, bytes.len() as u32, crc32c::crc32c(&stored)].map(u32::to_le_bytes).concat(),
    );
    payload.resize(8 + group_count * 24 + present as usize * 12, 0);
    let mut directory = directory_of(version, group_count * 24, &payload);
    let directory_len = directory.len();
    directory.extend(stored);
    let row = framed(tier, codec, &directory, directory_len);
    // A group that is shorter than the header of the seed form is refused.
    let is_long = bytes.len() >= 521 + present as usize;
    assert_eq!(stored_form(tier, &row), is_long);
    // What hardly shrinks may not shrink with the codec's other effort.
    if is_half && is_long && bytes.len() < MAX_ENCODED_BYTES && stored_len + 64 < bytes.len() {
        let cluster = StoredCluster::open(tier, KEY, &row).expect("it was read above");
        let again = ClusterBuilder::over(&cluster).set_codec(Codec::None).finish(&mut Limits::default());
        let again = again.expect("it is small").expect("it has chunks").seal(Space::ClusterL2, KEY, 1);
        let again = StoredCluster::open(tier, KEY, &again).expect("what is written is read");
        let again = ClusterBuilder::over(&again).set_codec(codec).finish(&mut Limits::default());
        let again = again.expect("it is small").expect("it has chunks").seal(Space::ClusterL2, KEY, 1);
        let again = StoredCluster::open(tier, KEY, &again).expect("what is written is read");
        let group = again.group(0, &mut Limits::default()).expect("what is written is read");
        assert_eq!(group.expect("it has chunks").bytes(), bytes, "one form for one group");
    }
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
    let merged = ClusterBuilder::over(&cluster).finish(&mut Limits::default());
    let merged = merged.expect("its groups were read").expect("it has chunks");
    let merged = merged.seal(Space::of_cluster(tier), KEY, 1);
    let merged = StoredCluster::open(tier, KEY, &merged).expect("what is written is read");
    assert!(merged.slots().eq(cluster.slots()));
    assert_eq!(merged.to_seed_bytes(&mut Limits::default()).as_ref(), Ok(&seed));
    let view = ClusterView::new(&seed).expect("what is written is read");
    let info = |slot: Slot| cluster.chunk_info(slot).expect("the seed form has the same chunks");
    let mut builder = ClusterBuilder::new(tier);
    for (slot, value) in view.chunks() {
        builder.put(slot, info(slot), value);
    }
    let draft = builder.finish(&mut Limits::default());
    let again =
        draft.expect("it was stored before").expect("it has chunks").seal(Space::of_cluster(tier), KEY, 1);
    let again = StoredCluster::open(tier, KEY, &again).expect("what is written is read");
    assert!(again.slots().eq(cluster.slots()));
    assert_eq!(again.to_seed_bytes(&mut Limits::default()), Ok(seed));
    true
}

/// A row of directory and groups, with every checksum made right.
fn row(tier: ClusterTier, version: u8, codec: Codec, mut payload: Vec<u8>) -> Vec<u8> {
    let group_slots = match version {
        3 => 16,
        4 | 5 => 32,
        _ => 64,
    };
    let entries_len = tier.slot_count() / group_slots * 24;
    if payload.len() >= 8 + entries_len {
        payload[..2].copy_from_slice(&[version, tier.scale_level()]);
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
            let (directory, groups) = payload.split_at(directory_len);
            let mut payload = directory_of(version, entries_len, directory);
            let directory_len = payload.len();
            payload.extend_from_slice(groups);
            return framed(tier, codec, &payload, directory_len);
        }
    }
    let len = payload.len();
    framed(tier, codec, &payload, len)
}

/// A directory whose entries are one after another, as its version has them: in planes in versions 4 and 5. In version 5 a
/// plane of equal bytes is one byte.
fn directory_of(version: u8, groups_len: usize, directory: &[u8]) -> Vec<u8> {
    if version < 4 {
        return directory.to_vec();
    }
    let (head, entries) = directory.split_at(8);
    let (groups, chunks) = entries.split_at(groups_len);
    let (mut planes, mut equal_planes) = (Vec::new(), 0_u64);
    for (entries, len, first) in [(groups, 24, 0), (chunks, 12, 24)] {
        for byte in 0..len {
            let mut plane: Vec<u8> = entries.iter().skip(byte).step_by(len).copied().collect();
            if version == 5 && plane.windows(2).all(|pair| pair[0] == pair[1]) {
                plane.truncate(1);
                equal_planes |= 1 << (first + byte);
            }
            planes.extend(plane);
        }
    }
    let mut out = head.to_vec();
    out.extend((planes.len() as u32).to_le_bytes());
    if version == 5 {
        out.extend(equal_planes.to_le_bytes());
    }
    out.extend(planes);
    out
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
