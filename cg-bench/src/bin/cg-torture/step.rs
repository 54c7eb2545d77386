//! The steps: one transaction each, made from a seed and a number, so that only numbers travel between processes.

use cg_store::Durability;

use crate::filling::Filling;
use crate::rng::Rng;
use crate::size::{ENTITIES, ITEMS, KINDS, NOTES, PLACES, PLAYERS};

/// How many steps make a turn. The last three of a turn are small, the middle one of them synced.
pub(crate) const TURN_STEPS: u64 = 16;
const SMALL_STEPS: u64 = 3;

/// One transaction.
///
/// A kill may take the steps that were only accepted, from some step on, and nothing that was written before them.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// How many steps come before it.
    pub(crate) index: u64,
    /// When its commit returns.
    pub(crate) durability: Durability,
    /// Whether a name is registered before it, in a commit of its own.
    pub(crate) registers: bool,
    /// The changes, in order.
    pub(crate) actions: Vec<Action>,
}

/// A change. What cannot be done, because a chunk or an entity is not there, is left undone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Action {
    /// Replaces a chunk's blocks, or makes the chunk.
    Rewrite { place: u8, content: u64 },
    /// Replaces one block.
    Dig { place: u8, cell: u16, block: u64 },
    /// Replaces a chunk's side data.
    Side { place: u8, side: Option<Filling> },
    /// Moves coins, as many as there are.
    Pay { from: Holder, to: Holder, coins: u64 },
    /// Sets or removes a property.
    Note { note: u8, filling: Option<Filling> },
    /// Replaces an entity's component.
    Tag { entity: u16, filling: Filling },
    /// Gives an entity to a chunk, or detaches it, also if the chunk is not there.
    Move { entity: u16, to: Option<u8> },
    /// Moves an entity by its references in the chunks. Alone in its step.
    Hand { entity: u16, to: u8 },
    /// Deletes a creature, or makes it.
    Toggle { creature: u16, place: u8, filling: Filling },
    /// Deletes a chunk and its creatures. Its items are detached, its coins go to the first player. Alone in its step.
    Remove { place: u8 },
}

/// A holder of coins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A player: a property.
    Player(u8),
    /// The chest of a place: a component of a block.
    Chest(u8),
}

impl Step {
    /// The step of a number.
    pub(crate) fn new(seed: u64, index: u64) -> Self {
        let rng = &mut Rng::stream(seed, index);
        let small = (index % TURN_STEPS).checked_sub(TURN_STEPS - SMALL_STEPS);
        let durability = match small {
            Some(1) => Durability::Safe,
            Some(_) => Durability::Process,
            None => [Durability::Safe, Durability::Process, Durability::Balanced, Durability::Fast]
                [rng.below(4) as usize],
        };
        let actions = match rng.below(12) {
            _ if small.is_some() => (0..2).map(|_| small_action(rng)).collect(),
            0 => vec![Action::Remove { place: place(rng) }],
            1 => vec![Action::Hand { entity: entity(rng), to: place(rng) }],
            _ => (0..=rng.below(4)).map(|_| action(rng)).collect(),
        };
        Self { index, durability, registers: small.is_none() && rng.one_in(10), actions }
    }
}

impl Step {
    /// The step of a number where all from `pruned_from` on delete a chunk each, at the level of `cg prune`.
    pub(crate) fn pruning(seed: u64, index: u64, pruned_from: Option<u64>) -> Self {
        match pruned_from {
            Some(from) if index >= from => {
                let actions = vec![Action::Remove { place: (index % u64::from(PLACES)) as u8 }];
                Self { index, durability: Durability::Process, registers: false, actions }
            }
            _ => Self::new(seed, index),
        }
    }
}

fn action(rng: &mut Rng) -> Action {
    match rng.below(10) {
        0 | 1 => Action::Rewrite { place: place(rng), content: rng.next() },
        2 => Action::Dig {
            place: place(rng),
            cell: 1 + rng.below(4095) as u16,
            block: 2 + rng.below(KINDS - 2),
        },
        3 => Action::Side { place: place(rng), side: (!rng.one_in(5)).then(|| filling(rng)) },
        4 | 5 => Action::Pay { from: holder(rng), to: holder(rng), coins: 1 + rng.below(400) },
        6 => Action::Tag { entity: entity(rng), filling: filling(rng) },
        7 => Action::Toggle {
            creature: ITEMS + rng.below((ENTITIES - ITEMS).into()) as u16,
            place: place(rng),
            filling: filling(rng),
        },
        8 => small_action(rng),
        _ => Action::Move { entity: entity(rng), to: (!rng.one_in(5)).then(|| place(rng)) },
    }
}

/// An action of a hundred bytes.
fn small_action(rng: &mut Rng) -> Action {
    let note = rng.below(NOTES.into()) as u8;
    let filling = Filling { seed: rng.next(), len_bytes: rng.below(40) as u32 };
    Action::Note { note, filling: (!rng.one_in(5)).then_some(filling) }
}

fn place(rng: &mut Rng) -> u8 {
    rng.below(PLACES.into()) as u8
}

fn entity(rng: &mut Rng) -> u16 {
    rng.below(ENTITIES.into()) as u16
}

fn holder(rng: &mut Rng) -> Holder {
    if rng.one_in(2) { Holder::Player(rng.below(PLAYERS.into()) as u8) } else { Holder::Chest(place(rng)) }
}

/// Mostly short; sometimes so long that the row goes into a blob file.
fn filling(rng: &mut Rng) -> Filling {
    let len_bytes = if rng.one_in(10) { 70_000 + rng.below(20_000) } else { rng.below(300) };
    Filling { seed: rng.next(), len_bytes: len_bytes as u32 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A kind of change that is never made would never be tested.
    #[test]
    fn every_kind_of_change_is_made() {
        let steps: Vec<_> = (0..500).map(|index| Step::new(7, index)).collect();
        let name = |action: &Action| format!("{action:?}").split(' ').next().map(str::to_owned);
        let kinds: BTreeSet<_> = steps.iter().flat_map(|step| &step.actions).filter_map(name).collect();
        let all = ["Dig", "Hand", "Move", "Note", "Pay", "Remove", "Rewrite", "Side", "Tag", "Toggle"];
        assert_eq!(Vec::from_iter(kinds), all);
        assert!(steps.iter().any(|step| step.registers));
        for durability in [Durability::Safe, Durability::Process, Durability::Balanced, Durability::Fast] {
            assert!(steps.iter().any(|step| step.durability == durability));
        }
    }

    #[test]
    fn steps_repeat() {
        assert_eq!(format!("{:?}", Step::new(3, 9)), format!("{:?}", Step::new(3, 9)));
        assert_ne!(format!("{:?}", Step::new(3, 9)), format!("{:?}", Step::new(4, 9)));
    }
}
