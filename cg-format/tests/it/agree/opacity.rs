//! Opacity tiles and patches against the naive ones.

use cg_format::LocalPos;
use cg_format::opacity::{self, Patch, TileView};
use proptest::prelude::*;

use crate::naive::opacity::{self as naive, Tile};
use crate::naive::{Dice, hex};

fn tile(dice: &mut Dice, scale_level: u8) -> Tile {
    let mut columns = vec![Vec::new(); [64 * 64, 256 * 256][usize::from(scale_level) - 1]];
    for _ in 0..dice.below(40) {
        let at = dice.below(columns.len() as u64) as usize;
        let mut boundaries: Vec<i64> =
            (0..2 * dice.below(4)).map(|_| dice.below(4_000) as i64 - 2_000).collect();
        boundaries.sort_unstable();
        boundaries.dedup();
        boundaries.truncate(boundaries.len() / 2 * 2);
        columns[at] = boundaries;
    }
    Tile { scale_level, columns }
}

fn viewed(bytes: &[u8]) -> Option<Tile> {
    let view = TileView::new(bytes).ok()?;
    let columns = view.columns().map(|column| column.boundaries().collect()).collect();
    Some(Tile { scale_level: view.scale().scale_level(), columns })
}

#[track_caller]
fn check_tile(bytes: &[u8]) -> bool {
    let theirs = naive::decode_tile(bytes);
    assert!(viewed(bytes).as_ref() == theirs.as_ref().ok(), "naive {:?}\n{}", theirs.err(), hex(bytes));
    theirs.is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn tiles_agree(seed: u64, scale_level in 1_u8..=2) {
        let tile = tile(&mut Dice(seed), scale_level);
        prop_assert!(check_tile(&naive::encode_tile(&tile)));
    }

    #[test]
    fn patches_agree(columns in prop::array::uniform32(any::<u16>()), uniform: Option<bool>) {
        let mut theirs = [0; 256];
        for (at, column) in theirs.iter_mut().enumerate() {
            *column = match uniform {
                Some(is_opaque) => if is_opaque { 0xffff } else { 0 },
                None => columns[at % 32].rotate_left(at as u32),
            };
        }
        let column_of = |cell: LocalPos| usize::from(cell.x()) * 16 + usize::from(cell.z());
        let ours = Patch::from_fn(|cell| theirs[column_of(cell)] >> cell.y() & 1 == 1);
        let mut bytes = Vec::new();
        ours.encode(&mut bytes);
        prop_assert_eq!(hex(&bytes), hex(&naive::encode_patch(&theirs)));
        let back = Patch::decode(&bytes).expect("what was encoded");
        prop_assert!(LocalPos::all().all(|cell| back.is_opaque(cell) == ours.is_opaque(cell)));
        prop_assert_eq!(naive::decode_patch(&bytes), Ok(theirs));
    }
}

#[test]
fn mutated_tiles_are_judged_alike() {
    let mut dice = Dice(40);
    let mut taken = 0;
    for _ in 0..1_000 {
        let mut bytes = naive::encode_tile(&tile(&mut dice, 1));
        let header = 9 + 4 * 4097;
        match dice.below(5) {
            0 => bytes[dice.below(9) as usize] ^= 1 << dice.below(3),
            1 => bytes[9 + dice.below(4 * 4097) as usize] ^= 8 << dice.below(3),
            2 if bytes.len() > header => {
                let at = header + dice.below((bytes.len() - header) as u64) as usize;
                bytes[at] ^= 1 << dice.below(8);
            }
            3 => bytes.truncate(bytes.len() - 8),
            _ => bytes.extend([0x7f; 8]),
        }
        taken += u32::from(check_tile(&bytes));
    }
    assert!((20..900).contains(&taken), "{taken} of 1000 were taken");
}

/// A last column with one boundary, opaque from there on; the two forms of a uniform patch; other lengths.
#[test]
fn forms_at_the_edge_are_judged_alike() {
    let mut columns = vec![Vec::new(); 4096];
    columns[4095] = vec![5];
    check_tile(&naive::encode_tile(&Tile { scale_level: 1, columns }));
    for bytes in [
        vec![],
        vec![0],
        vec![1],
        vec![2],
        vec![0; 2],
        vec![0; 511],
        vec![0; 512],
        vec![255; 512],
        vec![1; 513],
    ] {
        let theirs = naive::decode_patch(&bytes);
        assert_eq!(
            Patch::decode(&bytes).is_ok(),
            theirs.is_ok(),
            "{} bytes {:?}: {theirs:?}",
            bytes.len(),
            bytes.first()
        );
    }
    for tier in [cg_format::ClusterTier::L1, cg_format::ClusterTier::L2] {
        assert!(check_tile(&opacity::transparent(tier)));
    }
}
