//! Pieces compressed with LZ4, each after its length.

use crate::failure::Failure;

/// Compresses a piece.
///
/// # Errors
/// It has 4 GiB or more.
pub(super) fn compress(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut out = u32::try_from(bytes.len())?.to_le_bytes().to_vec();
    let head = out.len();
    out.resize(head + lz4_flex::block::get_maximum_output_size(bytes.len()), 0);
    let len = lz4_flex::block::compress_into(bytes, &mut out[head..])?;
    out.truncate(head + len);
    Ok(out)
}

/// The piece again.
///
/// # Errors
/// It is damaged.
pub(super) fn decompress(stored: &[u8]) -> Result<Vec<u8>, Failure> {
    let (len, packed) =
        stored.split_first_chunk::<4>().ok_or("a compressed piece of less than four bytes")?;
    let mut out = vec![0; u32::from_le_bytes(*len) as usize];
    let found = lz4_flex::block::decompress_into(packed, &mut out)?;
    if found != out.len() {
        return Err(format!("a compressed piece holds {found} bytes, {} were compressed", out.len()).into());
    }
    Ok(out)
}
