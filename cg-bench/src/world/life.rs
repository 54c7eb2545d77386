//! Animals, each owned by the chunk it stands in, and a player that is away.

use cg_format::entity::{Entity, EntityPos, Owner, Reason};
use cg_format::{BlockPos, ChunkAt, EntityId, EntityTypeId};
use uuid::Builder;

use super::canvas::Canvas;
use super::ground::{Biome, Column, SEA_Y, is_firm};
use super::names::{Animals, Ids};
use super::noise::{Noise, Salt};

const ANIMAL: Salt = Salt(40);
const BAT: Salt = Salt(41);
const HEALTH: Salt = Salt(42);
const CALLED: Salt = Salt(43);
const IDENTITY: Salt = Salt(44);

/// Names that some animals were given.
const NAMES: [&str; 6] = ["Amelia", "Bertil", "Cherry", "Dörte", "Émile", "Фёдор"];
/// This many columns of a chunk are tried for an animal on the ground.
const TRIES: i64 = 3;

/// The animals in a chunk.
pub(super) fn animals(canvas: &Canvas, noise: Noise, ids: &Ids) -> Vec<(EntityId, Entity)> {
    let mut found = Vec::new();
    let BlockPos { x, y, z } = canvas.corner();
    for index in 0..TRIES {
        let place = |salt: i64| noise.pick(ANIMAL, [x + index, salt, z], 16) as i64;
        let (x, z) = (x + place(0), z + place(1));
        let column = Column::at(noise, x, z);
        let height = if column.is_flooded() { (column.height + 1 + SEA_Y) / 2 } else { column.height + 1 };
        let at = BlockPos::new(x, height, z);
        let lives_here = column.is_flooded() || is_firm(noise, column, x, z);
        if !canvas.holds(at) || !lives_here || !noise.one_in(ANIMAL, [x, 2, z], 3) {
            continue;
        }
        let kind = kind(&ids.animals, column.biome, noise.hash(ANIMAL, [x, 3, z]));
        found.push(animal(noise, ids, kind, at));
    }
    let place = |salt| noise.pick(BAT, [x, y + salt, z], 16) as i64;
    let at = BlockPos::new(x + place(0), y + place(1), z + place(2));
    let is_underground = at.y + 5 < Column::at(noise, at.x, at.z).height;
    if is_underground && canvas.get(at) == Some(ids.blocks.air) {
        found.push(animal(noise, ids, ids.animals.bat, at));
    }
    // Two tries may end in one place.
    found.sort_unstable_by_key(|(id, _)| *id);
    found.dedup_by_key(|(id, _)| *id);
    found
}

/// The entities that no chunk holds.
pub(super) fn away(noise: Noise, ids: &Ids) -> Vec<(EntityId, Entity)> {
    let at = BlockPos::new(8, Column::at(noise, 8, 8).height + 1, 8);
    let (id, mut player) = animal(noise, ids, ids.animals.player, at);
    player.owner = Owner::Detached(Reason::new("offline").expect("a short text"));
    let named = player.set_component(ids.components.name, b"Amelia".to_vec());
    named.expect("a name is short");
    vec![(id, player)]
}

fn kind(animals: &Animals, biome: Biome, bits: u64) -> EntityTypeId {
    match (biome, bits % 3) {
        (Biome::Ocean, _) => animals.cod,
        (Biome::Plains | Biome::Forest, 0) => animals.cow,
        (Biome::Plains | Biome::Beach, 1) => animals.chicken,
        _ => animals.sheep,
    }
}

fn animal(noise: Noise, ids: &Ids, kind: EntityTypeId, at: BlockPos) -> (EntityId, Entity) {
    let place = [at.x, at.y, at.z];
    let halves = [0, 1].map(|half| noise.hash(IDENTITY, [at.x, at.y << 1 | half, at.z]));
    let bits = u128::from(halves[0]) << 64 | u128::from(halves[1]);
    let id = EntityId::new(Builder::from_custom_bytes(bits.to_le_bytes()).into_uuid());
    let position = EntityPos::new(ids.dimension, at, [0.5, 0.0, 0.25]).expect("fractions below 1");
    let mut entity = Entity::new(kind, Owner::Chunk(ChunkAt::new(ids.dimension, at.chunk())), position);
    let health = noise.pick(HEALTH, place, 40) as f32 / 2.0;
    let short = "components of animals are short";
    entity.set_component(ids.components.health, health.to_le_bytes().to_vec()).expect(short);
    if noise.one_in(CALLED, place, 8) {
        let name = NAMES[noise.pick(CALLED, [at.z, at.y, at.x], NAMES.len() as u64) as usize];
        entity.set_component(ids.components.name, name.as_bytes().to_vec()).expect(short);
    }
    (id, entity)
}
