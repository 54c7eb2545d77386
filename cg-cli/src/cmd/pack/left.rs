//! Contents of a box that its pack does not hold.

use std::collections::HashSet;
use std::fmt;
use std::ops::ControlFlow;

use cg_anvil::mapping::kept;
use cg_format::entity::{Entity, Owner};
use cg_format::{BlockBox, ChunkAt, ChunkBox, ChunkPos, Dimension};
use cg_minecraft::name;
use cg_registry::ListKind;
use cg_store::World;
use cg_store::view::Area;

use super::ChoiceArg;
use super::values::each_record;
use crate::cmd::name_of;
use crate::output::{Failure, counted, grouped};

/// Contents of a box that its pack does not hold.
#[derive(Debug, Default)]
pub(in crate::cmd) struct Left {
    /// Records, where they are left out.
    pub(super) records: u64,
    pub(super) detached: u64,
    /// Entities that belong to chunks of the box and stand elsewhere.
    pub(super) outside: u64,
    /// Slots of its columns that are kept as bytes.
    pub(super) kept_slots: u64,
}

/// Counts the contents of a box that the pack does not hold. A damaged record or entity ends it: it may be of the box.
pub(super) fn left_in(
    world: &World,
    area: BlockBox,
    args: &ChoiceArg,
    prefixes: &[Vec<u8>],
) -> Result<Left, Failure> {
    let catalog = world.catalog();
    let dimension = args.dimension.find(&catalog)?;
    let mut records = 0;
    if args.without_records {
        each_record(world, dimension, area, |_, _| records += 1)?;
    }
    let chunks = area.chunks();
    let (mut detached, mut outside) = (0, 0);
    let packed = packed_columns(world, dimension, chunks)?;
    let failed = world.read_view(|view| {
        view.for_each_entity(|entity| match entity {
            Ok((_, Entity { owner, position, .. })) => {
                let is_here = position.dimension() == dimension;
                let stands_in = is_here && area.contains(position.block());
                let is_owned = |at: ChunkAt| at.dimension == dimension && chunks.contains(at.pos);
                let chunk = position.block().chunk();
                match owner {
                    // Above and below, `cg prune` takes them with the column's last chunk.
                    Owner::Detached(_) => {
                        let is_of_column = || is_here && packed.contains(&(chunk.x(), chunk.z()));
                        detached += u64::from(stands_in || is_of_column());
                    }
                    Owner::Chunk(at) => outside += u64::from(is_owned(at) && !stands_in),
                }
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        })
    })?;
    failed.map_or(Ok(()), Err)?;
    let dimension_name = name::text(&name_of(&catalog, ListKind::Dimensions, dimension.get()));
    let kept = kept::keys_of_dimension(world, &dimension_name)?.into_iter();
    let kept_slots = kept.filter(|(key, column)| {
        let (x, z) = (i64::from(column.x), i64::from(column.z));
        let is_inside = (chunks.min().x()..=chunks.max().x()).contains(&x)
            && (chunks.min().z()..=chunks.max().z()).contains(&z);
        is_inside && !prefixes.iter().any(|prefix| key.as_bytes().starts_with(prefix))
    });
    Ok(Left { records, detached, outside, kept_slots: kept_slots.count() as u64 })
}

/// The columns of which all chunks are in a box.
fn packed_columns(
    world: &World,
    dimension: Dimension,
    chunks: ChunkBox,
) -> Result<HashSet<(i64, i64)>, Failure> {
    let at = |corner: ChunkPos, y: i64| ChunkPos::new(corner.x(), y, corner.z());
    let [bottom, top] = [at(chunks.min(), i64::from(i8::MIN)), at(chunks.max(), i64::from(i8::MAX))];
    let (Ok(bottom), Ok(top)) = (bottom, top) else { return Ok(HashSet::new()) };
    let (mut inside, mut beyond) = (HashSet::new(), HashSet::new());
    let failed = world.read_view(|view| {
        view.for_each_place(Area::Box(dimension, ChunkBox::new(bottom, top)), |stored| match stored {
            Ok(stored) => {
                let pos = stored.at.pos;
                let columns = if chunks.contains(pos) { &mut inside } else { &mut beyond };
                columns.insert((pos.x(), pos.z()));
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        })
    })?;
    failed.map_or(Ok(()), Err)?;
    Ok(inside.difference(&beyond).copied().collect())
}

impl Left {
    pub(in crate::cmd) const fn is_nothing(&self) -> bool {
        self.records + self.detached + self.outside + self.kept_slots == 0
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entities = |count, of: &str| match count {
            0 => None,
            1 => Some(format!("1 {of}entity")),
            count => Some(format!("{} {of}entities", grouped(count))),
        };
        let records = (self.records > 0).then(|| counted(self.records, "record"));
        let outside = entities(self.outside, "").map(|it| format!("{it} of its chunks outside of it"));
        let kept_slots = (self.kept_slots > 0).then(|| counted(self.kept_slots, "kept slot"));
        let all = [records, entities(self.detached, "detached "), outside, kept_slots];
        let all: Vec<_> = all.into_iter().flatten().collect();
        f.write_str(&all.join(", "))
    }
}
