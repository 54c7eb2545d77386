//! `cg overlay`

use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::record::Record;
use cg_format::{LocalPos, Space, key};
use cg_layers::{Arenas, Overlay};
use cg_store::engine::{Batch, Level};
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

/// Writes rows that say nothing over those of chunks of the first arena, whose lease is the first.
fn damage(sample: &Sample, chunks: &[ChunkAt]) {
    let arenas = Arenas::open(sample.beside("arenas"), sample.open(), &WorldOptions::default());
    let arenas = arenas.expect("opens");
    let mut batch = Batch::new();
    for at in chunks {
        let nonsense = Draft::plain(Codec::None, 0, |out| out.push(0xee));
        batch.put(Space::ChunkL0, key::overlay_chunk(1, *at), nonsense, Stamp::Commit);
    }
    arenas.engine().commit(batch, &[], Level::Power).expect("the disk takes it");
}

#[test]
fn a_damaged_chunk_of_an_arena_is_taken_from_the_world_by_the_command_that_verify_prints() {
    let sample = edited();
    let at = ChunkAt::new(Dimension::new(0), GROUND);
    let new = ChunkAt::new(Dimension::new(0), ChunkPos::constant(9, 9, 9));
    damage(&sample, &[at, new]);
    let arenas = sample.beside("arenas");
    let verify = |args: &[&str]| sample.cg("verify", &[&["--arenas", text(&arenas)], args].concat());
    let found = verify(&[]);
    assert_eq!(found.code, 1);
    let there =
        "the base has the chunk, and `Overlay::reset_damaged` shows it; or reset or release the arena\n";
    let none = "the base has no chunk there, and `Overlay::reset_damaged` shows none; or reset or release the arena\n";
    assert!(found.out.contains(there) && found.out.contains(none), "{}", found.out);
    let json = verify(&["--json"]).json();
    let commands: Vec<_> = (0..2).map(|n| json["problems"][n]["command"].as_str().expect("a text")).collect();
    let begin = format!("cg overlay reset-damaged {} {} --arena 0 ", text(&sample.path()), text(&arenas));
    assert!(commands.iter().all(|command| command.starts_with(&begin)), "{commands:?}");
    assert!(commands[0].ends_with(" --box 0 64 -16 15 79 -1 --yes"), "{commands:?}");

    let refused = overlay(&sample, "reset-damaged", &["--chunk", "0", "4", "-1"]);
    assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{refused:?}");
    let words = commands[0].split(' ').skip(1).collect::<Vec<_>>();
    assert_eq!(run(&words).good(), "1 damaged chunk of arena 0 reset to the world's\n");
    let none_left = overlay(&sample, "reset-damaged", &["--chunk", "0", "4", "-1", "--yes"]);
    assert_eq!(none_left.good(), "0 damaged chunks of arena 0 reset to the world's\n");
    let rest = overlay(&sample, "reset-damaged", &["--chunk", "9", "9", "9", "--yes", "--json"]);
    let expected = r#"{"arena":0,"chunks":1,"detached_entities":0,"ancestors":0,"left":0}"#;
    assert_eq!(rest.good(), format!("{expected}\n"));
    assert_eq!(verify(&[]).code, 0);
    let listed = overlay(&sample, "diff", &[]).good();
    assert!(listed.ends_with("1 chunk and 1 entity, 1 property, 1 object, 1 record differ\n"), "{listed}");
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
