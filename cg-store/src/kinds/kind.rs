//! The five kinds of values that a transaction writes, and structures with a part for each.
//!
//! A sixth kind is one more line in each of the two macros, and implements [`Kind`]; then `Checked` and `Changeable` of
//! `commit/transaction/`, and `OverlayKind` of `cg-layers`, as the compiler asks.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::record::Record;
use cg_format::{ChunkAt, EntityId, RecordId};

use super::object::{ObjectWrite, StoredObject};
use super::property::Property;
use crate::storage::error::ConflictKey;
use crate::storage::object_key::ObjectKey;

/// A kind of values: what names one, what is stored of it, and what a transaction writes.
pub trait Kind: 'static {
    /// The key that names a value.
    type Key: Clone + Ord + Hash + fmt::Debug;
    /// The value that is stored.
    type Value: Clone + PartialEq + fmt::Debug;
    /// The write of a transaction.
    type Write: Clone + fmt::Debug;

    /// How a conflict, and damage, names a key.
    fn conflict_key(key: &Self::Key) -> ConflictKey;

    /// The approximate memory of a key beside its own size.
    fn key_bytes(_: &Self::Key) -> usize {
        0
    }

    /// The approximate memory of a value.
    fn memory_bytes(value: &Self::Value) -> usize;

    /// The approximate memory of what a write puts; `None` if it deletes.
    fn put_bytes(write: &Self::Write) -> Option<usize>;

    /// Whether a stored value is shown.
    fn is_live(_: &Self::Value) -> bool {
        true
    }
}

/// Chunks, with their components, side data and entity references.
#[derive(Debug)]
pub enum Chunks {}

/// Entities.
#[derive(Debug)]
pub enum Entities {}

/// Properties of the world and of mods.
#[derive(Debug)]
pub enum Properties {}

/// Versioned objects. A deleted one stays stored, because its version counts on.
#[derive(Debug)]
pub enum Objects {}

/// Spatial records.
#[derive(Debug)]
pub enum Records {}

impl Kind for Chunks {
    type Key = ChunkAt;
    type Value = Arc<Chunk>;
    type Write = Option<Arc<Chunk>>;

    fn conflict_key(at: &ChunkAt) -> ConflictKey {
        ConflictKey::Chunk(*at)
    }

    fn memory_bytes(chunk: &Arc<Chunk>) -> usize {
        chunk.memory_bytes()
    }

    fn put_bytes(write: &Self::Write) -> Option<usize> {
        write.as_ref().map(Self::memory_bytes)
    }
}

impl Kind for Entities {
    type Key = EntityId;
    type Value = Entity;
    type Write = Option<Entity>;

    fn conflict_key(id: &EntityId) -> ConflictKey {
        ConflictKey::Entity(*id)
    }

    fn memory_bytes(entity: &Entity) -> usize {
        entity.components().map(|(_, bytes)| bytes.len()).sum()
    }

    fn put_bytes(write: &Self::Write) -> Option<usize> {
        write.as_ref().map(Self::memory_bytes)
    }
}

impl Kind for Properties {
    type Key = Property;
    type Value = Vec<u8>;
    type Write = Option<Vec<u8>>;

    fn conflict_key(property: &Property) -> ConflictKey {
        ConflictKey::Property(property.to_string())
    }

    fn memory_bytes(bytes: &Vec<u8>) -> usize {
        bytes.len()
    }

    fn put_bytes(write: &Self::Write) -> Option<usize> {
        write.as_ref().map(Self::memory_bytes)
    }
}

impl Kind for Objects {
    type Key = ObjectKey;
    type Value = StoredObject;
    type Write = ObjectWrite;

    fn conflict_key(key: &ObjectKey) -> ConflictKey {
        ConflictKey::Object(key.clone())
    }

    fn key_bytes(key: &ObjectKey) -> usize {
        key.as_bytes().len()
    }

    fn memory_bytes(object: &StoredObject) -> usize {
        object.len_bytes()
    }

    fn put_bytes(write: &ObjectWrite) -> Option<usize> {
        write.bytes().map(<[u8]>::len)
    }

    fn is_live(object: &StoredObject) -> bool {
        object.bytes.is_some()
    }
}

impl Kind for Records {
    type Key = RecordId;
    type Value = Arc<Record>;
    type Write = Option<Arc<Record>>;

    fn conflict_key(id: &RecordId) -> ConflictKey {
        ConflictKey::Record(*id)
    }

    fn memory_bytes(record: &Arc<Record>) -> usize {
        record.len_bytes()
    }

    fn put_bytes(write: &Self::Write) -> Option<usize> {
        write.as_ref().map(Self::memory_bytes)
    }
}

/// Declares a structure with a part for each kind: `kind_map! { pub struct Keys of pub Part }` has a
/// `Part<kind::Chunks>`, a `Part<kind::Entities>`, and so on.
#[doc(hidden)]
#[macro_export]
macro_rules! kind_map {
    ($(#[$meta:meta])* $vis:vis struct $name:ident of $field:vis $part:ident) => {
        $(#[$meta])*
        $vis struct $name {
            /// Of chunks.
            $field chunks: $part<kind::Chunks>,
            /// Of entities.
            $field entities: $part<kind::Entities>,
            /// Of properties.
            $field properties: $part<kind::Properties>,
            /// Of objects.
            $field objects: $part<kind::Objects>,
            /// Of records.
            $field records: $part<kind::Records>,
        }
    };
}

/// Evaluates an expression for the part of each kind, into an array: `each_kind!(keys, |part| part.len())`.
///
/// The parts are borrowed, mutably after `mut`. `K` after a colon names the kind. After a comma comes a second structure
/// whose parts are borrowed with those of the first.
#[doc(hidden)]
#[macro_export]
macro_rules! each_kind {
    (@one $field:ident $marker:ident [$([$($by:tt)*] $map:expr, $part:ident);*] [$($kind:ident)?] $do:expr) => {{
        $(type $kind = kind::$marker;)?
        $(let $part = $($by)* $map.$field;)*
        $do
    }};
    (@all $maps:tt $kind:tt $do:expr) => {
        [
            $crate::each_kind!(@one chunks Chunks $maps $kind $do),
            $crate::each_kind!(@one entities Entities $maps $kind $do),
            $crate::each_kind!(@one properties Properties $maps $kind $do),
            $crate::each_kind!(@one objects Objects $maps $kind $do),
            $crate::each_kind!(@one records Records $maps $kind $do),
        ]
    };
    (mut $map:expr, |$part:ident $(: $kind:ident)?| $do:expr) => {
        $crate::each_kind!(@all [[&mut] $map, $part] [$($kind)?] $do)
    };
    (mut $map:expr, $second:expr, |$part:ident, $beside:ident $(: $kind:ident)?| $do:expr) => {
        $crate::each_kind!(@all [[&mut] $map, $part; [&] $second, $beside] [$($kind)?] $do)
    };
    ($map:expr, |$part:ident $(: $kind:ident)?| $do:expr) => {
        $crate::each_kind!(@all [[&] $map, $part] [$($kind)?] $do)
    };
    ($map:expr, $second:expr, |$part:ident, $beside:ident $(: $kind:ident)?| $do:expr) => {
        $crate::each_kind!(@all [[&] $map, $part; [&] $second, $beside] [$($kind)?] $do)
    };
}
