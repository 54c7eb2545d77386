//! Trees are read within their limits, or the error names the byte.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(bytes: &[u8], limits: Limits, expected: Expect) {
    let found = match Document::parse(bytes, &limits) {
        Ok(document) => {
            format!("{} fields, {} bytes after", document.root.fields().count(), document.trailing.len())
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&found);
}

/// A root whose only field has this tag, the name "n" and these bytes.
fn field(tag: u8, payload: &[u8]) -> Vec<u8> {
    [&[10, 0, 0, tag, 0, 1, b'n'], payload, &[0]].concat()
}

#[test]
fn what_is_no_tree_says_where_and_why() {
    let limits = Limits::default();
    check(b"", limits, expect!["NBT: 1 bytes are needed and 0 are left (at byte 0)"]);
    check(
        b"\x78\x9c",
        limits,
        expect!["NBT: the tree begins with tag 120 where a compound (10) has to be (at byte 0)"],
    );
    check(
        b"\x08\x00\x00\x00\x00",
        limits,
        expect!["NBT: the tree begins with tag 8 where a compound (10) has to be (at byte 0)"],
    );
    check(b"\x0a\x00\x00\x00", limits, expect!["0 fields, 0 bytes after"]);
    check(b"\x0a\x00\x00\x00tail", limits, expect!["0 fields, 4 bytes after"]);
    check(b"\x0a\x00\x00", limits, expect!["NBT: 1 bytes are needed and 0 are left (at byte 3)"]);
    check(&field(13, b""), limits, expect!["NBT: tag 13 does not exist (at byte 3)"]);
    check(&field(3, b"\0\0"), limits, expect!["NBT: 4 bytes are needed and 3 are left (at byte 7)"]);
    check(
        &field(8, b"\xff\xffabc"),
        limits,
        expect!["NBT: 65535 bytes are needed and 4 are left (at byte 9)"],
    );
}

#[test]
fn lengths_are_checked_before_they_are_believed() {
    let limits = Limits::default();
    check(&field(7, b"\xff\xff\xff\xff"), limits, expect!["NBT: a length is -1 (at byte 7)"]);
    check(
        &field(12, b"\x7f\xff\xff\xff"),
        limits,
        expect!["NBT: 2147483647 elements of at least 8 bytes exceed the 1 bytes left (at byte 7)"],
    );
    check(
        &field(9, b"\x0a\x00\x00\x00\x02"),
        limits,
        expect!["NBT: 2 elements of at least 1 bytes exceed the 1 bytes left (at byte 8)"],
    );
    // Elements without a kind would take no bytes.
    check(
        &field(9, b"\x00\x7f\xff\xff\xff"),
        limits,
        expect!["NBT: a list of 2147483647 elements has no element kind (at byte 7)"],
    );
    check(&field(9, b"\x00\x00\x00\x00\x00"), limits, expect!["1 fields, 0 bytes after"]);
}

#[test]
fn depth_and_elements_are_bounded() {
    let nested = |levels: usize| {
        let mut bytes = vec![10, 0, 0];
        bytes.extend([10, 0, 0].repeat(levels));
        bytes.extend(vec![0; levels + 1]);
        bytes
    };
    let limits = Limits::default();
    check(&nested(511), limits, expect!["1 fields, 0 bytes after"]);
    check(&nested(512), limits, expect!["NBT: more than 512 levels deep (at byte 1539)"]);
    // Nested lists count too, and do not overflow the stack.
    let lists = [&[10, 0, 0, 9, 0, 0][..], &[9, 0, 0, 0, 1].repeat(100_000)].concat();
    check(&lists, limits, expect!["NBT: more than 512 levels deep (at byte 2561)"]);
    let few = Limits { elements: 3, ..limits };
    check(&field(9, b"\x01\x00\x00\x00\x02ab"), few, expect!["1 fields, 0 bytes after"]);
    check(
        &field(9, b"\x01\x00\x00\x00\x03abc"),
        few,
        expect!["NBT: more than 3 fields and elements (at byte 7)"],
    );
}

#[test]
fn of_a_name_met_twice_the_last_counts_and_both_stay() {
    let bytes = payload(|out| {
        out.int("a", 1);
        out.int("b", 2);
        out.int("a", 3);
    });
    let compound = Compound::parse(&bytes, &Limits::default()).expect("a compound");
    assert_eq!(compound.int("a"), Some(3));
    assert_eq!(compound.raw(), bytes);
    let offsets: Vec<_> = compound.fields().map(|field| field.offset_bytes).collect();
    assert_eq!(offsets, [0, 8, 16]);
    let doubled = [&bytes[..], &[0]].concat();
    let error = Compound::parse(&doubled, &Limits::default()).expect_err("one byte too many");
    assert_eq!(error, NbtError { at_bytes: 25, problem: NbtProblem::Trailing(1) });
}

#[test]
fn text_beyond_the_basic_plane_and_nul_are_written_as_java_does() {
    let bytes = payload(|out| out.string("t", "a\0\u{1F600}").expect("short"));
    assert_eq!(bytes, b"\x08\x00\x01t\x00\x09a\xc0\x80\xed\xa0\xbd\xed\xb8\x80\x00");
    let compound = Compound::parse(&bytes, &Limits::default()).expect("a compound");
    assert_eq!(compound.text("t").and_then(Text::decode).as_deref(), Some("a\0\u{1F600}"));
    let long = "x".repeat(65_536);
    payload(|out| assert_eq!(out.string("t", &long), Err(TooLong(65_536))));
}

/// A tree with every kind of value, derived from a seed.
fn tree(seed: &[u8], depth: u32) -> Vec<u8> {
    payload(|out| {
        for &value in seed {
            match value % 9 {
                0 => out.byte("byte", value.cast_signed()),
                1 => out.int("int", i32::from(value) << 20),
                2 => out.long("long", i64::from(value) << 50),
                3 => out.string("text", &"é\0".repeat(usize::from(value % 7))).expect("short"),
                4 => out.byte_array("bytes", seed),
                5 => out.int_array("ints", &[1, -2]),
                6 => out.long_array("longs", &[i64::MIN]),
                7 => out.doubles("doubles", &[0.5, -1.25]),
                _ if depth > 0 => {
                    let inner = tree(&seed[1..], depth - 1);
                    out.raw_compounds("list", [inner.as_slice(), inner.as_slice()].into_iter());
                    out.raw_compound("compound", &inner);
                }
                _ => out.raw_compounds("empty", [].into_iter()),
            }
        }
    })
}

/// Visits every value. The sum makes sure that none is skipped.
fn visit(compound: Compound<'_>) -> usize {
    let value = |value: Value<'_>| match value {
        Value::Compound(inner) => visit(inner),
        Value::List(list) => {
            assert_eq!(list.values().count(), list.len());
            list.compounds().map(visit).sum::<usize>() + list.len()
        }
        Value::String(text) => text.lossy().len(),
        Value::IntArray(ints) => ints.values().count(),
        Value::LongArray(longs) => longs.values().count(),
        _ => 1,
    };
    compound.fields().map(|field| value(field.value)).sum()
}

proptest! {
    #[test]
    fn what_is_written_is_walked_whole(seed in prop::collection::vec(any::<u8>(), 0..8)) {
        let bytes = tree(&seed, 2);
        let compound = Compound::parse(&bytes, &Limits::default()).expect("just written");
        let raw: Vec<u8> = compound.fields().flat_map(|field| field.raw.to_vec()).chain([0]).collect();
        prop_assert_eq!(&raw, &bytes);
        visit(compound);
    }

    #[test]
    fn every_truncation_is_an_error(seed in prop::collection::vec(any::<u8>(), 0..8), cut in any::<prop::sample::Index>()) {
        let bytes = tree(&seed, 2);
        let cut = cut.index(bytes.len());
        prop_assert!(Compound::parse(&bytes[..cut], &Limits::default()).is_err());
    }

    #[test]
    fn a_changed_byte_gives_a_tree_or_an_error(
        seed in prop::collection::vec(any::<u8>(), 1..8), at in any::<prop::sample::Index>(), flip in 1u8..,
    ) {
        let mut bytes = tree(&seed, 2);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let Ok(compound) = Compound::parse(&bytes, &Limits::default()) {
            visit(compound);
        }
    }

    #[test]
    fn any_bytes_give_a_tree_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(document) = Document::parse(&[&[10, 0, 0], &bytes[..]].concat(), &Limits::default()) {
            visit(document.root);
        }
    }
}
