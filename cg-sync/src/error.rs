//! What can go wrong between a server and a cache of it.

use cg_format::chunk::EditError;
use cg_format::{ChunkAt, DecodeError};
use cg_registry::ListKind;
use cg_store::{Error, ErrorKind};
use uuid::Uuid;

/// Bytes that are no message, or one that says what cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// It is longer than allowed; nothing of it was read.
    #[error("the message has {len_bytes} bytes, {limit_bytes} are allowed")]
    TooLong {
        /// Its length.
        len_bytes: usize,
        /// What is allowed.
        limit_bytes: usize,
    },
    /// It is of another version of the messages.
    #[error("the message is of version {found}, not {expected}")]
    Version {
        /// The version found.
        found: u8,
        /// The version that is read here.
        expected: u8,
    },
    /// It is another kind of message.
    #[error("the message is of kind {found}, not {expected} (1 is a request, 2 a reply)")]
    Kind {
        /// The kind found.
        found: u8,
        /// The kind that is read here.
        expected: u8,
    },
    /// It is not as it was sent: altered or cut off on its way.
    #[error(
        "the message was altered on its way: its bytes sum to {computed:08x}, it says {stored:08x}; send it again"
    )]
    Checksum {
        /// What it says.
        stored: u32,
        /// What its bytes sum to.
        computed: u32,
    },
    /// Bytes are missing at its end.
    #[error("the message ends too early")]
    Ends,
    /// There is something after it.
    #[error("the message has {extra_bytes} bytes after its end")]
    Behind {
        /// How many bytes.
        extra_bytes: usize,
    },
    /// A field says what cannot be.
    #[error("the message says what cannot be: {reason}")]
    Fields {
        /// What is wrong.
        reason: String,
    },
    /// It asks about more than the server's limits allow.
    #[error("the message asks about {found} {what}, {limit} are allowed; ask in parts")]
    TooMany {
        /// Of what: cubes or areas.
        what: &'static str,
        /// How many.
        found: usize,
        /// What is allowed.
        limit: usize,
    },
    /// Names are new that follow others which are not known.
    #[error("names before those of the message are missing; open the cache anew")]
    NamesMissing,
}

/// Everything that a [`SyncClient`](crate::SyncClient) reports, and a server of what it is asked. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// What a world says, the server's or the cache's.
    #[error(transparent)]
    World(#[from] Error),
    /// A message that is none.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// More names than the cache takes.
    #[error(
        "with the names of the reply there would be {names}, {limit} are allowed; see SyncClient::with_max_names"
    )]
    TooManyNames {
        /// How many there would be.
        names: usize,
        /// What is allowed.
        limit: usize,
    },
    /// A reply to another request, or to one of another client.
    #[error("the reply is not one to this request; apply each reply with the request that it answers")]
    NotTheReply,
    /// A reply of a life of the server's world that has ended since the request was made.
    #[error("the reply is older than what the cache knows of the server; ask again")]
    Outdated,
    /// The cache is one of another world.
    #[error("the cache is one of world {expected}, the reply comes from {found}; keep a cache for each")]
    OtherServer {
        /// The world that is cached.
        expected: Uuid,
        /// The one that answered.
        found: Uuid,
    },
    /// A chunk of a reply does not decode.
    #[error("{at}, as the server sent it: {error}")]
    Chunk {
        /// The chunk.
        at: ChunkAt,
        /// What is wrong.
        #[source]
        error: DecodeError,
    },
    /// A chunk of a reply uses an id whose name never came.
    #[error("{at}, as the server sent it, uses {} {id}, which was never named", list.noun(1))]
    Unnamed {
        /// The chunk.
        at: ChunkAt,
        /// The list.
        list: ListKind,
        /// The id.
        id: u64,
    },
    /// A chunk of a reply cannot be expressed by the names here.
    #[error("{at}, as the server sent it: {error}")]
    NotRemapped {
        /// The chunk.
        at: ChunkAt,
        /// Why.
        #[source]
        error: EditError,
    },
}

impl MessageError {
    /// What the caller can do about it. See [`ErrorKind`].
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
    /// What the caller can do about it. See [`ErrorKind`].
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::World(error) => error.kind(),
            Self::Message(error) => error.kind(),
            Self::TooManyNames { .. } => ErrorKind::TooLarge,
            Self::Outdated => ErrorKind::Conflict,
            Self::Chunk { .. } => ErrorKind::Damaged,
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
            (SyncError::Unnamed { at, list: ListKind::Blocks, id: 1 }, K::Invalid),
            (SyncError::NotRemapped { at, error: edit }, K::Invalid),
        ];
        for (error, kind) in table {
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
