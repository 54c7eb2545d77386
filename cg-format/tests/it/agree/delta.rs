//! Deltas against the naive ones.

use cg_format::chunk::CellLayer;
use cg_format::delta::Delta;
use cg_format::{BlockId, EntityId, LocalPos};
use proptest::prelude::*;

use crate::naive::delta::{self as naive, Delta as Naive};
use crate::naive::{Dice, hex};

fn built(naive: &Naive) -> Delta {
    let mut delta = Delta::new();
    for ((cell, layer), block) in &naive.sets {
        let cell = LocalPos::from_index(*cell).expect("below 4096");
        delta.set_block(CellLayer::new(cell, *layer), BlockId::new(*block));
    }
    for id in &naive.added {
        delta.add_entity(EntityId::from_bytes(*id));
    }
    for id in &naive.removed {
        delta.remove_entity(EntityId::from_bytes(*id));
    }
    delta
}

fn listed(delta: &Delta) -> Naive {
    Naive {
        sets: delta.sets().map(|(at, block)| ((at.cell.index(), at.layer), block.get())).collect(),
        added: delta.added().map(EntityId::to_bytes).collect(),
        removed: delta.removed().map(EntityId::to_bytes).collect(),
    }
}

/// Few places and few entities, so that mutations make them meet.
fn random(dice: &mut Dice) -> Naive {
    let mut naive = Naive::default();
    for _ in 0..dice.below(6) {
        let place = (dice.below(4096) as u16, dice.below(3) as u8);
        naive.sets.insert(place, dice.next() >> (dice.below(8) * 8));
    }
    for _ in 0..dice.below(5) {
        let id = [dice.below(4) as u8; 16];
        if dice.below(2) == 0 {
            naive.added.insert(id);
        } else {
            naive.removed.insert(id);
        }
    }
    naive.removed = naive.removed.difference(&naive.added).copied().collect();
    naive
}

/// Our decoder reads what the naive one reads, and refuses what it refuses. Tells which.
#[track_caller]
fn check(bytes: &[u8]) -> bool {
    let ours = Delta::decode(bytes);
    let theirs = naive::decode(bytes);
    let found = ours.as_ref().map(listed).ok();
    assert!(found.as_ref() == theirs.as_ref().ok(), "ours {ours:?}\nnaive {theirs:?}\n{}", hex(bytes));
    theirs.is_ok()
}

proptest! {
    #[test]
    fn the_same_delta_gives_the_same_bytes(seed: u64) {
        let naive = random(&mut Dice(seed));
        let mut bytes = Vec::new();
        built(&naive).encode(&mut bytes);
        prop_assert_eq!(hex(&bytes), hex(&naive::encode(&naive)));
        prop_assert!(check(&bytes));
    }
}

#[test]
fn mutated_deltas_are_judged_alike() {
    let mut dice = Dice(50);
    let mut taken = 0;
    for _ in 0..4_000 {
        let mut bytes = naive::encode(&random(&mut dice));
        let at = dice.below(bytes.len() as u64) as usize;
        match dice.below(5) {
            0 | 1 => bytes[at] ^= 1 << dice.below(8),
            2 => bytes[at] = dice.below(4) as u8,
            3 => bytes.truncate(at),
            _ => bytes.push(0),
        }
        taken += u32::from(check(&bytes));
    }
    assert!((200..3_000).contains(&taken), "{taken} of 4000 were taken");
}
