//! Captures a region of any source as a snapshot.
//!
//! A snapshot holds one state exactly if the source does. Such sources are a read view of a world, a world without
//! other writers, and a host's memory that does not change. A transaction of a running world reads guarded chunks one
//! by one with [`Capture`]. It fails with a conflict if one of them was changed meanwhile, and the caller repeats it.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, Owner};
use cg_format::{ChunkAt, ChunkSource, EntityId, EntitySource, Lookup, SchemaView};
use cg_registry::{Catalog, ListKind};
use rayon::prelude::*;

use crate::builder::Builder;
use crate::error::{CaptureError, SnapshotError};
use crate::region::{Region, Section};
use crate::section::{Contents, Prepared, portion};
use crate::snapshot::{MAX_SECTIONS, Snapshot, SnapshotInfo};

/// Sections that one call of the source reads.
const SECTIONS_AT_ONCE: usize = 256;
/// Sections whose bytes are in memory before equal ones are merged.
pub(crate) const SECTIONS_IN_FLIGHT: usize = 4096;

/// How a region is captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureOptions {
    /// The snapshot's name, at most 65,535 bytes.
    pub name: String,
    /// The time of the capture, in milliseconds since 1970. Stored for display only.
    pub created_ms: u64,
    /// The contents that are captured in addition to the blocks. Default: everything.
    pub contents: Contents,
}

impl CaptureOptions {
    /// Options with a name and defaults: captures everything, time 0.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), created_ms: 0, contents: Contents::ALL }
    }
}

/// Captures a region.
///
/// Chunks are read in calls of 256 positions and encoded in the caller's rayon pool; equal sections are stored once. An
/// entity is captured if a chunk of the region owns it and its position is in the box.
///
/// # Errors
/// [`CaptureError::Source`] at the first chunk that cannot be read: a damaged chunk is never captured as absent.
/// [`SnapshotError::UnknownId`] if the catalog is not the source's, [`SnapshotError::TooManySections`].
pub fn capture<S, X>(
    source: &S,
    catalog: &Catalog,
    region: Region,
    options: &CaptureOptions,
) -> Result<Snapshot, CaptureError<X>>
where
    S: ChunkSource<Error = X> + EntitySource<Error = X> + Sync,
    X: Send,
{
    let mut capture = Capture::new(region, catalog, options)?;
    let mut sections = region.sections();
    let schema = source.schema();
    loop {
        let window: Vec<Section> = sections.by_ref().take(SECTIONS_IN_FLIGHT).collect();
        if window.is_empty() {
            return Ok(capture.finish(catalog)?);
        }
        let prepared: Result<Vec<_>, CaptureError<X>> = window
            .par_chunks(SECTIONS_AT_ONCE)
            .map(|batch| {
                let at: Vec<ChunkAt> = batch.iter().map(|section| section.at).collect();
                let found = source.lookup_many(&at);
                let prepare = |(section, found): (&Section, Result<Lookup<Arc<Chunk>>, X>)| {
                    let found = found
                        .map_err(|error| CaptureError::Source { at: section.at, error: Box::new(error) })?;
                    let Some(chunk) = found.here() else { return Ok(None) };
                    let part = prepare(&chunk, section, options.contents, &*schema)?;
                    let entities =
                        if options.contents.entities { chunk.entities().to_vec() } else { Vec::new() };
                    Ok(Some((part, entities)))
                };
                batch.iter().zip(found).map(prepare).collect::<Result<Vec<_>, _>>()
            })
            .collect::<Result<Vec<_>, _>>()
            .map(|batches| batches.into_iter().flatten().collect());
        for (section, prepared) in window.iter().zip(prepared?) {
            let Some((part, entities)) = prepared else {
                capture.push(None);
                continue;
            };
            capture.push(Some(part));
            for id in entities {
                let entity =
                    source.entity(id).map_err(|error| CaptureError::Entity { id, error: Box::new(error) })?;
                if let Some(entity) = entity {
                    capture.add_entity(id, &entity, section);
                }
            }
        }
    }
}

fn prepare(
    chunk: &Chunk,
    section: &Section,
    contents: Contents,
    schema: &(impl SchemaView + ?Sized),
) -> Result<Prepared, SnapshotError> {
    let part = portion(chunk, section, contents, schema);
    let part = part.map_err(|error| SnapshotError::Section { at: section.at, error })?;
    Ok(Prepared::new(&part))
}

/// A capture step by step, for a caller that has the chunks. Sections are added in the order of [`Region::sections`].
pub struct Capture {
    builder: Builder,
    region: Region,
    contents: Contents,
}

impl Capture {
    /// Begins a capture. `catalog` is the one that issued the ids of the region's chunks.
    ///
    /// # Errors
    /// [`SnapshotError::TooManySections`], [`SnapshotError::NameTooLong`], or [`SnapshotError::UnknownId`] for the
    /// dimension.
    pub fn new(region: Region, catalog: &Catalog, options: &CaptureOptions) -> Result<Self, SnapshotError> {
        let info = begin(region, catalog, options)?;
        Ok(Self { contents: options.contents, builder: Builder::new(info, region), region })
    }

    /// Adds the next section. `None`: there is no chunk.
    ///
    /// # Errors
    /// [`SnapshotError::Section`] if the schema does not explain the chunk.
    pub fn add(
        &mut self,
        section: &Section,
        chunk: Option<&Chunk>,
        schema: &(impl SchemaView + ?Sized),
    ) -> Result<(), SnapshotError> {
        let part = chunk.map(|chunk| prepare(chunk, section, self.contents, schema)).transpose()?;
        self.push(part);
        Ok(())
    }

    fn push(&mut self, part: Option<Prepared>) {
        self.builder.push(part);
    }

    /// Adds an entity of a section's chunk, if entities are captured and its position is in the region.
    pub fn add_entity(&mut self, id: EntityId, entity: &Entity, section: &Section) {
        let is_there = entity.owner == Owner::Chunk(section.at) && stands_in(entity, self.region);
        if self.contents.entities && is_there {
            self.builder.entity(id, entity.clone());
        }
    }

    /// The number of sections added.
    pub fn section_count(&self) -> usize {
        self.builder.section_count()
    }

    /// Returns the snapshot. Sections that were not added are absent.
    ///
    /// # Errors
    /// [`SnapshotError::UnknownId`] if the catalog is not the one that issued the ids.
    pub fn finish(mut self, catalog: &Catalog) -> Result<Snapshot, SnapshotError> {
        for _ in self.section_count() as u128..self.region.section_count() {
            self.builder.push(None);
        }
        self.builder.finish(catalog)
    }
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("region", &self.region).finish_non_exhaustive()
    }
}

/// Whether a capture of a region includes an entity: one of its chunks owns it and its position is in the box.
pub(crate) fn is_captured(entity: &Entity, region: Region) -> bool {
    let Owner::Chunk(at) = entity.owner else { return false };
    at.dimension == region.dimension() && region.area().chunks().contains(at.pos) && stands_in(entity, region)
}

pub(crate) fn stands_in(entity: &Entity, region: Region) -> bool {
    let position = entity.position;
    position.dimension() == region.dimension() && region.area().contains(position.block())
}

/// The number of a region's sections.
///
/// # Errors
/// [`SnapshotError::TooManySections`].
pub(crate) fn checked_section_count(region: Region) -> Result<usize, SnapshotError> {
    let (found, max) = (region.section_count(), MAX_SECTIONS);
    if found > max.into() {
        return Err(SnapshotError::TooManySections { found, max });
    }
    Ok(found as usize)
}

fn begin(region: Region, catalog: &Catalog, options: &CaptureOptions) -> Result<SnapshotInfo, SnapshotError> {
    checked_section_count(region)?;
    let (len_bytes, max_bytes) = (options.name.len(), usize::from(u16::MAX));
    if len_bytes > max_bytes {
        return Err(SnapshotError::NameTooLong { len_bytes, max_bytes });
    }
    let id = region.dimension().get();
    let dimension = catalog.list(ListKind::Dimensions).current_name(id).cloned();
    let unknown = SnapshotError::UnknownId { list: ListKind::Dimensions, id };
    Ok(SnapshotInfo {
        name: options.name.clone(),
        region,
        dimension: dimension.ok_or(unknown)?,
        created_ms: options.created_ms,
        contents: options.contents,
        section_count: 0,
        present_count: 0,
        unique_count: 0,
        unique_bytes: 0,
        entity_count: 0,
    })
}
