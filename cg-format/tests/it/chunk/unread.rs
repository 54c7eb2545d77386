//! Component data that the schema does not explain: kept, not guessed at, not broken by edits.

use cg_format::chunk::{CellLayer, Chunk, ChunkView, EditError, Mismatch};
use cg_format::schema::NoComponents;
use cg_format::{BlockId, ComponentId, ComponentShape, LocalPos, SchemaView};
use expect_test::expect;

use super::model::{BYTE, TEXT, TestSchema, WIDE};
use super::raw::{Raw, fixed};

fn cell(index: u16) -> LocalPos {
    LocalPos::from_index(index).unwrap()
}

/// Bytes of a column that no schema here knows.
fn foreign() -> Vec<u8> {
    fixed(77, b"who knows what this is")
}

#[track_caller]
fn kept(raw: &Raw) -> Chunk {
    let bytes = raw.bytes();
    let view = ChunkView::new(&bytes, &TestSchema).unwrap();
    let chunk = Chunk::decode(&bytes, &TestSchema).unwrap();
    assert!(view.has_unread_components() && chunk.has_unread_components());
    assert!(chunk.to_bytes() == bytes, "kept byte for byte");
    assert_eq!(chunk.unread_components(), view.unread_components());
    assert_eq!(chunk.validate(&TestSchema), Ok(()));
    assert_eq!(chunk.entities().len(), raw.entities.len());
    chunk
}

#[test]
fn an_unknown_block_leaves_the_whole_section_unread() {
    let mut raw = Raw::rich();
    raw.palette[0] = 1_000_000;
    let mut chunk = kept(&raw);
    assert_eq!(chunk.component(cell(7).into(), TEXT), None, "which data is whose is not known");
    assert_eq!(chunk.block(cell(0)), BlockId::new(1_000_000));

    // Blocks that can own nothing may still change.
    assert_eq!(chunk.set_block(cell(100), BlockId::new(8), &TestSchema), Ok(BlockId::new(0)));
    let refused = |block| Err(EditError::UnreadComponents { block: BlockId::new(block) });
    assert_eq!(chunk.set_block(cell(100), BlockId::new(1), &TestSchema), refused(1));
    assert_eq!(chunk.set_block(cell(0), BlockId::new(8), &TestSchema), refused(1_000_000));
    assert_eq!(chunk.remove_layer(cell(0), 1), refused(2));
    assert_eq!(chunk.with_components(&TestSchema, |_, _, _| None).map(drop), refused(1_000_000).map(drop));

    let bytes = chunk.to_bytes();
    let again = Chunk::decode(&bytes, &TestSchema).unwrap();
    assert_eq!(again, chunk);
    assert!(bytes.windows(raw.components.len()).any(|part| part == raw.components));
}

#[test]
fn an_unknown_component_leaves_only_the_rest_unread() {
    let mut raw = Raw::rich();
    raw.components = [fixed(WIDE.get(), b"wide!"), fixed(BYTE.get(), b"abc"), foreign()].concat();
    let mut chunk = kept(&raw);
    assert_eq!(chunk.component(cell(0).into(), BYTE), Some(&b"a"[..]));
    assert_eq!(chunk.component(CellLayer::new(cell(0), 1), WIDE), Some(&b"wide!"[..]));
    assert_eq!(chunk.component(cell(7).into(), TEXT), None);
    assert_eq!(chunk.unread_components(), foreign());

    chunk.set_component(cell(0).into(), BYTE, b"z").unwrap();
    assert_eq!(chunk.set_block(cell(9), BlockId::new(1), &TestSchema), Ok(BlockId::new(0)));
    assert_eq!(chunk.set_block(cell(0), BlockId::new(0), &TestSchema), Ok(BlockId::new(1)));
    let refused = Err(EditError::UnreadComponents { block: BlockId::new(3) });
    assert_eq!(chunk.set_block(cell(7), BlockId::new(0), &TestSchema), refused);
    assert_eq!(chunk.set_block(cell(8), BlockId::new(3), &TestSchema), refused);
    assert_eq!(chunk.validate(&TestSchema), Ok(()));

    let bytes = chunk.to_bytes();
    assert!(bytes.windows(foreign().len()).any(|part| part == foreign()));
    assert_eq!(Chunk::decode(&bytes, &TestSchema).unwrap(), chunk);

    chunk.discard_unread_components();
    assert_eq!(
        chunk.validate(&TestSchema),
        Err(Mismatch::Instances { component: TEXT, found: 0, expected: 1 })
    );
    let whole = chunk.with_components(&TestSchema, |_, _, _| None).unwrap();
    assert_eq!(whole.validate(&TestSchema), Ok(()));
}

#[test]
fn an_unknown_block_without_data_hides_nothing() {
    let mut raw = Raw::uniform(0);
    raw.palette = vec![0, 1_000_000];
    raw.ids[5] = 1;
    let mut chunk = Chunk::decode(&raw.bytes(), &TestSchema).unwrap();
    assert!(!chunk.has_unread_components());
    let refused = Err(EditError::UnreadComponents { block: BlockId::new(1) });
    assert_eq!(
        chunk.set_block(cell(6), BlockId::new(1), &TestSchema),
        refused,
        "its data could not be read back"
    );
    chunk.set_block(cell(5), BlockId::new(0), &TestSchema).unwrap();
    chunk.set_block(cell(6), BlockId::new(1), &TestSchema).unwrap();
    assert_eq!(Chunk::decode(&chunk.to_bytes(), &TestSchema).unwrap(), chunk);
    assert_eq!(chunk.component(cell(6).into(), BYTE), Some(&[7][..]));
}

#[test]
fn an_unknown_layer_that_was_removed_hides_nothing() {
    let (unknown, known) = (BlockId::new(1_000_000), BlockId::new(1));
    let mut chunk = Chunk::filled(BlockId::new(0), &NoComponents).unwrap();
    chunk.push_layer(cell(5), unknown, &NoComponents).unwrap();
    let mut chunk = Chunk::decode(&chunk.to_bytes(), &TestSchema).unwrap();
    let refused = EditError::UnreadComponents { block: known };
    assert_eq!(chunk.clone().set_block(cell(5), known, &TestSchema), Err(refused));
    chunk.remove_layer(cell(5), 1).unwrap();
    chunk.set_block(cell(5), known, &TestSchema).unwrap();
    assert_eq!(chunk.validate(&TestSchema), Ok(()));
}

#[test]
fn refusals_read_as_sentences() {
    let mut chunk = Chunk::filled(BlockId::new(1), &TestSchema).unwrap();
    for _ in 0..255 {
        chunk.push_layer(cell(5), BlockId::new(0), &TestSchema).unwrap();
    }
    let at = CellLayer::new(cell(17), 2);
    let errors = [
        chunk.set_block(cell(0), BlockId::new(1_000_001), &TestSchema).unwrap_err(),
        chunk.set_layer(at, BlockId::new(0), &TestSchema).unwrap_err(),
        chunk.push_layer(cell(5), BlockId::new(0), &TestSchema).unwrap_err(),
        chunk.remove_layer(cell(5), 0).unwrap_err(),
        chunk.set_component(cell(5).into(), ComponentId::variable(3), b"").unwrap_err(),
        chunk.set_component(cell(5).into(), BYTE, b"").unwrap_err(),
        EditError::UnreadComponents { block: BlockId::new(3) },
        EditError::UnknownComponent { component: TEXT },
    ];
    let text: String = errors.iter().map(|error| format!("{error}\n")).collect();
    expect![[r#"
        block 1000001 is unknown to the schema; register it first
        cell LocalPos(0, 1, 1) has 1 layers, none numbered 2
        cell LocalPos(0, 0, 5) has 256 layers, which is the most
        cell LocalPos(0, 0, 5) has 256 layers, none numbered 0
        the block at LocalPos(0, 0, 5) layer 0 has no component 0x8000000000000003
        component 0x3 takes 1 bytes, not 0
        block 3 may own component data that the schema does not explain
        component 0x8000000000000004 of a block has no shape in the schema
    "#]]
    .assert_eq(&text);
    let again = Chunk::decode(&chunk.to_bytes(), &TestSchema).unwrap();
    assert_eq!(again, chunk, "255 blocks above one cell come back");
}

static MEBIBYTE: [u8; 1 << 20] = [7; 1 << 20];

/// A schema in which a block asks for a mebibyte.
struct Greedy;

impl SchemaView for Greedy {
    fn components_of(&self, _: BlockId) -> Option<&[ComponentId]> {
        const ONE: &[ComponentId] = &[TEXT];
        Some(ONE)
    }

    fn shape(&self, _: ComponentId) -> Option<ComponentShape> {
        Some(ComponentShape::Variable)
    }

    fn default_bytes(&self, _: ComponentId) -> &[u8] {
        &MEBIBYTE
    }

    fn is_opaque(&self, _: BlockId) -> bool {
        true
    }
}

#[test]
fn a_schema_does_not_ask_for_more_memory_than_there_is() {
    let chunk = Chunk::filled(BlockId::new(1), &NoComponents).unwrap();
    let refused = chunk.with_components(&Greedy, |_, _, _| None).map(drop);
    let limit_bytes = Chunk::MAX_COMPONENT_BYTES;
    assert_eq!(refused, Err(EditError::TooManyBytes { component: TEXT, limit_bytes }));
}
