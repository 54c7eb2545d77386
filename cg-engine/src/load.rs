//! Rows that are stored as they are: those of a copy.

use cg_format::frame;
use cg_format::key::Family;

use super::{COMMIT_SEQUENCE_KEY, CommitSeq, EngineError, Fence, Place};

/// A row with its frame, as an engine stores it. See [`Engine::load`](crate::Engine::load).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRow {
    /// Its family.
    pub family: Family,
    /// Its key.
    pub key: Box<[u8]>,
    /// The bytes of its frame.
    pub bytes: Box<[u8]>,
}

impl SealedRow {
    /// Bytes of key and frame.
    pub const fn len_bytes(&self) -> u64 {
        (self.key.len() + self.bytes.len()) as u64
    }
}

/// Checks whether rows may be loaded, for engines. Returns the newest commit after it: that of the row under
/// [`COMMIT_SEQUENCE_KEY`], if it is one of the rows.
///
/// # Errors
/// [`EngineError::Fenced`] if there is a commit; [`EngineError::TooLarge`]; [`EngineError::Corrupt`] if that row is too
/// short for a frame.
pub fn check_load(
    rows: &[SealedRow],
    last_commit: CommitSeq,
    max_bytes: u64,
) -> Result<CommitSeq, EngineError> {
    if last_commit != CommitSeq::NONE {
        let (given, next) = (CommitSeq::NONE.next(), last_commit.next());
        return Err(EngineError::Fenced { why: Fence::Number { given, next } });
    }
    let len_bytes = rows.iter().map(SealedRow::len_bytes).sum();
    if len_bytes > max_bytes {
        return Err(EngineError::TooLarge { len_bytes, max_bytes });
    }
    let is_sequence = |row: &&SealedRow| row.family == Family::WorldMeta && *row.key == *COMMIT_SEQUENCE_KEY;
    let Some(SealedRow { family, key, bytes }) = rows.iter().rfind(is_sequence) else {
        return Ok(CommitSeq::NONE);
    };
    let version = frame::version_of(bytes).ok_or_else(|| EngineError::Corrupt {
        place: Place::Row { family: *family, key: key.clone() },
        message: format!("{} bytes are too few for a frame", bytes.len()),
    })?;
    Ok(CommitSeq::new(version))
}
