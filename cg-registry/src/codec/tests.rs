//! Registry rows: goldens, tails, and damage with its place.

use super::*;
use crate::{BlockOffer, ComponentOffer, ListKind, PackManifest, Policy, Registration, reconcile};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::fmt::Write as _;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A world with an entry of every kind, in generation 1.
fn sample() -> Catalog {
    let game = |json: &str| PackManifest::from_json(json).unwrap();
    let first = game(
        r#"{ "pack": "game", "version": "1", "namespaces": ["", "game"],
             "components": [{ "name": "game:power", "size": 2, "fields": [{ "name": "level", "width_bytes": 2 }] },
                            { "name": "game:items", "size": "variable" }],
             "blocks": [{ "name": ":air", "opaque": false },
                        { "name": "game:lamp[lit=true]", "components": ["game:power"] }],
             "entities": ["game:cow"], "structures": ["game:hut"], "dimensions": ["game:home"] }"#,
    );
    let second = game(
        r#"{ "pack": "game", "version": "2", "namespaces": ["", "game"],
             "components": [{ "name": "game:power", "size": 4, "default": "00000007" },
                            { "name": "game:items", "size": "variable" }],
             "blocks": [{ "name": ":air", "opaque": false },
                        { "name": "game:lantern", "components": ["game:power", "game:items"] }],
             "entities": ["game:cow"], "structures": ["game:hut"], "dimensions": ["game:home"],
             "renamed": [{ "list": "blocks", "old": "game:lamp[lit=true]", "new": "game:lantern" }] }"#,
    );
    let mut catalog = Catalog::new();
    reconcile(&catalog, &[first], &Policy::default()).apply(&mut catalog).unwrap();
    reconcile(&catalog, &[second], &Policy::default()).apply(&mut catalog).unwrap();
    catalog
}

fn decode(rows: &[(String, Vec<u8>)]) -> Result<Catalog, RegistryError> {
    Catalog::decode(rows.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))
}

fn edit(rows: &mut [(String, Vec<u8>)], row: &str) -> usize {
    rows.iter().position(|(name, _)| name == row).unwrap()
}

/// The bytes of a row, one field per line.
fn annotated(row: &str, bytes: &[u8]) -> String {
    let (spans, result) = trace(row, bytes);
    let mut out = format!("{row}: {} bytes\n", bytes.len());
    for span in spans {
        let at = span.offset_bytes as usize;
        let field = &bytes[at..at + span.len_bytes as usize];
        for (line, part) in field.chunks(16).enumerate() {
            let hex: Vec<_> = part.iter().map(|byte| format!("{byte:02x}")).collect();
            let label = if line == 0 { span.field } else { "" };
            let text: String =
                part.iter().map(|b| if b.is_ascii_graphic() { char::from(*b) } else { '.' }).collect();
            writeln!(out, "{:6}  {:<18} {:<47} {text}", at + 16 * line, label, hex.join(" ")).unwrap();
        }
    }
    if let Err(error) = result {
        writeln!(out, "{error}").unwrap();
    }
    out
}

/// A world with every type.
fn typed() -> Catalog {
    let pack = PackManifest::from_json(
        r#"{ "pack": "game", "version": "1", "namespaces": ["game"],
             "components": [
               { "name": "game:stats", "size": 30, "fields": [
                   { "name": "level", "width_bytes": 1, "default": "01", "type": { "unsigned": { "min": 1, "max": 100 } } },
                   { "name": "drift", "width_bytes": 2, "type": { "signed": { "min": -5 } } },
                   { "name": "facing", "width_bytes": 1, "type": { "enum": ["north", "east"] } },
                   { "name": "lit", "width_bytes": 1, "type": "bool" },
                   { "name": "speed", "width_bytes": 8, "type": "float", "count": 2 },
                   { "name": "title", "width_bytes": 12, "type": "text" },
                   { "name": "spare", "width_bytes": 5 }] },
               { "name": "game:note", "size": "variable", "content": { "text": { "max_bytes": 8 } } },
               { "name": "game:blob", "size": "variable", "content": { "bytes": { "max_bytes": 8 } } },
               { "name": "game:items", "size": "variable", "content": { "list": { "max_items": 2, "fields": [
                   { "name": "kind", "width_bytes": 2 },
                   { "name": "count", "width_bytes": 1, "type": { "unsigned": { "min": 1, "max": 64 } } }] } } }] }"#,
    );
    let mut catalog = Catalog::new();
    reconcile(&catalog, &[pack.unwrap()], &Policy::default()).apply(&mut catalog).unwrap();
    catalog
}

#[test]
fn golden_rows_decode_and_encode() {
    golden("v1", &sample());
    assert!(sample().encode_full().iter().all(|(row, _)| row != "componentTypes"), "no type, no row");
}

#[test]
fn damaged_types_name_row_offset_and_value() {
    let with = |at: usize, bytes: &[u8]| {
        let mut rows = typed().encode_full();
        let row = edit(&mut rows, "componentTypes");
        rows[row].1[at..at + bytes.len()].copy_from_slice(bytes);
        decode(&rows).unwrap_err().to_string()
    };
    expect!["row `componentTypes`: record 0 at byte 16: component 0x9 is unknown"].assert_eq(&with(16, &[9]));
    expect!["row `componentTypes`: record 0 at byte 16: invalid value: integer `9`, expected variant index 0 <= i < 4"]
        .assert_eq(&with(24, &[9]));
    expect!["row `componentTypes`: record 0 at byte 16: its fields have 31 bytes together, not 30"]
        .assert_eq(&with(49, &[2]));
    expect![
        "row `componentTypes`: record 0 at byte 16: the type of `level` does not fit: its range is empty"
    ]
    .assert_eq(&with(65, &[0]));
    let mut rows = typed().encode_full();
    let row = edit(&mut rows, "componentTypes");
    for len in 0..rows[row].1.len() {
        let mut cut = rows.clone();
        cut[row].1.truncate(len);
        assert!(decode(&cut).is_err(), "cut to {len} bytes");
    }
    rows.remove(row);
    assert!(!decode(&rows).unwrap().has_types(), "a world without types has no such row");
}

#[test]
fn golden_rows_of_types_decode_and_encode() {
    golden("types", &typed());
}

#[track_caller]
fn golden(folder: &str, catalog: &Catalog) {
    let dir = format!("{}/../testdata/golden/draft/registry/{folder}", env!("CARGO_MANIFEST_DIR"));
    let rows = catalog.encode_full();
    let mut text = String::new();
    for (row, bytes) in &rows {
        writeln!(text, "{}", annotated(row, bytes)).unwrap();
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::create_dir_all(&dir).unwrap();
        for (row, bytes) in &rows {
            std::fs::write(format!("{dir}/{row}.bin"), bytes).unwrap();
        }
        std::fs::write(format!("{dir}/rows.txt"), &text).unwrap();
    }
    let stored: Vec<_> = rows
        .iter()
        .map(|(row, _)| (row.clone(), std::fs::read(format!("{dir}/{row}.bin")).unwrap()))
        .collect();
    assert_eq!(decode(&stored).unwrap(), *catalog);
    assert_eq!(stored, rows);
    assert_eq!(std::fs::read_to_string(format!("{dir}/rows.txt")).unwrap(), text);
}

#[test]
fn tails_hold_only_what_is_new() {
    let mut catalog = sample();
    let changes = catalog
        .register(&Registration {
            components: vec![ComponentOffer::fixed(name("game:heat"), 1)],
            blocks: vec![BlockOffer::new(name("game:stone"))],
            ..Registration::default()
        })
        .unwrap();
    let rows: Vec<_> = changes.encode_tail().iter().map(|(row, bytes)| annotated(row, bytes)).collect();
    expect![[r#"
        blocks.tail.2: 22 bytes
             0  name count         01 00 00 00 00 00 00 00                         ........
             8  name length        0a 00 00 00                                     ....
            12  name               67 61 6d 65 3a 73 74 6f 6e 65                   game:stone

        components.tail.3: 21 bytes
             0  name count         01 00 00 00 00 00 00 00                         ........
             8  name length        09 00 00 00                                     ....
            12  name               67 61 6d 65 3a 68 65 61 74                      game:heat

        componentSchemas.tail.3: 50 bytes
             0  format version     01 00 00 00 00 00 00 00                         ........
             8  record count       01 00 00 00 00 00 00 00                         ........
            16  generation         01 00 00 00                                     ....
            20  component          03 00 00 00 00 00 00 00                         ........
            28  width              01 00 00 00                                     ....
            32  default length     01 00 00 00 00 00 00 00                         ........
            40  default            00                                              .
            41  field count        00 00 00 00 00 00 00 00                         ........
            49  replaces           00                                              .

        blockSchemas.tail.3: 37 bytes
             0  format version     01 00 00 00 00 00 00 00                         ........
             8  record count       01 00 00 00 00 00 00 00                         ........
            16  generation         01 00 00 00                                     ....
            20  block              02 00 00 00 00 00 00 00                         ........
            28  opaque             01                                              .
            29  component count    00 00 00 00 00 00 00 00                         ........
    "#]]
    .assert_eq(&rows.join("\n"));
}

#[track_caller]
fn check(damage: impl FnOnce(&mut Vec<(String, Vec<u8>)>), expected: Expect) {
    let mut rows = sample().encode_full();
    damage(&mut rows);
    expected.assert_eq(&decode(&rows).unwrap_err().to_string());
}

#[test]
fn damage_names_row_offset_and_value() {
    let with = |row: &'static str, change: fn(&mut Vec<u8>)| {
        move |rows: &mut Vec<(String, Vec<u8>)>| {
            let at = edit(rows, row);
            change(&mut rows[at].1);
        }
    };
    check(
        with("blocks", Vec::clear),
        expect!["row `blocks`: name list: name count needs 8 bytes and 0 are left (at byte 0)"],
    );
    check(
        with("blocks", |bytes| bytes[7] = 1),
        expect![
            "row `blocks`: name list: name count is 72057594037927938, allowed is at most 16777216 (at byte 0)"
        ],
    );
    check(
        with("blocks", |bytes| bytes[0] = 200),
        expect!["row `blocks`: name list: 200 names of 4 bytes exceed the 31 bytes left (at byte 0)"],
    );
    check(
        with("blocks", |bytes| bytes[10] = 1),
        expect!["row `blocks`: name list: name length is 65540, allowed is at most 65535 (at byte 8)"],
    );
    check(
        with("blocks", |bytes| bytes[13] = 0xff),
        expect!["row `blocks`: name 0 is no UTF-8: byte 0xff at byte 13"],
    );
    check(
        with("blocks", |bytes| bytes[13] = 0),
        expect![[
            r#"row `blocks`: name 0 at byte 12: ":\0ir" is not a name: '\0' at byte 1 is not allowed there"#
        ]],
    );
    check(
        with("blocks", |bytes| bytes.push(0)),
        expect![
            "row `blocks`: name list: bytes after the last name must be zero or absent, found 1 (at byte 39)"
        ],
    );
    check(
        with("blocks", |bytes| *bytes = encode_names(&[name("a:b"), name("a:b")])),
        expect!["row `blocks`: record 1 at byte 19: blocks: `a:b` is registered as 0 already"],
    );
    check(
        with("sides", |bytes| *bytes = encode_names(&[name(":stale")])),
        expect!["`sides` entry 0 is not `:lost_components`; restore the registry's rows from one backup"],
    );
    check(
        with("blockSchemas", |bytes| bytes[0] = 2),
        expect![
            "row `blockSchemas`: records: format version is 2, and this release reads up to 1; use a newer release (at byte 0)"
        ],
    );
    check(
        with("blockSchemas", |bytes| bytes[0] = 0),
        expect!["row `blockSchemas`: records: format version is 0, allowed is 1 and up (at byte 0)"],
    );
    check(
        with("blockSchemas", |bytes| bytes[8] = 4),
        expect!["row `blockSchemas`: record 3 at byte 103: 4 bytes are missing at its end"],
    );
    check(
        with("blockSchemas", |bytes| bytes[8] = 2),
        expect![
            "row `blockSchemas`: records: bytes after the last record must be zero or absent, found 37 (at byte 66)"
        ],
    );
    check(
        with("blockSchemas", |bytes| bytes[28] = 2),
        expect!["row `blockSchemas`: record 0 at byte 16: 2 is neither 0 nor 1"],
    );
    check(
        with("componentSchemas", |bytes| bytes[28] = 3),
        expect!["row `componentSchemas`: record 0 at byte 16: its fields have 2 bytes together, not 3"],
    );
    check(
        with("renames", |bytes| bytes[20] = 9),
        expect!["row `renames`: record 0 at byte 16: blocks has no entry 9"],
    );
    check(
        with("packRecords", |bytes| bytes.truncate(40)),
        expect!["row `packRecords`: records: 2 records of 20 bytes exceed the 24 bytes left (at byte 8)"],
    );
    check(|rows| drop(rows.remove(3)), expect!["row `structures` is missing; restore it from a backup"]);
}

#[test]
fn rows_that_do_not_belong_together_are_refused() {
    let tail = |row: &str, names: &[&str]| {
        let names: Vec<_> = names.iter().map(|text| name(text)).collect();
        (row.to_owned(), encode_names(&names))
    };
    check(
        |rows| rows.push(tail("entities.tail.2", &["game:pig"])),
        expect!["row `entities.tail.2` starts at entry 2, but the rows before it end at 1"],
    );
    check(
        |rows| rows.push(tail("entities.tail.0", &["game:pig"])),
        expect![[
            r#"row `entities.tail.0`: entry 0 is Name("game:pig"), but the rows before it say Name("game:cow")"#
        ]],
    );
    check(
        |rows| rows.push(tail("entities.tail.01", &["game:pig"])),
        expect![
            "row `entities.tail.01` is no registry row; a tail is named `<list>.tail.<first id>` in plain decimal"
        ],
    );
    check(
        |rows| rows.push(tail("entities.head.1", &["game:pig"])),
        expect![
            "row `entities.head.1` is no registry row; a tail is named `<list>.tail.<first id>` in plain decimal"
        ],
    );
    check(
        |rows| rows.push(tail("blocks.tail.2", &["game:pig"])),
        expect!["`blockSchemas` describes 2 of the 3 blocks; restore the registry's rows from one backup"],
    );
    check(
        |rows| {
            let row = BlockRow { generation: 9, block: 0, opaque: true, components: vec![] };
            rows.push(("blockSchemas.tail.3".into(), encode_records([&row])));
        },
        expect!["2 schema generations of 9 are described; restore the registry's rows from one backup"],
    );
}

#[test]
fn an_overlapping_tail_that_agrees_is_passed_over() {
    let mut rows = sample().encode_full();
    rows.push(("entities.tail.0".into(), encode_names(&[name("game:cow"), name("game:pig")])));
    rows.push(("time".into(), vec![1, 2, 3]));
    let catalog = decode(&rows).unwrap();
    assert_eq!(catalog.entity_type("game:pig").map(cg_format::EntityTypeId::get), Some(1));
    assert!(is_registry_row("blocks.tail.7") && !is_registry_row("time") && !is_registry_row("blocksy"));
}

#[test]
fn every_truncation_is_an_error() {
    let rows = sample().encode_full();
    for at in 0..rows.len() {
        for len in 0..rows[at].1.len() {
            let mut cut = rows.clone();
            cut[at].1.truncate(len);
            assert!(decode(&cut).is_err(), "{} cut to {len}", rows[at].0);
        }
    }
}

#[test]
fn every_changed_byte_is_an_error_or_another_catalog() {
    let rows = sample().encode_full();
    for at in 0..rows.len() {
        for byte in 0..rows[at].1.len() {
            for bit in 0..8 {
                let mut flipped = rows.clone();
                flipped[at].1[byte] ^= 1 << bit;
                if let Ok(catalog) = decode(&flipped) {
                    assert_eq!(catalog.encode_full(), flipped, "{} byte {byte} bit {bit}", rows[at].0);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn folding_at_any_time_gives_the_same_catalog(
        batches in prop::collection::vec((0..4_usize, prop::collection::vec(0..40_u32, 1..6), prop::bool::weighted(0.2)), 0..24),
    ) {
        let mut catalog = Catalog::new();
        let mut rows = catalog.encode_full();
        for (list, numbers, fold) in batches {
            let names: Vec<_> = numbers.iter().map(|n| name(&format!("ns:n{n}"))).collect();
            let mut new = Registration::default();
            match list {
                0 => new.blocks = names.into_iter().map(BlockOffer::new).collect(),
                1 => new.components = names.into_iter().map(ComponentOffer::variable).collect(),
                2 => new.entities = names,
                _ => new.sides = names,
            }
            let tail = catalog.register(&new).unwrap().encode_tail();
            rows.extend(tail);
            if fold {
                rows = catalog.encode_full();
            }
            prop_assert_eq!(&decode(&rows).unwrap(), &catalog);
            // A store reads rows in key order, where 10 comes before 9.
            let mut by_key = rows.clone();
            by_key.sort();
            prop_assert_eq!(&decode(&by_key).unwrap(), &catalog);
        }
    }

    #[test]
    fn any_bytes_give_a_catalog_or_an_error(row in 0..10_usize, bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut rows = sample().encode_full();
        rows[row].1 = bytes;
        if let Ok(catalog) = decode(&rows) {
            prop_assert_eq!(catalog.encode_full(), rows);
        }
    }
}

#[test]
fn lists_are_named_after_their_rows() {
    for list in ListKind::ALL {
        assert_eq!(Row::from(list).name(), list.row());
        assert_eq!(Row::ALL[Row::from(list).place()], Row::from(list));
    }
}
