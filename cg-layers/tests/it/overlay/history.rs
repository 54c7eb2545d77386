//! Bases and stores of overlays that were put back from a plain copy: they use the numbers of commits again.

use std::fs;

use cg_layers::OverlayError;

use super::*;
use crate::fixture::copy_dir;

fn place(x: u8) -> LocalPos {
    LocalPos::new(x, 0, 0)
}

fn set(world: &World, at: ChunkAt, x: u8, block: BlockId) {
    let pos = BlockPos::new(i64::from(x), 0, 0);
    world.transaction(|tx| tx.set_block(at.dimension, pos, block)).expect("commits");
}

/// What a merge says of a chunk.
#[track_caller]
fn changed(error: &Error) -> [cg_format::overlay::Origin; 2] {
    match error.layer() {
        Some(OverlayError::BaseChanged { expected, found, .. }) => [*expected, *found],
        _ => panic!("{error}"),
    }
}

#[test]
fn a_base_that_was_put_back_keeps_its_own_edits() {
    let (disk, arenas) = (Disk::new(), Disk::new());
    let base = disk.create(&[]);
    let ids = Ids::register(&base);
    let at = ids.at(0, 0, 0);
    save(&base, [(at, filled(&base, ids.stone))]);
    base.close().expect("closes");
    drop(base);
    let copy = Disk::copy_of(&disk);

    let base = disk.open(&[]);
    set(&base, at, 1, ids.glass);
    let overlay = Overlay::create(arenas.path(), base.clone(), &options()).expect("creates");
    overlay.transaction(|tx| tx.set_block(at.dimension, at.pos.min_block(), ids.air)).expect("commits");
    overlay.arenas().flush().expect("flushes");
    drop(overlay);
    base.close().expect("closes");
    drop(base);

    // The backup is put back, and goes on with another edit under the same number.
    fs::remove_dir_all(disk.path()).expect("removes");
    copy_dir(&copy.path(), &disk.path());
    let base = disk.open(&[]);
    set(&base, at, 2, ids.glass);
    let overlay = Overlay::open(arenas.path(), base.clone(), &options()).expect("opens");
    let [expected, found] = changed(&overlay.merge_into(&base).expect_err("the base has another edit"));
    // Without the openings it would be taken for the same.
    assert_eq!((expected.layer, expected.version), (found.layer, found.version));
    let chunk = base.load(at).expect("loads").expect("is stored");
    assert_eq!([1, 2].map(|x| chunk.block(place(x))), [ids.stone, ids.glass]);

    // What did not change since the copy was made merges.
    let other = ids.at(1, 0, 0);
    save(&base, [(other, filled(&base, ids.stone))]);
    overlay.reset().expect("resets");
    overlay.transaction(|tx| tx.set_block(at.dimension, other.pos.min_block(), ids.air)).expect("commits");
    overlay.arenas().flush().expect("flushes");
    drop(overlay);
    base.close().expect("closes");
    drop(base);
    let base = disk.open(&[]);
    let overlay = Overlay::open(arenas.path(), base.clone(), &options()).expect("opens");
    overlay.merge_into(&base).expect("merges");
    assert_eq!(base.load(other).expect("loads").expect("is stored").block(place(0)), ids.air);
}

/// Both histories have the version that the overlay wrote over, so its ancestor is that of the base's edit too.
#[test]
fn a_chunk_of_before_the_copy_is_merged_by_cells() {
    let (disk, arenas) = (Disk::new(), Disk::new());
    let base = disk.create(&[]);
    let ids = Ids::register(&base);
    let (at, other) = (ids.at(0, 0, 0), ids.at(1, 0, 0));
    save(&base, [(at, filled(&base, ids.stone))]);
    base.close().expect("closes");
    drop(base);
    let copy = Disk::copy_of(&disk);

    let base = disk.open(&[]);
    save(&base, [(other, filled(&base, ids.stone))]);
    let overlay = Overlay::create(arenas.path(), base.clone(), &options()).expect("creates");
    overlay.transaction(|tx| tx.set_block(at.dimension, at.pos.min_block(), ids.air)).expect("commits");
    overlay.arenas().flush().expect("flushes");
    drop(overlay);
    base.close().expect("closes");
    drop(base);

    fs::remove_dir_all(disk.path()).expect("removes");
    copy_dir(&copy.path(), &disk.path());
    let base = disk.open(&[]);
    set(&base, at, 2, ids.glass);
    let overlay = Overlay::open(arenas.path(), base.clone(), &options()).expect("opens");
    overlay.merge_into(&base).expect("merges");
    let chunk = base.load(at).expect("loads").expect("is stored");
    assert_eq!([0, 2].map(|x| chunk.block(place(x))), [ids.air, ids.glass]);
}

#[test]
fn an_overlay_that_was_put_back_below_another_is_noticed() {
    let (base, ids) = template();
    let at = ids.at(0, 0, 0);
    let (lower_dir, upper_dir) = (Disk::new(), Disk::new());
    let lower = Overlay::create(lower_dir.path(), base.clone(), &options()).expect("creates");
    let edit = |overlay: &Overlay<World>, x: i64| {
        let pos = BlockPos::new(x, 0, 0);
        overlay.transaction(|tx| tx.set_block(at.dimension, pos, ids.stone)).expect("commits");
        overlay.arenas().flush().expect("flushes");
    };
    edit(&lower, 0);
    drop(lower);
    let copy = Disk::copy_of(&lower_dir);
    let lower = Overlay::open(lower_dir.path(), base.clone(), &options()).expect("opens");
    edit(&lower, 1);
    let upper = Overlay::create(upper_dir.path(), lower.clone(), &options()).expect("creates");
    upper.transaction(|tx| tx.set_block(at.dimension, BlockPos::new(5, 0, 0), ids.stone)).expect("commits");
    upper.arenas().flush().expect("flushes");
    drop((upper, lower));

    fs::remove_dir_all(lower_dir.path()).expect("removes");
    copy_dir(&copy.path(), &lower_dir.path());
    let lower = Overlay::open(lower_dir.path(), base, &options()).expect("opens");
    edit(&lower, 2);
    let upper = Overlay::open(upper_dir.path(), lower.clone(), &options()).expect("opens");
    let [expected, found] = changed(&upper.merge_into(&lower).expect_err("it has another edit"));
    assert_eq!((expected.layer, expected.version), (found.layer, found.version));
}
