//! `cg pack`, `cg unpack` and `cg snapshot` between worlds before and after a mod renamed what it offers.

use std::path::Path;

use cg_store::prelude::*;

use super::{run, text};

/// Before and after: a block, its component, an entity and a dimension have another name.
const OLD: &str = r#"{"pack":"mod","version":"1","namespaces":["mod",""],
    "components":[{"name":"mod:inv","size":2}],
    "blocks":[{"name":":air"},{"name":"mod:ore","components":["mod:inv"]}],
    "entities":["mod:golem"],"dimensions":["mod:below"]}"#;
const NEW: &str = r#"{"pack":"mod","version":"2","namespaces":["mod",""],
    "components":[{"name":"mod:bag","size":2}],
    "blocks":[{"name":":air"},{"name":"mod:rich_ore","components":["mod:bag"]}],
    "entities":["mod:robot"],"dimensions":["mod:deep"],
    "renamed":[{"list":"blocks","old":"mod:ore","new":"mod:rich_ore"},
        {"list":"components","old":"mod:inv","new":"mod:bag"},
        {"list":"entities","old":"mod:golem","new":"mod:robot"},
        {"list":"dimensions","old":"mod:below","new":"mod:deep"}]}"#;

const GOLEM: EntityId = EntityId::new(uuid::Uuid::from_u128(7));
const PLACE: CellLayer = CellLayer::base(LocalPos::new(1, 2, 3));

/// The box of the chunk at the origin.
const BOX: [&str; 7] = ["--box", "0", "0", "0", "15", "15", "15"];

fn pack(json: &str) -> PackManifest {
    PackManifest::from_json(json).expect("sound")
}

fn at(world: &World) -> ChunkAt {
    let catalog = world.catalog();
    let dimension = catalog.dimension("mod:deep").or_else(|| catalog.dimension("mod:below"));
    ChunkAt::new(dimension.expect("has one of the names"), ChunkPos::constant(0, 0, 0))
}

/// An ore with something in it, and a golem, in the world of the old pack.
fn old_world(path: &Path) {
    let world = World::builder().packs(&[pack(OLD)]).create(path).expect("the directory is empty");
    let (catalog, at) = (world.catalog(), at(&world));
    let id = |name| catalog.block_id(name).expect("offered");
    let inv = catalog.component_id("mod:inv").expect("offered");
    let schema = catalog.current_schema();
    let mut chunk = Chunk::filled(id(":air"), &schema).expect("known");
    chunk.set_block(PLACE.cell, id("mod:ore"), &schema).expect("known");
    chunk.set_component(PLACE, inv, &[7, 8]).expect("has it");
    let position = EntityPos::new(at.dimension, BlockPos::new(4, 4, 4), [0.5; 3]).expect("a position");
    let golem = Entity::new(catalog.entity_type("mod:golem").expect("offered"), Owner::Chunk(at), position);
    let saved = world.transaction(|tx| {
        tx.save(at, chunk);
        tx.put_entity(GOLEM, golem);
        Ok::<_, Error>(())
    });
    saved.expect("the disk takes it");
    world.close().expect("the disk takes it");
}

/// Opens a world with the new pack, which changes it or not.
#[track_caller]
fn open_with_new(path: &Path) -> World {
    World::builder().packs(&[pack(NEW)]).open(path).expect("the pack's own world is not refused")
}

/// Checks that a world has what the old one had, by the new names, and that its game opens it.
#[track_caller]
fn assert_renamed(path: &Path) {
    let world = open_with_new(path);
    let (catalog, at) = (world.catalog(), at(&world));
    let chunk = world.load(at).expect("sound").expect("was put");
    let block = chunk.block(PLACE.cell);
    assert_eq!(catalog.block_name(block).expect("issued").as_str(), "mod:rich_ore");
    assert_eq!(catalog.block_id("mod:rich_ore"), Some(block));
    let bag = catalog.component_id("mod:bag").expect("offered");
    assert_eq!(chunk.component(PLACE, bag), Some(&[7, 8][..]));
    let robot = world.entity(GOLEM).expect("sound").expect("was put");
    assert_eq!(Some(robot.kind), catalog.entity_type("mod:robot"));
    world.close().expect("the disk takes it");
}

#[test]
fn a_pack_leaves_a_renamed_world_for_one_of_the_new_names_and_for_a_new_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let [from, there, made, file] = ["from", "there", "made", "it.cgpack"].map(|name| dir.path().join(name));
    old_world(&from);
    open_with_new(&from).close().expect("the disk takes it");
    World::builder().packs(&[pack(NEW)]).create(&there).expect("empty").close().expect("the disk takes it");
    run(&[&["pack", text(&from), text(&file), "--dimension", "mod:deep"], &BOX[..]].concat()).good();
    for world in [&there, &made] {
        run(&["unpack", text(&file), text(world)]).good();
        assert_renamed(world);
    }
}

#[test]
fn a_pack_from_before_the_rename_arrives_under_the_new_names() {
    let dir = tempfile::tempdir().expect("a directory");
    let [from, there, made, file] = ["from", "there", "made", "it.cgpack"].map(|name| dir.path().join(name));
    old_world(&from);
    run(&[&["pack", text(&from), text(&file), "--dimension", "mod:below"], &BOX[..]].concat()).good();
    World::builder().packs(&[pack(NEW)]).create(&there).expect("empty").close().expect("the disk takes it");
    for world in [&there, &made] {
        run(&["unpack", text(&file), text(world)]).good();
        assert_renamed(world);
    }
}

#[test]
fn a_snapshot_from_before_the_rename_is_restored_after_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let [from, there, file] = ["from", "there", "it.cgsnap"].map(|name| dir.path().join(name));
    old_world(&from);
    let create = ["snapshot", "create", text(&from), "before", "--dimension", "mod:below"];
    run(&[&create[..], &BOX].concat()).good();
    // Harmed under the new names.
    let world = open_with_new(&from);
    let (air, at) = (world.catalog().block_id(":air").expect("offered"), at(&world));
    let harmed = world.transaction(|tx| {
        tx.set_block(at.dimension, BlockPos::new(1, 2, 3), air)?;
        tx.delete_entity(GOLEM);
        Ok::<_, Error>(())
    });
    harmed.expect("the disk takes it");
    world.close().expect("the disk takes it");
    drop(world);
    run(&["snapshot", "restore", text(&from), "before"]).good();
    assert_renamed(&from);
    let again = run(&["snapshot", "diff", text(&from), "before"]);
    assert!(again.out.starts_with("0 blocks"), "{again:?}");

    // And in a world that never had the old names.
    run(&["snapshot", "export", text(&from), "before", text(&file)]).good();
    World::builder().packs(&[pack(NEW)]).create(&there).expect("empty").close().expect("the disk takes it");
    run(&["snapshot", "import", text(&file), text(&there)]).good();
    run(&["snapshot", "restore", text(&there), "before", "--create-missing"]).good();
    assert_renamed(&there);
}
