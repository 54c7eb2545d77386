//! The writes of a transaction, of a world or of an overlay.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, SideKind};

use super::chunk_writes::ChunkWrites;
use crate::each_kind;
use crate::kinds::kind::{self, Kind};
use crate::kinds::object::{Object, ObjectWrite, StoredObject};
use crate::storage::error::Error;
use crate::storage::object_key::ObjectKey;

/// The last write of each key.
type Map<K> = BTreeMap<<K as Kind>::Key, <K as Kind>::Write>;

/// The writes of a transaction. A `None` is a deletion.
#[derive(Debug, Clone, Default)]
pub struct Writes {
    /// Chunks to be saved.
    pub chunks: ChunkWrites,
    /// Entities to be put.
    pub entities: Map<kind::Entities>,
    /// Properties to be set.
    pub properties: Map<kind::Properties>,
    /// Objects to be written.
    pub objects: Map<kind::Objects>,
    /// Records to be put.
    pub records: Map<kind::Records>,
}

impl Writes {
    /// Whether there are no writes.
    pub fn is_empty(&self) -> bool {
        !each_kind!(self, |writes| writes.is_empty()).contains(&false)
    }

    /// Whether anything is put, so not only deleted.
    pub(crate) fn puts_anything(&self) -> bool {
        each_kind!(self, |writes: K| writes.values().any(|write| K::put_bytes(write).is_some()))
            .contains(&true)
    }

    /// The approximate memory of what is put, plus `entry_bytes` for each thing.
    pub(crate) fn memory_bytes(&self, entry_bytes: usize) -> usize {
        let bytes = each_kind!(self, |writes: K| {
            writes.values().map(|write| entry_bytes + K::put_bytes(write).unwrap_or(0)).sum::<usize>()
        });
        bytes.iter().sum()
    }

    /// Whether a chunk is saved here, so that it can be changed in place.
    pub(crate) fn has_chunk(&self, at: ChunkAt) -> bool {
        matches!(self.chunks.get(&at), Some(Some(_)))
    }

    /// Saves a chunk with the entity references of the chunk that it replaces.
    pub(crate) fn save_blocks(&mut self, at: ChunkAt, mut chunk: Arc<Chunk>, replaced: Option<&Chunk>) {
        let kept = replaced.map_or(&[][..], Chunk::entities);
        if chunk.entities() != kept {
            let own = chunk.entities().to_vec();
            let chunk = Arc::make_mut(&mut chunk);
            // From the last to the first, which is the cheapest order of removal.
            for id in own.into_iter().rev() {
                chunk.remove_entity(id);
            }
            for id in kept {
                chunk.add_entity(*id);
            }
        }
        self.chunks.insert(at, Some(chunk));
    }

    /// Changes a chunk that is saved here.
    pub(crate) fn change_chunk<T>(
        &mut self,
        at: ChunkAt,
        change: impl FnOnce(&mut Chunk) -> T,
    ) -> Result<T, Error> {
        match self.chunks.get_mut(&at) {
            Some(Some(chunk)) => Ok(change(Arc::make_mut(chunk))),
            _ => Err(Error::ChunkAbsent { at }),
        }
    }

    /// An object as it will be stored, given what is stored now.
    pub(crate) fn object(
        &self,
        key: &ObjectKey,
        stored: Option<StoredObject>,
    ) -> Result<Option<Object>, Error> {
        let after = match self.objects.get(key) {
            Some(write) => write.after(key, stored.as_ref())?.or(stored),
            None => stored,
        };
        Ok(after.and_then(StoredObject::here))
    }

    pub(crate) fn put_object(
        &mut self,
        key: impl AsRef<[u8]>,
        bytes: impl Into<Arc<[u8]>>,
    ) -> Result<(), Error> {
        self.write_object(ObjectKey::new(key)?, ObjectWrite::Put(bytes.into()))
    }

    pub(crate) fn put_object_at_version(
        &mut self,
        key: impl AsRef<[u8]>,
        version: i64,
        bytes: impl Into<Arc<[u8]>>,
    ) -> Result<(), Error> {
        let key = ObjectKey::new(key)?;
        if version < 0 {
            return Err(Error::NegativeVersion { key, offered: version });
        }
        self.write_object(key, ObjectWrite::PutAt(version, Some(bytes.into())))
    }

    pub(crate) fn delete_object(&mut self, key: impl AsRef<[u8]>) -> Result<(), Error> {
        self.write_object(ObjectKey::new(key)?, ObjectWrite::Delete)
    }

    pub(crate) fn write_object(&mut self, key: ObjectKey, write: ObjectWrite) -> Result<(), Error> {
        let write = match self.objects.get(&key) {
            Some(before) => before.clone().then(&key, write)?,
            None => write,
        };
        self.objects.insert(key, write);
        Ok(())
    }
}

/// Replaces the data of one side kind of a chunk; `None` removes it.
pub(crate) fn set_side(chunk: &mut Chunk, kind: SideKind, bytes: Option<Vec<u8>>) {
    match bytes {
        Some(bytes) => drop(chunk.set_side(kind, bytes)),
        None => drop(chunk.remove_side(kind)),
    }
}
