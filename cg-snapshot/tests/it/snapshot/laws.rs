//! Captured, damaged and restored, a region is what it was, and nothing else was touched.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cg_format::{
    BlockBox, BlockId, BlockPos, CellLayer, ChunkAt, ChunkSource, ComponentId, ComponentShape, LocalPos,
    Lookup, SchemaView,
};
use cg_registry::Schema;
use cg_snapshot::memory::Memory;
use cg_snapshot::{
    BlockChange, CaptureOptions, Contents, Difference, DryRun, RestoreJob, RestoreOptions, RestoreReport,
    Snapshot, capture, diff,
};
use proptest::prelude::*;

use super::made::{arena, around, captured, catalog, damage, host, id, region};

/// Restores and returns what was told and reported.
fn restore(
    host: &mut Memory,
    snapshot: &Snapshot,
    options: RestoreOptions,
) -> (Vec<BlockChange>, RestoreReport) {
    let mut told = Vec::new();
    let mut job = RestoreJob::new(Arc::new(snapshot.clone()), &catalog(), options).expect("it fits");
    let report = job.run(host, &mut |change| told.push(change)).expect("memory takes all");
    (told, report)
}

fn chunk(host: &Memory, at: ChunkAt) -> Option<Arc<cg_format::Chunk>> {
    host.lookup(at).map_or_else(|never| match never {}, Lookup::here)
}

/// Every block with its components.
type Blocks = HashMap<(BlockPos, u8), (BlockId, Vec<Vec<u8>>)>;

fn all(host: &Memory) -> Blocks {
    let mut all = Blocks::new();
    for pos in around().chunks().iter() {
        let Some(chunk) = chunk(host, ChunkAt::new(arena(&catalog()), pos)) else { continue };
        let base = LocalPos::all().map(|cell| (CellLayer::base(cell), chunk.block(cell)));
        for (at, block) in base.chain(chunk.upper_layers()) {
            all.insert((pos.block(at.cell), at.layer), (block, Vec::new()));
        }
        for (_, at, bytes) in chunk.components() {
            let (_, components) = all.get_mut(&(pos.block(at.cell), at.layer)).expect("a block");
            components.push(bytes.to_vec());
        }
    }
    all
}

fn blocks(area: BlockBox) -> impl Iterator<Item = BlockPos> {
    area.chunks().iter().flat_map(|pos| LocalPos::all().map(move |cell| pos.block(cell)))
}

/// Boxes in and around the made region: aligned or not, of one block up to all of it.
fn boxes() -> impl Strategy<Value = BlockBox> {
    let corner = || (-40_i64..40, -20_i64..20, -20_i64..40).prop_map(|(x, y, z)| BlockPos::new(x, y, z));
    let any = (corner(), corner()).prop_map(|(a, b)| BlockBox::new(a, b));
    prop_oneof![Just(around()), any.clone().prop_map(|area| area.chunks().blocks()), any]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_part_is_what_a_capture_of_it_is(seed in 0_u64..1000, area in boxes(), part in boxes()) {
        let live = host(seed);
        let whole = captured(&live, area);
        let Some(meets) = area.intersection(&part.chunks().blocks()) else {
            prop_assert_eq!(whole.within(part.chunks()), None);
            return Ok(());
        };
        let mut found = whole.within(part.chunks()).expect("they meet");
        found.forget_unused_names();
        prop_assert_eq!(&found, &captured(&live, meets));
        prop_assert!(found.verify().is_empty());
    }

    #[test]
    fn a_restored_region_is_what_it_was(seed in 0_u64..1000, harm in 0_u64..1000, area in boxes()) {
        let mut live = host(seed);
        let original = live.clone();
        let template = captured(&live, area);
        damage(&mut live, harm);
        let damaged = live.clone();
        let expected = diff(&template, &captured(&damaged, area), &mut |_| {}).unwrap();

        let (told, report) = restore(&mut live, &template, RestoreOptions::default());
        prop_assert_eq!(report.left_alone, 0, "no chunk came or went");
        prop_assert_eq!(captured(&live, area), template.clone());
        let (original, damaged, restored) = (all(&original), all(&damaged), all(&live));
        let inside = original.iter().filter(|((pos, _), _)| area.contains(*pos));
        let outside = damaged.iter().filter(|((pos, _), _)| !area.contains(*pos));
        let expected_blocks: Blocks = inside.chain(outside).map(|(at, block)| (*at, block.clone())).collect();
        prop_assert!(restored == expected_blocks);
        prop_assert_eq!(told.len() as u64, report.blocks + report.components);
        prop_assert_eq!((report.blocks, report.components), (expected.blocks, expected.components));
        for change in &told {
            prop_assert!(area.contains(change.pos));
            let kind = |blocks: &Blocks| blocks.get(&(change.pos, change.layer)).map(|(block, _)| *block);
            prop_assert_eq!((kind(&damaged), kind(&restored)), (change.old, change.new));
        }

        let (told, report) = restore(&mut live, &template, RestoreOptions::default());
        prop_assert_eq!((told.len(), report.changed, report.unchanged), (0, 0, report.sections));
        prop_assert_eq!((report.entities_put, report.entities_deleted), (0, 0));
    }

    #[test]
    fn blocks_alone_keep_the_rest(seed in 0_u64..1000, harm in 0_u64..1000, area in boxes()) {
        let mut live = host(seed);
        let options = CaptureOptions { contents: Contents::BLOCKS, ..CaptureOptions::named("blocks") };
        let template = capture(&live, &catalog(), region(area), &options).unwrap();
        prop_assert_eq!(template.entities().len(), 0);
        damage(&mut live, harm);
        let damaged = live.clone();
        let (told, report) = restore(&mut live, &template, RestoreOptions::default());
        prop_assert_eq!(report.components, 0);
        prop_assert!(live.entities().eq(damaged.entities()));
        for pos in around().chunks().iter() {
            let at = ChunkAt::new(arena(&catalog()), pos);
            let sides = |host: &Memory| {
                chunk(host, at).map(|chunk| chunk.sides().map(|(kind, it)| (kind, it.to_vec())).collect::<Vec<_>>())
            };
            prop_assert_eq!(sides(&live), sides(&damaged));
        }
        let told: HashSet<_> = told.iter().map(|change| change.pos).collect();
        let unreported = |mut blocks: Blocks| {
            blocks.retain(|(pos, _), _| !told.contains(pos));
            blocks
        };
        prop_assert!(unreported(all(&live)) == unreported(all(&damaged)));
        let again = capture(&live, &catalog(), region(area), &options).unwrap();
        prop_assert_eq!(again, template);
    }

    #[test]
    fn a_dry_run_tells_the_same_and_changes_nothing(seed in 0_u64..1000, harm in 0_u64..1000, area in boxes()) {
        let mut live = host(seed);
        let template = captured(&live, area);
        damage(&mut live, harm);
        let before = captured(&live, around());
        let mut dry = Vec::new();
        let mut job = RestoreJob::new(Arc::new(template.clone()), &catalog(), RestoreOptions::default()).unwrap();
        let dry_report = job.run(&mut DryRun::new(&live), &mut |change| dry.push(change)).unwrap();
        prop_assert_eq!(captured(&live, around()), before);
        let (told, report) = restore(&mut live, &template, RestoreOptions::default());
        prop_assert_eq!(dry, told);
        prop_assert_eq!(dry_report, report);
    }
}

#[test]
fn equal_sections_are_kept_once_whatever_lies_outside() {
    let catalog = catalog();
    let mut live = Memory::new(&catalog);
    let (air, stone) = (BlockId::new(0), BlockId::new(1));
    live.fill(arena(&catalog), around(), stone).unwrap();
    // A frame of air around the box: the parts inside are all stone.
    let area = BlockBox::new(BlockPos::new(-20, -8, -8), BlockPos::new(20, 8, 20));
    for pos in blocks(around()).filter(|pos| !area.contains(*pos)) {
        live.set_block(arena(&catalog), pos, air).unwrap();
    }
    let snapshot = captured(&live, area);
    assert_eq!((snapshot.info().section_count, snapshot.info().unique_count), (24, 1));
    assert_eq!(snapshot.info().unique_bytes, 56);
    assert_eq!(snapshot.names().blocks().count(), 1, "nothing outside is named");
}

#[test]
fn a_chunk_that_came_is_deleted_and_one_that_went_is_made() {
    let catalog = catalog();
    let mut live = Memory::new(&catalog);
    let (dimension, stone) = (arena(&catalog), BlockId::new(1));
    let chunk_box = |x: i64| BlockBox::new(BlockPos::new(x * 16, 0, 0), BlockPos::new(x * 16 + 15, 15, 15));
    live.fill(dimension, chunk_box(0), stone).unwrap();
    let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(39, 15, 15));
    let template = captured(&live, area);

    let mut other = Memory::new(&catalog);
    other.fill(dimension, chunk_box(1), stone).unwrap();
    other.fill(dimension, chunk_box(2), stone).unwrap();
    let (told, report) = restore(&mut other, &template, RestoreOptions::default());
    assert_eq!((report.created, report.deleted, report.blocks), (1, 1, 8192));
    assert_eq!(report.left_alone, 1, "of the third chunk only a part lies in the box");
    assert!(told[..4096].iter().all(|change| (change.old, change.new) == (None, Some(stone))));
    assert!(told[4096..].iter().all(|change| (change.old, change.new) == (Some(stone), None)));
    assert!(chunk(&other, ChunkAt::new(dimension, BlockPos::new(16, 0, 0).chunk())).is_none());
    assert!(chunk(&other, ChunkAt::new(dimension, BlockPos::new(32, 0, 0).chunk())).is_some());
}

/// A schema that does not say what components look like, as after a pack is gone.
struct Blind(Schema);

impl SchemaView for Blind {
    fn components_of(&self, block: BlockId) -> Option<&[ComponentId]> {
        self.0.components_of(block)
    }

    fn shape(&self, _: ComponentId) -> Option<ComponentShape> {
        None
    }

    fn default_bytes(&self, _: ComponentId) -> &[u8] {
        &[]
    }

    fn is_opaque(&self, block: BlockId) -> bool {
        self.0.is_opaque(block)
    }
}

#[test]
fn blocks_alone_are_not_put_over_data_that_cannot_be_read() {
    let catalog = catalog();
    let cube = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(15, 15, 15));
    let at = ChunkAt::new(arena(&catalog), BlockPos::new(0, 0, 0).chunk());
    let mut live = Memory::new(&catalog);
    live.fill(arena(&catalog), cube, BlockId::new(1)).unwrap();
    let options = CaptureOptions { contents: Contents::BLOCKS, ..CaptureOptions::named("blocks") };
    let template = capture(&live, &catalog, region(cube), &options).unwrap();
    // A chest, whose data nobody explains any more.
    live.set_block(arena(&catalog), BlockPos::new(3, 3, 3), BlockId::new(3)).unwrap();
    let bytes = chunk(&live, at).expect("there").to_bytes();
    let unread = cg_format::Chunk::decode(&bytes, &Blind(catalog.current_schema())).expect("a chunk");
    assert!(unread.has_unread_components());
    live.insert(at, unread);

    let why = "chunk 0, 0, 0 of dimension 0: block 1 may own component data that the schema does not explain";
    let mut job = RestoreJob::new(Arc::new(template), &catalog, RestoreOptions::default()).unwrap();
    assert_eq!(job.run(&mut live, &mut |_| {}).expect_err("it would be lost").to_string(), why);
    assert_eq!(chunk(&live, at).expect("there").to_bytes(), bytes);
    let error = capture(&live, &catalog, region(cube), &options).expect_err("it would be kept as blocks");
    assert_eq!(error.to_string(), why);
}

#[test]
fn a_chunk_that_came_or_went_counts_with_all_its_layers() {
    let catalog = catalog();
    let cube = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(15, 15, 15));
    let nothing = captured(&Memory::new(&catalog), cube);
    let mut live = Memory::new(&catalog);
    live.fill(arena(&catalog), cube, BlockId::new(2)).unwrap();
    let water = |chunk: &mut cg_format::Chunk| {
        chunk.push_layer(LocalPos::new(1, 2, 3), BlockId::new(4), &catalog.current_schema()).map(drop)
    };
    live.edit(ChunkAt::new(arena(&catalog), BlockPos::new(0, 0, 0).chunk()), water).unwrap().unwrap();
    let full = captured(&live, cube);
    let count = |earlier, later| diff(earlier, later, &mut |_| {}).unwrap().blocks;
    assert_eq!((count(&nothing, &full), count(&full, &nothing)), (4097, 4097));
    let (told, report) = restore(&mut Memory::new(&catalog), &full, RestoreOptions::default());
    assert_eq!((told.len(), report.blocks), (4097, 4097), "as a restore counts them");
}

#[test]
fn elsewhere_an_entity_gets_another_uuid_and_twice_the_same() {
    let mut live = host(11);
    let template = captured(&live, around());
    let sheep = template.entities().len();
    assert!(sheep > 0, "the seed has sheep");
    let options = RestoreOptions { by_chunks: [100, 0, -7], ..RestoreOptions::default() };
    let (_, report) = restore(&mut live, &template, options);
    assert_eq!(report.entities_put, sheep as u64);
    assert_eq!(live.entities().len(), 2 * sheep);
    for (_, entity) in live.entities().filter(|(new, _)| *new > id(1_000_000)) {
        let cg_format::entity::Owner::Chunk(at) = entity.owner else { panic!("owned by a chunk") };
        assert!(at.pos.x() > 90 && entity.position.block().chunk() == at.pos);
    }
    let (told, report) = restore(&mut live, &template, options);
    assert_eq!((told.len(), report.entities_put, report.changed), (0, 0, 0));
}

#[test]
fn neighbours_in_time_share_what_is_equal_and_differ_in_the_edits() {
    let mut live = host(3);
    let first = captured(&live, around());
    let there = all(&live);
    let place = blocks(around()).find(|pos| there.contains_key(&(*pos, 0))).expect("a block");
    let old = live.set_block(arena(&catalog()), place, BlockId::new(4)).unwrap();
    let mut second = captured(&live, around());
    let mut told = Vec::new();
    let found = diff(&first, &second, &mut |change| told.push((change.pos, change.old, change.new))).unwrap();
    assert_eq!(found, Difference { sections: 1, blocks: 1, ..Difference::default() });
    assert_eq!(told, [(place, old, Some(BlockId::new(4)))]);

    let copy = second.clone();
    let freed = second.share_with(&first);
    assert_eq!(second, copy);
    let own = second.kept().filter(|kept| !first.kept().any(|theirs| theirs == *kept));
    let own: u64 = own.map(|kept| kept.bytes().len() as u64).sum();
    assert_eq!(freed, second.info().unique_bytes - own);
    assert!(freed > 0 && own > 0);
}

#[test]
fn a_catalog_that_did_not_issue_the_ids_is_refused() {
    let live = host(3);
    let empty = cg_registry::Catalog::new();
    let error = capture(&live, &empty, region(around()), &CaptureOptions::named("x")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "dimensions has no entry 0, which the region uses; give the catalog that issued its ids"
    );
    let far = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(1 << 20, 1 << 20, 0));
    let error = capture(&live, &catalog(), region(far), &CaptureOptions::named("x")).unwrap_err();
    let expected = "the box has 4295098369 sections of 16³ blocks, a snapshot holds at most 16777216";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn what_was_taken_back_is_done_again() {
    let mut live = host(5);
    let template = Arc::new(captured(&live, around()));
    damage(&mut live, 6);
    let (_, whole) = restore(&mut live.clone(), &template, RestoreOptions::default());
    let options = RestoreOptions::default();
    let mut job = RestoreJob::new(Arc::clone(&template), &catalog(), options).expect("it fits");
    let mut held_bytes = 0;
    loop {
        // Transactions that do not commit, and one that does.
        for times in [1, 2] {
            job.run_some(&mut live.clone(), &mut |_| {}, 5).expect("memory takes all");
            (0..times).for_each(|_| job.take_back());
            assert_eq!(job.held_bytes(), held_bytes);
        }
        let before = job.report().clone();
        let is_more = job.run_some(&mut live, &mut |_| {}, 5).expect("memory takes all");
        held_bytes = job.held_bytes();
        if !is_more {
            assert_eq!(*job.report(), before);
            break;
        }
    }
    assert_eq!((job.report(), captured(&live, around())), (&whole, (*template).clone()));
    // All of it at once.
    let mut job = RestoreJob::new(Arc::clone(&template), &catalog(), options).expect("it fits");
    let mut live = host(5);
    damage(&mut live, 6);
    job.run(&mut live.clone(), &mut |_| {}).expect("memory takes all");
    job.take_back();
    assert_eq!(
        (job.run(&mut live, &mut |_| {}).expect("memory takes all"), job.held_bytes()),
        (whole, held_bytes)
    );
}

#[test]
fn what_would_take_too_much_memory_ends_where_it_does() {
    let mut live = host(5);
    let template = Arc::new(captured(&live, around()));
    damage(&mut live, 6);
    let run = |max_held_bytes| {
        let options = RestoreOptions { max_held_bytes, ..RestoreOptions::default() };
        let mut job = RestoreJob::new(Arc::clone(&template), &catalog(), options).expect("it fits");
        let ran = job.run(&mut live.clone(), &mut |_| {});
        (ran, job.held_bytes())
    };
    let (all, held_bytes) = run(u64::MAX);
    let all = all.expect("memory takes all");
    let chunks = template.sections().filter_map(|(section, _)| chunk(&live, section.at));
    let chunks_bytes: usize = chunks.map(|chunk| chunk.memory_bytes() + chunk.max_len_bytes()).sum();
    assert!(all.unchanged < 6 && held_bytes as usize > chunks_bytes, "{held_bytes} of {chunks_bytes}");
    let (again, as_much) = run(held_bytes);
    assert_eq!((again.expect("as much is allowed"), as_much), (all, held_bytes));
    let refused = |max_held_bytes: u64| run(max_held_bytes).0.expect_err("too much").to_string();
    let said = |done: u64, max: u64| {
        format!(
            "after {done} of 24 sections what changes takes more than the {max} bytes of memory that are allowed until it \
             is written; allow more, or restore in steps"
        )
    };
    assert_eq!(refused(0), said(1, 0));
    assert_eq!(refused(held_bytes - 1), said(24, held_bytes - 1));
    // Not what is skipped because it cannot be verified.
    let options = RestoreOptions {
        max_held_bytes: 0,
        unverifiable: cg_snapshot::Unverifiable::Skip,
        ..RestoreOptions::default()
    };
    let mut job = RestoreJob::new(Arc::clone(&template), &catalog(), options).expect("it fits");
    assert_eq!(job.run(&mut live.clone(), &mut |_| {}).expect_err("too much").to_string(), said(1, 0));
}
