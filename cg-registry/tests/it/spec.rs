//! The registry's tables in `docs/format/` against its decoders, as cg-format does for the others.

use cg_format::Section;
use cg_format::wire::{Span, Trace};
use cg_registry::{KeptComponents, codec};

#[path = "../../../cg-format/tests/it/spec/tables.rs"]
mod tables;

use tables::{Layout, check, goldens, tables};

fn layouts() -> Vec<Layout> {
    let rows: Vec<Vec<Span>> = goldens("registry/v1")
        .iter()
        .map(|(row, bytes)| {
            let (spans, answer) = codec::trace(row, bytes);
            assert!(answer.is_ok(), "{row}: {answer:?}");
            spans
        })
        .collect();
    let kept = goldens("registry/kept").into_iter().map(|(name, bytes)| {
        let trace = Trace::default();
        let answer = KeptComponents::decode(&bytes, Some(&trace));
        assert!(answer.is_ok(), "{name}: {answer:?}");
        trace.take()
    });
    vec![
        Layout { name: "registry-kept", sections: &[Section::SideData], traces: kept.collect() },
        Layout { name: "registry-names", sections: &[Section::NameList], traces: rows.clone() },
        Layout { name: "registry-records", sections: &[Section::Records], traces: rows },
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
