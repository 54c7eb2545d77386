//! The tables of heat and traces in `docs/format/` against their decoders, as cg-format does for the others.

use cg_format::Section;
use cg_tiering::{Heat, trace};

#[path = "../../../cg-format/tests/it/spec/tables.rs"]
mod tables;

use tables::{Layout, check, goldens, tables};

#[test]
fn tables_say_what_decoders_read() {
    let heat = goldens("heat").into_iter().map(|(name, bytes)| {
        let (spans, answer) = Heat::trace(&bytes);
        assert!(answer.is_ok(), "{name}: {answer:?}");
        spans
    });
    let traces = goldens("trace").into_iter().map(|(name, bytes)| {
        let (spans, answer) = trace::explain(&bytes);
        assert!(answer.is_ok(), "{name}: {answer:?}");
        spans
    });
    let layouts = [
        Layout { name: "heat", sections: &[Section::Heat], traces: heat.collect() },
        Layout { name: "trace", sections: &[Section::TierTrace], traces: traces.collect() },
    ];
    let tables = tables();
    for layout in &layouts {
        check(layout, &tables[layout.name]);
    }
}
