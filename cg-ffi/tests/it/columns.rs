//! Columns in and out.

use std::ptr::{null, null_mut};

use cherrygrove::*;

use crate::support::*;

/// A column with all that a column can have.
#[test]
#[expect(clippy::too_many_lines, reason = "a column with all that there is, and all of it again")]
fn a_column_comes_back_as_it_was_saved() {
    let game = Game::in_memory();
    let (w, b) = (game.world, game.binding);
    // Two blocks in alternation, in Bedrock's order and words, at an odd address.
    let mut storage = vec![0_u8; 1 + 512];
    storage[1..].fill(0b1010_1010);
    let palette = [1_u32, 2];
    let base = cg_cells {
        words: storage[1..].as_ptr(),
        words_len: 512,
        palette: palette.as_ptr(),
        palette_len: 2,
        bits: 1,
        word_bits: 32,
        order: 1,
        side_log2: 4,
    };
    let water = [0_u32];
    let layers = [base, uniform(&water)];
    let plains = [5_u32];
    let light = [0x5a_u8; 2048];
    let sections = [
        cg_section { y: -4, layer_count: 0, layers: null(), ..section(&base) },
        cg_section {
            y: 0,
            layer_count: 2,
            flags: 77,
            layers: layers.as_ptr(),
            biomes: cg_cells { palette: plains.as_ptr(), palette_len: 1, side_log2: 2, ..cg_cells::NONE },
            block_light: null(),
            sky_light: light.as_ptr(),
        },
    ];
    // The chest is where y is odd.
    let chest = cg_block_entity { at: cg_pos { x: 17, y: 3, z: -16 }, nbt: bytes(b"chest") };
    let pig = cg_entity {
        block: cg_pos { x: 20, y: 5, z: -10 },
        fraction: [0.25, 0.5, 0.75],
        nbt: bytes(b"pig"),
        ..game.pig([3; 16])
    };
    let due = cg_scheduled { at: cg_pos { x: 16, y: 0, z: -1 }, due: 40, block: 1, priority: -2 };
    let column = cg_column {
        tick: 30,
        sections: sections.as_ptr(),
        block_entities: &raw const chest,
        entities: &raw const pig,
        scheduled: &raw const due,
        section_count: 2,
        block_entity_count: 1,
        entity_count: 1,
        scheduled_count: 1,
        kept: 99,
        damaged_sections: 99,
        ..game.column(1, -1)
    };
    let (mut handle, mut view, mut commit) = (0, null(), 0);
    let at = game.column_at(1, -1);
    // SAFETY: all memory is of this function, and a view is lent until its handle is released.
    unsafe {
        ok(|e| cg_column_save(w, b, &raw const column, 0, &raw mut commit, e));
        assert!(commit > 0);
        ok(|e| cg_column_load(w, b, &raw const at, &raw mut handle, &raw mut view, e));
        let view = &*view;
        assert_eq!((view.struct_size as usize, view.dimension), (size_of::<cg_column>(), game.dimension));
        assert_eq!((view.x, view.z, view.min_y, view.max_y, view.tick), (1, -1, -4, 19, 30));
        assert_eq!((view.kept, view.damaged_sections), (0, 0));
        let sections = lent(view.sections, view.section_count);
        assert_eq!(
            sections
                .iter()
                .map(|section| (section.y, section.layer_count, section.flags))
                .collect::<Vec<_>>(),
            [(-4, 1, 0), (0, 1, 0)]
        );
        let cells = &lent(sections[1].layers, 1)[0];
        assert_eq!(
            (cells.order, cells.word_bits, cells.bits, cells.side_log2, cells.words_len),
            (2, 64, 1, 4, 512)
        );
        let numbers = lent(cells.palette, cells.palette_len as usize);
        // In Java's order sixteen layers of 256 cells follow each other: four words of one block, four of the other.
        let words = lent(cells.words, 512);
        let of_layer = |y: usize| {
            let part = &words[y * 32..(y + 1) * 32];
            assert!(part.iter().all(|byte| *byte == part[0] && [0, 255].contains(byte)));
            numbers[usize::from(part[0] & 1)]
        };
        assert_eq!((0..4).map(of_layer).collect::<Vec<_>>(), [1, 2, 1, 2]);
        assert_eq!(sections[1].biomes.side_log2, 2);
        assert_eq!(lent(sections[1].biomes.palette, 1), [5]);
        assert!(sections[1].block_light.is_null() && sections[0].sky_light.is_null());
        assert_eq!(lent(sections[1].sky_light, 2048), light);
        let chests = lent(view.block_entities, view.block_entity_count);
        assert_eq!((chests.len(), chests[0].at, copied(chests[0].nbt)), (1, chest.at, b"chest".to_vec()));
        let pigs = lent(view.entities, view.entity_count);
        assert_eq!((pigs.len(), pigs[0].id, pigs[0].kind, pigs[0].block), (1, pig.id, 0, pig.block));
        assert_eq!((pigs[0].fraction, copied(pigs[0].nbt)), (pig.fraction, b"pig".to_vec()));
        let ticks = lent(view.scheduled, view.scheduled_count);
        assert_eq!(
            (ticks.len(), ticks[0].at, ticks[0].due, ticks[0].block, ticks[0].priority),
            (1, due.at, 40, 1, -2)
        );
        // A view is a column that can be saved, and is what is stored.
        gives(CG_UNCHANGED, |e| cg_column_save(w, b, view, 0, null_mut(), e));
        assert_eq!(cg_release(handle), CG_OK);
        let (mut peeked, mut lent_view) = (0, null());
        ok(|e| cg_column_peek(w, b, &raw const at, &raw mut peeked, &raw mut lent_view, e));
        assert_eq!((*lent_view).section_count, 2);
        assert_eq!(cg_release(peeked), CG_OK);
    }
    game.close();
}

#[test]
fn what_is_not_in_memory_is_pending() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("world").to_string_lossy().into_owned();
    let game = Game::at(&path);
    game.save(0, 0, 1);
    game.close();
    let game = Game::at(&path);
    let (mut handle, mut view) = (9, null());
    let (here, nowhere) = (game.column_at(0, 0), game.column_at(9, 9));
    // SAFETY: all memory is of this function.
    unsafe {
        let (w, b) = (game.world, game.binding);
        gives(CG_PENDING, |e| cg_column_peek(w, b, &raw const here, &raw mut handle, &raw mut view, e));
        assert_eq!((handle, view), (0, null()));
        assert_eq!(game.load(0, 0), Some(vec![1]));
        ok(|e| cg_column_peek(w, b, &raw const here, &raw mut handle, &raw mut view, e));
        assert_eq!(cg_release(handle), CG_OK);
        assert_eq!(game.load(9, 9), None);
        gives(CG_ABSENT, |e| cg_column_peek(w, b, &raw const nowhere, &raw mut handle, &raw mut view, e));
    }
    game.close();
}

#[test]
fn submitted_columns_are_seen_and_are_one_commit() {
    let game = Game::in_memory();
    let (w, b) = (game.world, game.binding);
    let stone = [1_u32];
    let (layer, before) = (uniform(&stone), info(w));
    let section = section(&layer);
    // SAFETY: all memory is of this function.
    unsafe {
        for x in 0..20 {
            let column = cg_column { sections: &raw const section, section_count: 1, ..game.column(x, 0) };
            ok(|e| cg_column_submit(w, b, &raw const column, 0, e));
            gives(CG_UNCHANGED, |e| cg_column_submit(w, b, &raw const column, 0, e));
        }
        for x in 0..20 {
            assert_eq!(game.load(x, 0), Some(vec![1]));
            // Memory has its chunks now, whether it waits or not.
            let (at, mut handle, mut view) = (game.column_at(x, 0), 0, null::<cg_column>());
            ok(|e| cg_column_peek(w, b, &raw const at, &raw mut handle, &raw mut view, e));
            assert_eq!((*view).section_count, 1);
            assert_eq!(cg_release(handle), CG_OK);
        }
        ok(|e| cg_world_flush(w, e));
        let after = info(w);
        let commits = after.last_commit - before.last_commit;
        assert!((1..20).contains(&commits), "{commits} commits");
        let mut metrics = vec![9_u64; cg_metric_count() + 2];
        ok(|e| cg_metrics(w, metrics.as_mut_ptr(), metrics.len(), e));
        let of = |name: &str| {
            let at = (0..cg_metric_count()).find(|at| copied_text(cg_metric_name(*at)) == name);
            metrics[at.expect("a metric")]
        };
        assert_eq!((of("last_commit_number"), of("unchanged_saves_count")), (after.last_commit, 20));
        assert_eq!((of("groups_count") > 0, of("pending_submissions_count")), (true, 0));
        assert_eq!(metrics[metrics.len() - 2..], [0, 0]);
    }
    game.close();
}

fn info(world: cg_handle) -> cg_world_info {
    // SAFETY: it is a struct of integers.
    let mut info: cg_world_info = unsafe { std::mem::zeroed() };
    info.struct_size = size_of::<cg_world_info>() as u32;
    // SAFETY: all memory is of this function.
    ok(|e| unsafe { cg_world_info_of(world, &raw mut info, e) });
    info
}

#[test]
fn a_part_leaves_other_sections_and_a_whole_column_deletes_them() {
    let game = Game::in_memory();
    let (w, b) = (game.world, game.binding);
    let stone = [1_u32];
    let layer = uniform(&stone);
    let sections = [section(&layer), cg_section { y: 5, ..section(&layer) }];
    let both = cg_column { sections: sections.as_ptr(), section_count: 2, ..game.column(0, 0) };
    let one = cg_column { sections: sections[1..].as_ptr(), section_count: 1, ..both };
    let count = || {
        let (mut handle, mut view) = (0, null::<cg_column>());
        // SAFETY: all memory is of this function.
        unsafe {
            ok(|e| cg_column_load(w, b, &game.column_at(0, 0), &raw mut handle, &raw mut view, e));
            let count = (*view).section_count;
            assert_eq!(cg_release(handle), CG_OK);
            count
        }
    };
    // SAFETY: all memory is of this function.
    unsafe {
        ok(|e| cg_column_save(w, b, &raw const both, 0, null_mut(), e));
        let mut part = 0;
        let (result, _) = failed(|e| cg_column_save(w, b, &raw const one, 1, &raw mut part, e));
        assert!(result >= 0);
        assert_eq!(count(), 2);
        ok(|e| cg_column_save(w, b, &raw const one, 0, null_mut(), e));
        assert_eq!(count(), 1);
    }
    game.close();
}

#[test]
fn a_walk_gives_the_columns_ascending_with_their_heights() {
    let game = Game::in_memory();
    let (w, b) = (game.world, game.binding);
    let stone = [1_u32];
    let layer = uniform(&stone);
    let sections = [cg_section { y: -3, ..section(&layer) }, cg_section { y: 8, ..section(&layer) }];
    // SAFETY: all memory is of this function.
    unsafe {
        for (x, z) in [(3, -1), (-7, 2), (3, -9), (i64::MAX >> 4, 0)] {
            let column = cg_column { sections: sections.as_ptr(), section_count: 2, ..game.column(x, z) };
            ok(|e| cg_column_submit(w, b, &raw const column, 0, e));
        }
        let mut cursor = 0;
        ok(|e| cg_columns_walk(w, game.dimension, &raw mut cursor, e));
        // What is saved after it is not in it.
        game.save(0, 0, 1);
        let mut found = Vec::new();
        loop {
            let (mut rows, mut n) = ([std::mem::zeroed::<cg_column_place>(); 3], 9);
            ok(|e| cg_columns_next(cursor, rows.as_mut_ptr(), 3, &raw mut n, e));
            if n == 0 {
                break;
            }
            found.extend(rows[..n].iter().map(|row| (row.dimension, row.x, row.z, row.min_y, row.max_y)));
        }
        let at = |x, z| (game.dimension, x, z, -3, 8);
        assert_eq!(found, [at(-7, 2), at(3, -9), at(3, -1), at(i64::MAX >> 4, 0)]);
        assert_eq!(cg_release(cursor), CG_OK);
        ok(|e| cg_columns_walk(w, game.dimension + 1, &raw mut cursor, e));
        let mut n = 9;
        ok(|e| cg_columns_next(cursor, &mut std::mem::zeroed(), 1, &raw mut n, e));
        assert_eq!(n, 0);
    }
    game.close();
}
