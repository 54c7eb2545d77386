//! Snapshots and sync messages with another layout of a component are converted as a load converts.

use std::io::Cursor;
use std::sync::Arc;

use cg_format::Limits;
use cg_layers::restore::StoreHost;
use cg_registry::{
    BlockOffer, ComponentOffer, KeptComponents, LOST_COMPONENTS, Name, Registration, STALE, UpgradeFunctions,
};
use cg_snapshot::file::{FileOptions, SnapshotFile};
use cg_snapshot::{
    CaptureOptions, Operation, Outcome, Region, RestoreOptions, RestoreQueue, Snapshot, TickBudget,
    Unverifiable, capture,
};
use cg_store::prelude::*;

const BASE: &str = r#"{"pack":"base","version":"1","namespaces":["","g"],
    "blocks":[{"name":":air"},{"name":"g:stone"}],"dimensions":["g:over"]}"#;

/// A pack whose boiler has a tank with this description.
fn mod_with(tank: &str) -> String {
    format!(
        r#"{{"pack":"mod","version":"1","namespaces":["mod"],"components":[{{"name":"mod:tank",{tank}}}],
            "blocks":[{{"name":"mod:boiler","components":["mod:tank"]}}],"entities":["mod:golem"]}}"#
    )
}

const V1: &str = r#""size":8,"fields":[{"name":"level","width_bytes":4},{"name":"max","width_bytes":4}]"#;
const V2: &str = r#""size":13,"fields":[{"name":"kind","width_bytes":1,"default":"07"},
    {"name":"level","width_bytes":8},{"name":"max","width_bytes":4}]"#;
/// As long as V1, in the other order.
const SWAPPED: &str =
    r#""size":8,"fields":[{"name":"max","width_bytes":4},{"name":"level","width_bytes":4}]"#;
/// V1 without its maximum.
const CUT: &str = r#""size":4,"fields":[{"name":"level","width_bytes":4}]"#;
const TEXT: &str = r#""size":"variable""#;

const IN_CELL: [u8; 8] = [42, 0, 0, 0, 9, 0, 0, 0];
const IN_GOLEM: [u8; 8] = [1, 0, 0, 0, 2, 0, 0, 0];

fn world(tank: &str, functions: Arc<UpgradeFunctions>) -> World {
    let packs = [BASE.to_owned(), mod_with(tank)].map(|json| PackManifest::from_json(&json).expect("sound"));
    let options = WorldOptions { upgrades: functions, ..WorldOptions::ephemeral() };
    World::builder().options(&options).packs(&packs).in_memory().expect("the packs are accepted")
}

fn place(world: &World) -> ChunkAt {
    let dimension = world.catalog().dimension("g:over").expect("offered");
    ChunkAt::new(dimension, ChunkPos::new(0, 0, 0).expect("inside"))
}

fn cell() -> CellLayer {
    CellLayer::base(LocalPos::new(2, 2, 3))
}

fn golem() -> EntityId {
    EntityId::from_bytes([4; 16])
}

/// Fills the chunk with stone.
fn fill(world: &World) {
    let stone = world.catalog().block_id("g:stone").expect("offered");
    let at = place(world);
    world
        .transaction(|tx| {
            let chunk = tx.new_chunk(stone)?;
            tx.save(at, chunk);
            Ok::<_, Error>(())
        })
        .expect("is saved");
}

/// A world of the first layout with a full tank in a block and in an entity.
fn first() -> World {
    let world = world(V1, Arc::default());
    fill(&world);
    let (at, catalog) = (place(&world), world.catalog());
    let boiler = catalog.block_id("mod:boiler").expect("offered");
    let tank = catalog.component_id("mod:tank").expect("offered");
    let kind = catalog.entity_type("mod:golem").expect("offered");
    let made = world.transaction(|tx| {
        tx.set_block(at.dimension, BlockPos::new(2, 2, 3), boiler)?;
        tx.set_component(at, cell(), tank, &IN_CELL)?;
        let pos = EntityPos::new(at.dimension, BlockPos::new(5, 5, 5), [0.0; 3]).expect("inside");
        let mut entity = Entity::new(kind, Owner::Chunk(at), pos);
        entity.set_component(tank, IN_GOLEM.to_vec())?;
        tx.put_entity(golem(), entity);
        Ok::<_, Error>(())
    });
    made.expect("is saved");
    world
}

/// A snapshot of a box, as it comes out of its file.
fn snapshot(world: &World, max: i64) -> Snapshot {
    let catalog = world.catalog();
    let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(max, max, max));
    let region = Region::new(place(world).dimension, area);
    let captured = world
        .read_view(|view| Ok::<_, Error>(capture(view, &catalog, region, &CaptureOptions::named("tank"))));
    let bytes =
        captured.expect("reads").expect("captures").to_bytes(&FileOptions::default()).expect("is whole");
    let mut file = SnapshotFile::open(Cursor::new(bytes), Limits::default()).expect("sound");
    file.load(Unverifiable::Fail).expect("sound")
}

fn restore(snapshot: Snapshot, world: &World) -> Outcome {
    let mut queue = RestoreQueue::new();
    let operation = Operation::Restore {
        snapshot: Arc::new(snapshot),
        options: RestoreOptions::default(),
        relight: false,
    };
    let handle = queue.handle().submit(operation);
    let (mut host, start, catalog) = (StoreHost::new(world, ()), std::time::Instant::now(), world.catalog());
    loop {
        queue.run(&mut host, &catalog, &TickBudget::default(), || start.elapsed());
        if let Some(outcome) = handle.outcome() {
            return outcome;
        }
    }
}

/// What the block's tank and the golem's hold.
type Held = (Option<Vec<u8>>, Option<Vec<u8>>);

fn held(world: &World) -> Held {
    let tank = world.catalog().component_id("mod:tank").expect("offered");
    let chunk = world.load(place(world)).expect("reads").expect("is there");
    let entity = world.entity(golem()).expect("reads").expect("is there");
    (chunk.component(cell(), tank).map(<[u8]>::to_vec), entity.component(tank).map(<[u8]>::to_vec))
}

/// The entries of a side kind.
fn kept(world: &World, kind: cg_format::SideKind) -> Vec<(LocalPos, String, Vec<u8>)> {
    let catalog = world.catalog();
    let chunk = world.load(place(world)).expect("reads").expect("is there");
    let Some(bytes) = chunk.side(kind) else { return Vec::new() };
    let kept = KeptComponents::decode(bytes, None).expect("sound");
    let named = |(owner, bytes): (cg_registry::kept::Owner, &[u8])| {
        let name = catalog.component_name(owner.component).expect("issued").to_string();
        (owner.at.cell, name, bytes.to_vec())
    };
    kept.iter().map(named).collect()
}

/// Restores the snapshot of the first layout into a new world of another.
fn into(tank: &str, functions: Arc<UpgradeFunctions>) -> (World, Outcome) {
    let world = world(tank, functions);
    fill(&world);
    let outcome = restore(snapshot(&first(), 15), &world);
    (world, outcome)
}

#[test]
fn a_snapshot_of_another_layout_is_converted_by_field_names() {
    let (world, outcome) = into(V2, Arc::default());
    assert!(matches!(outcome, Outcome::Restored(_)), "{outcome:?}");
    let expected = |level: u8, max: u8| Some(vec![7, level, 0, 0, 0, 0, 0, 0, 0, max, 0, 0, 0]);
    assert_eq!(held(&world), (expected(42, 9), expected(1, 2)));
}

#[test]
fn a_layout_of_the_same_length_is_not_taken_for_the_same() {
    let (world, outcome) = into(SWAPPED, Arc::default());
    assert!(matches!(outcome, Outcome::Restored(_)), "{outcome:?}");
    assert_eq!(held(&world), (Some(vec![9, 0, 0, 0, 42, 0, 0, 0]), Some(vec![2, 0, 0, 0, 1, 0, 0, 0])));
}

#[test]
fn a_part_of_a_chunk_is_converted_too() {
    let world = world(V2, Arc::default());
    fill(&world);
    assert!(matches!(restore(snapshot(&first(), 9), &world), Outcome::Restored(_)));
    assert_eq!(held(&world).0, Some(vec![7, 42, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0]));
}

#[test]
fn what_has_no_place_is_kept_and_counted() {
    for max in [15, 9] {
        for (tank, in_block, in_golem) in
            [(CUT, vec![42, 0, 0, 0], Some(vec![1, 0, 0, 0])), (TEXT, vec![], None)]
        {
            let world = world(tank, Arc::default());
            fill(&world);
            let outcome = restore(snapshot(&first(), max), &world);
            let Outcome::RestoredInPart(report) = outcome else { panic!("{outcome:?}") };
            assert_eq!(
                report.remap.components_left.into_iter().collect::<Vec<_>>(),
                [("mod:tank".to_owned(), 2)]
            );
            assert_eq!(held(&world), (Some(in_block), in_golem));
            let name = || "mod:tank".to_owned();
            let expected = [
                (cell().cell, name(), IN_CELL.to_vec()),
                (LocalPos::new(5, 5, 5), name(), IN_GOLEM.to_vec()),
            ];
            assert_eq!(kept(&world, STALE), expected);
            // Restored again, it is kept once.
            assert!(matches!(restore(snapshot(&first(), max), &world), Outcome::RestoredInPart(_)));
            assert_eq!(kept(&world, STALE), expected);
        }
    }
}

#[test]
fn functions_of_the_host_convert_what_field_names_cannot() {
    let mut functions = UpgradeFunctions::default();
    functions.converted(Name::new("mod:tank").expect("a name"), |old| {
        (old.bytes.first() == Some(&42)).then(|| format!("level {}", old.bytes[0]).into_bytes())
    });
    let (world, outcome) = into(TEXT, Arc::new(functions));
    // It refuses that of the golem.
    assert!(
        matches!(outcome, Outcome::RestoredInPart(report) if report.remap.components_left["mod:tank"] == 1)
    );
    assert_eq!(held(&world), (Some(b"level 42".to_vec()), None));
    assert_eq!(kept(&world, STALE), [(LocalPos::new(5, 5, 5), "mod:tank".to_owned(), IN_GOLEM.to_vec())]);
}

#[test]
fn data_of_a_block_that_lost_the_component_waits_for_it() {
    let manifest = mod_with(V2).replace(r#","components":["mod:tank"]"#, "");
    let packs = [BASE.to_owned(), manifest].map(|json| PackManifest::from_json(&json).expect("sound"));
    let world = World::builder().packs(&packs).in_memory().expect("the packs are accepted");
    fill(&world);
    let outcome = restore(snapshot(&first(), 15), &world);
    assert!(
        matches!(outcome, Outcome::RestoredInPart(report) if report.remap.components_left["mod:tank"] == 1)
    );
    let converted = vec![7, 42, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0];
    assert_eq!(kept(&world, LOST_COMPONENTS), [(cell().cell, "mod:tank".to_owned(), converted.clone())]);
    // What a chunk keeps travels by names too, and returns in a world whose block has the component.
    let there = self::world(V2, Arc::default());
    fill(&there);
    let outcome = restore(snapshot(&world, 15), &there);
    assert!(matches!(outcome, Outcome::Restored(_)), "{outcome:?}");
    assert_eq!((held(&there).0, kept(&there, LOST_COMPONENTS)), (Some(converted), vec![]));
}

const V1_ORE: &str = r#"{"pack":"mod","version":"1","namespaces":["mod"],"components":[{"name":"mod:inv","size":"variable"}],
    "blocks":[{"name":"mod:ore","components":["mod:inv"]}],"entities":["mod:golem"]}"#;
const V2_ORE: &str = r#"{"pack":"mod","version":"2","namespaces":["mod"],"components":[{"name":"mod:bag","size":"variable"}],
    "blocks":[{"name":"mod:rich_ore","components":["mod:bag"]}],"entities":["mod:robot"],
    "renamed":[{"list":"blocks","old":"mod:ore","new":"mod:rich_ore"},{"list":"components","old":"mod:inv","new":"mod:bag"},
        {"list":"entities","old":"mod:golem","new":"mod:robot"}]}"#;

fn packs(pack: &str) -> [PackManifest; 2] {
    [BASE, pack].map(|json| PackManifest::from_json(json).expect("sound"))
}

/// Puts an ore with gems and a golem into the chunk, by the names of a pack.
fn put_ore(world: &World, [block, component, kind]: [&str; 3]) {
    let (at, catalog) = (place(world), world.catalog());
    let made = world.transaction(|tx| {
        let stone = tx.new_chunk(catalog.block_id("g:stone").expect("offered"))?;
        tx.save(at, stone);
        tx.set_block(at.dimension, BlockPos::new(2, 2, 3), catalog.block_id(block).expect("offered"))?;
        tx.set_component(at, cell(), catalog.component_id(component).expect("offered"), b"gems")?;
        let pos = EntityPos::new(at.dimension, BlockPos::new(5, 5, 5), [0.0; 3]).expect("inside");
        tx.put_entity(
            golem(),
            Entity::new(catalog.entity_type(kind).expect("offered"), Owner::Chunk(at), pos),
        );
        Ok::<_, Error>(())
    });
    made.expect("is saved");
}

#[track_caller]
fn is_rich_ore(world: &World) {
    let (catalog, chunk) = (world.catalog(), world.load(place(world)).expect("reads").expect("is there"));
    assert_eq!(Some(chunk.block(cell().cell)), catalog.block_id("mod:rich_ore"));
    assert_eq!(catalog.block_name(chunk.block(cell().cell)).expect("issued").as_str(), "mod:rich_ore");
    let bag = catalog.component_id("mod:bag").expect("offered");
    assert_eq!(chunk.component(cell(), bag), Some(&b"gems"[..]));
    let entity = world.entity(golem()).expect("reads").expect("is there");
    assert_eq!(Some(entity.kind), catalog.entity_type("mod:robot"));
}

const OLD_NAMES: [&str; 3] = ["mod:ore", "mod:inv", "mod:golem"];

#[test]
fn a_snapshot_carries_a_renamed_entry_as_the_same() {
    let fresh = || {
        let world = World::builder().packs(&packs(V2_ORE)).in_memory().expect("the packs are accepted");
        fill(&world);
        world
    };
    // Before the rename, and after it.
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("world");
    let old = World::builder().packs(&packs(V1_ORE)).create(&path).expect("the packs are accepted");
    put_ore(&old, OLD_NAMES);
    let before = snapshot(&old, 15);
    old.close().expect("closes");
    drop(old);
    let renamed = World::builder().packs(&packs(V2_ORE)).open(&path).expect("the packs are accepted");
    is_rich_ore(&renamed);
    for taken in [before, snapshot(&renamed, 15)] {
        let world = fresh();
        let outcome = restore(taken, &world);
        assert!(matches!(outcome, Outcome::Restored(_)), "{outcome:?}");
        is_rich_ore(&world);
    }
    // And back into a world that has the old pack still.
    let old = World::builder().packs(&packs(V1_ORE)).in_memory().expect("the packs are accepted");
    fill(&old);
    let outcome = restore(snapshot(&renamed, 15), &old);
    assert!(matches!(outcome, Outcome::Restored(_)), "{outcome:?}");
    let ore = old.catalog().block_id("mod:ore");
    assert_eq!(Some(old.load(place(&old)).expect("reads").expect("is there").block(cell().cell)), ore);
}

#[test]
fn a_world_that_has_both_names_opens_and_unites_them() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("world");
    let world = World::builder().packs(&packs(V1_ORE)).create(&path).expect("the packs are accepted");
    put_ore(&world, OLD_NAMES);
    // As from a copy of a world of the new pack, in which the old names were not known.
    let bag = ComponentOffer::variable(Name::new("mod:bag").expect("a name"));
    let block = BlockOffer {
        components: vec![Name::new("mod:bag").expect("a name")],
        ..BlockOffer::new(Name::new("mod:rich_ore").expect("a name"))
    };
    let both = Registration {
        components: vec![bag],
        blocks: vec![block],
        entities: vec![Name::new("mod:robot").expect("a name")],
        ..Registration::default()
    };
    world.registry().register(&both).expect("new names");
    world.close().expect("closes");
    drop(world);
    for _ in 0..2 {
        let world = World::builder().packs(&packs(V2_ORE)).open(&path).expect("the packs are accepted");
        is_rich_ore(&world);
        world.close().expect("closes");
    }
    // An edit beside it stores the united block.
    let world = World::builder().packs(&packs(V2_ORE)).open(&path).expect("the packs are accepted");
    let stone = world.catalog().block_id("g:stone").expect("offered");
    world
        .transaction(|tx| tx.set_block(place(&world).dimension, BlockPos::new(9, 9, 9), stone))
        .expect("is saved");
    world.close().expect("closes");
    drop(world);
    is_rich_ore(&World::builder().packs(&packs(V2_ORE)).open(&path).expect("the packs are accepted"));
}
