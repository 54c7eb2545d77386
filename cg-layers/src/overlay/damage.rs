//! Damaged chunks of an arena: they are given up, and the base shows through.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use cg_format::entity::{Entity, Owner, Reason};
use cg_format::frame::FrameView;
use cg_format::key::{self, Family};
use cg_format::overlay::{Origin, OverlayRow};
use cg_format::{ChunkAt, ChunkBox, Dimension, EntityId, Space};
use cg_store::engine::ReadableExt as _;
use cg_store::layer::kind::{Chunks, Entities};
use cg_store::layer::{Base, origin_of};
use cg_store::{Error, ErrorKind};

use super::handle::Overlay;
use crate::store::{Edits, LeaseView, OverlayKind as _, key_of};

/// The reason stored with an entity whose chunk [`Overlay::reset_damaged`] gave up, where the base has no chunk.
pub const CHUNK_RESET: &str = "its chunk was reset";

/// The result of [`Overlay::reset_damaged`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ResetChunks {
    /// The number of chunks that were damaged, and are as in the base again.
    pub chunks: u64,
    /// The number of their entities that are detached, because the base has no chunk there.
    pub detached_entities: u64,
    /// The number of sound chunks whose damaged copy of the base's chunk was deleted. The chunks stay as they are. A merge
    /// compares them as a whole.
    pub ancestors: u64,
    /// The number of damaged chunks that stay so, because the base's chunk is damaged too.
    pub left: u64,
}

/// What is damaged of a chunk.
enum Damaged {
    Nothing,
    /// The base's chunk of its first write.
    Ancestor,
    Chunk,
}

/// An entity of a lease, and its origin in the base.
type Owned = (EntityId, Entity, Origin);

impl<S: Base> Overlay<S> {
    /// Gives up the damaged chunks of a box: each is as in the base again. Sound ones are left alone.
    ///
    /// Such a chunk lists the entities that the overlay shows there: those of the base that the overlay has not moved or
    /// deleted, and those that it has put there itself. Where the base has no chunk there is none, and entities that the overlay
    /// has put there are detached, with the reason [`CHUNK_RESET`]. An entity whose own row is damaged stays damaged; only a
    /// [`reset`](Self::reset) of the whole overlay gives it up. [`Arenas::verify`](crate::Arenas::verify) names the chunks.
    ///
    /// The damaged rows are deleted, and no copy of them is kept. Each chunk is a commit of its own, and what was done before
    /// an error stays. Waits for a running transaction, and transactions wait for it. Costs one or two key reads for each
    /// place of the box, and if one is damaged a scan of the overlay's entities.
    ///
    /// # Errors
    /// [`Error::Nested`] inside a transaction of the same overlay; if rows of entities cannot be listed, since a chunk would
    /// lack them; the errors of the engine and of [`catalog`](Self::catalog).
    pub fn reset_damaged(&self, dimension: Dimension, area: ChunkBox) -> Result<ResetChunks, Error> {
        let _alone = self.write()?;
        self.store().catalog()?;
        let (mut done, mut damaged) = (ResetChunks::default(), BTreeMap::new());
        for pos in area.iter() {
            let at = ChunkAt::new(dimension, pos);
            match self.damage_of(at)? {
                Damaged::Nothing => {}
                Damaged::Ancestor => {
                    let row_key = key::overlay_chunk(self.lease(), at).to_vec();
                    self.store().forget(
                        self.lease(),
                        &[at],
                        &[[Some((Space::ChunkDelta, row_key)), None]],
                    )?;
                    done.ancestors += 1;
                }
                Damaged::Chunk => drop(damaged.insert(at, Vec::new())),
            }
        }
        if !damaged.is_empty() {
            self.find_owned(&mut damaged)?;
        }
        for (at, owned) in damaged {
            self.show_base(at, owned, &mut done)?;
        }
        Ok(done)
    }

    /// What is damaged of a chunk on the disk.
    fn damage_of(&self, at: ChunkAt) -> Result<Damaged, Error> {
        let (store, lease) = (self.store(), self.lease());
        let row_key = key::overlay_chunk(lease, at);
        let row = match store.rows.get(Space::ChunkL0, &row_key) {
            Err(error) if error.kind() == ErrorKind::Damaged => return Ok(Damaged::Chunk),
            row => row?,
        };
        if row.is_some_and(|row| store.is_damaged(lease, at, &row)) {
            return Ok(Damaged::Chunk);
        }
        let ancestor = match store.rows.get(Space::ChunkDelta, &row_key) {
            Err(error) if error.kind() == ErrorKind::Damaged => return Ok(Damaged::Ancestor),
            ancestor => ancestor?,
        };
        let is_sound = |row: &[u8]| {
            let frame = FrameView::open(Space::ChunkDelta, &row_key, row);
            frame.and_then(|frame| OverlayRow::decode(frame.payload()).map(drop)).is_ok()
        };
        let is_damaged = ancestor.is_some_and(|row| !is_sound(&row));
        Ok(if is_damaged { Damaged::Ancestor } else { Damaged::Nothing })
    }

    /// Finds the entities that the overlay has put into chunks.
    fn find_owned(&self, chunks: &mut BTreeMap<ChunkAt, Vec<Owned>>) -> Result<(), Error> {
        let lease = self.lease();
        let (from, to) = (Entities::first_row_key(lease), key::lease(lease + 1));
        let range = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        // The caller has the right to write, so the rows stay as they are.
        let rows = LeaseView { store: self.store(), lease, view: self.store().rows.engine() };
        let failed = rows.view.scan(Family::Entity, range, |row_key, row| {
            let row = key_of::<Entities>(row_key)
                .and_then(|id| Ok((id, Entities::decode(&rows, &id, row_key, row)?)));
            match row {
                // An entity that is damaged itself is in no chunk that is known.
                Err(error) if error.kind() == ErrorKind::Damaged => {}
                Err(error) => return ControlFlow::Break(error),
                Ok((id, row)) => {
                    if let Some(entity) = row.here()
                        && let Owner::Chunk(at) = &entity.owner
                        && let Some(owned) = chunks.get_mut(at)
                    {
                        owned.push((id, entity.clone(), row.origin));
                    }
                }
            }
            ControlFlow::Continue(())
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// Gives up the row of a chunk, whose entities are `owned` by the overlay's rows.
    fn show_base(&self, at: ChunkAt, owned: Vec<Owned>, done: &mut ResetChunks) -> Result<(), Error> {
        let (store, lease) = (self.store(), self.lease());
        let found = match store.base.find_chunk(at) {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                done.left += 1;
                return Ok(());
            }
            found => found?,
        };
        let origin = origin_of(&found);
        let mut edits = Edits::default();
        match found.here() {
            Some((base, _)) => {
                let mut chunk = Arc::clone(&base);
                for id in base.entities() {
                    if !self.is_in(*id, at)? {
                        Arc::make_mut(&mut chunk).remove_entity(*id);
                    }
                }
                for (id, ..) in &owned {
                    Arc::make_mut(&mut chunk).add_entity(*id);
                }
                if chunk.entities() != base.entities() {
                    edits.chunks.push((at, Some(chunk), origin));
                }
            }
            None if owned.is_empty() => {}
            None => {
                let reason = Reason::new(CHUNK_RESET).expect("it is short");
                done.detached_entities += owned.len() as u64;
                let detached = |(id, entity, origin): Owned| {
                    (id, Some(entity.owned_by(Owner::Detached(reason.clone()))), origin)
                };
                edits.entities.extend(owned.into_iter().map(detached));
                edits.chunks.push((at, None, origin));
            }
        }
        let stays = edits.chunks.iter().any(|(_, chunk, _)| chunk.is_some());
        if !edits.is_empty() {
            store.write(lease, edits, store.catalog()?.current_generation())?.whole()?;
        }
        if !stays {
            store.forget(lease, &[at], &[Chunks::rows(store, lease, &at, None)])?;
        }
        done.chunks += 1;
        Ok(())
    }

    /// Whether the overlay shows an entity of the base's chunk in it. A damaged one stays where the base has it.
    fn is_in(&self, id: EntityId, at: ChunkAt) -> Result<bool, Error> {
        match Entities::read(self.store(), self.lease(), &id) {
            Ok(Some(row)) => Ok(row.here().is_some_and(|entity| entity.owner == Owner::Chunk(at))),
            Ok(None) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Damaged => Ok(true),
            Err(error) => Err(error),
        }
    }
}
