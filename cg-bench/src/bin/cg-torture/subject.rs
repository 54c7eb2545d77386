//! The world under test: made, and changed by steps.

use std::path::Path;

use cg_format::CellOrder;
use cg_format::chunk::Chunk;
use cg_format::entity::Reason;
use cg_format::record::Record;
use cg_store::Transaction;
use cg_store::prelude::*;
use cg_tiering::TierPolicy;

use crate::failure::Failure;
use crate::filling::Filling;
use crate::model::{self, Model};
use crate::size::{CHEST, ENTITIES, ITEMS, KINDS, LAYERED_BLOCK, LAYERED_CELL};
use crate::step::{Action, Holder, Step};

type Tx<'w> = Transaction<'w>;

const CHEST_CELL: LocalPos = LocalPos::new(0, 0, 0);
/// The property that counts the steps.
pub(crate) const STEPS: &str = "torture:steps";
/// The object that every step writes.
pub(crate) const OBJECT: &str = "torture/steps";
/// The record that every step moves.
pub(crate) const RECORD: RecordId = RecordId::from_bytes([7; 16]);
const DIMENSIONS: [&str; 2] = ["torture:first", "torture:second"];
/// Little memory, so that write buffers become files while the world is tortured.
const ENGINE_BYTES: u64 = 16 << 20;

/// The ids that the world under test has issued.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ids {
    coins: ComponentId,
    /// An entity's component.
    pub(crate) tag: ComponentId,
    /// A chunk's side data.
    pub(crate) side: SideKind,
    /// Every entity's type.
    pub(crate) kind: EntityTypeId,
}

/// How the worker is broken, so that the checks can be seen to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Break {
    /// A step's first change is committed by itself.
    Split,
    /// A step is reported as committed before it is.
    Lie,
}

/// How the worlds of a torture are opened.
pub(crate) fn options() -> WorldOptions {
    WorldOptions {
        engine_bytes: ENGINE_BYTES,
        cache_bytes: 4 << 20,
        tiers: policy(),
        deltas: true,
        opacity: cg_store::opacity::Keep::On,
        ..WorldOptions::default()
    }
}

/// Chunks grow warm within a round of the mover, cold where no player is near, and hot again as soon as they are asked for
/// where a player is.
fn policy() -> TierPolicy {
    TierPolicy {
        warm_after_ticks: 20,
        cold_after_ticks: 1000,
        promote_after_ticks: 0,
        hysteresis_ticks: 0,
        gather_ticks: 0,
        rewrite_after_ticks: 0,
        ..TierPolicy::default()
    }
}

/// Makes the world in which no step was taken, and closes it.
pub(crate) fn create(dir: &Path, seed: u64) -> Result<(), Failure> {
    let world = World::builder().options(&options()).create(dir)?;
    let stones = (CHEST + 1..KINDS).map(|index| format!("torture:stone{index}"));
    let names = [":air".to_owned(), "torture:chest".to_owned()].into_iter().chain(stones);
    let mut blocks =
        names.map(|name| Ok(BlockOffer::new(Name::new(name)?))).collect::<Result<Vec<_>, Failure>>()?;
    blocks[0].opaque = false;
    blocks[CHEST as usize].components.push(Name::new("torture:coins")?);
    world.registry().register(&Registration {
        components: vec![
            ComponentOffer::variable(Name::new("torture:coins")?),
            ComponentOffer::variable(Name::new("torture:tag")?),
        ],
        blocks,
        entities: vec![Name::new("torture:item")?],
        sides: vec![Name::new("torture:side")?],
        dimensions: DIMENSIONS.into_iter().map(Name::new).collect::<Result<_, _>>()?,
        ..Registration::default()
    })?;
    let ids = Ids::of(&world)?;
    let start = Model::new(seed);
    world.transaction(|tx| {
        for (place, ground) in &start.chunks {
            let chunk = chunk_of(tx, ground.content)?;
            tx.save(at(*place), chunk);
        }
        for (id, body) in &start.entities {
            let owner = body.owner.map_or_else(detached, |place| Ok(Owner::Chunk(at(place))))?;
            ids.put(tx, *id, owner, body.tag)?;
        }
        for (player, coins) in (0..).zip(start.players) {
            tx.set_property(player_name(player)?, Some(coins.to_le_bytes().into()));
        }
        tx.set_property(named(STEPS)?, Some(0_u64.to_le_bytes().into()));
        keep(tx, 0)
    })?;
    Ok(world.close()?)
}

/// How many steps the world has taken.
pub(crate) fn steps_taken(world: &World) -> Result<u64, Failure> {
    let bytes = world.property(&named(STEPS)?)?.ok_or("the count of steps is gone")?;
    Ok(number(&bytes))
}

/// Takes a step, and returns its commit. A worker that splits it calls back between the two halves.
pub(crate) fn take(world: &World, step: &Step, broken: Option<Break>) -> Result<u64, Failure> {
    if step.registers {
        let block = BlockOffer::new(Name::new(block_name(step.index))?);
        world.registry().register(&Registration { blocks: vec![block], ..Registration::default() })?;
    }
    let ids = Ids::of(world)?;
    let mut rest = step.actions.as_slice();
    if let (Some(Break::Split), [first, others @ ..]) = (broken, rest) {
        world.transaction_at(step.durability, |tx| ids.act(tx, *first))?;
        rest = others;
    }
    let committed = world.transaction_at(step.durability, |tx| {
        rest.iter().try_for_each(|action| ids.act(tx, *action))?;
        tx.set_property(named(STEPS)?, Some((step.index + 1).to_le_bytes().into()));
        keep(tx, step.index + 1)
    })?;
    Ok(committed.seq.get())
}

/// Writes the object and moves the record, as every step does.
fn keep(tx: &mut Tx<'_>, steps: u64) -> Result<(), Failure> {
    tx.put_object(OBJECT, steps.to_le_bytes())?;
    let block = BlockPos::new(model::wandered(steps), 64, 0);
    let position = EntityPos::new(Dimension::new(1), block, [0.5, 0.0, 0.25])?;
    tx.put_record(RECORD, Record::new(position, "torture:steps", steps as i64, Vec::new())?);
    Ok(())
}

/// Where a place is: two dimensions, on both sides of cluster borders, near the origin and far from it.
pub(crate) fn at(place: u8) -> ChunkAt {
    let (dimension, place) = (place % 2, usize::from(place / 2));
    let x = place as i64 % 4 - 2;
    let y = [-1, 0, 15][place / 4 % 3];
    let z = [0, 1 << 40][place / 12 % 2];
    ChunkAt::new(Dimension::new(dimension.into()), ChunkPos::new(x, y, z).expect("is in range"))
}

impl Ids {
    /// The ids by name; an error if a name is gone or has another id than it was given first.
    pub(crate) fn of(world: &World) -> Result<Self, Failure> {
        let catalog = world.catalog();
        let issued = catalog.block_id("torture:chest").map(BlockId::get) == Some(CHEST)
            && DIMENSIONS
                .into_iter()
                .zip(0..)
                .all(|(name, id)| catalog.dimension(name) == Some(Dimension::new(id)));
        let ids = || {
            Some(Self {
                coins: catalog.component_id("torture:coins")?,
                tag: catalog.component_id("torture:tag")?,
                side: catalog.side_kind("torture:side")?,
                kind: catalog.entity_type("torture:item")?,
            })
        };
        ids().filter(|_| issued).ok_or_else(|| "a name lost its id".into())
    }

    fn put(self, tx: &mut Tx<'_>, id: u16, owner: Owner, tag: Filling) -> Result<(), Failure> {
        let mut entity = Entity::new(self.kind, owner, position(id)?);
        entity.set_component(self.tag, tag.bytes())?;
        tx.put_entity(entity_id(id), entity);
        Ok(())
    }

    fn act(self, tx: &mut Tx<'_>, action: Action) -> Result<(), Failure> {
        match action {
            Action::Rewrite { place, content } => {
                let mut chunk = chunk_of(tx, content)?;
                if let Some(old) = tx.load(at(place))? {
                    if let Some(coins) = old.component(CHEST_CELL.into(), self.coins) {
                        chunk.set_component(CHEST_CELL.into(), self.coins, coins)?;
                    }
                    for (kind, bytes) in old.sides() {
                        chunk.set_side(kind, bytes.to_vec());
                    }
                    for id in old.entities() {
                        chunk.add_entity(*id);
                    }
                }
                tx.save(at(place), chunk);
            }
            Action::Dig { place, cell, block } => {
                if is_there(tx, place)? {
                    let cell = LocalPos::from_index(cell).ok_or("no such cell")?;
                    let pos = at(place).pos.block(cell);
                    tx.set_block(at(place).dimension, pos, BlockId::new(block))?;
                }
            }
            Action::Side { place, side } => {
                if is_there(tx, place)? {
                    tx.set_side(at(place), self.side, side.map(Filling::bytes))?;
                }
            }
            Action::Pay { from, to, coins } => self.pay(tx, from, to, coins)?,
            Action::Note { note, filling } => tx.set_property(note_name(note)?, filling.map(Filling::bytes)),
            Action::Tag { entity, filling } => {
                if let Some(mut stored) = tx.entity(entity_id(entity))? {
                    stored.set_component(self.tag, filling.bytes())?;
                    tx.put_entity(entity_id(entity), stored);
                }
            }
            Action::Move { entity, to } => {
                let owner = owner(tx, to)?;
                tx.move_entity(entity_id(entity), owner)?;
            }
            Action::Hand { entity, to } => hand(tx, entity_id(entity), to)?,
            Action::Toggle { creature, place, filling } => {
                if tx.entity(entity_id(creature))?.is_some() {
                    tx.delete_entity(entity_id(creature));
                } else {
                    let owner = owner(tx, Some(place))?;
                    self.put(tx, creature, owner, filling)?;
                }
            }
            Action::Remove { place } => self.remove(tx, place)?,
        }
        Ok(())
    }

    fn pay(self, tx: &mut Tx<'_>, from: Holder, to: Holder, coins: u64) -> Result<(), Failure> {
        if from == to {
            return Ok(());
        }
        let (Some(rich), Some(poor)) = (self.purse(tx, from)?, self.purse(tx, to)?) else { return Ok(()) };
        let paid = coins.min(rich);
        self.set_purse(tx, from, rich - paid)?;
        self.set_purse(tx, to, poor + paid)
    }

    fn purse(self, tx: &mut Tx<'_>, holder: Holder) -> Result<Option<u64>, Failure> {
        Ok(match holder {
            Holder::Player(player) => tx.property(&player_name(player)?)?.map(|bytes| number(&bytes)),
            Holder::Chest(place) => tx.load(at(place))?.map(|chunk| self.chest(&chunk)),
        })
    }

    fn set_purse(self, tx: &mut Tx<'_>, holder: Holder, coins: u64) -> Result<(), Failure> {
        let bytes = coins.to_le_bytes();
        match holder {
            Holder::Player(player) => tx.set_property(player_name(player)?, Some(bytes.into())),
            Holder::Chest(place) => tx.set_component(at(place), CHEST_CELL.into(), self.coins, &bytes)?,
        }
        Ok(())
    }

    fn remove(self, tx: &mut Tx<'_>, place: u8) -> Result<(), Failure> {
        let Some(chunk) = tx.load(at(place))? else { return Ok(()) };
        let first = Holder::Player(0);
        let coins = self.purse(tx, first)?.unwrap_or_default();
        self.set_purse(tx, first, coins + self.chest(&chunk))?;
        for id in chunk.entities() {
            if entity_number(*id) < ITEMS {
                tx.move_entity(*id, detached()?)?;
            }
        }
        // The creatures go with it.
        tx.delete(at(place));
        Ok(())
    }

    /// The coins in a chunk's chest.
    pub(crate) fn chest(self, chunk: &Chunk) -> u64 {
        chunk.component(CHEST_CELL.into(), self.coins).map_or(0, number)
    }
}

/// A chunk as its content makes it.
fn chunk_of(tx: &Tx<'_>, content: u64) -> Result<Chunk, Failure> {
    let schema = tx.catalog().current_schema();
    let blocks = model::blocks(content).map(BlockId::new);
    let mut chunk = Chunk::from_blocks(&blocks, CellOrder::Xyz, &schema)?;
    if model::is_layered(content) {
        chunk.push_layer(layered_cell(), BlockId::new(LAYERED_BLOCK), &schema)?;
    }
    Ok(chunk)
}

/// The chunk of a place as an owner, if it is there.
fn owner(tx: &mut Tx<'_>, place: Option<u8>) -> Result<Owner, Failure> {
    match place {
        Some(place) if is_there(tx, place)? => Ok(Owner::Chunk(at(place))),
        _ => detached(),
    }
}

/// Moves an entity by its references: out of one chunk, into another.
fn hand(tx: &mut Tx<'_>, id: EntityId, to: u8) -> Result<(), Failure> {
    let Some(entity) = tx.entity(id)? else { return Ok(()) };
    if !is_there(tx, to)? {
        return Ok(());
    }
    if let Owner::Chunk(from) = entity.owner {
        tx.edit(from, |chunk| chunk.remove_entity(id))?;
    }
    tx.edit(at(to), |chunk| chunk.add_entity(id))?;
    Ok(())
}

fn is_there(tx: &mut Tx<'_>, place: u8) -> Result<bool, Failure> {
    Ok(tx.load(at(place))?.is_some())
}

fn detached() -> Result<Owner, Failure> {
    Ok(Owner::Detached(Reason::new("tortured")?))
}

/// The cell that some chunks have a second layer in.
pub(crate) fn layered_cell() -> LocalPos {
    LocalPos::from_index(LAYERED_CELL).expect("is below 4096")
}

/// An entity's UUID.
pub(crate) fn entity_id(id: u16) -> EntityId {
    // Mixed, so that neighbours by number are not neighbours by key.
    let mixed = u128::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    EntityId::from_bytes(mixed.to_le_bytes())
}

/// The number of an entity; one that none has for a UUID that none has.
pub(crate) fn entity_number(id: EntityId) -> u16 {
    (0..ENTITIES).find(|number| entity_id(*number) == id).unwrap_or(u16::MAX)
}

/// Where an entity stands, for ever.
pub(crate) fn position(id: u16) -> Result<EntityPos, Failure> {
    let block = BlockPos::new(id.into(), 64, -i64::from(id));
    Ok(EntityPos::new(Dimension::new(0), block, [0.5, 0.0, 0.25])?)
}

/// A property by name.
pub(crate) fn named(name: &str) -> Result<Property, Failure> {
    Ok(Property::Named(Name::new(name)?))
}

/// A player's coins.
pub(crate) fn player_name(player: u8) -> Result<Property, Failure> {
    named(&format!("torture:player{player}"))
}

/// A note.
pub(crate) fn note_name(note: u8) -> Result<Property, Failure> {
    named(&format!("torture:note{note}"))
}

/// The block that a step registers.
pub(crate) fn block_name(step: u64) -> String {
    format!("torture:named{step}")
}

/// A number as it is stored; a number that nothing has if it has another length than eight.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    match bytes {
        [] => 0,
        _ => bytes.try_into().map_or(u64::MAX >> 8, u64::from_le_bytes),
    }
}
