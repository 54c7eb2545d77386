//! Errors between a server and its caches.

use cg_format::chunk::EditError;
use cg_format::{ChunkAt, DecodeError, key};
use cg_registry::ListKind;
use cg_store::layer::values::ValueKind;
use cg_store::{Error, ErrorKind};
use uuid::Uuid;

/// Bytes that are not a valid message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The message is longer than allowed. No part of it was decoded.
    #[error("the message has {len_bytes} bytes, {limit_bytes} are allowed")]
    TooLong {
        /// The length of the message.
        len_bytes: usize,
        /// The maximum length.
        limit_bytes: usize,
    },
    /// The message has another version.
    #[error("the message is of version {found}, not {expected}")]
    Version {
        /// The version found.
        found: u8,
        /// The version that this release accepts.
        expected: u8,
    },
    /// It is another kind of message.
    #[error("the message is of kind {found}, not {expected} (1 is a request, 2 a reply)")]
    Kind {
        /// The kind found.
        found: u8,
        /// The expected kind.
        expected: u8,
    },
    /// The message was altered or cut off on its way.
    #[error(
        "the message was altered on its way: its bytes sum to {computed:08x}, it says {stored:08x}; send it again"
    )]
    Checksum {
        /// The checksum in the message.
        stored: u32,
        /// The checksum of its bytes.
        computed: u32,
    },
    /// Bytes are absent at its end.
    #[error("the message ends too early")]
    Ends,
    /// More bytes follow the message.
    #[error("the message has {extra_bytes} bytes after its end")]
    Behind {
        /// The number of bytes.
        extra_bytes: usize,
    },
    /// A field has an invalid value.
    #[error("the message says what cannot be: {reason}")]
    Fields {
        /// The fault.
        reason: String,
    },
    /// The request exceeds the server's limits.
    #[error("the message asks about {found} {what}, {limit} are allowed; ask in parts")]
    TooMany {
        /// What there is too much of, as cubes or areas.
        what: &'static str,
        /// The number in the request.
        found: usize,
        /// The maximum number.
        limit: usize,
    },
    /// New names follow names that are unknown.
    #[error("names before those of the message are missing; open the cache anew")]
    NamesMissing,
}

/// The errors of a [`SyncClient`](crate::SyncClient), and of a server that answers a request. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// An error of a world, the server's or the cache's.
    #[error(transparent)]
    World(#[from] Error),
    /// An invalid message.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// More names than the cache allows.
    #[error(
        "with the names of the reply there would be {names}, {limit} are allowed; see SyncClient::with_max_names"
    )]
    TooManyNames {
        /// The number of names with those of the reply.
        names: usize,
        /// The maximum number.
        limit: usize,
    },
    /// The reply answers another request, or one of another client.
    #[error("the reply is not one to this request; apply each reply with the request that it answers")]
    NotTheReply,
    /// The reply is of a history of the server's world that ended after the request was made, or continues names that others
    /// took the place of since.
    #[error("the reply is older than what the cache knows of the server; ask again")]
    Outdated,
    /// The cache belongs to another world.
    #[error("the cache is one of world {expected}, the reply comes from {found}; keep a cache for each")]
    OtherServer {
        /// The world that is cached.
        expected: Uuid,
        /// The world of the reply.
        found: Uuid,
    },
    /// A value of a reply is none, or is not one that was asked for.
    #[error("{kind:?}, `{}`, as the server sent it: {reason}", key.escape_ascii())]
    Value {
        /// The kind of the value.
        kind: ValueKind,
        /// Its key; of a longer one the first 512 bytes.
        key: Vec<u8>,
        /// The fault.
        reason: String,
    },
    /// A chunk of a reply does not decode.
    #[error("{at}, as the server sent it: {error}")]
    Chunk {
        /// The chunk.
        at: ChunkAt,
        /// The decoding error.
        #[source]
        error: DecodeError,
    },
    /// A chunk of a reply uses an id whose name was never received.
    #[error("{at}, as the server sent it, uses {} {id}, which was never named", list.noun(1))]
    Unnamed {
        /// The chunk.
        at: ChunkAt,
        /// The list.
        list: ListKind,
        /// The id.
        id: u64,
    },
    /// A chunk of a reply cannot be expressed with the names of the cache.
    #[error("{at}, as the server sent it: {error}")]
    NotRemapped {
        /// The chunk.
        at: ChunkAt,
        /// The reason.
        #[source]
        error: EditError,
    },
}

impl MessageError {
    /// The kind of the error, by the action that the caller can take. See [`ErrorKind`].
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::TooLong { .. } | Self::TooMany { .. } => ErrorKind::TooLarge,
            Self::Version { .. } => ErrorKind::Unsupported,
            Self::Checksum { .. } | Self::Ends | Self::Behind { .. } => ErrorKind::Damaged,
            Self::Kind { .. } | Self::Fields { .. } | Self::NamesMissing => ErrorKind::Invalid,
        }
    }
}

impl SyncError {
    pub(crate) fn value(kind: ValueKind, key: &[u8], reason: impl Into<String>) -> Self {
        let shown = &key[..key.len().min(key::OBJECT_MAX_LEN_BYTES)];
        Self::Value { kind, key: shown.into(), reason: reason.into() }
    }

    /// The kind of the error, by the action that the caller can take. See [`ErrorKind`].
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::World(error) => error.kind(),
            Self::Message(error) => error.kind(),
            Self::TooManyNames { .. } => ErrorKind::TooLarge,
            Self::Outdated => ErrorKind::Conflict,
            Self::Chunk { .. } | Self::Value { .. } => ErrorKind::Damaged,
            Self::NotTheReply
            | Self::OtherServer { .. }
            | Self::Unnamed { .. }
            | Self::NotRemapped { .. } => ErrorKind::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{BlockId, ChunkPos, Dimension, Problem, Section};

    #[test]
    fn every_message_that_is_none_has_the_kind_of_what_the_caller_can_do() {
        use ErrorKind as K;
        let table = [
            (MessageError::TooLong { len_bytes: 2, limit_bytes: 1 }, K::TooLarge),
            (MessageError::Version { found: 1, expected: 2 }, K::Unsupported),
            (MessageError::Kind { found: 1, expected: 2 }, K::Invalid),
            (MessageError::Checksum { stored: 1, computed: 2 }, K::Damaged),
            (MessageError::Ends, K::Damaged),
            (MessageError::Behind { extra_bytes: 1 }, K::Damaged),
            (MessageError::Fields { reason: "no".into() }, K::Invalid),
            (MessageError::TooMany { what: "cubes", found: 2, limit: 1 }, K::TooLarge),
            (MessageError::NamesMissing, K::Invalid),
        ];
        for (error, kind) in table {
            assert_eq!(error.kind(), kind, "{error}");
        }
    }

    #[test]
    fn every_error_has_the_kind_of_what_the_caller_can_do() {
        use ErrorKind as K;
        let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, 0));
        let problem =
            DecodeError::new(Section::Frame, 0, Problem::Truncated { field: "length", needed: 4, left: 0 });
        let edit = EditError::UnknownBlock { block: BlockId::new(1) };
        let (expected, found) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let table = [
            (SyncError::World(Error::Closed), K::Closed),
            (SyncError::Message(MessageError::Ends), K::Damaged),
            (SyncError::TooManyNames { names: 2, limit: 1 }, K::TooLarge),
            (SyncError::NotTheReply, K::Invalid),
            (SyncError::Outdated, K::Conflict),
            (SyncError::OtherServer { expected, found }, K::Invalid),
            (SyncError::Chunk { at, error: problem }, K::Damaged),
            (SyncError::Value { kind: ValueKind::Objects, key: vec![1], reason: "no".into() }, K::Damaged),
            (SyncError::Unnamed { at, list: ListKind::Blocks, id: 1 }, K::Invalid),
            (SyncError::NotRemapped { at, error: edit }, K::Invalid),
        ];
        for (error, kind) in table {
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
