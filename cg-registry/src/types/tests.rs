//! Types: what they accept at their edges, what they refuse, and which of them narrow.

use super::*;
use crate::schema::ComponentSpec;
use crate::{
    Catalog, ComponentOffer, HexBytes, Name, PackManifest, Policy, Registration, RegistryError, reconcile,
};
use expect_test::{Expect, expect};
use proptest::prelude::*;

fn field(width_bytes: u32, of: Type) -> TypedField {
    TypedField { name: "f".into(), width_bytes, of, count: 1 }
}

fn content(width_bytes: u32, of: Type) -> Content {
    Content::Fields(vec![field(width_bytes, of)])
}

#[track_caller]
fn accepts(content: &Content, values: &[&[u8]]) {
    for bytes in values {
        assert_eq!(content.check(bytes), Ok(()), "{bytes:?}");
    }
}

#[track_caller]
fn refuses(content: &Content, bytes: &[u8], expected: Expect) {
    expected.assert_eq(&content.check(bytes).expect_err("is refused").to_string());
}

#[test]
fn integers_have_edges() {
    let byte = content(1, Type::Unsigned { min: 3, max: 7 });
    accepts(&byte, &[&[3], &[7]]);
    refuses(&byte, &[2], expect!["`f` is 2, allowed: 3 to 7"]);
    refuses(&byte, &[8], expect!["`f` is 8, allowed: 3 to 7"]);
    let wide = content(3, Type::Unsigned { min: 1, max: u64::MAX });
    accepts(&wide, &[&[1, 0, 0], &[0xff, 0xff, 0xff]]);
    refuses(&wide, &[0, 0, 0], expect!["`f` is 0, allowed: 1 to 16777215"]);
    accepts(&content(8, Type::UNSIGNED), &[&[0; 8], &[0xff; 8]]);
    let signed = content(2, Type::Signed { min: -5, max: i64::MAX });
    accepts(&signed, &[&[0xfb, 0xff], &[0xff, 0x7f]]);
    refuses(&signed, &[0xfa, 0xff], expect!["`f` is -6, allowed: -5 to 32767"]);
    let most = content(8, Type::Signed { min: i64::MIN, max: i64::MAX - 1 });
    accepts(&most, &[&i64::MIN.to_le_bytes(), &(i64::MAX - 1).to_le_bytes()]);
    refuses(
        &most,
        &i64::MAX.to_le_bytes(),
        expect!["`f` is 9223372036854775807, allowed: -9223372036854775808 to 9223372036854775806"],
    );
}

#[test]
fn booleans_enums_and_floats_have_edges() {
    let boolean = content(1, Type::Bool);
    accepts(&boolean, &[&[0], &[1]]);
    refuses(&boolean, &[2], expect!["`f` is 2, allowed: 0 or 1"]);
    let names = ["north", "east"].map(String::from).to_vec();
    let facing = content(2, Type::Enum(names));
    accepts(&facing, &[&[0, 0], &[1, 0]]);
    refuses(&facing, &[2, 0], expect!["`f` is 2, allowed: 0 `north`, 1 `east`"]);
    refuses(&facing, &[0, 1], expect!["`f` is 256, allowed: 0 `north`, 1 `east`"]);
    let many = content(1, Type::Enum((0..10).map(|n| format!("v{n}")).collect()));
    refuses(
        &many,
        &[10],
        expect![
            "`f` is 10, allowed: 0 `v0`, 1 `v1`, 2 `v2`, 3 `v3`, 4 `v4`, 5 `v5`, 6 `v6`, 7 `v7` and 2 more"
        ],
    );
    accepts(&content(4, Type::Float), &[&f32::MAX.to_le_bytes(), &f32::MIN.to_le_bytes()]);
    refuses(
        &content(4, Type::Float),
        &f32::NAN.to_le_bytes(),
        expect!["`f` is NaN, allowed: a finite number"],
    );
    refuses(
        &content(8, Type::Float),
        &f64::INFINITY.to_le_bytes(),
        expect!["`f` is inf, allowed: a finite number"],
    );
}

#[test]
fn texts_and_arrays_have_edges() {
    let text = content(4, Type::Text);
    accepts(&text, &[b"\0\0\0\0", b"abcd", "é\0\0".as_bytes()]);
    refuses(&text, b"a\0b\0", expect!["`f` is 61006200, allowed: UTF-8 and zeros after it"]);
    refuses(&text, b"abc\xc3", expect!["`f` is 616263c3, allowed: UTF-8 and zeros after it"]);
    let array = TypedField { count: 3, ..field(6, Type::Unsigned { min: 0, max: 300 }) };
    let array = Content::Fields(vec![field(1, Type::Bytes), TypedField { name: "slots".into(), ..array }]);
    accepts(&array, &[&[9, 44, 1, 0, 0, 1, 0]]);
    refuses(&array, &[9, 0, 0, 0, 0, 45, 1], expect!["`slots[2]` is 301, allowed: 0 to 300"]);
    refuses(&array, &[9, 0], expect!["is 2 bytes, allowed: 7 bytes"]);
}

#[test]
fn variable_sizes_have_edges() {
    let text = Content::Text { max_bytes: 3 };
    accepts(&text, &[b"", b"abc"]);
    refuses(&text, b"abcd", expect!["is 4 bytes, allowed: UTF-8 of at most 3 bytes"]);
    refuses(&text, b"\xff", expect!["is ff, allowed: UTF-8 of at most 3 bytes"]);
    let bytes = Content::Bytes { max_bytes: 3 };
    accepts(&bytes, &[b"", b"\xff\xff\xff"]);
    refuses(&bytes, &[0; 4], expect!["is 4 bytes, allowed: at most 3 bytes"]);
    let count = TypedField { name: "count".into(), ..field(1, Type::Unsigned { min: 1, max: 64 }) };
    let list = Content::List { max_items: 2, fields: vec![field(2, Type::Bytes), count] };
    accepts(&list, &[b"", &[9, 9, 64], &[9, 9, 1, 9, 9, 64]]);
    refuses(&list, &[0; 4], expect!["is 4 bytes, allowed: items of 3 bytes"]);
    refuses(&list, &[1; 9], expect!["is 3 items, allowed: at most 2 items"]);
    refuses(&list, &[9, 9, 1, 9, 9, 65], expect!["`[1].count` is 65, allowed: 1 to 64"]);
}

#[track_caller]
fn unsound(content: &Content, spec: &ComponentSpec, expected: Expect) {
    expected.assert_eq(&content.check_spec(spec).expect_err("is refused").to_string());
}

#[test]
fn types_that_do_not_fit_are_refused() {
    let (one, wide) = (ComponentSpec::fixed(1), ComponentSpec::fixed(9));
    unsound(&content(2, Type::Bytes), &one, expect!["its fields have 2 bytes together, not 1"]);
    unsound(
        &content(9, Type::UNSIGNED),
        &wide,
        expect!["the type of `f` does not fit: a number has 1 to 8 bytes"],
    );
    unsound(
        &content(1, Type::Unsigned { min: 256, max: u64::MAX }),
        &one,
        expect!["the type of `f` does not fit: its range is empty"],
    );
    unsound(
        &content(1, Type::Float),
        &one,
        expect!["the type of `f` does not fit: a floating-point number has 4 or 8 bytes"],
    );
    unsound(&content(9, Type::Bool), &wide, expect!["the type of `f` does not fit: a boolean has 1 byte"]);
    unsound(
        &content(1, Type::Enum(vec![])),
        &one,
        expect!["the type of `f` does not fit: its enum has no names"],
    );
    let twice = Type::Enum(vec!["a".into(), "a".into()]);
    unsound(&content(1, twice), &one, expect!["the type of `f` does not fit: its enum has a name twice"]);
    let many = Type::Enum((0..257).map(|n| n.to_string()).collect());
    unsound(
        &content(1, many),
        &one,
        expect!["the type of `f` does not fit: its enum has more names than its width has values"],
    );
    let parts = |count| Content::Fields(vec![TypedField { count, ..field(9, Type::Bytes) }]);
    unsound(
        &parts(2),
        &wide,
        expect!["the type of `f` does not fit: its width is not a multiple of its count"],
    );
    unsound(
        &parts(0),
        &wide,
        expect!["the type of `f` does not fit: its width is not a multiple of its count"],
    );
    unsound(
        &Content::Text { max_bytes: 1 },
        &one,
        expect!["the type does not fit: its size is fixed; describe it by fields"],
    );
    unsound(
        &content(1, Type::Bool),
        &ComponentSpec::variable(),
        expect!["a component of variable size cannot have fields"],
    );
    let list = Content::List { max_items: 1, fields: vec![] };
    unsound(
        &list,
        &ComponentSpec::variable(),
        expect!["the type does not fit: an item of its list has no bytes"],
    );
    unsound(
        &content(1, Type::Unsigned { min: 1, max: 2 }),
        &one,
        expect!["its default breaks its own types: `f` is 0, allowed: 1 to 2"],
    );
}

fn pack(version: u8, fields: &str) -> PackManifest {
    let json = format!(
        r#"{{ "pack": "p", "version": "{version}", "namespaces": ["p"],
              "components": [{{ "name": "p:c", "size": 2, "fields": [{fields}] }}] }}"#
    );
    let pack = PackManifest::from_json(&json).expect("a manifest");
    assert_eq!(PackManifest::from_json(&pack.to_json()).expect("what was written"), pack);
    pack
}

#[track_caller]
fn opened(catalog: &mut Catalog, pack: PackManifest, expected: Expect) {
    let plan = reconcile(catalog, &[pack], &Policy::default());
    expected.assert_eq(&plan.report());
    plan.apply(catalog).expect("an accepted plan");
}

#[test]
fn a_pack_that_changes_types_says_what_narrows() {
    let mut catalog = Catalog::new();
    let [a, b] = [r#"{ "name": "a", "width_bytes": 1"#, r#"{ "name": "b", "width_bytes": 1 }"#];
    let ranged = |max: u8| format!(r#"{a}, "type": {{ "unsigned": {{ "max": {max} }} }} }}, {b}"#);
    let untyped = format!("{a} }}, {b}");
    opened(
        &mut catalog,
        pack(1, &untyped),
        expect![[r#"
        accepted: no stored chunk is touched
          free     pack `p` 1 is new
          free     pack `p` registers 1 component: `p:c`; id 0
    "#]],
    );
    assert!(!catalog.has_types());
    opened(
        &mut catalog,
        pack(1, &ranged(10)),
        expect![[r#"
        accepted: no stored chunk is touched
          free     component `p:c` has types that may not allow stored values of `a` (0 to 10); `cg registry check` finds these
    "#]],
    );
    opened(
        &mut catalog,
        pack(1, &ranged(20)),
        expect![[r#"
        accepted: no stored chunk is touched
          free     component `p:c` has other types, which allow what they allowed
    "#]],
    );
    opened(
        &mut catalog,
        pack(1, &untyped),
        expect![[r#"
        accepted: the registry stays as it is
    "#]],
    );
    opened(
        &mut catalog,
        pack(1, &ranged(20)),
        expect![[r#"
        accepted: the registry stays as it is
    "#]],
    );
    let wider = r#"{ "name": "a", "width_bytes": 2, "type": "bool", "count": 2 }"#;
    let json = pack(1, wider);
    opened(
        &mut catalog,
        PackManifest {
            components: vec![ComponentOffer {
                size: crate::Size::Fixed(3),
                fields: [json.components[0].fields.clone(), vec![crate::FieldOffer::new("b", 1)]].concat(),
                ..json.components[0].clone()
            }],
            ..json
        },
        expect![[r#"
        accepted: stored chunks are converted as they are loaded (schema generation 0 to 1)
          on load  component `p:c` goes from 2 bytes to 3 bytes as `p:c@2`, carried over by field names; 0 blocks have it
          free     component `p:c` has types that may not allow stored values of `a` (0 or 1); `cg registry check` finds these
    "#]],
    );
    assert_eq!(catalog.current_generation(), 1, "types open no generation");
    let id = catalog.component_id("p:c").expect("offered");
    assert_eq!(catalog.types(id).map(|it| it.check(&[1, 2, 0]).is_err()), Some(true));
}

#[test]
fn a_running_world_takes_types_of_new_components_only() {
    let name = Name::new("p:c").expect("a name");
    let offer = |max| ComponentOffer {
        fields: vec![crate::FieldOffer {
            of: Some(Type::Unsigned { min: 0, max }),
            ..crate::FieldOffer::new("a", 1)
        }],
        ..ComponentOffer::fixed(name.clone(), 1)
    };
    let with = |offer| Registration { components: vec![offer], ..Registration::default() };
    let mut catalog = Catalog::new();
    assert_eq!(catalog.register(&with(offer(5))).expect("new").types().len(), 1);
    assert!(catalog.register(&with(offer(5))).expect("the same").is_empty());
    assert!(
        catalog.register(&with(ComponentOffer::fixed(name.clone(), 1))).expect("without types").is_empty()
    );
    expect!["`p:c` is registered with 1 byte, 1 fields, types and default 00; use a manifest and a plan to change it"]
        .assert_eq(&catalog.register(&with(offer(6))).expect_err("another range").to_string());
    let bad = ComponentOffer { default_bytes: Some(HexBytes(vec![9])), ..offer(5) };
    let bad = ComponentOffer { name: Name::new("p:d").expect("a name"), ..bad };
    let error = catalog.register(&with(bad)).expect_err("its default is not allowed");
    assert!(matches!(&error, RegistryError::Spec { .. }), "{error}");
    expect!["component `p:d`: its default breaks its own types: `a` is 9, allowed: 0 to 5"]
        .assert_eq(&error.to_string());
}

fn any_type() -> impl Strategy<Value = Type> {
    prop_oneof![
        Just(Type::Bytes),
        (any::<u64>(), any::<u64>()).prop_map(|(min, max)| Type::Unsigned { min: min >> 32, max }),
        (0..300_u64, 0..300_u64).prop_map(|(min, max)| Type::Unsigned { min, max }),
        (-200..200_i64, -200..200_i64).prop_map(|(min, max)| Type::Signed { min, max }),
        Just(Type::Float),
        Just(Type::Bool),
        (1..20_usize).prop_map(|len| Type::Enum((0..len).map(|n| n.to_string()).collect())),
        Just(Type::Text),
    ]
}

fn any_field() -> impl Strategy<Value = TypedField> {
    (0..9_u32, 1..4_u32, any_type()).prop_map(|(item, count, of)| TypedField {
        name: "f".into(),
        width_bytes: item * count,
        of,
        count,
    })
}

fn any_content() -> impl Strategy<Value = Content> {
    prop_oneof![
        any_field().prop_map(|field| Content::Fields(vec![field])),
        (any_field(), 0..4_u64)
            .prop_map(|(field, max_items)| Content::List { max_items, fields: vec![field] }),
        (0..40_u64).prop_map(|max_bytes| Content::Text { max_bytes }),
        (0..40_u64).prop_map(|max_bytes| Content::Bytes { max_bytes }),
    ]
}

proptest! {
    /// Any types and any bytes: a value or an error.
    #[test]
    fn any_bytes_are_allowed_or_a_breach(content in any_content(), bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = content.check(&bytes);
        if content.allows_everything() && matches!(content, Content::Bytes { .. }) {
            prop_assert_eq!(content.check(&bytes), Ok(()));
        }
    }

    /// What a change of types does not name as narrowed, it allows.
    #[test]
    fn what_is_not_narrowed_is_still_allowed(
        old in any_content(),
        new in any_content(),
        bytes in prop::collection::vec(prop_oneof![0..3_u8, any::<u8>()], 0..24),
    ) {
        let is_fixed = |content: &Content| matches!(content, Content::Fields(_));
        prop_assume!(is_fixed(&old) == is_fixed(&new));
        let shape = match &old {
            Content::Fields(fields) => cg_format::ComponentShape::Fixed { width_bytes: fields[0].width_bytes },
            _ => cg_format::ComponentShape::Variable,
        };
        prop_assume!(old.check_shape(shape).is_ok() && new.check_shape(shape).is_ok());
        if narrowed(Some(&old), &new).is_empty() && old.check(&bytes).is_ok() {
            prop_assert_eq!(new.check(&bytes), Ok(()));
        }
    }
}
