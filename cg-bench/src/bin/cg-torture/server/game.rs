//! The game: players that walk over a field, and items that go between their hands, chests, vaults and the ground.
//!
//! Each item is a number. It is in a component of a chunk, in an entity, or in an object; a deed changes two of them in one
//! batch, so that each item is somewhere exactly once, whenever the server is killed.

use std::collections::BTreeMap;

use cg_store::prelude::*;

use super::side::{Ids, SIDE_CHUNKS, Side, chunk_at};
use crate::failure::Failure;
use crate::rng::Rng;

/// Chunks along a side of the field.
pub(super) const FIELD_CHUNKS: i64 = 48;
/// Items that a player begins with.
const ITEMS: u32 = 8;
/// Chunks between two chests along an axis. Each has a vault and ground around it.
const SPOT_CHUNKS: i64 = 4;
const CHEST_CELL: LocalPos = LocalPos::new(0, 0, 0);
/// Ticks in which a player walks a block, and, on average, ticks between two deeds and between two turns.
const TICKS_A_BLOCK: u64 = 2;
const TICKS_A_DEED: u64 = 20;
const TICKS_A_TURN: u64 = 100;
/// The ids of items that lie about begin here; those of players are below.
const FIRST_ITEM: u128 = 1 << 32;

/// A chest's place, in chunks.
type Spot = [i64; 2];

#[derive(Debug, Clone, Default)]
pub(super) struct Player {
    /// Blocks along x and z.
    at: [i64; 2],
    heading: [i64; 2],
    pub(super) deeds: u64,
    items: Vec<u32>,
}

/// Something that has items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    Player(u32),
    Chest(Spot),
    Vault(Spot),
    /// An item that lies about, or lay until now, at a spot.
    Ground(u32, Spot),
}

/// What a player does in a tick.
#[derive(Debug)]
pub(super) enum Act {
    /// Changes holders of one segment together.
    Deed { player: u32, at: ChunkAt, holders: Vec<Holder> },
    /// Digs a hole.
    Dig { at: ChunkAt, block: BlockPos },
    /// Goes on in another chunk.
    Enter { player: u32, at: ChunkAt, is_across: bool },
}

#[derive(Debug)]
pub(super) struct Game {
    ids: Ids,
    pub(super) players: BTreeMap<u32, Player>,
    chests: BTreeMap<Spot, Vec<u32>>,
    vaults: BTreeMap<Spot, Vec<u32>>,
    ground: BTreeMap<Spot, Vec<u32>>,
}

impl Player {
    fn chunk(&self) -> [i64; 2] {
        self.at.map(|axis| axis.div_euclid(16))
    }

    fn spot(&self) -> Spot {
        self.chunk().map(|axis| axis - axis.rem_euclid(SPOT_CHUNKS))
    }

    fn segment(&self) -> [i64; 2] {
        self.chunk().map(|axis| axis.div_euclid(SIDE_CHUNKS))
    }
}

impl Game {
    /// A new game on a world without chunks; its items are in the players' hands.
    pub(super) fn begin(side: &Side, players: u32, seed: u64) -> Result<Self, Failure> {
        let ids = side.ids()?;
        let mut game = Self {
            ids,
            players: BTreeMap::new(),
            chests: BTreeMap::new(),
            vaults: BTreeMap::new(),
            ground: BTreeMap::new(),
        };
        let chunk = side.first_chunk(&ids)?;
        for x in 0..FIELD_CHUNKS {
            for z in 0..FIELD_CHUNKS {
                let at = chunk_at(&ids, [x, z]);
                let mut batch = WriteBatch::new();
                batch.save(at, chunk.clone());
                side.submit(at, batch)?.wait()?;
            }
        }
        let rng = &mut Rng::stream(seed, 1);
        for player in 0..players {
            let at = [0; 2].map(|_: i64| rng.below(FIELD_CHUNKS as u64 * 16) as i64);
            let items = (player * ITEMS..(player + 1) * ITEMS).collect();
            game.players.insert(player, Player { at, items, ..Player::default() });
            let mut batch = WriteBatch::new();
            game.write(Holder::Player(player), &mut batch)?;
            side.submit(game.chunk_of(player)?, batch)?.wait()?;
        }
        Ok(game)
    }

    /// The game as it is stored, or why it cannot be: an item that is nowhere, or in two places.
    pub(super) fn read(side: &Side, players: u32) -> Result<Self, Failure> {
        let ids = side.ids()?;
        let (mut chests, mut ground) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        side.for_each_chunk(|at, chunk| {
            if let Some(bytes) =
                chunk.component(CHEST_CELL.into(), ids.items).filter(|bytes| !bytes.is_empty())
            {
                chests.insert([at.pos.x(), at.pos.z()], items_of(bytes));
            }
        })?;
        let mut found = BTreeMap::new();
        side.for_each_entity(|id, entity| {
            let items = entity.component(ids.items).map_or_else(Vec::new, items_of);
            let block = entity.position.block();
            let n = id.get().as_u128();
            if n < FIRST_ITEM {
                let deeds = entity.component(ids.deeds).and_then(|bytes| bytes.try_into().ok());
                let deeds = deeds.map_or(0, u64::from_le_bytes);
                found.insert(
                    (n as u32).saturating_sub(1),
                    Player { at: [block.x, block.z], heading: [0; 2], deeds, items },
                );
            } else {
                let spot = [block.x, block.z].map(|axis| axis.div_euclid(16));
                ground.entry(spot).or_default().extend(items);
            }
        })?;
        let mut vaults = BTreeMap::new();
        for (key, bytes) in side.objects()? {
            let key = String::from_utf8(key)?;
            let spot = key.strip_prefix("vault/").and_then(|spot| spot.split_once('/'));
            let (x, z) = spot.ok_or_else(|| format!("there is an object {key}"))?;
            vaults.insert([x.parse()?, z.parse()?], items_of(&bytes));
        }
        let game = Self { ids, players: found, chests, vaults, ground };
        game.check(players)?;
        Ok(game)
    }

    fn check(&self, players: u32) -> Result<(), Failure> {
        if !self.players.keys().copied().eq(0..players) {
            return Err(format!("of {players} players there are {:?}", self.players.keys()).into());
        }
        let mut places = BTreeMap::<u32, Vec<String>>::new();
        let mut note = |items: &[u32], place: String| {
            for item in items {
                places.entry(*item).or_default().push(place.clone());
            }
        };
        self.players.iter().for_each(|(player, hands)| note(&hands.items, format!("player {player}")));
        self.chests.iter().for_each(|(spot, items)| note(items, format!("the chest at {spot:?}")));
        self.vaults.iter().for_each(|(spot, items)| note(items, format!("the vault at {spot:?}")));
        self.ground.iter().for_each(|(spot, items)| note(items, format!("the ground at {spot:?}")));
        for item in 0..players * ITEMS {
            match places.get(&item).map(Vec::as_slice) {
                Some([_]) => {}
                Some(places) => return Err(format!("item {item} is in {}", places.join(" and ")).into()),
                None => return Err(format!("item {item} is nowhere").into()),
            }
        }
        Ok(())
    }

    /// Items that are not in a player's hands.
    pub(super) fn items_laid(&self) -> usize {
        [&self.chests, &self.vaults, &self.ground]
            .map(|of| of.values().map(Vec::len).sum::<usize>())
            .iter()
            .sum()
    }

    pub(super) fn players_at(&self) -> Vec<PlayerAt> {
        let at = |(player, of): (&u32, &Player)| PlayerAt {
            id: player_id(*player),
            dimension: self.ids.field,
            block: BlockPos::new(of.at[0], 8, of.at[1]),
        };
        self.players.iter().map(at).collect()
    }

    pub(super) fn chunk_of(&self, player: u32) -> Result<ChunkAt, Failure> {
        let of = self.players.get(&player).ok_or("no such player")?;
        Ok(chunk_at(&self.ids, of.chunk()))
    }

    /// The chunks that a player sees, and the chunk that the player reaches in two seconds.
    pub(super) fn view_of(&self, player: u32) -> Result<(Vec<ChunkAt>, ChunkAt), Failure> {
        let of = self.players.get(&player).ok_or("no such player")?;
        let [x, z] = of.chunk();
        let view = (-2..=2).flat_map(|dx| (-2..=2).map(move |dz| [x + dx, z + dz]));
        let ahead = [0, 1].map(|axis| (of.at[axis] + of.heading[axis] * 20).div_euclid(16));
        Ok((view.map(|at| chunk_at(&self.ids, at)).collect(), chunk_at(&self.ids, ahead)))
    }

    /// Lets a player walk and act for a tick. What it changed is in memory and is to be written.
    pub(super) fn step(&mut self, rng: &mut Rng, now: u64, player: u32) -> Result<Vec<Act>, Failure> {
        let mut acts = Vec::new();
        let of = self.players.get_mut(&player).ok_or("no such player")?;
        let (chunk, segment) = (of.chunk(), of.segment());
        if rng.one_in(TICKS_A_TURN) || of.heading == [0, 0] {
            of.heading = [[1, 0], [-1, 0], [0, 1], [0, -1]][rng.below(4) as usize];
        }
        if now.is_multiple_of(TICKS_A_BLOCK) {
            for axis in [0, 1] {
                let edge = FIELD_CHUNKS * 16 - 1;
                let next = of.at[axis] + of.heading[axis];
                if !(0..=edge).contains(&next) {
                    of.heading[axis] = -of.heading[axis];
                }
                of.at[axis] = next.clamp(0, edge);
            }
        }
        let at = chunk_at(&self.ids, of.chunk());
        if of.chunk() != chunk {
            acts.push(Act::Enter { player, at, is_across: of.segment() != segment });
        }
        if rng.one_in(TICKS_A_DEED) {
            acts.extend(self.deed(rng, player)?);
        }
        Ok(acts)
    }

    fn deed(&mut self, rng: &mut Rng, player: u32) -> Result<Option<Act>, Failure> {
        let of = self.players.get(&player).ok_or("no such player")?;
        let (spot, segment, block) = (of.spot(), of.segment(), of.at);
        let me = Holder::Player(player);
        let other = self.players.iter().filter(|(id, other)| **id != player && other.segment() == segment);
        let other = other.map(|(id, _)| *id).next();
        let lying = self.ground.get(&spot).and_then(|items| items.last().copied());
        let in_hand = of.items.last().copied();
        let (from, to) = match (rng.below(8), in_hand, lying, other) {
            (0, ..) => (me, Holder::Chest(spot)),
            (1, ..) => (Holder::Chest(spot), me),
            (2, ..) => (me, Holder::Vault(spot)),
            (3, ..) => (Holder::Vault(spot), me),
            (4, Some(item), ..) => (me, Holder::Ground(item, spot)),
            (5, _, Some(item), _) => (Holder::Ground(item, spot), me),
            (6, _, _, Some(other)) => (me, Holder::Player(other)),
            _ => {
                let block = BlockPos::new(block[0], 1 + rng.below(15) as i64, block[1]);
                return Ok(Some(Act::Dig { at: self.chunk_of(player)?, block }));
            }
        };
        let Some(item) = self.items(from).pop() else { return Ok(None) };
        self.items(to).push(item);
        self.players.get_mut(&player).ok_or("no such player")?.deeds += 1;
        let mut holders = vec![from, to];
        if !holders.contains(&me) {
            holders.push(me);
        }
        Ok(Some(Act::Deed { player, at: chunk_at(&self.ids, spot), holders }))
    }

    fn items(&mut self, of: Holder) -> &mut Vec<u32> {
        match of {
            Holder::Player(player) => &mut self.players.entry(player).or_default().items,
            Holder::Chest(spot) => self.chests.entry(spot).or_default(),
            Holder::Vault(spot) => self.vaults.entry(spot).or_default(),
            Holder::Ground(_, spot) => self.ground.entry(spot).or_default(),
        }
    }

    /// Adds what a holder has now to a batch.
    pub(super) fn write(&mut self, holder: Holder, batch: &mut WriteBatch) -> Result<(), Failure> {
        let bytes: Vec<u8> = self.items(holder).iter().flat_map(|item| item.to_le_bytes()).collect();
        match holder {
            Holder::Player(player) => batch.put_entity(player_id(player), self.entity_of(player)?),
            Holder::Chest(spot) => {
                batch.set_component(chunk_at(&self.ids, spot), CHEST_CELL.into(), self.ids.items, bytes);
            }
            Holder::Vault([x, z]) => batch.put_object(format!("vault/{x}/{z}"), bytes)?,
            Holder::Ground(item, spot) => {
                let id = EntityId::new(uuid::Uuid::from_u128(FIRST_ITEM + u128::from(item)));
                if self.items(holder).contains(&item) {
                    let at = chunk_at(&self.ids, spot);
                    let mut entity = self.entity_in(self.ids.item, at, at.pos.min_block())?;
                    entity.set_component(self.ids.items, item.to_le_bytes().into())?;
                    batch.put_entity(id, entity);
                } else {
                    batch.delete_entity(id);
                }
            }
        }
        Ok(())
    }

    pub(super) fn dig(&self, block: BlockPos, batch: &mut WriteBatch) {
        batch.set_block(self.ids.field, block, self.ids.hole);
    }

    pub(super) fn entity_of(&self, player: u32) -> Result<Entity, Failure> {
        let of = self.players.get(&player).ok_or("no such player")?;
        let block = BlockPos::new(of.at[0], 8, of.at[1]);
        let mut entity = self.entity_in(self.ids.player, self.chunk_of(player)?, block)?;
        let items = of.items.iter().flat_map(|item| item.to_le_bytes()).collect();
        entity.set_component(self.ids.items, items)?;
        entity.set_component(self.ids.deeds, of.deeds.to_le_bytes().into())?;
        Ok(entity)
    }

    fn entity_in(&self, kind: EntityTypeId, at: ChunkAt, block: BlockPos) -> Result<Entity, Failure> {
        Ok(Entity::new(kind, Owner::Chunk(at), EntityPos::new(self.ids.field, block, [0.5, 0.0, 0.5])?))
    }
}

pub(super) fn player_id(player: u32) -> EntityId {
    EntityId::new(uuid::Uuid::from_u128(u128::from(player) + 1))
}

fn items_of(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|item| u32::from_le_bytes(*item)).collect()
}
