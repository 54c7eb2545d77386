//! `cg snapshot`

mod part;

use std::sync::Arc;

use cg_snapshot::file::FileOptions;
use cg_snapshot::memory::Memory;
use cg_snapshot::{CaptureOptions, Region, capture};
use cg_store::prelude::*;
use serde_json::json;

use super::{GROUND, SHEEP, Sample, run, text};

/// The box around the sample's full chunk and the one above it, not aligned.
const BOX: [&str; 7] = ["--box", "-3", "60", "-16", "14", "90", "-1"];

fn create(sample: &Sample, name: &str, more: &[&str]) -> serde_json::Value {
    let args: Vec<_> = [name, "--json"].iter().chain(&BOX).chain(more).copied().collect();
    sample.cg("snapshot create", &args).json()
}

/// Digs a hole, empties the chest and lets the sheep away.
fn harm(sample: &Sample) {
    let world = sample.open();
    let catalog = world.catalog();
    let dimension = Dimension::new(0);
    let [air] = world.registry().register_blocks([":air"]).expect("known");
    let items = catalog.component_id("game:items").expect("known");
    let at = ChunkAt::new(dimension, GROUND);
    world
        .transaction(|tx| {
            for x in 0..10 {
                tx.set_block(dimension, BlockPos::new(x, 70, -9), air)?;
            }
            tx.set_component(at, CellLayer::base(LocalPos::new(3, 7, 5)), items, b"")?;
            tx.delete_entity(SHEEP);
            Ok::<_, Error>(())
        })
        .expect("the disk takes it");
    world.close().expect("the disk takes it");
}

#[test]
fn what_was_harmed_is_put_back() {
    let sample = Sample::new();
    let hash = sample.cg("hash", &[]).good();
    let made = create(&sample, "before", &[]);
    assert_eq!(made["name"], "before");
    assert_eq!(made["dimension"], "game:overworld");
    assert_eq!((&made["min"], &made["max"]), (&json!([-3, 60, -16]), &json!([14, 90, -1])));
    assert_eq!((&made["sections"], &made["present"], &made["entities"]), (&json!(6), &json!(2), &json!(1)));
    let listed = sample.cg("snapshot list", &["--json"]).json();
    assert_eq!(listed, json!({ "snapshots": [made], "unreadable": [] }));

    harm(&sample);
    let harmed = sample.cg("hash", &[]).good();
    let mut dry = sample.cg("snapshot restore", &["before", "--dry-run", "--json"]).json();
    let held_bytes = dry["held_bytes"].take().as_u64().expect("a number");
    assert!((2000..20_000).contains(&held_bytes), "{held_bytes} bytes for one section and a sheep");
    let by_kind =
        json!({ ":air": { "gained": 0, "lost": 10 }, "game:grass_block": { "gained": 10, "lost": 0 } });
    assert_eq!(
        dry,
        json!({
            "dry_run": true, "transactions": 0, "new_names": 0, "held_bytes": null, "sections": 6, "changed": 1, "blocks": 10,
            "components": 1, "entities_put": 1, "entities_deleted": 0, "left_alone": 0, "unverifiable": [],
            "components_left": {}, "by_kind": by_kind,
        })
    );
    assert_eq!(sample.cg("hash", &[]).good(), harmed, "a dry run changes nothing");
    let different = sample.cg("snapshot diff", &["before", "--json"]).json();
    let from_now =
        json!({ ":air": { "gained": 10, "lost": 0 }, "game:grass_block": { "gained": 0, "lost": 10 } });
    let expected =
        json!({ "sections": 1, "blocks": 10, "components": 1, "entities": 1, "by_kind": from_now });
    assert_eq!(different, expected);

    let said = sample.cg("snapshot restore", &["before"]).good();
    let expected = "10 blocks in 1 section changed\n  :air: 0 blocks more, 10 blocks fewer\n  \
                    game:grass_block: 10 blocks more, 0 blocks fewer\nthe data of 1 block changed\n\
                    entities: 1 were put back, 0 deleted\n";
    assert_eq!(said, expected);
    assert_eq!(sample.cg("hash", &[]).good(), hash);
    assert_eq!(sample.cg("verify", &[]).code, 0);
    let again = sample.cg("snapshot restore", &["before", "--json"]).json();
    assert_eq!(
        (&again["blocks"], &again["changed"], &again["entities_put"]),
        (&json!(0), &json!(0), &json!(0))
    );
}

#[test]
fn a_file_carries_it_into_another_world_by_names() {
    let (sample, other) = (Sample::new(), Sample::new());
    create(&sample, "arena", &["--dim", "overworld"]);
    let file = sample.beside("arena.cgsnap");
    sample.cg("snapshot export", &["arena", text(&file)]).good();
    assert_eq!(sample.cg("snapshot export", &["arena", text(&file)]).code, 1, "it is there already");
    let world = other.path();
    let import = |name: &str| run(&["snapshot", "import", text(&file), text(&world), "--name", name]);
    import("visitor").good();
    let taken = import("visitor");
    assert_eq!(taken.code, 1);
    assert_eq!(
        taken.err,
        "cg: the world keeps a snapshot `visitor` already; delete it first, or choose another name\n"
    );
    let said = other.cg("snapshot restore", &["visitor"]).good();
    assert_eq!(said, "0 blocks in 0 sections changed\n", "both worlds are the same");

    let mut bytes = std::fs::read(&file).expect("written");
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    std::fs::write(&file, &bytes).expect("writable");
    let damaged = import("damaged");
    assert_eq!(damaged.code, 1);
    assert!(damaged.err.starts_with("cg: snapshot group: checksum is "), "{}", damaged.err);
}

/// Report of a dry run, as if it had been none.
fn as_real(mut dry: serde_json::Value) -> serde_json::Value {
    dry["dry_run"] = json!(false);
    dry["transactions"] = json!(1);
    dry
}

/// A part of a chunk needs the chunk that is there, whose world does not know the blocks that come.
#[test]
fn a_dry_run_cuts_chunks_with_names_that_are_not_registered() {
    let sample = Sample::new();
    create(&sample, "arena", &[]);
    let (file, there) = (sample.beside("arena.cgsnap"), sample.beside("there"));
    sample.cg("snapshot export", &["arena", text(&file)]).good();
    let world = World::builder().create(&there).expect("the directory is empty");
    let place = world.registry().register_dimension("game:overworld").expect("new");
    let [moss] = world.registry().register_blocks(["other:moss"]).expect("new");
    let filled = world.transaction(|tx| {
        let above = GROUND.offset(0, 1, 0).expect("in the world");
        for pos in [GROUND, above] {
            tx.save(ChunkAt::new(place, pos), Chunk::filled(moss, &tx.catalog().current_schema())?);
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    filled.expect("the disk takes it");
    world.close().expect("the disk takes it");
    drop(world);
    run(&["snapshot", "import", text(&file), text(&there)]).good();
    let restore = |more: &[&str]| {
        run(&[&["--json", "snapshot", "restore", text(&there), "arena", "--register"], more].concat())
    };
    let dry = restore(&["--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.err);
    let (dry, done) = (dry.json(), restore(&[]).json());
    assert!(done["by_kind"]["game:grass_block"]["gained"].as_u64() > Some(0), "{done}");
    assert_eq!(as_real(dry), done);
}

#[test]
fn it_comes_into_a_world_that_knows_none_of_its_names() {
    let sample = Sample::new();
    let whole = ["whole", "--box", "-16", "48", "-16", "31", "95", "-1"];
    sample.cg("snapshot create", &whole).good();
    let (file, empty) = (sample.beside("whole.cgsnap"), sample.beside("empty"));
    sample.cg("snapshot export", &["whole", text(&file)]).good();
    let world = World::builder().create(&empty).expect("the directory is empty");
    world.close().expect("the disk takes it");
    drop(world);
    run(&["snapshot", "import", text(&file), text(&empty)]).good();
    let said = run(&["snapshot", "restore", text(&empty), "whole"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("not registered: "), "{}", said.err);
    let hash = run(&["hash", text(&empty)]).good();
    let dry = run(&["snapshot", "restore", text(&empty), "whole", "--register", "--dry-run"]).good();
    assert!(dry.contains(" names would be registered\n"), "{dry}");
    let few = ["--register", "--dry-run", "--max-names", "1"];
    let few = run(&[&["snapshot", "restore", text(&empty), "whole"], &few[..]].concat());
    assert!(
        few.code == 1 && few.err.contains(" names are new to the world and 1 are allowed"),
        "{}",
        few.err
    );
    let dry = run(&["--json", "snapshot", "restore", text(&empty), "whole", "--register", "--dry-run"]);
    assert_eq!(run(&["hash", text(&empty)]).good(), hash, "a dry run registers nothing");
    let said = run(&["--json", "snapshot", "restore", text(&empty), "whole", "--register"]);
    assert_eq!((said.code, &said.json()["left_alone"]), (0, &json!(0)));
    assert_eq!(as_real(dry.json()), said.json(), "a dry run says what is done");
    let differs = run(&["snapshot", "diff", text(&empty), "whole", "--json"]).json();
    assert_eq!((&differs["sections"], &differs["entities"]), (&json!(0), &json!(0)));
}

/// Deletes every chunk that the box of snapshots touches, or saves one where the sample has none.
fn change_chunks(sample: &Sample, change: impl Fn(&mut Transaction<'_>, ChunkAt) -> Result<(), Error>) {
    let world = sample.open();
    let area = ChunkBox::new(ChunkPos::constant(-1, 3, -1), ChunkPos::constant(0, 5, -1));
    world
        .transaction(|tx| area.iter().try_for_each(|pos| change(tx, ChunkAt::new(Dimension::new(0), pos))))
        .expect("the disk takes it");
    world.close().expect("the disk takes it");
}

#[test]
fn parts_of_chunks_that_are_gone_are_restored_if_that_is_asked_for_and_exit_with_one_if_not() {
    let sample = Sample::new();
    create(&sample, "before", &[]);
    change_chunks(&sample, |tx, at| {
        tx.delete(at);
        Ok(())
    });
    let said = sample.cg("snapshot restore", &["before", "--json"]);
    assert_eq!((said.code, &said.json()["left_alone"], &said.json()["changed"]), (1, &json!(2), &json!(0)));
    let said = sample.cg("snapshot restore", &["before"]);
    let left = "2 sections left alone: of each a part is in the box, and its chunk is not stored, or was not when the snapshot was taken; --create-missing restores them\n";
    assert!(said.code == 1 && said.out.ends_with(left), "{}", said.out);
    let unknown = sample.cg("snapshot restore", &["before", "--create-missing=game:cheese"]);
    let no = "cg: the world has no block `game:cheese`; name another with --create-missing=BLOCK\n";
    assert_eq!((unknown.code, unknown.err.as_str()), (2, no));

    let dry = sample.cg("snapshot restore", &["before", "--create-missing", "--dry-run", "--json"]);
    let said = sample.cg("snapshot restore", &["before", "--create-missing", "--json"]);
    assert_eq!((said.code, &said.json()["left_alone"], &said.json()["changed"]), (0, &json!(0), &json!(2)));
    assert_eq!(as_real(dry.json()), said.json(), "a dry run says what is done");
    assert_eq!(said.json()["entities_put"], json!(1));
    let differs = sample.cg("snapshot diff", &["before", "--json"]).json();
    assert_eq!((&differs["sections"], &differs["entities"]), (&json!(0), &json!(0)));
    let world = sample.open();
    let at = ChunkAt::new(Dimension::new(0), GROUND);
    let chunk = world.load(at).expect("sound").expect("it was created");
    let name = |cell| world.catalog().block_name(chunk.block(cell)).expect("registered").to_string();
    assert_eq!([name(LocalPos::new(14, 0, 0)), name(LocalPos::new(15, 0, 0))], ["game:stone", ":air"]);
}

#[test]
fn parts_of_chunks_that_came_are_filled_if_that_is_asked_for() {
    let sample = Sample::new();
    create(&sample, "before", &[]);
    change_chunks(&sample, |tx, at| {
        if tx.load(at)?.is_none() {
            let catalog = tx.catalog();
            let stone = catalog.block_id("game:stone").expect("registered");
            tx.save(at, Chunk::filled(stone, &catalog.current_schema()).expect("known"));
        }
        Ok(())
    });
    let said = sample.cg("snapshot restore", &["before", "--json"]);
    assert_eq!((said.code, &said.json()["left_alone"]), (1, &json!(4)));
    let said = sample.cg("snapshot restore", &["before", "--create-missing=game:water", "--json"]);
    assert_eq!((said.code, &said.json()["left_alone"], &said.json()["changed"]), (0, &json!(0), &json!(4)));
    let world = sample.open();
    let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(-1, 4, -1));
    let chunk = world.load(at).expect("sound").expect("it came");
    let name = |cell| world.catalog().block_name(chunk.block(cell)).expect("registered").to_string();
    assert_eq!([name(LocalPos::new(12, 0, 0)), name(LocalPos::new(13, 0, 0))], ["game:stone", "game:water"]);
}

#[test]
fn what_is_not_there_is_said() {
    let sample = Sample::new();
    assert_eq!(sample.cg("snapshot list", &[]).good(), "the world keeps no snapshot\n");
    let no = "cg: the world keeps no snapshot `x`; `cg snapshot list` shows those it keeps\n";
    for verb in ["snapshot restore", "snapshot diff"] {
        let said = sample.cg(verb, &["x"]);
        assert_eq!((said.code, said.err.as_str()), (4, no));
    }
    let said = sample.cg("snapshot delete", &["x", "--yes"]);
    assert_eq!((said.code, said.err.as_str()), (4, no));
    let said = sample.cg("snapshot delete", &["x"]);
    assert_eq!(said.code, 2);
    assert_eq!(sample.cg("snapshot create", &["x"]).code, 2, "no box");
    create(&sample, "x", &[]);
    assert_eq!(sample.cg("snapshot delete", &["x", "--yes"]).good(), "snapshot `x` deleted\n");
    assert_eq!(sample.cg("snapshot list", &["--json"]).json(), json!({ "snapshots": [], "unreadable": [] }));
}

#[test]
fn what_is_too_large_for_one_batch_is_one_transaction_unless_steps_are_asked_for() {
    let dir = tempfile::TempDir::new().expect("a temporary directory");
    let path = dir.path().join("world");
    let limits = cg_store::StoreLimits { batch_bytes: 1 << 19, ..cg_store::StoreLimits::default() };
    let options = WorldOptions { limits, ..WorldOptions::process() };
    let world = World::builder().options(&options).create(&path).expect("an empty directory");
    let dimension = world.registry().register_dimension("game:plain").expect("new");
    let names: [String; 16] = std::array::from_fn(|kind| format!("game:kind_{kind}"));
    let kinds = world.registry().register_blocks(names.each_ref().map(String::as_str)).expect("new");
    let fill = || {
        for x in 0..20 {
            let saved = world.transaction(|tx| {
                let schema = tx.catalog().current_schema();
                for z in 0..20 {
                    let cells = std::array::from_fn(|at| kinds[(at / 3 + x as usize * z as usize) % 16]);
                    let chunk = Chunk::from_blocks(&cells, cg_format::CellOrder::Xyz, &schema)?;
                    tx.save(ChunkAt::new(dimension, ChunkPos::constant(x, 0, z)), chunk);
                }
                Ok::<_, Box<dyn std::error::Error>>(())
            });
            saved.expect("the disk takes it");
        }
    };
    fill();
    let hash = world.content_hash(cg_store::view::Area::World).expect("sound");
    world.close().expect("the disk takes it");
    drop(world);
    let cg = |verb: &str, more: &[&str]| {
        let args = ["snapshot", verb, text(&path), "plain"];
        run(&args.iter().chain(more).copied().collect::<Vec<_>>())
    };
    // More sections than a u16 counts, nearly all of them without a chunk.
    cg("create", &["--box", "0", "0", "0", "319", "2639", "319"]).good();
    let flatten = |world: &World| {
        let saved = world.transaction(|tx| {
            for x in 0..20 {
                for z in 0..20 {
                    let at = ChunkAt::new(dimension, ChunkPos::constant(x, 0, z));
                    if (x + z) % 7 != 3 {
                        let block = kinds[(x * z % 16) as usize];
                        tx.save(at, Chunk::filled(block, &tx.catalog().current_schema())?);
                    }
                }
            }
            Ok::<_, Box<dyn std::error::Error>>(())
        });
        saved.expect("uniform chunks are small");
    };
    let world = World::builder().options(&options).open(&path).expect("opens");
    flatten(&world);
    world.close().expect("the disk takes it");
    drop(world);
    let restored = |more: &[&str], transactions: u64| {
        let said = cg("restore", &[&["--json"], more].concat()).json();
        assert_eq!((&said["sections"], &said["transactions"]), (&json!(66_000), &json!(transactions)));
        let world = World::builder().options(&options).open(&path).expect("opens");
        assert_eq!(world.content_hash(cg_store::view::Area::World).expect("sound"), hash);
        flatten(&world);
        world.close().expect("the disk takes it");
    };
    restored(&[], 1);
    restored(&["--in-steps"], 66_000_u64.div_ceil(64));

    // Chunks that come, and places that are only looked at.
    let hash = run(&["hash", text(&path)]).good();
    let said = cg("restore", &["--max-memory", "1"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    let (said, sections) = said.err.split_once(", as ").expect("the sections that show it");
    assert_eq!(said, "cg: in one transaction it takes more than 1.0 MiB of memory");
    let rest = " of 66,000 sections show; nothing of it was put there: --max-memory allows more, --in-steps takes little\n";
    assert!(sections.ends_with(rest), "{sections}");
    assert_eq!(run(&["hash", text(&path)]).good(), hash);
    let dry = cg("restore", &["--dry-run"]).good();
    assert!(dry.contains("in one transaction that takes ") && dry.ends_with(" MiB of memory\n"), "{dry}");
    let steps = cg("restore", &["--max-memory", "1", "--in-steps"]);
    assert_eq!(steps.code, 0, "{}", steps.err);
}

#[test]
fn data_that_the_world_has_no_place_for_are_named() {
    let sample = Sample::new();
    create(&sample, "arena", &[]);
    let (file, there) = (sample.beside("arena.cgsnap"), sample.beside("there"));
    sample.cg("snapshot export", &["arena", text(&file)]).good();
    let world = World::builder().create(&there).expect("the directory is empty");
    let items = ComponentOffer::fixed(Name::new("game:items").expect("a name"), 4);
    world.registry().register_component(items).expect("new");
    world.close().expect("the disk takes it");
    drop(world);
    run(&["snapshot", "import", text(&file), text(&there)]).good();
    let said = run(&["snapshot", "restore", text(&there), "arena", "--register", "--json"]);
    assert_eq!((said.code, &said.json()["components_left"]), (1, &json!({ "game:items": 1 })));
    let said = run(&["snapshot", "restore", text(&there), "arena"]);
    assert_eq!(said.code, 1);
    assert!(said.out.ends_with("kept beside, without a place: data of game:items (1)\n"), "{}", said.out);
    let said = run(&["snapshot", "diff", text(&there), "arena"]);
    assert!(said.out.ends_with("not compared: data of game:items (1)\n"), "{}", said.out);
}

#[test]
fn a_snapshot_is_drawn_from_above_as_it_was() {
    let sample = Sample::new();
    let (first, second) = (sample.beside("first.png"), sample.beside("second.png"));
    let mut made = create(&sample, "before", &["--map", text(&first)]);
    assert_eq!(made["map"], text(&first));
    // The box is not aligned: what is cut is drawn as well.
    let drawn = std::fs::read(&first).expect("drawn");
    let whole = sample.beside("world.png");
    sample.cg("map", &[&["--out", text(&whole)], &BOX[..]].concat()).good();
    assert!(drawn == std::fs::read(&whole).expect("drawn"), "as the world is drawn");

    harm(&sample);
    let world = sample.open();
    let [gold] = world.registry().register_blocks(["minecraft:gold_block"]).expect("a name");
    let roof = world.transaction(|tx| {
        for x in 0..10 {
            tx.set_block(Dimension::new(0), BlockPos::new(x, 90, -9), gold)?;
        }
        Ok::<_, Error>(())
    });
    roof.expect("the disk takes it");
    world.close().expect("the disk takes it");
    drop(world);
    let after = sample.beside("after.png");
    sample.cg("map", &[&["--out", text(&after)], &BOX[..]].concat()).good();
    assert!(drawn != std::fs::read(&after).expect("drawn"), "or this shows nothing");
    let shown = sample.cg("snapshot show", &["before", "--map", text(&second), "--json"]).json();
    assert!(drawn == std::fs::read(&second).expect("drawn"), "as it was");
    made["map"] = json!(text(&second));
    assert_eq!(shown, made);

    let said = sample.cg("snapshot show", &["before", "--map", text(&second)]);
    let message = format!("cg: {} is there already; delete it or choose another name\n", second.display());
    assert_eq!((said.code, said.err), (1, message));
    let nowhere = sample.beside("missing/map.png");
    let said = sample.cg("snapshot create", &[&["later", "--map", text(&nowhere)], &BOX[..]].concat());
    let message = format!(
        "cg: snapshot `later` is kept, but was not drawn: cannot write {}: No such file or directory (os error 2); `cg snapshot show --map` draws it\n",
        nowhere.display()
    );
    assert_eq!((said.out.as_str(), said.err), ("", message));
    sample.cg("snapshot show", &["later"]).good();
    let said = sample.cg("snapshot show", &["after"]);
    let message = "cg: the world keeps no snapshot `after`; `cg snapshot list` shows those it keeps\n";
    assert_eq!((said.code, said.err.as_str()), (4, message));
}

#[test]
fn a_few_bytes_that_stand_for_a_gibibyte_are_not_drawn() {
    let sample = Sample::new();
    let world = sample.open();
    let catalog = world.catalog();
    let light = catalog.side_kind("game:light").expect("registered");
    let stone = catalog.block_id("game:stone").expect("registered");
    let mut chunk = Chunk::filled(stone, &catalog.current_schema()).expect("known");
    chunk.set_side(light, vec![0; 1 << 20]);
    let chunk = Arc::new(chunk);
    let mut memory = Memory::new(&catalog);
    let dimension = Dimension::new(0);
    for pos in ChunkBox::new(ChunkPos::constant(0, 0, 0), ChunkPos::constant(10, 9, 9)).iter() {
        memory.insert(ChunkAt::new(dimension, pos), Arc::clone(&chunk));
    }
    let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(175, 159, 159));
    let options = CaptureOptions::named("bomb");
    let bomb = capture(&memory, &catalog, Region::new(dimension, area), &options).expect("sound");
    let bytes = bomb.to_bytes(&FileOptions::default()).expect("written");
    assert!(bytes.len() < 1 << 20, "{} bytes", bytes.len());
    world.snapshots().save("bomb", &bytes).expect("kept");
    world.close().expect("the disk takes it");
    drop(world);

    let file = sample.beside("bomb.png");
    let said = sample.cg("snapshot show", &["bomb", "--map", text(&file)]);
    assert_eq!((said.code, said.out.as_str(), file.exists()), (1, "", false), "{said:?}");
    let message = "cg: to draw snapshot `bomb` takes 1.1 GiB of memory for 1,100 sections, more than 1.0 GiB; \
                   restore it into a world of its own and draw parts of that with `cg map --box`\n";
    assert_eq!(said.err, message);
    assert_eq!(sample.cg("snapshot show", &["bomb", "--json"]).json()["sections"], 1100);

    // Of such land no snapshot is kept before that is said.
    sample.cg("snapshot restore", &["bomb", "--in-steps"]).good();
    let args = ["new", "--box", "0", "0", "0", "175", "159", "159", "--map", text(&file)];
    let said = sample.cg("snapshot create", &args);
    assert_eq!((said.code, said.err), (1, message.replace("`bomb`", "`new`")));
    assert_eq!(sample.cg("snapshot show", &["new"]).code, 4, "it is not kept");
}

#[test]
fn a_name_from_elsewhere_commands_no_terminal_and_begins_no_line() {
    let sample = Sample::new();
    let evil = "fine\ncg: deleted \x1b]0;mine\x07\x1b[2J\u{202e}";
    let shown = "fine\\ncg: deleted \\u{1b}]0;mine\\u{7}\\u{1b}[2J\\u{202e}";
    let args: Vec<_> = [evil].iter().chain(&BOX).copied().collect();
    let made = sample.cg("snapshot create", &args).good();
    assert!(made.starts_with(&format!("{shown}: game:overworld, ")), "{made:?}");
    assert_eq!(sample.cg("snapshot list", &[]).good(), made);
    let listed = sample.cg("snapshot list", &["--json"]);
    assert!(listed.out.is_ascii(), "{:?}", listed.out);
    assert_eq!(listed.json()["snapshots"][0]["name"], evil);
    let again = sample.cg("snapshot create", &args);
    assert_eq!(
        again.err,
        format!(
            "cg: the world keeps a snapshot `{shown}` already; delete it first, or choose another name\n"
        )
    );
    // A file that says it of itself.
    let file = sample.beside("evil.cgsnap");
    sample.cg("snapshot export", &[evil, text(&file)]).good();
    sample.cg("snapshot delete", &[evil, "--yes"]).good();
    let kept = sample.cg("snapshot list", &[]).good();
    assert_eq!(kept, "the world keeps no snapshot\n");
    let said = run(&["snapshot", "import", text(&file), text(&sample.path())]);
    assert_eq!(said.good(), made);
}
