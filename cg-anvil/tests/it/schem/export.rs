//! Export of a schematic: what is written of a world, and what a schematic cannot hold.

use cg_minecraft::content::BLOCK_BIOMES;

use super::*;

#[test]
fn an_export_is_of_the_state_at_which_it_began() {
    let folder = tempfile::tempdir().expect("a directory");
    let (world, overworld) = world();
    let cows = [cow([0.5, 0.0, 0.5], &[1, 2, 3, 4])];
    let path = made(folder.path(), [20, 20, 20], "minecraft:stone", &[], &cows);
    let corner = BlockPos::new(-7, 60, 3);
    put(&world, overworld, &path, corner);
    let gold = world.registry().register_blocks(["minecraft:gold_block"]).expect("a name")[0];
    let area = BlockBox::new(corner, BlockPos::new(12, 79, 22));
    let out = folder.path().join("out.schem");
    // What others have beside it is not taken.
    let theirs = folder.path().join("out.schem.new");
    std::fs::write(&theirs, "theirs").expect("the disk takes it");
    let mut height = 60;
    let report = export(&world, overworld, area, &out, &ExportOptions::default(), |_| {
        // After each slab of the first way through, all of the box becomes another one, and the cow goes.
        let written = world.transaction(|tx| {
            for x in corner.x..13 {
                tx.set_block(overworld, BlockPos::new(x, height, 5), gold)?;
            }
            tx.delete_entity(EntityId::new(uuid::Uuid::from_u128(0x0000_0001_0000_0002_0000_0003_0000_0004)));
            Ok::<_, Error>(())
        });
        written.expect("nobody waits for the export");
        height += 5;
    });
    assert_eq!(report.expect("it is of one state").states, 1);
    let before = content(&path);
    assert!(content(&out) == before, "nothing of what came meanwhile, and the cow");
    assert_eq!(std::fs::read(&theirs).expect("it is there"), b"theirs");
    let names = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(names, 3, "nothing is left behind");
}

#[test]
fn finer_biomes_are_believed_only_with_those_that_they_refine() {
    let Some(worlds) = worlds::folder() else { return };
    let (world, overworld) = world();
    // Its borders of biomes lay between the fours of its own world, and lie inside of them here.
    let corner = BlockPos::new(-8, 0, 3);
    let source = worlds.join("schem/v2_arkitektonika_biomes.schem");
    put(&world, overworld, &source, corner);
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("as_it_came.schem");
    take(&world, overworld, corner, [31, 1, 31], &out);
    assert!(content(&out).biomes == content(&source).biomes);
    let ids = Ids::find(&world.catalog());
    let (coarse, fine) = (ids.biomes.expect("registered"), ids.block_biomes.expect("registered"));
    let with_fine =
        |at: &ChunkAt| world.load(*at).expect("sound").is_some_and(|chunk| chunk.side(fine).is_some());
    let area = BlockBox::new(corner, BlockPos::new(corner.x + 30, 0, corner.z + 30)).chunks();
    let chunks: Vec<_> = area.iter().map(|pos| ChunkAt::new(overworld, pos)).filter(with_fine).collect();
    assert!(!chunks.is_empty());
    // The host makes everything a desert.
    let desert = nbt::payload(|out| out.strings("palette", ["minecraft:desert"].into_iter()).expect("short"));
    world
        .transaction(|tx| {
            area.iter()
                .try_for_each(|pos| tx.set_side(ChunkAt::new(overworld, pos), coarse, Some(desert.clone())))
        })
        .expect("a commit");
    let out = folder.path().join("out.schem");
    take(&world, overworld, corner, [31, 1, 31], &out);
    assert_eq!(content(&out).biomes, Some(vec!["minecraft:desert".to_owned(); 31 * 31]));
}

#[test]
fn what_a_schematic_cannot_hold_is_named() {
    let folder = tempfile::tempdir().expect("a directory");
    let (world, overworld) = world();
    let [stone, vine] =
        world.registry().register_blocks(["minecraft:stone", "minecraft:vine"]).expect("names");
    let at = ChunkAt::new(overworld, ChunkPos::constant(0, 0, 0));
    world
        .transaction(|tx| {
            let schema = tx.catalog().current_schema();
            let mut chunk = Chunk::filled(stone, &schema)?;
            chunk.push_layer(LocalPos::new(0, 0, 0), vine, &schema)?;
            chunk.push_layer(LocalPos::new(0, 0, 0), vine, &schema)?;
            tx.save(at, chunk);
            Ok::<_, Box<dyn std::error::Error>>(())
        })
        .expect("a commit");
    let out = folder.path().join("out.schem");
    let report = take(&world, overworld, BlockPos::new(-1, 0, 0), [2, 1, 1], &out);
    let expected = [
        ("blocks in a third layer or above", 1),
        ("states with minecraft:vine in the same cell as minecraft:stone", 1),
    ];
    assert_eq!(report.not_exported, BTreeMap::from(expected.map(|(what, count)| (what.to_owned(), count))));
    assert_eq!((report.absent_chunks, report.data_version), (1, 3955));
    assert_eq!(content(&out).states, ["minecraft:air", "minecraft:stone"]);
    assert_eq!(BLOCK_BIOMES, "minecraft:block_biomes");
}
