//! Import of a schematic: what comes into a world, what stays where it was, and what is named.

use super::*;

#[test]
fn only_the_box_is_replaced() {
    let folder = tempfile::tempdir().expect("a directory");
    let (world, overworld) = world();
    let chests = made(folder.path(), [16, 16, 16], CHEST, &[chest([1, 1, 1], 7), chest([8, 8, 8], 8)], &[]);
    let origin = BlockPos::new(0, 0, 0);
    put(&world, overworld, &chests, origin);
    // Light that the host computed in between, and side data of its own.
    let ids = Ids::register(&world).expect("names");
    let at = ChunkAt::new(overworld, ChunkPos::constant(0, 0, 0));
    world
        .transaction(|tx| {
            tx.set_side(at, ids.sky_light.expect("registered"), Some(vec![15; 2048]))?;
            tx.set_side(at, ids.status.expect("registered"), Some(b"full".to_vec()))
        })
        .expect("a commit");

    let stone = made(folder.path(), [4, 4, 4], "stone", &[], &[]);
    let report = put(&world, overworld, &stone, BlockPos::new(6, 6, 6));
    assert_eq!((report.blocks, report.chunks, report.new_states), (64, 1, 1));
    let chunk = world.load(at).expect("sound").expect("stored");
    let catalog = world.catalog();
    let block = |name: &str| catalog.block_id(name).expect(name);
    let dry = block("minecraft:chest[facing=north,type=single,waterlogged=false]");
    let water = block("minecraft:water[level=0]");
    for cell in LocalPos::all() {
        let is_inside = [cell.x(), cell.y(), cell.z()].iter().all(|at| (6..10).contains(at));
        let expected = if is_inside { (block("minecraft:stone"), None) } else { (dry, Some(water)) };
        assert_eq!((chunk.block(cell), chunk.layer(cell, 1)), expected, "{cell:?}");
    }
    let component = ids.block_entity.expect("registered");
    let filled: Vec<_> =
        chunk.components().filter(|(id, _, bytes)| *id == component && !bytes.is_empty()).collect();
    let [(_, kept, nbt)] = filled.as_slice() else { panic!("{filled:?}") };
    assert_eq!(kept.cell, LocalPos::new(1, 1, 1));
    let nbt = nbt::Compound::parse(nbt, &nbt::Limits::default()).expect("a compound");
    assert_eq!(
        [nbt.int("Lock"), nbt.int("x"), nbt.int("y"), nbt.int("z")],
        [Some(7), Some(1), Some(1), Some(1)]
    );
    assert_eq!(chunk.side(ids.sky_light.expect("registered")), None);
    assert_eq!(chunk.side(ids.status.expect("registered")), Some(&b"full"[..]));
}

#[test]
fn what_has_no_block_of_its_own_is_kept_beside_and_what_lies_outside_is_named() {
    let folder = tempfile::tempdir().expect("a directory");
    let (world, overworld) = world();
    // Stone owns none; a block of another namespace does once it is seen with one.
    let stone =
        made(folder.path(), [2, 1, 1], "minecraft:stone", &[chest([1, 0, 0], 1), chest([2, 0, 0], 2)], &[]);
    let report = put(&world, overworld, &stone, BlockPos::new(0, 0, 0));
    assert_eq!((report.block_entities, report.beside_their_block), (1, 1));
    let outside = BTreeMap::from([("block entities outside of its box".to_owned(), 1)]);
    assert_eq!(report.not_carried, outside);
    let shelf = made(folder.path(), [2, 1, 1], "mod:shelf", &[chest([1, 0, 0], 3), chest([1, 0, 0], 4)], &[]);
    let report = put(&world, overworld, &shelf, BlockPos::new(0, 0, 1));
    assert_eq!((report.block_entities, report.beside_their_block), (2, 1));
    // Both come out; replacing the stone takes what was beside it away.
    let out = folder.path().join("out.schem");
    let exported = take(&world, overworld, BlockPos::new(0, 0, 0), [2, 1, 2], &out);
    assert_eq!((exported.block_entities, exported.not_exported), (3, BTreeMap::new()));
    let found: Vec<_> = content(&out).block_entities;
    let expected = [chest([1, 0, 0], 1), chest([1, 0, 1], 3), chest([1, 0, 1], 4)];
    assert_eq!(found, expected);
    let dirt = made(folder.path(), [2, 1, 1], "minecraft:dirt", &[], &[]);
    put(&world, overworld, &dirt, BlockPos::new(0, 0, 0));
    let again = folder.path().join("again.schem");
    assert_eq!(take(&world, overworld, BlockPos::new(0, 0, 0), [2, 1, 2], &again).block_entities, 2);
}

#[test]
fn entities_get_uuids_of_their_own_and_go_where_the_host_moves_them() {
    let folder = tempfile::tempdir().expect("a directory");
    let (world, overworld) = world();
    // A fraction that no f32 holds, twice the same UUID, and one beside the box.
    let cows = [
        cow([0.1, 0.2, 0.3], &[1, 2, 3, 4]),
        cow([1.5, 0.0, 0.5], &[1, 2, 3, 4]),
        cow([40.0, 0.0, 0.0], &[5; 4]),
    ];
    let path = made(folder.path(), [2, 1, 1], "minecraft:stone", &[], &cows);
    let corner = BlockPos::new(1_000_003, 64, -7);
    let report = put(&world, overworld, &path, corner);
    assert_eq!((report.entities, report.rekeyed), (3, 1));
    let out = folder.path().join("out.schem");
    take(&world, overworld, corner, [2, 1, 1], &out);
    assert_eq!(content(&out).entities, cows[..2]);
    // The same again: these are the same three. Elsewhere they are others.
    let report = put(&world, overworld, &path, corner);
    assert_eq!((report.entities, report.rekeyed, entity_count(&world)), (3, 1, 3));
    let report = put(&world, overworld, &path, BlockPos::new(0, 64, 0));
    assert_eq!((report.entities, report.rekeyed, entity_count(&world)), (3, 3, 6));
    let nether = world.registry().register_dimension("minecraft:the_nether").expect("a name");
    for _ in 0..2 {
        let report = put(&world, nether, &path, corner);
        assert_eq!((report.entities, report.rekeyed, entity_count(&world)), (3, 3, 9));
    }

    // One block on, by the host.
    let id = EntityId::new(uuid::Uuid::from_u128(0x0000_0001_0000_0002_0000_0003_0000_0004));
    let moved = world.entity(id).expect("sound").expect("the first has its own");
    let to = EntityPos::new(overworld, BlockPos::new(corner.x + 1, corner.y, corner.z), [0.5, 0.25, 0.0]);
    world
        .transaction(|tx| {
            let mut entity = Entity::new(moved.kind, moved.owner.clone(), to.expect("fractions"));
            for (component, bytes) in moved.components() {
                entity.set_component(component, bytes.to_vec())?;
            }
            tx.put_entity(id, entity);
            Ok::<_, Box<dyn std::error::Error>>(())
        })
        .expect("a commit");
    let out = folder.path().join("moved.schem");
    take(&world, overworld, corner, [2, 1, 1], &out);
    let found: Vec<_> = content(&out).entities;
    assert!(found.contains(&SchemEntity { pos: [1.5, 0.25, 0.0], ..cows[0].clone() }), "{found:?}");
}

fn entity_count(world: &Mem) -> usize {
    let mut count = 0;
    let shown = world.read_view(|view| {
        view.for_each_entity(|found| {
            found.expect("sound");
            count += 1;
            ControlFlow::<()>::Continue(())
        })
    });
    assert_eq!(shown.expect("memory fails never"), None);
    count
}

#[test]
fn a_stopped_import_is_made_whole_and_has_each_entity_once() {
    let folder = tempfile::tempdir().expect("a directory");
    let (world, overworld) = world();
    // Large enough for several transactions: some with a UUID, some without, two with the same.
    let cows: Vec<SchemEntity> = (0..40)
        .map(|number| {
            let data = nbt::payload(|out| {
                if number % 2 == 0 {
                    out.int_array("UUID", &[7, 7, 7, number.max(2)]);
                }
                out.byte_array("Filler", &vec![0; 900_000]);
            });
            let pos = [f64::from(number % 16) + 0.5, f64::from(number) * 1.6, 0.5];
            SchemEntity { id: "minecraft:cow".to_owned(), pos, data }
        })
        .collect();
    let path = made(folder.path(), [16, 64, 16], "minecraft:stone", &[], &cows);
    let file = SchemFile::read(&path).expect("a schematic");
    let corner = BlockPos::new(-5, 3, 7);
    let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        import(&file, &world, overworld, corner, |blocks| assert!(blocks < 45 * 256, "it is stopped here"))
    }));
    assert!(stopped.is_err());
    let some = entity_count(&world);
    assert!(some > 0 && some < 40, "{some}");
    let chunk = |y| world.load(ChunkAt::new(overworld, BlockPos::new(0, y, 8).chunk())).expect("sound");
    assert!(chunk(3).is_some_and(|chunk| !chunk.entities().is_empty()), "with the entities that stand in it");

    let report = put(&world, overworld, &path, corner);
    assert_eq!((report.entities, report.rekeyed), (40, 21));
    assert!(report.transactions > 1);
    assert_eq!(entity_count(&world), 40);
    let report = put(&world, overworld, &path, corner);
    assert_eq!((report.entities, report.rekeyed, entity_count(&world)), (40, 21, 40));
    let out = folder.path().join("out.schem");
    take(&world, overworld, corner, [16, 64, 16], &out);
    assert_eq!(content(&out).entities.len(), 40);
    assert!(content(&out).entities == cows);

    let report = put(&world, overworld, &path, BlockPos::new(-5, 3, 8));
    assert_eq!(
        (report.entities, report.rekeyed, entity_count(&world)),
        (40, 40, 80),
        "elsewhere they are others"
    );
}

#[test]
fn fields_beside_those_that_are_carried_are_named() {
    let folder = tempfile::tempdir().expect("a directory");
    let (world, overworld) = world();
    let thing = |id: &str, field: &'static str, is_entity: bool| {
        nbt::payload(|out| {
            out.string("Id", id).expect("short");
            if is_entity {
                out.doubles("Pos", &[0.5; 3]);
            } else {
                out.int_array("Pos", &[0; 3]);
            }
            out.compound("Data", |data| data.int("Carried", 1));
            out.int(field, 1);
        })
    };
    let (chest, cow) = (thing("minecraft:chest", "Extra", false), thing("minecraft:cow", "Mood", true));
    let bytes = nbt::document(|root| {
        root.compound("Schematic", |out| {
            out.int("Version", 3);
            out.int("DataVersion", 3955);
            for side in ["Width", "Height", "Length"] {
                out.short(side, 1);
            }
            out.compound("Blocks", |blocks| {
                blocks.compound("Palette", |palette| palette.int("minecraft:chest", 0));
                blocks.byte_array("Data", &[0]);
                blocks.raw_compounds("BlockEntities", [&chest[..]].into_iter());
                blocks.int("Strange", 1);
            });
            out.raw_compounds("Entities", [&cow[..], &cow[..]].into_iter());
            out.int("Whole", 1);
        });
    });
    let path = folder.path().join("extra.schem");
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut out, &bytes).expect("memory takes it");
    std::fs::write(&path, out.finish().expect("memory takes it")).expect("the disk takes it");
    let report = put(&world, overworld, &path, BlockPos::new(0, 0, 0));
    assert_eq!((report.blocks, report.block_entities, report.entities), (1, 1, 2));
    let expected = [("BlockEntities.Extra", 1), ("Blocks.Strange", 1), ("Entities.Mood", 2), ("Whole", 1)];
    assert_eq!(report.not_carried, expected.map(|(name, count)| (name.to_owned(), count)).into());
}

#[test]
fn an_entity_that_is_nowhere_stands_at_the_corner_and_is_named() {
    let folder = tempfile::tempdir().expect("a directory");
    let (world, overworld) = world();
    let cows = [cow([0.5; 3], &[1; 4]), cow([f64::NAN, 0.0, 0.0], &[2; 4]), cow([0.0, 1e300, 0.0], &[3; 4])];
    let path = made(folder.path(), [1, 1, 1], "minecraft:stone", &[], &cows);
    let corner = BlockPos::new(-5, 70, 9);
    let report = put(&world, overworld, &path, corner);
    assert_eq!((report.entities, report.rekeyed), (3, 0));
    let named = "places of entities that are not in the world: they stand at the lowest corner";
    assert_eq!(report.not_carried, BTreeMap::from([(named.to_owned(), 2)]));
    let nan = EntityId::new(uuid::Uuid::from_u128(0x0000_0002_0000_0002_0000_0002_0000_0002));
    let found = world.entity(nan).expect("sound").expect("it arrived");
    assert_eq!(found.position, EntityPos::new(overworld, corner, [0.0; 3]).expect("zero is a fraction"));
}

#[test]
fn block_entities_of_a_schematic_without_blocks_are_named() {
    let folder = tempfile::tempdir().expect("a directory");
    let (world, overworld) = world();
    let head = SchemHead::sized([1, 1, 1]);
    let bytes = nbt::document(|root| {
        root.compound("Schematic", |out| {
            out.int("Version", 3);
            out.int("DataVersion", head.data_version);
            for side in ["Width", "Height", "Length"] {
                out.short(side, 1);
            }
            out.compound("Blocks", |blocks| {
                let chest = nbt::payload(|out| {
                    out.string("Id", "minecraft:chest").expect("short");
                    out.int_array("Pos", &[0; 3]);
                });
                blocks.raw_compounds("BlockEntities", [&chest[..]].into_iter());
            });
        });
    });
    let path = folder.path().join("chest.schem");
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut out, &bytes).expect("memory takes it");
    std::fs::write(&path, out.finish().expect("memory takes it")).expect("the disk takes it");
    let report = put(&world, overworld, &path, BlockPos::new(0, 0, 0));
    assert_eq!((report.blocks, report.block_entities), (0, 0));
    assert_eq!(report.not_carried, BTreeMap::from([("block entities without a block".to_owned(), 1)]));
}
