//! The row `state` of a world without a directory: whether the world is being made or copied, or is a copy.
//!
//! | payload of the row | bytes |
//! |---|---|
//! | 1: the world is being made; 2: it is a copy that was not opened for writing yet | 1 |
//! | while it is copied: the original's UUID, its incarnation, the commit of the copy | 16 + 16 + 8 |
//! | the SHA-256 of all rows up to the last one that was copied | 32 |
//! | the number of the family of that row | 1 |
//! | its key | up to the end |
//!
//! A ready world has no such row.

use cg_format::frame::LEN_BYTES;
use cg_format::key::Family;
use cg_format::wire::{Reader, Writer};
use cg_format::{DecodeError, Problem, Section};
use uuid::Uuid;

use crate::engine::CommitSeq;
use crate::storage::directory::State;
use crate::storage::meta::{Identity, MetaRow};

/// The row.
pub(crate) const STATE: MetaRow<StoredState> =
    MetaRow { key: "state", what: "the row of the world's state", encode, decode };

/// The state of a world that is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredState {
    /// It is being made.
    Creating,
    /// It is being copied, up to this row.
    Copying(CopyMark),
    /// It is a copy that was not opened for writing yet.
    Copy,
}

impl StoredState {
    /// The same as `world.cg` has it.
    pub(crate) const fn state(&self) -> State {
        match self {
            Self::Creating | Self::Copying(_) => State::Creating,
            Self::Copy => State::Checkpoint,
        }
    }
}

/// How far a copy has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyMark {
    /// The original.
    pub(crate) source: Identity,
    /// The commit of the original whose rows are copied.
    pub(crate) commit: CommitSeq,
    /// The digest of all rows up to the last one that was copied. Maintenance moves rows without a commit.
    pub(crate) digest: [u8; 32],
    /// The family of that row.
    pub(crate) family: Family,
    /// Its key.
    pub(crate) key: Vec<u8>,
}

fn encode(state: &StoredState, out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    match state {
        StoredState::Creating => writer.u8(1),
        StoredState::Copy => writer.u8(2),
        StoredState::Copying(CopyMark { source, commit, digest, family, key }) => {
            writer.u8(1);
            writer.bytes(source.uuid.as_bytes());
            writer.bytes(source.incarnation.as_bytes());
            writer.u64(commit.get());
            writer.bytes(digest);
            writer.u8(family.number());
            writer.bytes(key);
        }
    }
}

fn decode(payload: &[u8]) -> Result<StoredState, DecodeError> {
    let mut reader = Reader::at_offset(payload, LEN_BYTES as u64, Section::Frame);
    let here = reader.clone();
    let state = reader.u8("state")?;
    if reader.left_bytes() == 0 {
        return match state {
            1 => Ok(StoredState::Creating),
            2 => Ok(StoredState::Copy),
            found => {
                let found = found.into();
                Err(here.error(Problem::OutOfRange { field: "state", found, allowed: "1 or 2" }))
            }
        };
    }
    if state != 1 {
        reader.end("bytes after the state")?;
    }
    let mut uuid = |field| reader.array(field).map(Uuid::from_bytes);
    let source = Identity { uuid: uuid("uuid")?, incarnation: uuid("incarnation")? };
    let commit = CommitSeq::new(reader.u64("commit")?);
    let digest = reader.array("digest")?;
    let here = reader.clone();
    let number = reader.u8("family")?;
    let family = Family::from_number(number).ok_or_else(|| {
        let found = number.into();
        here.error(Problem::OutOfRange { field: "family", found, allowed: "the number of a family" })
    })?;
    let key = reader.take("key", reader.left_bytes())?.to_vec();
    Ok(StoredState::Copying(CopyMark { source, commit, digest, family, key }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_they_were_written() {
        let source = Identity { uuid: Uuid::from_u128(1), incarnation: Uuid::from_u128(2) };
        let (commit, family, key) = (CommitSeq::new(7), Family::Entity, b"a key".to_vec());
        let mark = CopyMark { source, commit, digest: [9; 32], family, key };
        for state in [StoredState::Creating, StoredState::Copy, StoredState::Copying(mark)] {
            let mut bytes = Vec::new();
            encode(&state, &mut bytes);
            assert_eq!(decode(&bytes), Ok(state.clone()));
            for end in 0..bytes.len() {
                // A shorter key is another key, and a mark without its parts is the state alone.
                assert_ne!(decode(&bytes[..end]), Ok(state.clone()));
            }
        }
        let refused = |bytes: &[u8]| decode(bytes).unwrap_err().to_string();
        assert_eq!(refused(&[3]), "frame: state is 3, allowed is 1 or 2 (at byte 24)");
        assert_eq!(
            refused(&[2, 1]),
            "frame: bytes after the state must be zero or absent, found 1 (at byte 25)"
        );
    }
}
