//! Directories of version 2 and groups by field that lie, sealed again so that only the lie is wrong.

use cg_format::Space;

use super::pieces::Pieces;
use super::{KEY, check_row, cold, tier};
use crate::naive::cluster::directory::{self, Entry};
use crate::naive::cluster::{Slot, Stored};
use crate::naive::{Dice, frame};

fn lie(dice: &mut Dice, row: &mut Pieces) {
    match dice.below(8) {
        0 => row.any_entry(dice).presence ^= 1 << dice.below(64),
        1 => row.any_entry(dice).offset ^= 1 << dice.below(9),
        2 => row.any_entry(dice).stored_len ^= 1 << dice.below(9),
        3 => row.any_entry(dice).raw_len ^= 1 << dice.below(12),
        4 => {
            // The bytes of another group, in all or in part.
            let other = *row.any_entry(dice);
            let part = dice.below(3);
            let entry = row.any_entry(dice);
            if part == 0 {
                entry.offset = other.offset;
            } else {
                *entry = Entry { presence: if part == 1 { entry.presence } else { other.presence }, ..other };
            }
        }
        // The last group is stored even if it was before.
        5 => row.rewrite_last(|_| {}),
        _ => row.rewrite_last(|raw| {
            let [at, in_head] =
                [raw.len() as u64, 120].map(|end| dice.below(end.min(raw.len() as u64)) as usize);
            match dice.below(6) {
                0 => raw[at] ^= 1 << dice.below(8),
                1 => raw.truncate(at.max(1)),
                2 => raw.push(0),
                3 => raw.insert(in_head, dice.below(3) as u8),
                _ => raw[in_head] = [0, 1, 2, 3, 9, 255][dice.below(6) as usize],
            }
        }),
    }
}

/// A row with one lie at most in its entries and groups, and sometimes one in its head, its end or its frame.
fn sealed(dice: &mut Dice, row: &mut Pieces) -> Vec<u8> {
    let mut head = row.head(dice.below(2) == 0);
    if dice.below(6) == 0 {
        head[dice.below(12) as usize] ^= 1 << dice.below(8);
    }
    match dice.below(12) {
        0 => row.groups.push(0),
        1 => row.groups.truncate(row.groups.len() - 1),
        2 => row.codec = dice.below(2) as u8,
        _ => {}
    }
    row.sealed(&head)
}

#[test]
fn mutated_cold_clusters_are_judged_alike() {
    const OF_EACH: u32 = 40;
    let mut dice = Dice(42);
    let mut taken = 0;
    for _ in 0..10 {
        let naive = loop {
            let naive = cold::random(&mut dice, 2);
            if naive.chunks.len() < 12 {
                break naive;
            }
        };
        let right = cold::written(&naive);
        for _ in 0..OF_EACH {
            let mut row = Pieces::of(&right);
            if dice.below(4) > 0 {
                lie(&mut dice, &mut row);
            }
            taken += u32::from(check_row(2, &sealed(&mut dice, &mut row)));
        }
    }
    assert!((60..340).contains(&taken), "{taken} of 400 were taken");
}

/// A writer stores equal groups once; a reader takes them twice too.
#[test]
fn equal_groups_that_are_stored_twice_are_taken() {
    let chunk = |kind: u8| Slot { version: 1, schema_generation: 2, value: vec![kind; 90] };
    let chunks = [0, 4, 8].map(|slot| (slot, chunk(3))).into();
    let mut row = Pieces::of(&cold::written(&Stored { scale_level: 2, chunks }));
    let once = row.groups.len();
    row.rewrite_last(|_| {});
    assert_eq!(row.groups.len(), 2 * once);
    assert!(check_row(2, &row.sealed(&row.head(false))));
}

#[test]
fn a_row_of_another_kind_or_with_a_generation_is_refused() {
    for scale_level in 1..=2 {
        let right = cold::written(&cold::random(&mut Dice(43), scale_level));
        let checked_len = directory::len(&right[24..]).expect("a right directory");
        for kind in 0..=5 {
            for schema_generation in 0..2 {
                let mut row = right.clone();
                row[1] = kind;
                row[16] = schema_generation;
                frame::reseal(&mut row, checked_len, Space::of_cluster(tier(scale_level)).byte(), KEY);
                let taken = (kind, schema_generation) == (2, 0);
                assert_eq!(check_row(scale_level, &row), taken, "{kind} {schema_generation}");
            }
        }
    }
}
