//! Contents in the world of a column that a save may bring.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, Owner};
use cg_format::{ChunkAt, ChunkBox, ChunkPos, Dimension, EntityId};
use cg_minecraft::name;
use cg_store::prelude::Property;
use cg_store::view::Area;
use cg_store::{Error, ErrorKind, World};

use super::apply::Importer;
use super::choices::Merge;
use super::error::ImportError;
use super::ledger::Part;
use crate::mapping::kept::{Folder, slot_key};
use crate::mapping::{NO_CHUNK, key, place};
use crate::region::{ColumnPos, RegionPos};

/// Sections that a save can have.
const SECTION_Y: std::ops::RangeInclusive<i32> = -128..=127;

/// Contents of a column in the world.
#[derive(Debug, Default)]
pub(super) struct StoredColumn {
    /// Its chunks, of any height.
    pub(super) chunks: Vec<ChunkAt>,
    /// Whether it has a record without chunks.
    pub(super) has_record: bool,
    /// Whether its slot is kept as bytes: of before 1.13, or not readable as a whole.
    pub(super) is_old: bool,
}

impl StoredColumn {
    /// Whether the world has a column that could be read.
    pub(super) const fn is_readable(&self) -> bool {
        !self.chunks.is_empty() || self.has_record
    }

    /// Whether the world has any part of it.
    pub(super) const fn is_there(&self) -> bool {
        self.is_readable() || self.is_old
    }
}

/// Damage of a column, in words.
pub(super) type Damaged = String;

/// The chunks of the columns of a region.
#[derive(Debug)]
pub(super) struct RegionChunks {
    place: (Dimension, RegionPos),
    columns: BTreeMap<ColumnPos, Vec<ChunkAt>>,
    /// Whether all rows of the region could be read.
    is_whole: bool,
}

impl RegionChunks {
    /// Looks at the keys of a region, and opens clusters up to their directories.
    fn find(world: &World, (dimension, region): (Dimension, RegionPos)) -> Result<Self, Error> {
        let corner = |d: i64, y: i64| {
            let (x, z) = (i64::from(region.x()) * 32 + d, i64::from(region.z()) * 32 + d);
            ChunkPos::new(x, y, z).expect("a region lies inside the world")
        };
        let area = ChunkBox::new(corner(0, ChunkPos::MIN), corner(31, ChunkPos::MAX));
        let (mut columns, mut is_whole) = (BTreeMap::<_, Vec<_>>::new(), true);
        world.read_view(|view| {
            view.for_each_place(Area::Box(dimension, area), |stored| {
                match stored {
                    Ok(stored) => {
                        let column = place::column_of(stored.at.pos).expect("a region's");
                        columns.entry(column).or_default().push(stored.at);
                    }
                    Err(_) => is_whole = false,
                }
                ControlFlow::<()>::Continue(())
            })
        })?;
        Ok(Self { place: (dimension, region), columns, is_whole })
    }
}

/// The entities of a world by the column that they are in.
pub(super) type ByColumn = BTreeMap<(Dimension, ColumnPos), Vec<EntityId>>;

/// The entities that an import left without a chunk, because there was none where they are. Reads every entity once.
pub(super) fn without_chunk(world: &World) -> Result<ByColumn, Error> {
    let mut found = ByColumn::new();
    world.read_view(|view| {
        view.for_each_entity(|entity| {
            // What is damaged belongs to no column that could be replaced.
            if let Ok((id, Entity { owner: Owner::Detached(reason), position, .. })) = entity
                && reason.as_str() == NO_CHUNK
                && let Some(column) = place::column_of(position.block().chunk())
            {
                found.entry((position.dimension(), column)).or_default().push(id);
            }
            ControlFlow::<()>::Continue(())
        })
    })?;
    Ok(found)
}

impl Importer<'_> {
    /// Contents in the world of a column that this import did not bring, or its damage in words. Columns of one region
    /// that follow each other cost one look at its keys.
    pub(super) fn stored(&mut self, column: ColumnPos) -> Result<Result<StoredColumn, Damaged>, ImportError> {
        let damaged = |error: Error| {
            if error.kind() == ErrorKind::Damaged {
                Ok(Err(error.to_string()))
            } else {
                Err(ImportError::Store(error))
            }
        };
        let region = (self.dimension, column.region());
        let chunks = match self.chunks.take().filter(|chunks| chunks.place == region) {
            Some(chunks) => chunks,
            None => RegionChunks::find(self.world, region)?,
        };
        let mut found: BTreeSet<_> = chunks.columns.get(&column).into_iter().flatten().copied().collect();
        let is_whole = chunks.is_whole;
        self.chunks = Some(chunks);
        if !is_whole {
            for at in SECTION_Y.map(|y| column.chunk_at(self.dimension, y)) {
                match self.world.load(at) {
                    Ok(None) => {}
                    Ok(Some(_)) => drop(found.insert(at)),
                    Err(error) => return damaged(error),
                }
            }
        }
        let property =
            name::column_property(&self.dimension_name, column.x, column.z).map_err(Error::from)?;
        let has_record = match self.world.property(&Property::Named(property)) {
            Ok(record) => record.is_some(),
            Err(error) => return damaged(error),
        };
        let objects = self.world.objects();
        let mut is_old = false;
        let kept = slot_key(Folder::Region, &self.dimension_name, column);
        let keys = [kept, key::column_key(&self.dimension_name, column)];
        for (key, is_slot) in keys.into_iter().zip([true, false]) {
            // Of a dimension whose name is too long for a key there is none.
            let Ok(key) = key else { continue };
            match objects.version(&key) {
                Ok(version) => is_old |= is_slot && version.is_some(),
                Err(error) => return damaged(error),
            }
        }
        Ok(Ok(StoredColumn { chunks: found.into_iter().collect(), has_record, is_old }))
    }

    /// The chunks of a column of the world, or what of it or of its entities is damaged.
    pub(super) fn load_column(
        &self,
        column: &StoredColumn,
    ) -> Result<Result<BTreeMap<ChunkAt, Arc<Chunk>>, Damaged>, Error> {
        let load = || -> Result<_, Error> {
            let mut chunks = BTreeMap::new();
            for at in &column.chunks {
                let Some(chunk) = self.world.load(*at)? else { continue };
                for id in chunk.entities() {
                    self.world.entity(*id)?;
                }
                chunks.insert(*at, chunk);
            }
            Ok(chunks)
        };
        match load() {
            Err(error) if error.kind() == ErrorKind::Damaged => Ok(Err(error.to_string())),
            loaded => loaded.map(Ok),
        }
    }

    /// Whether the world keeps a column as it is, so that nothing of this save's belongs to it.
    pub(super) fn keeps(&mut self, column: ColumnPos) -> Result<bool, ImportError> {
        if self.ledger.has(Part::Kept, column) {
            return Ok(true);
        }
        if self.head.choices.merge != Some(Merge::Keep) || self.is_brought(column) {
            return Ok(false);
        }
        Ok(self.stored(column)?.map_or(true, |column| column.is_there()))
    }
}
