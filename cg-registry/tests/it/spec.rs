//! The registry's tables in `docs/format/` against its decoders, as cg-format does for the others.

use std::collections::BTreeMap;

use cg_format::Section;
use cg_format::wire::{Span, Trace};
use cg_registry::{KeptComponents, codec};

#[path = "../../../cg-format/tests/it/spec/tables.rs"]
mod tables;

use tables::{Layout, check, goldens, tables};

fn layouts() -> Vec<Layout> {
    let goldens_of = |row: &str| {
        goldens("registry/types").into_iter().filter(move |(name, _)| name == row).collect::<Vec<_>>()
    };
    let rows: BTreeMap<String, Vec<Span>> = goldens("registry/v1")
        .into_iter()
        .chain(goldens_of("componentTypes"))
        .map(|(row, bytes)| {
            let (spans, answer) = codec::trace(&row, &bytes);
            assert!(answer.is_ok(), "{row}: {answer:?}");
            let mut explained = 0;
            for span in &spans {
                assert_eq!(span.offset_bytes, explained, "{row}: every byte is explained once");
                explained += span.len_bytes;
            }
            assert_eq!(explained, bytes.len() as u64, "{row}");
            (row, spans)
        })
        .collect();
    let records =
        |name, row: &str| Layout { name, sections: &[Section::Record], traces: vec![rows[row].clone()] };
    let kept = goldens("registry/kept").into_iter().map(|(name, bytes)| {
        let trace = Trace::default();
        let answer = KeptComponents::decode(&bytes, Some(&trace));
        assert!(answer.is_ok(), "{name}: {answer:?}");
        trace.take()
    });
    vec![
        records("registry-block-record", "blockSchemas"),
        records("registry-component-record", "componentSchemas"),
        Layout { name: "registry-kept", sections: &[Section::SideData], traces: kept.collect() },
        Layout {
            name: "registry-names",
            sections: &[Section::NameList],
            traces: rows.values().cloned().collect(),
        },
        records("registry-pack-record", "packRecords"),
        Layout {
            name: "registry-records",
            sections: &[Section::Records],
            traces: rows.values().cloned().collect(),
        },
        records("registry-rename-record", "renames"),
        records("registry-type-record", "componentTypes"),
    ]
}

#[test]
fn tables_say_what_decoders_read() {
    let mut tables = tables();
    tables.retain(|name, _| name.starts_with("registry-"));
    let layouts = layouts();
    let names: Vec<&str> = layouts.iter().map(|layout| layout.name).collect();
    assert_eq!(tables.keys().map(String::as_str).collect::<Vec<_>>(), names, "marked tables and layouts");
    for layout in &layouts {
        check(layout, &tables[layout.name]);
    }
}
