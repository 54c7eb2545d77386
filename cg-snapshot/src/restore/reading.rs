//! The chunks that an operation reads: encoded at once for a capture, shared for a copy.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{ChunkAt, Editor, EntityId, SchemaView};
use cg_registry::Catalog;

use super::operation::Outcome;
use crate::capture::Capture;
use crate::copied::Copied;
use crate::error::SnapshotError;
use crate::region::Section;

/// The state of a chunk when it was read, or when a capture began.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) chunk: Option<Arc<Chunk>>,
    pub(super) entities: Vec<(EntityId, Entity)>,
}

impl Kept {
    /// Reads a chunk and the entities that it refers to.
    pub(super) fn read<E: Editor + ?Sized>(editor: &mut E, at: ChunkAt) -> Result<Self, E::Error> {
        let chunk = editor.load(at)?;
        let mut entities = Vec::new();
        for id in chunk.as_deref().map_or(&[][..], Chunk::entities) {
            entities.extend(editor.entity(*id)?.map(|entity| (*id, entity)));
        }
        Ok(Self { chunk, entities })
    }
}

/// The sections that were read so far.
pub(super) enum Reading {
    /// They are encoded as they are read.
    Capture(Box<Capture>),
    /// They stay as they are.
    Copy(Box<Copied>),
}

impl Reading {
    /// Adds the next section.
    pub(super) fn add(
        &mut self,
        section: &Section,
        state: &Kept,
        schema: Arc<dyn SchemaView + Send + Sync>,
    ) -> Result<(), SnapshotError> {
        match self {
            Self::Capture(capture) => {
                capture.add(section, state.chunk.as_deref(), &*schema)?;
                for (id, entity) in &state.entities {
                    capture.add_entity(*id, entity, section);
                }
            }
            Self::Copy(copied) => {
                copied.add(state.chunk.clone(), schema);
                for (id, entity) in &state.entities {
                    copied.add_entity(*id, entity, section);
                }
            }
        }
        Ok(())
    }

    /// The outcome, after the last section.
    pub(super) fn finish(self, catalog: &Catalog) -> Outcome {
        match self {
            Self::Capture(capture) => match capture.finish(catalog) {
                Ok(snapshot) => Outcome::Captured(Arc::new(snapshot)),
                Err(error) => Outcome::Failed(error.to_string()),
            },
            Self::Copy(copied) => Outcome::Copied(Arc::from(copied)),
        }
    }
}
