//! Segmented worlds and the arenas over them, verified as a whole.

use std::path::{Path, PathBuf};

use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::{Space, key};
use cg_layers::{Arenas, OverlayError, SegmentedReport};
use cg_store::engine::{Batch, Level, RocksEngine};
use cg_store::quarantine::LostChunks;
use cg_store::verify::VerifyDepth;
use cg_tiering::GameTick;

use super::*;

fn verify(disk: &Disk, arenas: &[PathBuf]) -> SegmentedReport {
    SegmentedWorld::verify(dir(disk), VerifyDepth::Full, &options(), arenas, |_| {}).expect("the root opens")
}

/// A pool with an arena that changes one block of a stored chunk, which is stored as a delta.
fn make_pool(path: &Path, world: &SegmentedWorld<OnDisk>, ids: &Ids, at: ChunkAt) {
    let with_deltas = WorldOptions { deltas: true, ..options() };
    let arenas = Arenas::create(path, world.clone(), &with_deltas).expect("an empty directory");
    let arena = arenas.lease("ada", GameTick::new(1)).expect("leases");
    let written = arena.transaction(|tx| {
        tx.set_block(ids.overworld, at.pos.min_block(), ids.glass)?;
        Ok::<_, Error>(())
    });
    written.expect("writes");
}

#[test]
fn arenas_beside_the_root_and_those_named_are_verified_with_it() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    let at = ids.at(40, 0, 0);
    save(&world, at, filled(world.root(), ids.stone));
    let (beside, elsewhere) = (dir(&disk).join("duels"), disk.root().join("elsewhere"));
    make_pool(&beside, &world, &ids, at);
    make_pool(&elsewhere, &world, &ids, at);
    world.close().expect("closes");
    drop(world);

    let report = verify(&disk, &[]);
    assert!(report.is_ok(), "{report:?}");
    assert_eq!(report.arenas.keys().collect::<Vec<_>>(), [&beside]);
    let report = verify(&disk, std::slice::from_ref(&elsewhere));
    assert!(report.is_ok(), "{report:?}");
    assert_eq!(report.arenas.keys().collect::<Vec<_>>(), [&elsewhere, &beside]);

    // A row that is no row of an overlay.
    let engine = RocksEngine::open(&elsewhere.join("overlay"), &options().rocks()).expect("opens");
    let (engine, _) = cg_store::layer::with_history(Box::new(engine)).expect("opens");
    let mut batch = Batch::new();
    let nonsense = Draft::plain(Codec::None, 0, |out| out.push(0xee));
    batch.put(Space::ChunkL0, key::overlay_chunk(1, at), nonsense, Stamp::Commit);
    engine.commit(batch, &[], Level::Power).expect("commits");
    engine.close().expect("closes");
    drop(engine);
    assert!(verify(&disk, &[]).is_ok());
    let report = verify(&disk, std::slice::from_ref(&elsewhere));
    assert!(!report.is_ok());
    let found = report.arenas.get(&elsewhere).expect("was asked for").as_ref().expect("opens");
    let [finding] = &found.findings[..] else { panic!("{found:?}") };
    assert!(finding.what.starts_with(&format!("arena 0: {at} is damaged")), "{finding:?}");
    let shown =
        "; the base has the chunk, and `Overlay::reset_damaged` shows it; or reset or release the arena";
    assert!(finding.what.ends_with(shown), "{finding:?}");
    let bounds = ChunkBox::new(at.pos, at.pos);
    let lost = LostChunks { dimension: at.dimension, bounds };
    assert_eq!((finding.arena, finding.lost), (Some(0), Some(lost)));

    // The chunk below a delta is gone with its segment.
    std::fs::remove_dir_all(dir(&disk).join("segments").join("0.2.0.0")).expect("is there");
    let report = verify(&disk, &[]);
    let found = report.arenas.get(&beside).expect("is beside the root").as_ref().expect("opens");
    assert_eq!(found.findings.len(), 1, "{found:?}");
}

#[test]
fn arenas_over_another_root_are_named() {
    let disk = Disk::new();
    let (world, ids) = create(&disk);
    save(&world, ids.at(0, 0, 0), filled(world.root(), ids.stone));
    world.close().expect("closes");
    drop(world);
    let other = Disk::new();
    let (world, ids) = create(&other);
    save(&world, ids.at(0, 0, 0), filled(world.root(), ids.stone));
    let pool = dir(&disk).join("stray");
    make_pool(&pool, &world, &ids, ids.at(0, 0, 0));
    drop(world);
    let report = verify(&disk, &[]);
    assert!(!report.is_ok());
    let error = report.arenas.get(&pool).expect("is found").as_ref().expect_err("is of another root");
    assert!(matches!(error.layer(), Some(OverlayError::WrongBase { .. })), "{error:?}");
}
