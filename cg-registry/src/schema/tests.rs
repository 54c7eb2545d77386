//! Schemas: compatibility, differences and conversions.

use super::*;
use crate::reconcile::Policy;
use expect_test::{Expect, expect};

fn spec(fields: &[(&str, u32)], default: &[u8]) -> ComponentSpec {
    let fields: Vec<_> =
        fields.iter().map(|(name, width)| Field { name: (*name).into(), width_bytes: *width }).collect();
    let shape = ComponentShape::Fixed { width_bytes: default.len() as u32 };
    ComponentSpec { shape, default_bytes: default.into(), fields }
}

#[track_caller]
fn check(stored: &ComponentSpec, offered: &ComponentSpec, expected: Expect) {
    let diff = diff_specs(stored, offered);
    let strict = judge(&diff, &Policy::default(), false);
    let shrinking = judge(&diff, &Policy { allow_shrink: true, ..Policy::default() }, false);
    let function = judge(&diff, &Policy::default(), true);
    expected.assert_eq(&format!(
        "{diff:?}\nstrict {strict:?}\nallow_shrink {shrinking:?}\nfunction {function:?}\n"
    ));
}

#[test]
fn every_difference_has_its_verdict() {
    let (two, four) = (spec(&[], &[0; 2]), spec(&[], &[0; 4]));
    check(
        &two,
        &two,
        expect![[r#"
        Same
        strict Keep
        allow_shrink Keep
        function Keep
    "#]],
    );
    check(
        &two,
        &spec(&[], &[0, 1]),
        expect![[r#"
        NewInstancesOnly
        strict Describe
        allow_shrink Describe
        function Describe
    "#]],
    );
    check(
        &two,
        &spec(&[("a", 2)], &[0; 2]),
        expect![[r#"
        NewInstancesOnly
        strict Describe
        allow_shrink Describe
        function Describe
    "#]],
    );
    check(
        &spec(&[("a", 2)], &[0; 2]),
        &two,
        expect![[r#"
        Same
        strict Keep
        allow_shrink Keep
        function Keep
    "#]],
    );
    check(
        &two,
        &four,
        expect![[r#"
        Layout(LayoutDiff { from_bytes: 2, to_bytes: 4, by_fields: false, cut: [] })
        strict Replace { by: Prefix, lossless: true }
        allow_shrink Replace { by: Prefix, lossless: true }
        function Replace { by: Function, lossless: false }
    "#]],
    );
    check(
        &four,
        &two,
        expect![[r#"
        Layout(LayoutDiff { from_bytes: 4, to_bytes: 2, by_fields: false, cut: ["the last 2 bytes"] })
        strict Refuse
        allow_shrink Replace { by: Prefix, lossless: false }
        function Replace { by: Function, lossless: false }
    "#]],
    );
    check(
        &two,
        &ComponentSpec::variable(),
        expect![[r#"
        Kind { from: Fixed { width_bytes: 2 }, to: Variable }
        strict Refuse
        allow_shrink Refuse
        function Replace { by: Function, lossless: false }
    "#]],
    );
    let named = spec(&[("a", 1), ("b", 2)], &[0; 3]);
    check(
        &named,
        &spec(&[("b", 2), ("a", 1)], &[0; 3]),
        expect![[r#"
        Layout(LayoutDiff { from_bytes: 3, to_bytes: 3, by_fields: true, cut: [] })
        strict Replace { by: Fields, lossless: true }
        allow_shrink Replace { by: Fields, lossless: true }
        function Replace { by: Function, lossless: false }
    "#]],
    );
    check(
        &named,
        &spec(&[("b", 1), ("a", 1), ("c", 4)], &[0; 6]),
        expect![[r#"
        Layout(LayoutDiff { from_bytes: 3, to_bytes: 6, by_fields: true, cut: ["`b`"] })
        strict Refuse
        allow_shrink Replace { by: Fields, lossless: false }
        function Replace { by: Function, lossless: false }
    "#]],
    );
}

#[test]
fn fields_are_carried_by_name_and_filled_up() {
    let old = spec(&[("x", 2), ("gone", 1), ("y", 1)], &[0; 4]);
    let new = spec(&[("y", 2), ("new", 1), ("x", 2)], &[9; 5]);
    assert_eq!(convert(Conversion::Fields, &old, &new, &[1, 2, 3, 4]), Some(vec![4, 0, 9, 1, 2]));
}

#[test]
fn a_prefix_is_kept_and_filled_from_the_default() {
    let (short, long) = (spec(&[], &[7; 2]), spec(&[], &[5, 6, 7, 8]));
    assert_eq!(convert(Conversion::Prefix, &short, &long, &[1, 2]), Some(vec![1, 2, 7, 8]));
    assert_eq!(convert(Conversion::Prefix, &long, &short, &[1, 2, 3, 4]), Some(vec![1, 2]));
    assert_eq!(convert(Conversion::Function, &long, &short, &[1, 2, 3, 4]), None);
}

#[test]
fn schemas_that_do_not_add_up_are_refused() {
    let error = |spec: ComponentSpec| spec.check().unwrap_err().to_string();
    let text = [
        error(ComponentSpec::fixed(65_537)),
        error(ComponentSpec { default_bytes: vec![0], ..ComponentSpec::fixed(2) }),
        error(ComponentSpec { default_bytes: vec![0; 65_537], ..ComponentSpec::variable() }),
        error(spec(&[("a", 1)], &[0; 2])),
        error(spec(&[("a", u32::MAX), ("b", u32::MAX)], &[0; 2])),
        error(spec(&[("a", 1), ("a", 1)], &[0; 2])),
        error(spec(&[("", 2)], &[0; 2])),
        error(ComponentSpec { fields: spec(&[("a", 1)], &[0]).fields, ..ComponentSpec::variable() }),
    ];
    expect![[r#"
        a width of 65537 bytes is over the 65536 allowed; make it variable
        its default has 1 bytes, not 2
        its default has 65537 bytes, not 65536
        its fields have 1 bytes together, not 2
        its fields have 8589934590 bytes together, not 2
        the field name "a" is empty, too long or there twice
        the field name "" is empty, too long or there twice
        a component of variable size cannot have fields"#]]
    .assert_eq(&text.join("\n"));
}

#[test]
fn fields_that_do_not_fill_the_size_are_blamed_and_no_default() {
    let json = r#"{"pack":"p","version":"1","namespaces":["p"],
        "components":[{"name":"p:c","size":8,"fields":[{"name":"a","width_bytes":4}]}]}"#;
    let pack = crate::PackManifest::from_json(json).unwrap();
    let error = pack.components[0].spec().check().unwrap_err();
    assert_eq!(error.to_string(), "its fields have 4 bytes together, not 8");
}
