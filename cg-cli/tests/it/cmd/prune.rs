//! `cg prune`

mod entities;
mod imported;

use cg_store::prelude::*;

use super::Sample;

/// The sample with a row of stone chunks along x, at z 0 and y 0.
fn row() -> Sample {
    let sample = Sample::new();
    let world = World::builder().open(sample.path()).expect("opens");
    let [stone] = world.registry().register_blocks(["game:stone"]).expect("registers");
    let saved = world.transaction(|tx| {
        for x in -5..=5 {
            let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0));
            tx.save(at, Chunk::filled(stone, &tx.catalog().current_schema())?);
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    saved.expect("saves");
    world.close().expect("closes");
    sample
}

fn left(sample: &Sample) -> Vec<i64> {
    let world = World::builder().open_read_only(sample.path()).expect("opens");
    let at = |x| ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0));
    (-5..=5).filter(|x| world.load(at(*x)).expect("loads").is_some()).collect()
}

#[test]
fn a_box_takes_the_chunks_that_lie_in_it_as_a_whole() {
    let sample = row();
    let hash = sample.cg("hash", &[]).good();
    // From the middle of chunk 1 to the middle of chunk 4.
    let area = ["--box", "24", "-100", "-100", "72", "100", "15"];
    let dry: Vec<_> = area.iter().copied().chain(["--dry-run"]).collect();
    let would = "2 chunks of game:overworld, 0 entities (112 B) would be deleted\n";
    assert_eq!(sample.cg("prune", &dry).good(), would);
    let asked = sample.cg("prune", &area);
    assert_eq!((asked.code, asked.out.as_str()), (2, would));
    assert_eq!(
        asked.err,
        "cg: this is what would be deleted; nothing was changed, run it again with --yes\n"
    );
    assert_eq!(sample.cg("hash", &[]).good(), hash);
    let yes: Vec<_> = area.iter().copied().chain(["--yes"]).collect();
    assert_eq!(sample.cg("prune", &yes).good(), "2 chunks of game:overworld, 0 entities (112 B) deleted\n");
    assert_eq!(left(&sample), [-5, -4, -3, -2, -1, 0, 1, 4, 5]);
    assert_eq!(sample.cg("prune", &yes).good(), "0 chunks of game:overworld, 0 entities (0 B) deleted\n");
    assert_eq!(sample.cg("verify", &[]).code, 0);
}

#[test]
fn several_boxes_take_the_chunks_of_their_union() {
    // All of chunk 1 from two halves, chunk 3 twice, and only a part of chunk -2.
    let boxes = [
        ["16", "0", "0", "23", "15", "15"],
        ["48", "0", "0", "70", "15", "15"],
        ["24", "0", "0", "31", "15", "15"],
        ["40", "0", "0", "63", "15", "15"],
        ["-32", "0", "0", "-18", "15", "15"],
    ];
    let args = |boxes: &[[&'static str; 6]]| -> Vec<&str> {
        boxes.iter().flat_map(|numbers| ["--box"].into_iter().chain(*numbers)).chain(["--yes"]).collect()
    };
    let sample = row();
    let done = "2 chunks of game:overworld, 0 entities (112 B) deleted\n";
    assert_eq!(sample.cg("prune", &args(&boxes)).good(), done);
    assert_eq!(left(&sample), [-5, -4, -3, -2, -1, 0, 2, 4, 5]);
    let hash = sample.cg("hash", &[]).good();
    let other = row();
    let mut reversed = boxes;
    reversed.reverse();
    assert_eq!(other.cg("prune", &args(&reversed)).good(), done);
    assert_eq!(other.cg("hash", &[]).good(), hash, "order changes nothing");
    // Two boxes without a chunk delete nothing, and not everything.
    let nothing = args(&[["400", "0", "0", "470", "15", "15"], ["0", "0", "0", "3", "3", "3"]]);
    assert_eq!(sample.cg("prune", &nothing).good(), "0 chunks of game:overworld, 0 entities (0 B) deleted\n");
    assert_eq!(sample.cg("hash", &[]).good(), hash);
}

#[test]
fn a_radius_keeps_every_chunk_that_reaches_into_it() {
    let sample = row();
    let said =
        sample.cg("prune", &["--outside-radius", "32", "--around", "8", "8", "--json", "--yes"]).json();
    // Chunks -2 to 2 reach to within 32 blocks of x 8; the sample's own lie nearer.
    let expected = serde_json::json!({
        "dimension": "game:overworld", "chunks": 6, "entities": 0, "detached": 0, "left_detached": 0, "bytes": 336, "records": 0,
        "leftovers": 0, "unknown": 0, "deleted": true,
    });
    assert_eq!(said, expected);
    assert_eq!(left(&sample), [-2, -1, 0, 1, 2]);
    // Both conditions must hold.
    let both =
        ["--outside-radius", "0", "--around", "8", "8", "--box", "0", "0", "0", "31", "15", "15", "--yes"];
    assert_eq!(sample.cg("prune", &both).good(), "1 chunk of game:overworld, 0 entities (56 B) deleted\n");
    assert_eq!(left(&sample), [-2, -1, 0, 2]);
}

#[test]
fn what_was_visited_lately_or_nobody_knows_of_stays() {
    let sample = row();
    let world = World::builder().open(sample.path()).expect("opens");
    let budget = std::time::Duration::ZERO;
    let tick = |now| world.tick(cg_tiering::GameTick::new(now), &[], budget).expect("ticks");
    tick(1);
    world.load(ChunkAt::new(Dimension::new(0), ChunkPos::constant(-5, 0, 0))).expect("loads");
    tick(1000);
    world.cache().clear();
    world.load(ChunkAt::new(Dimension::new(0), ChunkPos::constant(5, 0, 0))).expect("loads");
    world.close().expect("closes");
    drop(world);
    let area = ["--box", "-80", "0", "0", "95", "15", "15"];
    let args: Vec<_> = ["--not-visited-for", "500t", "--json", "--yes"].into_iter().chain(area).collect();
    let said = sample.cg("prune", &args).json();
    let left = left(&sample);
    assert!(left.contains(&5) && left.contains(&4), "the cube was visited: {left:?}");
    assert!(!left.contains(&-5), "nobody was there: {left:?}");
    assert_eq!(said["chunks"].as_u64().expect("a number") as usize, 11 - left.len());
}

#[test]
fn without_a_condition_nothing_is_done() {
    let sample = row();
    let said = sample.cg("prune", &[]);
    assert_eq!(said.code, 2, "{said:?}");
    assert_eq!(left(&sample).len(), 11);
}

#[test]
fn records_stay_unless_they_are_to_go_too() {
    let sample = row();
    let add = |x: &str, id: &str| {
        let at = ["--at", x, "3", "3", "--kind", "sign", "--text", "hi", "--id", id];
        sample.cg("records add", &at).good()
    };
    // In chunk 2, which goes, and in chunk 4, which stays though the leaf around it is of the same size.
    add("40.5", "00000000-0000-0000-0000-000000000001");
    add("70", "00000000-0000-0000-0000-000000000002");
    let area = ["--box", "24", "-100", "-100", "72", "100", "15"];
    let said = |text: &str| format!("2 chunks of game:overworld, 0 entities, 1 record (112 B) {text}\n");
    let with = |more: &[&'static str]| sample.cg("prune", &[&area[..], more].concat()).good();
    let left = || sample.cg("records list", &[]).good().lines().count();
    assert_eq!(with(&["--with-records", "--dry-run"]), said("would be deleted"));
    assert_eq!(left(), 2);
    assert_eq!(with(&["--with-records", "--yes"]), said("deleted"));
    assert_eq!(left(), 1);
    assert_eq!(sample.cg("verify", &[]).code, 0);
}
