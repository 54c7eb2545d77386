//! `cg overlay`

use cg_format::LocalPos;
use cg_format::record::Record;
use cg_layers::{Arenas, Overlay};
use cg_store::prelude::*;
use cg_tiering::GameTick;

use super::{GROUND, Said, Sample, run, text};

/// The sample and arenas over it, in the first of which a block of the full chunk and a chunk were changed.
fn edited() -> Sample {
    let sample = Sample::new();
    let world = sample.open();
    let overlay = Overlay::create(sample.beside("arenas"), world.clone(), &WorldOptions::default());
    let overlay = overlay.expect("an empty directory");
    let edited = overlay.transaction(|tx| {
        let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(9, 9, 9));
        let grave = EntityPos::new(at.dimension, BlockPos::new(1, 2, 3), [0.5; 3])?;
        tx.save(at, Chunk::filled(BlockId::new(0), &tx.catalog().current_schema())?);
        tx.set_block(Dimension::new(0), GROUND.block(LocalPos::new(15, 15, 15)), BlockId::new(0))?;
        tx.delete_entity(super::SHEEP);
        tx.set_property(Property::Named(Name::new("arena:round")?), Some(vec![3]));
        tx.put_object("arena/result", *b"won")?;
        tx.put_record(RecordId::from_bytes([7; 16]), Record::new(grave, "game:grave", 1, Vec::new())?);
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    edited.expect("edits");
    sample
}

fn overlay(sample: &Sample, verb: &str, args: &[&str]) -> Said {
    let (world, arenas) = (sample.path(), sample.beside("arenas"));
    let words = ["overlay", verb, text(&world), text(&arenas)];
    run(&words.iter().copied().chain(args.iter().copied()).collect::<Vec<_>>())
}

#[test]
fn what_an_arena_changed_is_listed_and_merged() {
    let sample = edited();
    let before = sample.cg("hash", &[]).good();
    let listed = overlay(&sample, "diff", &[]).good();
    let lines: Vec<_> = listed.lines().collect();
    assert_eq!(lines.len(), 7, "{listed}");
    assert!(lines[0].starts_with("changed  chunk 0, 4, -1 of "), "{listed}");
    assert!(lines[1].starts_with("added    chunk 9, 9, 9 of "), "{listed}");
    assert_eq!(lines[2], format!("deleted  entity {}", super::SHEEP));
    assert_eq!(
        lines[3..6],
        [
            "added    property arena:round",
            "added    object arena/result",
            "added    record 07070707-0707-0707-0707-070707070707"
        ]
    );
    assert_eq!(lines[6], "2 chunks and 1 entity, 1 property, 1 object, 1 record differ");
    let json = overlay(&sample, "diff", &["--json"]).json();
    assert_eq!((&json["arena"], &json["chunks"][1]["x"]), (&0.into(), &9.into()));
    let refused = overlay(&sample, "promote", &[]);
    assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{refused:?}");
    assert_eq!(sample.cg("hash", &[]).good(), before, "nothing was changed so far");

    assert_eq!(overlay(&sample, "promote", &["--yes"]).good(), "6 changes merged from arena 0\n");
    assert_ne!(sample.cg("hash", &[]).good(), before);
    assert_eq!(sample.cg("verify", &[]).code, 0);
    assert_eq!(overlay(&sample, "diff", &[]).good(), "0 chunks and 0 entities differ\n");
}

#[test]
fn another_base_and_another_arena_are_refused() {
    let sample = edited();
    let other = Sample::new();
    let said = run(&["overlay", "diff", text(&other.path()), text(&sample.beside("arenas"))]);
    assert_eq!(said.code, 1);
    let expected = format!(
        "cg: the overlay was written over {}, and this is {}; open it over the world it belongs to\n",
        sample.open().identity().uuid,
        other.open().identity().uuid
    );
    assert_eq!(said.err, expected);
    assert_eq!(overlay(&sample, "diff", &["--arena", "4"]).err, "cg: there is no arena 4\n");
    let arenas = Arenas::open(sample.beside("arenas"), sample.open(), &WorldOptions::default());
    let arenas = arenas.expect("opens");
    arenas.resume(0).expect("is leased").release(GameTick::new(1)).expect("gives back");
    drop(arenas);
    assert_eq!(overlay(&sample, "diff", &[]).err, "cg: arena 0 is leased by nobody; lease it\n");
}

#[test]
fn arenas_without_a_damaged_commit_are_left_alone() {
    let sample = edited();
    let arenas = sample.beside("arenas");
    let words = ["overlay", "set-aside", text(&arenas)];
    assert_eq!(run(&words).code, 2, "it is to be confirmed");
    let said = run(&[&words[..], &["--yes"]].concat());
    assert_eq!((said.code, said.out.as_str()), (1, "no commit is damaged, and nothing was done\n"));
}
