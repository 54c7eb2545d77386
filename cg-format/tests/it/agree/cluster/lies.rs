//! Directories of versions 2 to 5 and groups by field that lie, sealed again so that only the lie is wrong.

use cg_format::Space;

use super::pieces::{Pieces, older};
use super::{KEY, check_row, cold, row, row_in, tier};
use crate::naive::cluster::directory::{self, Directory, Entry};
use crate::naive::cluster::{self, Slot, Stored};
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
    let mut head = row.head(row.may_be_packed() && dice.below(2) == 0);
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

/// How many of so many mutations of a row are taken.
fn taken(dice: &mut Dice, right: &[u8], count: u32) -> u32 {
    let mut taken = 0;
    for _ in 0..count {
        let mut row = Pieces::of(right);
        if dice.below(4) > 0 {
            lie(dice, &mut row);
        }
        let scale_level = row.directory.scale_level;
        taken += u32::from(check_row(scale_level, &sealed(dice, &mut row)));
    }
    taken
}

#[test]
fn mutated_cold_clusters_are_judged_alike() {
    let mut dice = Dice(42);
    let mut sum = 0;
    for _ in 0..10 {
        let naive = loop {
            let naive = cold::random(&mut dice, 2);
            if naive.chunks.len() < 12 {
                break naive;
            }
        };
        sum += taken(&mut dice, &cold::written(&naive), 25);
        sum += taken(&mut dice, &older(&naive, 2, 2, true), 15);
    }
    assert!((60..340).contains(&sum), "{sum} of 400 were taken");
}

#[test]
fn mutated_warm_clusters_are_judged_alike() {
    let mut dice = Dice(45);
    let mut sum = 0;
    for codec in [0, 1, 0, 1, 1] {
        let naive = cold::random(&mut dice, 1);
        sum += taken(&mut dice, &row(&naive, codec), 80);
    }
    assert!((60..340).contains(&sum), "{sum} of 400 were taken");
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

fn chunk(byte: u8) -> Slot {
    Slot { version: byte.into(), schema_generation: 2, value: vec![byte; 90] }
}

/// Slabs 0 and 3 are alike, slab 1 is another, and slab 2 has no chunk.
fn slabs() -> Stored {
    let chunks = [(6, chunk(3)), (9, chunk(4)), (16, chunk(5)), (54, chunk(3)), (57, chunk(4))].into();
    Stored { scale_level: 1, chunks }
}

/// A name for the fault, and the change that causes it.
type Lie = (&'static str, fn(&mut Pieces));

#[test]
fn wrong_claims_of_slabs_are_refused() {
    let lies: [Lie; 20] = [
        ("one chunk more", |row| row.directory.chunks.push((9, 1))),
        ("one chunk less", |row| row.directory.chunks.truncate(4)),
        ("no chunk", |row| row.directory.chunks.clear()),
        ("too many chunks", |row| row.directory.chunks.resize(65, (9, 1))),
        ("a group less", |row| row.directory.entries.truncate(3)),
        ("a group more", |row| row.directory.entries.push(Entry::default())),
        ("another place", |row| row.directory.entries[1].presence = 2),
        ("a place to the right", |row| row.directory.entries[1].offset += 1),
        ("a place to the left", |row| row.directory.entries[1].offset -= 1),
        ("the bytes of another slab", |row| row.directory.entries[1].offset = 0),
        ("an end before the next slab", |row| row.directory.entries[1].stored_len -= 1),
        ("a short group", |row| row.directory.entries[1].raw_len = 521),
        ("a slab without chunks", |row| row.directory.entries[2].offset = row.directory.entries[1].offset),
        ("a slab without presence", |row| {
            row.directory.entries[2] = Entry { presence: 0, ..row.directory.entries[0] };
        }),
        ("a slab that is stored later", |row| row.directory.entries.swap(0, 1)),
        ("shared by another presence", |row| row.directory.entries[3].presence = 3),
        ("shared from elsewhere", |row| row.directory.entries[3].offset = row.directory.entries[1].offset),
        ("shared with another length", |row| row.directory.entries[3].stored_len -= 1),
        ("shared with another raw length", |row| row.directory.entries[3].raw_len += 1),
        ("shared with another checksum", |row| row.directory.entries[3].checksum ^= 1),
    ];
    for codec in 0..=1 {
        let right = row(&slabs(), codec);
        assert!(check_row(1, &right));
        for (what, lie) in lies {
            let mut row = Pieces::of(&right);
            lie(&mut row);
            assert!(!check_row(1, &row.sealed(&row.head(false))), "{what}, codec {codec}");
        }
        let mut twice = Pieces::of(&right);
        twice.rewrite_last(|_| {});
        assert!(twice.groups.len() > Pieces::of(&right).groups.len());
        assert!(check_row(1, &twice.sealed(&twice.head(false))), "stored twice, codec {codec}");
    }
}

/// The directory and the group agree that a chunk is there.
#[test]
fn a_slab_with_a_place_above_15_is_refused() {
    for codec in 0..=1 {
        for place in 0..64 {
            let mut row = Pieces::of(&row(&slabs(), codec));
            let chunks = [(place, vec![3; 90]), (15, vec![4; 90])].into();
            row.rewrite_last(|raw| *raw = cluster::encode(1, &chunks).expect("a level"));
            row.directory.entries[3].presence = 1 << place | 1 << 15;
            row.directory.chunks.truncate(3 + chunks.len());
            assert_eq!(check_row(1, &row.sealed(&row.head(false))), place < 16, "{place}, codec {codec}");
        }
    }
}

/// As above, for half a cube.
#[test]
fn a_half_with_a_place_above_31_is_refused() {
    let cold = Stored { scale_level: 2, chunks: [(0, chunk(3)), (4095, chunk(4))].into() };
    for codec in 0..=1 {
        for place in 0..64 {
            let mut row = Pieces::of(&row(&cold, codec));
            let chunks = [(place, vec![3; 90]), (31, vec![4; 90])].into();
            row.rewrite_last(|raw| *raw = cluster::encode(1, &chunks).expect("a level"));
            row.directory.entries[127].presence = 1 << place | 1 << 31;
            row.directory.chunks.resize(1 + chunks.len(), (9, 1));
            assert_eq!(check_row(2, &row.sealed(&row.head(false))), place < 32, "{place}, codec {codec}");
        }
    }
}

#[test]
fn a_version_that_is_not_that_of_the_groups_is_refused() {
    let cold = Stored { scale_level: 2, chunks: [(0, chunk(3)), (4, chunk(4))].into() };
    for codec in 0..=1 {
        let warm = [1, 3].map(|version| Pieces::of(&row_in(version, &slabs(), codec)));
        for (row, other) in warm.into_iter().zip([3, 1]) {
            assert!(check_row(1, &row.sealed(&row.head(false))));
            let mut head = row.head(false);
            for other in [other, 4, 5] {
                head[0] = other;
                assert!(!check_row(1, &row.sealed(&head)), "{other} in L1, codec {codec}");
            }
            head[1] = 2;
            let row = Pieces { directory: Directory { scale_level: 2, ..row.directory }, ..row };
            for version in [1, 3, 4, 5] {
                head[0] = version;
                assert!(!check_row(2, &row.sealed(&head)), "a warm row in L2 with {version}, codec {codec}");
            }
        }
        let row = Pieces::of(&row(&cold, codec));
        assert!(check_row(2, &row.sealed(&row.head(false))));
        let mut head = row.head(false);
        for other in [1, 2, 3, 4, 6] {
            head[0] = other;
            assert!(!check_row(2, &row.sealed(&head)), "{other} in L2, codec {codec}");
        }
    }
}
