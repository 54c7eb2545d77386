//! Archives, packs and snapshots with the checksums that they should have: a checksum does not stop an attacker.

use cg_format::Space;
use cg_format::key::Family;

const ARCHIVE: &[u8] = b"cherrygrove archive 1\n";
const PACK_LEN_BYTES: usize = b"cherrygrove pack 1\n".len();
const SNAPSHOT_LEN_BYTES: usize = b"cherrygrove snapshot 1\n".len();

/// The first fields of a part: part, codec, length before compression, stored length.
type Fields = [u8; 10];

/// An archive; `None` if its checksums are right.
#[allow(dead_code, reason = "each target uses one of these functions")]
pub(crate) fn sealed_archive(bytes: &[u8]) -> Option<Vec<u8>> {
    // Whatever its digit is: that of one world, or of a segmented one.
    let mut last = crc32c::crc32c(bytes.get(..ARCHIVE.len()).unwrap_or(ARCHIVE));
    seal(bytes, |archive| {
        let Some(parts) = archive.get_mut(ARCHIVE.len()..) else { return };
        seal_parts(parts, |fields, stored| {
            if fields[..2] == [2, 0] {
                seal_rows(stored);
            }
            last = crc32c::crc32c_append(crc32c::crc32c_append(last, fields), stored);
            last
        });
    })
}

/// A pack; `None` if its checksums are right.
#[allow(dead_code, reason = "each target uses one of these functions")]
pub(crate) fn sealed_pack(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut all = 0;
    seal(bytes, |pack| {
        let Some(parts) = pack.get_mut(PACK_LEN_BYTES..) else { return };
        seal_parts(parts, |fields, stored| {
            match (fields[0], stored.len()) {
                (1, _) => seal_snapshot(stored),
                (3, 16) => stored[12..].copy_from_slice(&u32::to_le_bytes(all)),
                _ => {}
            }
            let sum = crc32c::crc32c_append(crc32c::crc32c(fields), stored);
            all = crc32c::crc32c_append(all, &sum.to_le_bytes());
            sum
        });
    })
}

/// A snapshot; `None` if its checksums are right.
#[allow(dead_code, reason = "each target uses one of these functions")]
pub(crate) fn sealed_snapshot(bytes: &[u8]) -> Option<Vec<u8>> {
    seal(bytes, seal_snapshot)
}

fn seal(bytes: &[u8], seal: impl FnOnce(&mut [u8])) -> Option<Vec<u8>> {
    let mut sealed = bytes.to_vec();
    seal(&mut sealed);
    (sealed != bytes).then_some(sealed)
}

/// Writes into each part the checksum that a function returns. It may change what the part stores. Ends where no whole part
/// follows.
fn seal_parts(mut parts: &mut [u8], mut sum: impl FnMut(&Fields, &mut [u8]) -> u32) {
    while let Some((fields, rest)) = parts.split_first_chunk_mut::<{ size_of::<Fields>() }>() {
        let Some((checksum, rest)) = rest.split_first_chunk_mut::<4>() else { return };
        let Some((stored, after)) = rest.split_at_mut_checked(number(&fields[6..])) else { return };
        *checksum = sum(fields, stored).to_le_bytes();
        parts = after;
    }
}

/// The head, and the three parts after it. What follows them has its checksums in the second.
fn seal_snapshot(snapshot: &mut [u8]) {
    let Some(rest) = snapshot.get_mut(SNAPSHOT_LEN_BYTES..) else { return };
    let Some((fields, rest)) = rest.split_first_chunk_mut::<8>() else { return };
    let Some((head, mut rest)) = rest.split_at_mut_checked(number(fields)) else { return };
    fields[4..].copy_from_slice(&crc32c::crc32c(head).to_le_bytes());
    for _ in 0..3 {
        let Some(stored_len) = rest.get(6..10).map(number) else { return };
        let Some((part, after)) = rest.split_at_mut_checked(stored_len.saturating_add(14)) else { return };
        seal_parts(part, |fields, stored| crc32c::crc32c_append(crc32c::crc32c(fields), stored));
        rest = after;
    }
}

/// The frames of rows in an archive, except those of clusters.
fn seal_rows(mut rows: &mut [u8]) {
    while let Some((head, rest)) = rows.split_first_chunk_mut::<9>() {
        let Some((key, rest)) = rest.split_at_mut_checked(number(&head[1..])) else { return };
        let Some((row, after)) = rest.split_at_mut_checked(number(&head[5..])) else { return };
        let family = Family::ALL.get(usize::from(head[0]));
        let space = family.and_then(|family| Space::of_row(*family, key));
        if let (Some(space), Some((header, payload))) = (space, row.split_first_chunk_mut::<24>())
            && header[1] != 2
        {
            header[4..8].fill(0);
            let sum = crc32c::crc32c_append(crc32c::crc32c(payload), &[space.byte()]);
            let sum = crc32c::crc32c_append(crc32c::crc32c_append(sum, key), header);
            header[4..8].copy_from_slice(&sum.to_le_bytes());
        }
        rows = after;
    }
}

/// The u32 that bytes begin with.
fn number(bytes: &[u8]) -> usize {
    bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
}
