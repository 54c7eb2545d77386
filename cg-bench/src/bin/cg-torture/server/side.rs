//! The world that a game is played on: one that is whole, or one in segments.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use cg_layers::{OnDisk, SegmentOptions, SegmentedWorld};
use cg_store::objects::ObjectPage;
use cg_store::prelude::*;
use cg_store::tiers::TickReport;
use cg_store::verify::VerifyDepth;
use cg_store::view::Area;
use cg_store::{LoadTicket, Refused, WriteTicket};
use cg_tiering::TierPolicy;

use super::game::FIELD_CHUNKS;
use crate::failure::Failure;

/// Chunks along the side of a segment: the field has three by three.
pub(super) const SIDE_CHUNKS: i64 = 16;
/// Objects that are listed at once.
const PAGE: usize = 1000;

/// Which world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SideKind {
    Plain,
    Segmented,
}

#[derive(Debug)]
pub(super) enum Side {
    Plain(World),
    Segmented(SegmentedWorld<OnDisk>),
}

/// The ids of what the game is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ids {
    pub(super) field: Dimension,
    pub(super) ground: BlockId,
    pub(super) hole: BlockId,
    pub(super) chest: BlockId,
    /// The items of a chest, a player or an item that lies about.
    pub(super) items: ComponentId,
    /// How many deeds a player has done.
    pub(super) deeds: ComponentId,
    pub(super) player: EntityTypeId,
    pub(super) item: EntityTypeId,
}

fn options() -> WorldOptions {
    let tiers = TierPolicy {
        warm_after_ticks: 40,
        cold_after_ticks: 400,
        promote_after_ticks: 20,
        hysteresis_ticks: 0,
        gather_ticks: 0,
        // Less than between players, so that chunks go to other tiers all the time.
        near_distance_blocks: 32,
        ..TierPolicy::default()
    };
    WorldOptions { tiers, min_free_bytes: Some(0), ..WorldOptions::process() }
}

fn segments() -> SegmentOptions {
    SegmentOptions { side_chunks: SIDE_CHUNKS as u32, world: options(), ..SegmentOptions::default() }
}

impl SideKind {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Segmented => "segmented",
        }
    }

    pub(super) fn create(self, dir: &Path) -> Result<Side, Failure> {
        let side = match self {
            Self::Plain => Side::Plain(World::builder().options(&options()).create(dir)?),
            Self::Segmented => Side::Segmented(SegmentedWorld::create(dir, &[], &segments())?),
        };
        let mut chest = BlockOffer::new(Name::new("game:chest")?);
        chest.components.push(Name::new("game:items")?);
        let names = Registration {
            components: ["game:items", "game:deeds"]
                .into_iter()
                .map(|name| Ok(ComponentOffer::variable(Name::new(name)?)))
                .collect::<Result<_, Failure>>()?,
            blocks: vec![
                BlockOffer::new(Name::new("game:hole")?),
                BlockOffer::new(Name::new("game:ground")?),
                chest,
            ],
            entities: vec![Name::new("game:player")?, Name::new("game:item")?],
            dimensions: vec![Name::new("game:field")?],
            ..Registration::default()
        };
        match &side {
            Side::Plain(world) => drop(world.registry().register(&names)?),
            Side::Segmented(world) => drop(world.register(&names)?),
        }
        Ok(side)
    }

    pub(super) fn open(self, dir: &Path) -> Result<Side, Failure> {
        Ok(match self {
            Self::Plain => Side::Plain(World::builder().options(&options()).open(dir)?),
            Self::Segmented => Side::Segmented(SegmentedWorld::open(dir, &[], &segments())?),
        })
    }
}

impl Side {
    fn root(&self) -> &World {
        match self {
            Self::Plain(world) => world,
            Self::Segmented(world) => world.root(),
        }
    }

    pub(super) fn ids(&self) -> Result<Ids, Failure> {
        let catalog = self.root().catalog();
        let ids = || {
            Some(Ids {
                field: catalog.dimension("game:field")?,
                ground: catalog.block_id("game:ground")?,
                hole: catalog.block_id("game:hole")?,
                chest: catalog.block_id("game:chest")?,
                items: catalog.component_id("game:items")?,
                deeds: catalog.component_id("game:deeds")?,
                player: catalog.entity_type("game:player")?,
                item: catalog.entity_type("game:item")?,
            })
        };
        ids().ok_or_else(|| "a name of the game is gone".into())
    }

    /// The chunk of every place before anything happens: ground, and a chest.
    pub(super) fn first_chunk(&self, ids: &Ids) -> Result<Chunk, Failure> {
        let schema = self.root().catalog().current_schema();
        let mut chunk = Chunk::filled(ids.ground, &schema)?;
        chunk.set_block(LocalPos::new(0, 0, 0), ids.chest, &schema)?;
        Ok(chunk)
    }

    /// Submits a batch of one segment.
    pub(super) fn submit(&self, at: ChunkAt, batch: WriteBatch) -> Result<WriteTicket, Box<Refused>> {
        match self {
            Self::Plain(world) => world.submit(batch),
            Self::Segmented(world) => world.submit(at, batch),
        }
    }

    /// Stores that an entity is in another segment than before. A world that is whole has one.
    pub(super) fn cross(&self, id: EntityId, entity: Entity) -> Result<(), Error> {
        match self {
            Self::Plain(world) => world
                .transaction(|tx| {
                    tx.put_entity(id, entity);
                    Ok::<_, Error>(())
                })
                .map(drop),
            Self::Segmented(world) => world.transfer_entities([(id, entity)]),
        }
    }

    pub(super) fn tick(
        &self,
        now: GameTick,
        players: &[PlayerAt],
        budget: Duration,
    ) -> Result<TickReport, Error> {
        match self {
            Self::Plain(world) => world.tick(now, players, budget),
            Self::Segmented(world) => world.tick(now, players, budget),
        }
    }

    pub(super) fn load_in_background(&self, at: &[ChunkAt]) -> LoadTicket {
        match self {
            Self::Plain(world) => world.load_in_background(at),
            Self::Segmented(world) => world.load_in_background(at),
        }
    }

    /// Opens what a player is about to enter.
    pub(super) fn open_ahead(&self, at: ChunkAt) {
        if let Self::Segmented(world) = self {
            world.segments().open_ahead(&[at]);
        }
    }

    pub(super) fn for_each_chunk(&self, mut visit: impl FnMut(ChunkAt, Chunk)) -> Result<(), Error> {
        let mut each = |found: Result<(ChunkAt, Chunk), Error>| match found {
            Ok((at, chunk)) => {
                visit(at, chunk);
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        };
        let broken = match self {
            Self::Plain(world) => world.read_view(|view| view.for_each_decoded(Area::World, &mut each))?,
            Self::Segmented(world) => world.segments().for_each_decoded(Area::World, &mut each)?,
        };
        broken.map_or(Ok(()), Err)
    }

    pub(super) fn for_each_entity(&self, mut visit: impl FnMut(EntityId, Entity)) -> Result<(), Error> {
        let mut each = |found: Result<(EntityId, Entity), Error>| match found {
            Ok((id, entity)) => {
                visit(id, entity);
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        };
        let broken = match self {
            Self::Plain(world) => world.read_view(|view| view.for_each_entity(&mut each))?,
            Self::Segmented(world) => world.segments().for_each_entity(&mut each)?,
        };
        broken.map_or(Ok(()), Err)
    }

    /// All objects by their keys.
    pub(super) fn objects(&self) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Error> {
        let (mut objects, mut after) = (BTreeMap::new(), None);
        loop {
            let ObjectPage { entries, next } = match self {
                Self::Plain(world) => world.objects().list("", after.as_ref(), PAGE)?,
                Self::Segmented(world) => world.objects().list("", after.as_ref(), PAGE)?,
            };
            for entry in entries {
                let object = match self {
                    Self::Plain(world) => world.objects().get(&entry.key)?,
                    Self::Segmented(world) => world.objects().get(&entry.key)?,
                };
                objects.extend(object.map(|object| (entry.key.as_bytes().to_vec(), object.bytes.to_vec())));
            }
            match next {
                Some(next) => after = Some(next),
                None => return Ok(objects),
            }
        }
    }

    /// An error if a checksum, a reference or a count is wrong.
    pub(super) fn verify(&self) -> Result<(), Failure> {
        let sound = |world: &World| {
            let report = world.verify(VerifyDepth::Full, |_| {})?;
            Ok(report.findings.first().map(|finding| finding.what.clone()))
        };
        let mut found = sound(self.root())?;
        if let Self::Segmented(world) = self {
            for segment in world.segments().list() {
                let of_segment = world.segments().with(segment, sound)?;
                found = found.or(of_segment.map(|what| format!("{segment}: {what}")));
            }
        }
        found.map_or(Ok(()), |what| Err(format!("it is not sound: {what}").into()))
    }

    pub(super) fn close(self) -> Result<(), Error> {
        match self {
            Self::Plain(world) => world.close(),
            Self::Segmented(world) => world.close(),
        }
    }
}

/// The chunk at a place of the field, in chunks.
pub(super) fn chunk_at(ids: &Ids, [x, z]: [i64; 2]) -> ChunkAt {
    let [x, z] = [x, z].map(|axis| axis.clamp(0, FIELD_CHUNKS - 1));
    ChunkAt::new(ids.field, ChunkPos::constant(x, 0, z))
}
