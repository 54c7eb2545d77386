//! Applying a reply to a cache: one transaction writes chunks, other values and the state of the server.

pub(super) mod values;

use std::collections::{BTreeMap, BTreeSet};

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, ClusterPos, Dimension};
use cg_registry::portable::{IdRemap, Names};
use cg_registry::{Catalog, ListKind};
use cg_store::Transaction;
use cg_store::layer::values::ValueKind;

use super::error::SyncError;
use super::messages::{
    Answer, AreaReply, AskedArea, AskedCube, CubeReply, SyncReply, SyncRequest, decode_row, encode_row,
};
use super::place::{area_of, chunk_at, cube_of, dimension_of, meets, place_of, wrong};
use super::state::{AreaRow, CUBES, CubeKey, CubeRow, area_key};

/// The state while a reply is applied to the cache.
pub(super) struct Applying<'a, 'tx> {
    pub(super) tx: &'a mut Transaction<'tx>,
    pub(super) names: &'a Names,
    pub(super) remap: &'a IdRemap,
    pub(super) catalog: &'a Catalog,
    pub(super) reply: &'a SyncReply,
    pub(super) is_late: bool,
    /// The rows that were read: the stored version and the new one.
    pub(super) rows: BTreeMap<CubeKey, (Option<CubeRow>, CubeRow)>,
    pub(super) applied: SyncOutcome,
}

impl Applying<'_, '_> {
    fn row(&mut self, key: CubeKey) -> Result<&mut CubeRow, SyncError> {
        use std::collections::btree_map::Entry;
        let entry = match self.rows.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let stored = self.tx.object(key.object(CUBES))?;
                let life = self.reply.life;
                let stored: Option<CubeRow> = stored.map(|row| decode_row(&row.bytes)).transpose()?;
                let row = match &stored {
                    Some(stored) => stored.clone().in_life(life),
                    None => CubeRow::new(life),
                };
                entry.insert((stored, row))
            }
        };
        Ok(&mut entry.1)
    }

    pub(super) fn cube(
        &mut self,
        request: &SyncRequest,
        asked: &AskedCube,
        reply: &CubeReply,
    ) -> Result<(), SyncError> {
        let CubeReply::Chunks(answers) = reply else {
            self.applied.up_to_date += asked.chunks.len() as u64;
            return Ok(());
        };
        let dimension = dimension_of(request, self.catalog, asked.dimension)?;
        let cube = cube_of(asked.cube)?;
        let key = CubeKey::new(dimension, cube);
        let (reply_commit, mut knows_all) = (self.reply.commit, true);
        for ((place, _), answer) in asked.chunks.iter().zip(answers) {
            let at = ChunkAt { dimension, pos: chunk_at(cube, *place)? };
            let is_late = self.is_late;
            let row = self.row(key)?;
            let known = row.version(at);
            let is_stale = known.is_none() && row.chunks.contains_key(place);
            match answer {
                Answer::UpToDate => self.applied.up_to_date += 1,
                Answer::Newer { version, .. } if known.is_some_and(|known| known >= *version) => {
                    self.applied.up_to_date += 1;
                }
                // A late reply: a deletion or a newer version may be recorded since.
                Answer::Newer { .. } if is_late && known.is_none() => {
                    knows_all = false;
                    self.applied.later.push(at);
                }
                Answer::Gone if is_late && is_stale => {
                    knows_all = false;
                    self.applied.later.push(at);
                }
                Answer::Newer { version, bytes } => {
                    let chunk = self.arrived(at, bytes)?;
                    self.tx.save(at, chunk);
                    self.row(key)?.chunks.insert(*place, Some(*version));
                    self.applied.updated += 1;
                }
                // A late reply: the known version is newer.
                Answer::Gone if known.is_some_and(|known| known > reply_commit) => knows_all = false,
                Answer::Gone => {
                    self.tx.delete(at);
                    self.row(key)?.chunks.remove(place);
                    self.applied.gone += 1;
                }
                Answer::Later => {
                    knows_all = false;
                    self.applied.later.push(at);
                }
                Answer::Damaged => {
                    knows_all = false;
                    self.applied.damaged.push(at);
                }
            }
        }
        let row = self.row(key)?;
        let was_asked = |place: &u8| asked.chunks.iter().any(|(asked, _)| asked == place);
        if knows_all && row.chunks.keys().all(was_asked) {
            row.as_of = row.as_of.max(reply_commit);
        }
        Ok(())
    }

    pub(super) fn area(
        &mut self,
        request: &SyncRequest,
        asked: &AskedArea,
        reply: &AreaReply,
        cached: &[(Dimension, ClusterPos)],
    ) -> Result<(), SyncError> {
        let AreaReply::Changed { is_whole, cubes, damaged } = reply else {
            self.applied.too_large_areas += 1;
            return Ok(());
        };
        let dimension = dimension_of(request, self.catalog, asked.dimension)?;
        let area = area_of([asked.min, asked.max])?;
        let AreaRow { life, commit } = AreaRow { life: self.reply.life, commit: self.reply.commit };
        let key = area_key(dimension, &area);
        let stored = self.tx.object(&key)?;
        let stored: Option<AreaRow> = stored.map(|row| decode_row(&row.bytes)).transpose()?;
        // Changes alone say nothing of an area that was forgotten since it was asked about.
        let is_continued =
            |row: &AreaRow| row.life == life && asked.since.is_none_or(|since| row.commit >= since);
        if !is_whole && !stored.as_ref().is_some_and(is_continued) {
            return Ok(());
        }
        let (mut listed, mut unread) = (BTreeSet::new(), BTreeSet::new());
        for changed in cubes {
            let cube = cube_of(changed.cube)?;
            for (place, version) in &changed.chunks {
                let at = ChunkAt { dimension, pos: chunk_at(cube, *place)? };
                if !area.contains(at.pos) {
                    return Err(SyncError::NotTheReply);
                }
                if !listed.insert(at) {
                    return Err(wrong("an area lists a chunk twice").into());
                }
                match version {
                    Some(version) => self.changed(at, *version)?,
                    None => self.gone(at)?,
                }
            }
        }
        for at in damaged {
            let cube = cube_of(*at)?;
            if !meets(&area, cube) || !unread.insert(cube) {
                return Err(wrong("an area lists a damaged cube twice, or one beside it").into());
            }
            self.applied.damaged.push(ChunkAt { dimension, pos: cube.min_chunk() });
        }
        let here = |(found, cube): &&(Dimension, ClusterPos)| {
            *found == dimension && meets(&area, *cube) && !unread.contains(cube)
        };
        for (_, cube) in cached.iter().filter(|_| *is_whole).filter(here) {
            let row = self.row(CubeKey::new(dimension, *cube))?;
            for place in row.chunks.keys().copied().collect::<Vec<_>>() {
                let at = ChunkAt { dimension, pos: chunk_at(*cube, place)? };
                if area.contains(at.pos) && !listed.contains(&at) {
                    self.gone(at)?;
                }
            }
        }
        if damaged.is_empty() && stored.is_none_or(|row| row.life != life || row.commit < commit) {
            self.tx.put_object(key, encode_row(&AreaRow { life, commit }))?;
        }
        Ok(())
    }

    /// Records that a chunk of an area has another version now.
    fn changed(&mut self, at: ChunkAt, version: u64) -> Result<(), SyncError> {
        let row = self.row(CubeKey::of(at))?;
        if row.version(at).is_none_or(|known| known < version) {
            row.chunks.insert(place_of(at.pos), None);
            self.applied.stale += 1;
        }
        Ok(())
    }

    /// Deletes a chunk of an area, unless its known version is newer than the reply.
    fn gone(&mut self, at: ChunkAt) -> Result<(), SyncError> {
        let (commit, is_late) = (self.reply.commit, self.is_late);
        let row = self.row(CubeKey::of(at))?;
        // If the reply is late, a stale chunk may be newer than it.
        if row.version(at).map_or(!is_late, |known| known <= commit)
            && row.chunks.remove(&place_of(at.pos)).is_some()
        {
            self.tx.delete(at);
            self.applied.gone += 1;
        }
        Ok(())
    }

    /// Converts a chunk of the server to the ids of the cache.
    fn arrived(&mut self, at: ChunkAt, bytes: &[u8]) -> Result<Chunk, SyncError> {
        let mut old = Chunk::decode(bytes, self.names).map_err(|error| SyncError::Chunk { at, error })?;
        if let Some(id) = old.kinds().into_iter().find(|id| !self.names.blocks.contains_key(id)) {
            return Err(SyncError::Unnamed { at, list: ListKind::Blocks, id: id.get() });
        }
        if let Some((kind, _)) = old.sides().find(|(kind, _)| !self.names.sides.contains_key(kind)) {
            return Err(SyncError::Unnamed { at, list: ListKind::Sides, id: kind.get().into() });
        }
        for entity in old.entities().to_vec() {
            old.remove_entity(entity);
        }
        let schema = self.catalog.current_schema();
        let (new, left) =
            self.remap.chunk(&old, &schema).map_err(|error| SyncError::NotRemapped { at, error })?;
        for (component, count) in left {
            let name = self.names.components.get(&component).map(|it| it.name.to_string());
            *self.applied.components_left.entry(name.unwrap_or_default()).or_default() += count;
        }
        Ok(new)
    }

    /// Writes the rows that changed.
    pub(super) fn end(self) -> Result<SyncOutcome, SyncError> {
        let Self { tx, rows, applied, .. } = self;
        for (key, (stored, row)) in rows {
            let is_new = if row.chunks.is_empty() { stored.is_some() } else { stored.as_ref() != Some(&row) };
            if is_new {
                row.write(tx, key)?;
            }
        }
        Ok(applied)
    }
}

/// The changes that a reply made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SyncOutcome {
    /// Chunks that were stored.
    pub updated: u64,
    /// Chunks of the request that are up to date.
    pub up_to_date: u64,
    /// Chunks that the server does not have. The cache deleted its version of them.
    pub gone: u64,
    /// Chunks of areas that changed. Ask about them with
    /// [`SyncClient::request_stale`](crate::SyncClient::request_stale).
    pub stale: u64,
    /// Chunks with a newer version that the caller must ask about again. Either the reply was full, or it was late: a
    /// reply for a newer commit was applied before.
    pub later: Vec<ChunkAt>,
    /// Chunks that the server cannot read. Of an area, the first chunk of each 4³ cube that it cannot read. The cache
    /// keeps its versions.
    pub damaged: Vec<ChunkAt>,
    /// Areas that are too large for one reply. Ask about smaller boxes.
    pub too_large_areas: u64,
    /// Values of sets that were stored.
    pub values_updated: u64,
    /// Values of sets that the server does not have there. The cache deleted its own.
    pub values_gone: u64,
    /// Whether the server has more of the sets that were asked about. Ask about them again.
    pub has_more_values: bool,
    /// Sets about which another reply was applied since the request was made. Nothing of them was applied.
    pub outdated_values: u64,
    /// Values that the server cannot read, by kind and key. The cache keeps its own, and hears of each again when a commit or
    /// a quarantine of the server changes it. Where the server's files were mended instead,
    /// [`forget_values`](crate::SyncClient::forget_values) makes the cache ask for all of the set again.
    pub damaged_values: Vec<(ValueKind, Vec<u8>)>,
    /// Whether the server's world has another history than the cache knew, so that versions were treated as
    /// unknown.
    pub is_restart: bool,
    /// Instances of components without a place in the cache, or without a place for all their parts, by name: the
    /// layout there has none, or the block does not have the component. The bytes are kept in the chunk: in
    /// `:lost_components` if only the block lacks the component, in `:stale` otherwise.
    pub components_left: BTreeMap<String, u64>,
}
