//! Columns and bindings that contradict themselves are refused with the place, and nothing is written.

use cg_format::EntityId;
use cg_format::entity::EntityPos;
use cg_host::{
    BindingProblem, BlockEntity, Cells, CellsProblem, Column, ColumnAt, ColumnProblem, Error, Host,
    HostOptions,
};
use cg_store::{ErrorKind, StoreLimits, World, WorldOptions};

use crate::maker::{CHEST, FORM, Made, STONE, cells, known, made, name, over, section, uniform};

/// A change of a sound column.
type Edit<'e> = &'e dyn Fn(&mut Column);

#[track_caller]
fn refused(made: &Made, column: Column) -> ColumnProblem {
    let before = made.host.world().last_commit();
    let submitted =
        made.host.submit(&made.binding, column.clone(), false).expect_err("it contradicts itself");
    let error = made.host.save(&made.binding, column, false).expect_err("it contradicts itself");
    assert_eq!(submitted.to_string(), error.to_string());
    assert_eq!((error.kind(), made.host.world().last_commit()), (ErrorKind::Invalid, before));
    match error {
        Error::Column { problem, .. } => problem,
        other => panic!("another error: {other}"),
    }
}

#[test]
fn columns_that_contradict_themselves() {
    let made = made();
    let column = |edit: &dyn Fn(&mut Column)| {
        let mut column = uniform(made.at, &[STONE, STONE]);
        edit(&mut column);
        column
    };
    let heights = ColumnAt { min_y: 5, max_y: 4, ..made.at };
    assert_eq!(refused(&made, Column::new(heights)), ColumnProblem::Heights { heights: 0 });
    let heights = ColumnAt { min_y: i32::MIN, max_y: i32::MAX, ..made.at };
    assert_eq!(refused(&made, Column::new(heights)), ColumnProblem::Heights { heights: 1 << 32 });
    let cases: [(Edit<'_>, ColumnProblem); 12] = [
        (&|column| column.sections.swap(0, 1), ColumnProblem::SectionOrder { y: -4 }),
        (&|column| column.sections[1].y = 20, ColumnProblem::Height { y: 20, min_y: -4, max_y: 19 }),
        (
            &|column| column.sections[0].sky_light = Some(vec![0; 2047].into()),
            ColumnProblem::Light { y: -4, found: 2047 },
        ),
        (
            &|column| column.sections[0].layers = vec![Cells::uniform(1, FORM, 4); 3],
            ColumnProblem::Layers { y: -4, found: 3, most: 2 },
        ),
        (
            &|column| column.sections[1].layers[0].palette = Some(vec![99]),
            ColumnProblem::Number { part: "block", number: 99, count: 5 },
        ),
        (
            &|column| column.sections[1].biomes = Some(Cells::uniform(3, FORM, 4)),
            ColumnProblem::Number { part: "biome", number: 3, count: 3 },
        ),
        (
            &|column| column.sections[1].biomes = Some(Cells::uniform(7, FORM, 2)),
            ColumnProblem::Cells { y: -3, part: "biomes", problem: CellsProblem::Side { found: 2 } },
        ),
        (
            &|column| column.sections[1].layers[0] = Cells { words: vec![0; 3], ..cells(FORM, 1, |_| 1) },
            ColumnProblem::Cells {
                y: -3,
                part: "blocks",
                problem: CellsProblem::Length { found: 3, expected: 512 },
            },
        ),
        (
            &|column| column.block_entities = vec![BlockEntity { at: made.block(16, 0, 0), nbt: vec![1] }],
            ColumnProblem::Outside { what: "a block entity", block: made.block(16, 0, 0) },
        ),
        (
            &|column| column.block_entities = vec![BlockEntity { at: made.block(1, 0, 0), nbt: vec![1] }; 2],
            ColumnProblem::BlockTwice { block: made.block(1, 0, 0) },
        ),
        (
            &|column| column.entities = vec![made.cow(1), made.cow(1)],
            ColumnProblem::EntityTwice { id: EntityId::from_bytes([1; 16]) },
        ),
        (
            &|column| column.entities = vec![cg_host::ColumnEntity { kind: 2, ..made.cow(1) }],
            ColumnProblem::Number { part: "kind of entity", number: 2, count: 2 },
        ),
    ];
    for (edit, expected) in cases {
        assert_eq!(refused(&made, column(edit)), expected);
    }
    let mut column = uniform(made.at, &[]);
    column.entities.push(made.cow(1));
    assert_eq!(refused(&made, column), ColumnProblem::NoSection);
    let mut column = uniform(made.at, &[STONE]);
    let nether = made.host.world().registry().register_dimension("game:nether").expect("a name");
    let position = EntityPos::new(nether, made.block(0, 0, 0), [0.0; 3]).expect("fractions");
    column.entities.push(cg_host::ColumnEntity { position, ..made.cow(1) });
    let id = EntityId::from_bytes([1; 16]);
    assert_eq!(refused(&made, column), ColumnProblem::OtherDimension { id, dimension: nether.get() });
    assert_eq!(made.load(), None, "nothing was written");
}

#[test]
fn a_block_entity_in_a_height_without_a_section_is_refused_when_it_is_saved() {
    let made = made();
    let mut column = uniform(made.at, &[STONE]);
    column.block_entities.push(BlockEntity { at: made.block(0, 40, 0), nbt: vec![1] });
    let what = "a block entity without a section";
    assert_eq!(refused(&made, column), ColumnProblem::Outside { what, block: made.block(0, 40, 0) });
}

#[test]
fn bindings_that_contradict_themselves() {
    let host =
        Host::new(World::builder().in_memory().expect("memory"), HostOptions::default()).expect("any game");
    let refused = |edit: &dyn Fn(&mut cg_host::Known)| {
        let mut known = known(0);
        edit(&mut known);
        match host.bind(known).expect_err("it contradicts itself") {
            Error::Binding(problem) => problem,
            other => panic!("another error: {other}"),
        }
    };
    let twice = refused(&|known| known.blocks[3].name = name("game:stone"));
    let named = String::from("game:stone");
    assert_eq!(twice, BindingProblem::Twice { list: "block", first: 1, second: 3, name: named });
    let number = refused(&|known| known.placeholder = 5);
    assert_eq!(number, BindingProblem::Number { what: "the placeholder", number: 5, count: 5 });
    let number = refused(&|known| known.biome_placeholder = 5);
    assert_eq!(number, BindingProblem::Number { what: "the placeholder of biomes", number: 5, count: 3 });
    let form = refused(&|known| known.form.word_bits = 8);
    assert_eq!(form, BindingProblem::Form { what: "word_bits", found: 8, allowed: "16, 32 and 64" });
    let form = refused(&|known| known.layer_count = 0);
    assert_eq!(form, BindingProblem::Form { what: "layer_count", found: 0, allowed: "1 and 2" });
    let form = refused(&|known| known.form.widths = 0b1111);
    assert!(matches!(form, BindingProblem::Form { what: "widths", found: 15, .. }), "{form}");
    assert_eq!(host.world().catalog().block_id("game:stone"), None, "nothing was registered");
}

#[test]
fn a_world_is_of_one_game() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("world");
    let options = |game: &str| HostOptions { game: Some(game.into()), ..HostOptions::default() };
    let world = World::builder().create(&path).expect("created");
    Host::new(world, options("bedrock")).expect("new").close().expect("written");
    let world = World::builder().open(&path).expect("opened");
    let error = Host::new(world, options("java")).expect_err("another game");
    assert!(matches!(&error, Error::OtherGame { world, host } if (&**world, &**host) == ("bedrock", "java")));
    assert_eq!(error.kind(), ErrorKind::Invalid);
    Host::new(World::builder().open(&path).expect("opened"), HostOptions::default()).expect("any game");
}

#[test]
fn a_section_or_entity_over_the_limit_is_refused_with_its_place() {
    let limits = StoreLimits { chunk_bytes: 10_000, entity_bytes: 1000, ..StoreLimits::default() };
    let options = WorldOptions { limits, ..WorldOptions::default() };
    let world = World::builder().options(&options).in_memory().expect("memory");
    let made = over(world, HostOptions::default(), known(0));
    let mut column = uniform(made.at, &[STONE, CHEST]);
    column.block_entities.push(BlockEntity { at: made.block(0, 16, 0), nbt: vec![0; 10_001] });
    let error = made.host.submit(&made.binding, column, false).expect_err("too large");
    assert_eq!((error.kind(), error.place().expect("a chunk").pos.y()), (ErrorKind::TooLarge, -3));
    let mut column = uniform(made.at, &[STONE]);
    column.entities.push(cg_host::ColumnEntity { nbt: vec![0; 1001], ..made.cow(1) });
    let error = made.host.submit(&made.binding, column, false).expect_err("too large");
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    // What only its encoding shows is refused by its group, which stores the rest.
    let mut column = uniform(made.at, &[STONE, CHEST]);
    column.sections.push(section(-2, vec![Cells::uniform(STONE, FORM, 4)]));
    column.block_entities.push(BlockEntity { at: made.block(0, 16, 0), nbt: vec![0; 9990] });
    made.submit(&column);
    let other = crate::maker::at(made.at.dimension, 8, 8);
    made.host.submit(&made.binding, uniform(other, &[STONE]), false).expect("it fits");
    let error = made.host.flush().expect_err("one is too large");
    assert_eq!((error.kind(), error.place().expect("a chunk").pos.y()), (ErrorKind::TooLarge, -3));
    made.host.flush().expect("it was reported once");
    assert_eq!(made.host.metrics().refused, 1);
    assert!(made.host.load(&made.binding, other).expect("sound").is_some());
    assert_eq!(made.load(), None);
}
