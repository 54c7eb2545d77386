//! Bytes that are pinned: golden files, and annotated dumps that make a change of layout a readable difference.

use std::fmt::Write;
use std::path::PathBuf;

use cg_format::chunk::{CellLayer, Chunk, ChunkView, trace};
use cg_format::wire::annotate;
use cg_format::{BlockId, CellOrder, ComponentId, EntityId, LocalPos, SideKind};

use super::model::{BYTE, LIST, TEXT, TestSchema, WIDE};
use super::raw::{Raw, fixed};

fn cell(x: u8, y: u8, z: u8) -> LocalPos {
    LocalPos::new(x, y, z)
}

/// Kinds without components, one slab after the other.
fn kinds(count: u64) -> Chunk {
    let cells: Vec<BlockId> = (0..4096).map(|index| BlockId::new(100 + index * count / 4096)).collect();
    Chunk::from_blocks(cells.as_slice().try_into().unwrap(), CellOrder::Xyz, &TestSchema).unwrap()
}

fn layers() -> Chunk {
    let mut chunk = kinds(2);
    for (at, block) in
        [(cell(0, 0, 1), 500), (cell(0, 0, 1), 501), (cell(15, 15, 15), 500), (cell(0, 0, 0), 100)]
    {
        chunk.push_layer(at, BlockId::new(block), &TestSchema).unwrap();
    }
    chunk
}

fn components() -> Chunk {
    let mut chunk = kinds(1);
    let set = |chunk: &mut Chunk, at: CellLayer, component: ComponentId, bytes: &[u8]| {
        chunk.set_component(at, component, bytes).unwrap();
    };
    let (first, second) = (cell(0, 0, 0), cell(8, 4, 2));
    chunk.set_block(first, BlockId::new(2), &TestSchema).unwrap();
    chunk.push_layer(first, BlockId::new(4), &TestSchema).unwrap();
    chunk.push_layer(second, BlockId::new(4), &TestSchema).unwrap();
    chunk.push_layer(second, BlockId::new(1), &TestSchema).unwrap();
    set(&mut chunk, first.into(), BYTE, &[0xb0]);
    set(&mut chunk, CellLayer::new(first, 1), WIDE, b"above");
    set(&mut chunk, CellLayer::new(first, 1), TEXT, b"a sign");
    set(&mut chunk, CellLayer::new(second, 1), LIST, &[0xee; 300]);
    chunk
}

fn entities() -> Chunk {
    let mut chunk = kinds(1);
    for id in [0x0123_4567_89ab_cdef_0011_2233_4455_6677_u128, 1, u128::MAX] {
        let mut bytes = id.to_le_bytes();
        bytes.reverse();
        chunk.add_entity(EntityId::from_bytes(bytes));
    }
    chunk
}

fn side_data() -> Chunk {
    let mut chunk = kinds(1);
    chunk.set_side(SideKind::new(7), b"biomes".to_vec());
    chunk.set_side(SideKind::new(0), vec![0xff; 40]);
    chunk.set_side(SideKind::new(300), vec![]);
    chunk
}

fn unread() -> Chunk {
    let mut raw = Raw::rich();
    raw.components = [fixed(WIDE.get(), b"wide!"), fixed(77, b"a column of a pack that is gone")].concat();
    Chunk::decode(&raw.bytes(), &TestSchema).unwrap()
}

/// The worked example of `docs/format/chunk.md`.
fn example() -> Chunk {
    let mut chunk = Chunk::filled(BlockId::new(0), &TestSchema).unwrap();
    chunk.set_block(cell(0, 1, 0), BlockId::new(4), &TestSchema).unwrap();
    chunk.set_component(cell(0, 1, 0).into(), WIDE, b"12345").unwrap();
    chunk.set_component(cell(0, 1, 0).into(), TEXT, b"Hi!").unwrap();
    chunk.push_layer(cell(0, 1, 0), BlockId::new(9), &TestSchema).unwrap();
    chunk.add_entity(EntityId::from_bytes(*b"sixteen bytes id"));
    chunk.set_side(SideKind::new(1), b"light".to_vec());
    chunk
}

pub(super) fn samples() -> Vec<(&'static str, Chunk)> {
    vec![
        ("kinds_1", kinds(1)),
        ("kinds_2", kinds(2)),
        ("kinds_3", kinds(3)),
        ("kinds_4", kinds(4)),
        ("kinds_5", kinds(5)),
        ("kinds_17", kinds(17)),
        ("kinds_256", kinds(256)),
        ("kinds_257", kinds(257)),
        ("kinds_4096", kinds(4096)),
        ("layers", layers()),
        ("components", components()),
        ("entities", entities()),
        ("side_data", side_data()),
        ("unread", unread()),
        ("example", example()),
    ]
}

/// Everything that a chunk holds, one fact per line.
fn describe(view: &ChunkView<'_>) -> String {
    let mut out = String::new();
    let mut cells = LocalPos::all().map(|cell| (cell, view.block(cell).get())).peekable();
    while let Some((first, block)) = cells.next() {
        // A run of one kind, or of kinds that ascend by one.
        let step = cells.peek().map_or(0, |(_, next)| u64::from(*next == block + 1));
        let mut last = (first, block);
        while let Some(next) = cells.next_if(|(_, next)| *next == last.1 + step) {
            last = next;
        }
        writeln!(out, "cells {}-{} blocks {block}-{}", first.index(), last.0.index(), last.1).unwrap();
    }
    for (at, block) in view.upper_layers() {
        writeln!(out, "cell {} layer {} block {}", at.cell.index(), at.layer, block.get()).unwrap();
    }
    for (component, at, bytes) in view.components() {
        let kind = if component.is_variable() { "variable" } else { "fixed" };
        let (index, cell) = (component.index(), at.cell.index());
        writeln!(out, "{kind} component {index} cell {cell} layer {} bytes {bytes:02x?}", at.layer).unwrap();
    }
    if view.has_unread_components() {
        writeln!(out, "unread components bytes {:02x?}", view.unread_components()).unwrap();
    }
    for entity in view.entities() {
        writeln!(out, "entity {entity}").unwrap();
    }
    for (kind, data) in view.sides() {
        writeln!(out, "side {} bytes {data:02x?}", kind.get()).unwrap();
    }
    out
}

fn golden(name: &str, extension: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../testdata/golden/draft/chunk")
        .join(format!("{name}.{extension}"))
}

/// The layout is a draft: `UPDATE_GOLDEN=1` writes the files anew, with a line in the changelog.
#[test]
fn golden_files_decode_to_their_text_and_encode_to_their_bytes() {
    for (name, chunk) in samples() {
        let (bin, txt) = (golden(name, "bin"), golden(name, "txt"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            let bytes = chunk.to_bytes();
            std::fs::write(&txt, describe(&ChunkView::new(&bytes, &TestSchema).unwrap())).unwrap();
            std::fs::write(&bin, bytes).unwrap();
        }
        let bytes = std::fs::read(&bin).unwrap();
        let expected = std::fs::read_to_string(&txt).unwrap();
        assert_eq!(describe(&ChunkView::new(&bytes, &TestSchema).unwrap()), expected, "{name}");
        let decoded = Chunk::decode(&bytes, &TestSchema).unwrap();
        assert_eq!(decoded.to_bytes(), bytes, "{name}");
        assert_eq!(chunk.to_bytes(), bytes, "{name}");
    }
}

#[test]
fn every_byte_is_explained() {
    for (name, chunk) in samples() {
        let bytes = chunk.to_bytes();
        let (spans, result) = trace(&bytes, &TestSchema);
        assert_eq!(result, Ok(()));
        let mut end = 0;
        for span in &spans {
            assert_eq!(span.offset_bytes, end, "{name}: {span:?} follows the field before it");
            end += span.len_bytes;
        }
        assert_eq!(end, bytes.len() as u64, "{name}");
        insta::assert_snapshot!(name, annotate(&spans, &bytes));
    }
}

#[test]
fn a_dump_of_broken_bytes_ends_where_the_error_is() {
    let mut bytes = entities().to_bytes();
    bytes.truncate(80);
    let (spans, result) = trace(&bytes, &TestSchema);
    insta::assert_snapshot!("cut_off", format!("{}{}\n", annotate(&spans, &bytes), result.unwrap_err()));
}

#[test]
fn memory_follows_content() {
    assert_eq!(kinds(1).to_bytes().len(), 56);
    assert!(kinds(1).memory_bytes() < 400, "{}", kinds(1).memory_bytes());
    assert!(kinds(16).memory_bytes() < 2048 + 600, "{}", kinds(16).memory_bytes());
}

#[test]
fn the_worked_example_in_the_documentation_is_real() {
    let bytes = example().to_bytes();
    let dump = annotate(&trace(&bytes, &TestSchema).0, &bytes);
    let doc = include_str!("../../../../docs/format/chunk.md");
    assert!(doc.contains(&format!("```text\n{dump}```")), "put this into the page:\n{dump}");
}
