//! The tables of `docs/format/snapshot.md` and `pack.md` against what the reader reads, as cg-format does for its layouts.

use cg_format::{Limits, Section};
use cg_snapshot::file::explain;
use cg_snapshot::pack;

#[path = "../../../../cg-format/tests/it/spec/tables.rs"]
mod tables;

use tables::{Layout, check, goldens, tables};

#[test]
fn tables_say_what_the_reader_reads() {
    let traces = || {
        let traces = goldens("snapshot").into_iter().map(|(name, bytes)| {
            let (spans, answer) = explain(&bytes, Limits::default());
            assert!(answer.is_ok(), "{name}: {answer:?}");
            spans
        });
        traces.collect::<Vec<_>>()
    };
    let layout = |name, sections| Layout { name, sections, traces: traces() };
    let layouts = [
        layout("snapshot-head", &[Section::SnapshotHead][..]),
        layout("snapshot-part", &[Section::SnapshotPart]),
        layout("snapshot-names", &[Section::SnapshotNames]),
        layout("snapshot-index", &[Section::SnapshotIndex]),
        layout("snapshot-entities", &[Section::SnapshotEntities]),
    ];
    let packs = || {
        let traces = goldens("pack").into_iter().map(|(name, bytes)| {
            let (spans, answer) = pack::explain(&bytes, Limits::default());
            assert!(answer.is_ok(), "{name}: {answer:?}");
            spans
        });
        traces.collect::<Vec<_>>()
    };
    let pack = |name, sections| Layout { name, sections, traces: packs() };
    let layouts = layouts.into_iter().chain([
        pack("pack-head", &[Section::PackHead][..]),
        pack("pack-part", &[Section::PackPart]),
        pack("pack-records", &[Section::PackRecords]),
        pack("pack-properties", &[Section::PackProperties]),
        pack("pack-objects", &[Section::PackObjects]),
        pack("pack-end", &[Section::PackEnd]),
    ]);
    let tables = tables();
    for layout in layouts {
        check(&layout, &tables[layout.name]);
    }
}
