//! Entity values against the naive ones.

use std::collections::BTreeMap;

use cg_format::entity::{Entity, EntityPos, Owner, Reason};
use cg_format::{BlockPos, ChunkAt, ChunkPos, ComponentId, Dimension, EntityTypeId};

use crate::naive::entity::{self as naive, Entity as Naive};
use crate::naive::{Dice, hex};

fn random(dice: &mut Dice) -> Naive {
    let axis = |dice: &mut Dice| [dice.next() as i64, -1, 0, i64::MIN, i64::MAX][dice.below(5) as usize];
    let owner = if dice.below(2) == 0 {
        naive::Owner::Chunk {
            dimension: dice.next(),
            at: [axis(dice), axis(dice), axis(dice)].map(|axis| axis >> 4),
        }
    } else {
        naive::Owner::Detached(["", "offline", "läuft"][dice.below(3) as usize].into())
    };
    let fraction = |dice: &mut Dice| dice.below(1 << 24) as f32 / (1_u32 << 24) as f32;
    let mut components = BTreeMap::new();
    for _ in 0..dice.below(4) {
        let len = dice.below(20) as usize;
        components.insert(dice.below(9) | dice.below(2) << 63, dice.bytes(len));
    }
    Naive {
        kind: dice.next(),
        owner,
        dimension: dice.next(),
        block: [axis(dice), axis(dice), axis(dice)],
        fraction: [fraction(dice), fraction(dice), fraction(dice)],
        components,
    }
}

fn built(naive: &Naive) -> Entity {
    let owner = match &naive.owner {
        naive::Owner::Chunk { dimension, at: [x, y, z] } => {
            let pos = ChunkPos::new(*x, *y, *z).expect("inside the world");
            Owner::Chunk(ChunkAt::new(Dimension::new(*dimension), pos))
        }
        naive::Owner::Detached(reason) => Owner::Detached(Reason::new(reason.clone()).expect("short")),
    };
    let [x, y, z] = naive.block;
    let position = EntityPos::new(Dimension::new(naive.dimension), BlockPos::new(x, y, z), naive.fraction);
    let mut entity = Entity::new(EntityTypeId::new(naive.kind), owner, position.expect("fractions below 1"));
    for (id, bytes) in &naive.components {
        entity.set_component(ComponentId::new(*id), bytes.clone()).expect("short");
    }
    entity
}

fn encoded(entity: &Entity) -> Vec<u8> {
    let mut out = Vec::new();
    entity.encode(&mut out);
    out
}

#[test]
fn entities_and_their_mutations_agree() {
    let mut dice = Dice(50);
    let mut taken = 0;
    for _ in 0..500 {
        let naive = random(&mut dice);
        let bytes = naive::encode(&naive);
        assert_eq!(hex(&encoded(&built(&naive))), hex(&bytes));
        assert_eq!(naive::decode(&bytes), Ok(naive));
        for _ in 0..40 {
            let mut bytes = bytes.clone();
            let at = dice.below(bytes.len() as u64) as usize;
            match dice.below(5) {
                0 => bytes[at] = [0, 1, 2, 0x80, 0xff][dice.below(5) as usize],
                1 => bytes.truncate(at),
                2 => bytes.insert(at, dice.next() as u8),
                _ => bytes[at] ^= 1 << dice.below(8),
            }
            let theirs = naive::decode(&bytes);
            let ours = Entity::decode(&bytes);
            assert_eq!(ours.is_ok(), theirs.is_ok(), "ours {ours:?}\nnaive {theirs:?}\n{}", hex(&bytes));
            if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
                assert_eq!(hex(&encoded(&ours)), hex(&naive::encode(&theirs)));
                taken += 1;
            }
        }
    }
    assert!((2_000..18_000).contains(&taken), "{taken} of 20000 were taken");
}
