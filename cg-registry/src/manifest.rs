//! The manifest of a pack, and its JSON form (`docs/manifest.md`).

mod states;

use std::fmt;

use cg_format::ComponentShape;
use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Name;
use crate::kind::ListKind;
use crate::schema::{ComponentSpec, Field};
use crate::types::{Content, Type, TypedField, one};

/// All names that one pack (a mod, a plugin, the game itself) offers to a world.
///
/// ```
/// use cg_registry::PackManifest;
/// let pack = PackManifest::from_json(r#"{
///     "pack": "storage", "version": "1.4.0", "namespaces": ["storage"],
///     "components": [{ "name": "storage:items", "size": "variable" }],
///     "blocks": [{ "name": "storage:crate", "components": ["storage:items"] }]
/// }"#)?;
/// assert_eq!(pack.blocks[0].name.as_str(), "storage:crate");
/// assert_eq!(PackManifest::from_json(&pack.to_json())?, pack);
/// # Ok::<_, cg_registry::ManifestError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackManifest {
    /// The pack's own name, which identifies it. It is not a [`Name`].
    pub pack: String,
    /// Its version, in any form; for display only.
    pub version: String,
    /// The namespaces that belong only to this pack. It registers names in no other.
    pub namespaces: Vec<String>,
    /// Its components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<ComponentOffer>,
    /// Its block kinds; new ones are numbered in this order.
    ///
    /// The JSON form may list the states of a block in one entry, as `docs/manifest.md` describes. It is written with
    /// one entry for each state.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "states::blocks")]
    pub blocks: Vec<BlockOffer>,
    /// Its kinds of entities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<Name>,
    /// Its structures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub structures: Vec<Name>,
    /// Its dimensions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dimensions: Vec<Name>,
    /// Its kinds of side data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sides: Vec<Name>,
    /// Entries that had another name in an earlier version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renamed: Vec<Rename>,
}

/// A block kind that a pack offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockOffer {
    /// Its name, with a state if the host distinguishes states.
    pub name: Name,
    /// The components of every block of this kind, from its own pack or another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Name>,
    /// Whether it hides the blocks behind it. Default: yes.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub opaque: bool,
}

/// A component that a pack offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentOffer {
    /// Its name.
    pub name: Name,
    /// The length of one instance in bytes, or `"variable"`.
    pub size: Size,
    /// The bytes of a new instance. Default: the defaults of the fields, or zeros; empty for variable size.
    #[serde(rename = "default", default, skip_serializing_if = "Option::is_none")]
    pub default_bytes: Option<HexBytes>,
    /// The named parts in their order. They identify values when the layout changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldOffer>,
    /// What an instance of variable size is. Default: any bytes. The types of a fixed size are those of its fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
}

/// A named part of a component that a pack offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldOffer {
    /// Its name, unique within the component.
    pub name: String,
    /// Its length in bytes.
    pub width_bytes: u32,
    /// Its bytes in a new instance. Default: zeros.
    #[serde(rename = "default", default, skip_serializing_if = "Option::is_none")]
    pub default_bytes: Option<HexBytes>,
    /// Which bytes are allowed. Default: any.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Type>,
    /// The number of items of an array, each of an equal part of the width. Default: 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u32,
}

/// An entry that keeps its id and gets a new name. Both names find it afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// The list that holds it.
    pub list: ListKind,
    /// The name that a world may have for it.
    pub old: Name,
    /// The name that the pack uses now.
    pub new: Name,
}

/// The length of one instance of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// This many bytes.
    Fixed(u32),
    /// Each instance has its own length.
    Variable,
}

/// Bytes, written as hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct HexBytes(pub Vec<u8>);

/// A manifest is not valid JSON of the documented form.
#[derive(Debug, thiserror::Error)]
#[error("not a pack manifest: {0}")]
pub struct ManifestError(#[from] serde_json::Error);

impl PackManifest {
    /// Reads the JSON form.
    ///
    /// # Errors
    /// [`ManifestError`] with line and column.
    pub fn from_json(text: &str) -> Result<Self, ManifestError> {
        Ok(serde_json::from_str(text)?)
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings, numbers and lists have a JSON form")
    }

    /// The names of a list without further data. Empty for blocks and components, which have more than a name.
    pub(crate) fn plain_names(&self, list: ListKind) -> &[Name] {
        match list {
            ListKind::Blocks | ListKind::Components => &[],
            ListKind::Entities => &self.entities,
            ListKind::Structures => &self.structures,
            ListKind::Dimensions => &self.dimensions,
            ListKind::Sides => &self.sides,
        }
    }

    /// All names that the pack offers in a list.
    pub fn names(&self, list: ListKind) -> Vec<&Name> {
        match list {
            ListKind::Blocks => self.blocks.iter().map(|block| &block.name).collect(),
            ListKind::Components => self.components.iter().map(|component| &component.name).collect(),
            _ => self.plain_names(list).iter().collect(),
        }
    }
}

impl BlockOffer {
    /// An opaque block without components.
    pub const fn new(name: Name) -> Self {
        Self { name, components: Vec::new(), opaque: true }
    }
}

impl ComponentOffer {
    /// A component of fixed size with a default of zeros.
    pub const fn fixed(name: Name, width_bytes: u32) -> Self {
        let size = Size::Fixed(width_bytes);
        Self { name, size, default_bytes: None, fields: Vec::new(), content: None }
    }

    /// A component of variable size with an empty default.
    pub const fn variable(name: Name) -> Self {
        Self { name, size: Size::Variable, default_bytes: None, fields: Vec::new(), content: None }
    }

    /// The offer that registers a component with this schema and these types.
    pub fn described(name: Name, spec: &ComponentSpec, types: Option<&Content>) -> Self {
        let base = match spec.shape {
            ComponentShape::Fixed { width_bytes } => Self::fixed(name, width_bytes),
            ComponentShape::Variable => Self::variable(name),
        };
        let default_bytes = Some(HexBytes(spec.default_bytes.clone()));
        let field = |field: &Field| FieldOffer::new(&field.name, field.width_bytes);
        let with_type = |field: &TypedField| {
            let (of, count) = (Some(field.of.clone()), field.count);
            FieldOffer { of, count, ..FieldOffer::new(&field.name, field.width_bytes) }
        };
        match types {
            Some(Content::Fields(fields)) => {
                Self { default_bytes, fields: fields.iter().map(with_type).collect(), ..base }
            }
            content => {
                let fields = spec.fields.iter().map(field).collect();
                Self { default_bytes, fields, content: content.cloned(), ..base }
            }
        }
    }

    /// The types; `None` if none is offered, which agrees with any. They are not checked.
    pub fn types(&self) -> Option<Content> {
        if self.content.is_some() || self.fields.iter().all(|field| field.of.is_none()) {
            return self.content.clone();
        }
        let with_type = |field: &FieldOffer| TypedField {
            name: field.name.clone(),
            width_bytes: field.width_bytes,
            of: field.of.clone().unwrap_or_default(),
            count: field.count,
        };
        Some(Content::Fields(self.fields.iter().map(with_type).collect()))
    }

    /// The schema with all defaults filled in. It is not checked.
    pub fn spec(&self) -> ComponentSpec {
        let shape = match self.size {
            Size::Fixed(width_bytes) => ComponentShape::Fixed { width_bytes },
            Size::Variable => ComponentShape::Variable,
        };
        let fields: Vec<_> = self
            .fields
            .iter()
            .map(|field| Field { name: field.name.clone(), width_bytes: field.width_bytes })
            .collect();
        let default_bytes = match (&self.default_bytes, self.size) {
            (Some(HexBytes(bytes)), _) => bytes.clone(),
            (None, Size::Variable) => Vec::new(),
            (None, Size::Fixed(width_bytes)) => self.filled_up(width_bytes),
        };
        ComponentSpec { shape, default_bytes, fields }
    }

    fn filled_up(&self, width_bytes: u32) -> Vec<u8> {
        // Bounds the allocation, because an offer is checked only afterwards.
        let most = ComponentSpec::MAX_WIDTH_BYTES + 1;
        let mut out = Vec::new();
        for field in &self.fields {
            let end = out.len() + field.width_bytes.min(most) as usize;
            out.extend(field.default_bytes.iter().flat_map(|hex| &hex.0).take(end - out.len()));
            out.resize(end, 0);
            out.truncate(most as usize);
        }
        if self.fields.is_empty() {
            out.resize(width_bytes.min(most) as usize, 0);
        }
        out
    }
}

impl FieldOffer {
    /// A part without a type that holds zeros in a new instance.
    pub fn new(name: impl Into<String>, width_bytes: u32) -> Self {
        Self { name: name.into(), width_bytes, default_bytes: None, of: None, count: 1 }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference to skip_serializing_if")]
const fn is_one(value: &u32) -> bool {
    *value == 1
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference to skip_serializing_if")]
const fn is_yes(value: &bool) -> bool {
    *value
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(width_bytes) => serializer.serialize_u32(*width_bytes),
            Self::Variable => serializer.serialize_str("variable"),
        }
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SizeVisitor;

        impl Visitor<'_> for SizeVisitor {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes or \"variable\"")
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Size, E> {
                let width = u32::try_from(number);
                width.map(Size::Fixed).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Size, E> {
                match text {
                    "variable" => Ok(Size::Variable),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(SizeVisitor)
    }
}

impl fmt::Debug for HexBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HexBytes({self})")
    }
}

impl fmt::Display for HexBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for HexBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HexBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let expected = &"pairs of hexadecimal digits";
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let pair = |pair: &[u8]| match pair {
            [high, low] => Some((digit(*high)? << 4 | digit(*low)?) as u8),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
        bytes.map(Self).ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[track_caller]
    fn check(fields: &str, expected: Expect) {
        let json = format!(r#"{{"pack":"p","version":"1","namespaces":["p"],{fields}}}"#);
        let shown = match PackManifest::from_json(&json) {
            Ok(pack) => {
                assert_eq!(PackManifest::from_json(&pack.to_json()).unwrap(), pack);
                format!("{:?}", pack.components.iter().map(ComponentOffer::spec).collect::<Vec<_>>())
            }
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn defaults_are_filled_in_from_the_fields() {
        check(
            r#""components":[{"name":"p:c","size":3}]"#,
            expect![
                "[ComponentSpec { shape: Fixed { width_bytes: 3 }, default_bytes: [0, 0, 0], fields: [] }]"
            ],
        );
        check(
            r#""components":[{"name":"p:c","size":2,"default":"0aFF"}]"#,
            expect![
                "[ComponentSpec { shape: Fixed { width_bytes: 2 }, default_bytes: [10, 255], fields: [] }]"
            ],
        );
        check(
            r#""components":[{"name":"p:c","size":"variable"}]"#,
            expect!["[ComponentSpec { shape: Variable, default_bytes: [], fields: [] }]"],
        );
        check(
            r#""components":[{"name":"p:c","size":3,"fields":[{"name":"a","width_bytes":1,"default":"07"},{"name":"b","width_bytes":2}]}]"#,
            expect![[
                r#"[ComponentSpec { shape: Fixed { width_bytes: 3 }, default_bytes: [7, 0, 0], fields: [Field { name: "a", width_bytes: 1 }, Field { name: "b", width_bytes: 2 }] }]"#
            ]],
        );
    }

    #[test]
    fn what_is_not_a_manifest_says_where() {
        check(
            r#""components":[{"name":"p:c","size":"wide"}]"#,
            expect![[
                r#"not a pack manifest: invalid value: string "wide", expected a number of bytes or "variable" at line 1 column 86"#
            ]],
        );
        check(
            r#""components":[{"name":"p:c","size":-1}]"#,
            expect![[
                r#"not a pack manifest: invalid type: integer `-1`, expected a number of bytes or "variable" at line 1 column 82"#
            ]],
        );
        check(
            r#""components":[{"name":"p:c","size":1,"default":"0g"}]"#,
            expect![[
                r#"not a pack manifest: invalid value: string "0g", expected pairs of hexadecimal digits at line 1 column 97"#
            ]],
        );
        check(
            r#""components":[{"name":"p:c","size":1,"default":"000"}]"#,
            expect![[
                r#"not a pack manifest: invalid value: string "000", expected pairs of hexadecimal digits at line 1 column 98"#
            ]],
        );
        check(
            r#""blocks":[{"name":"stone"}]"#,
            expect![[
                r#"not a pack manifest: "stone" is not a name: it has no namespace; write `namespace:identifier` at line 1 column 71"#
            ]],
        );
        check(
            r#""block":[]"#,
            expect![
                "not a pack manifest: unknown field `block`, expected one of `pack`, `version`, `namespaces`, `components`, `blocks`, `entities`, `structures`, `dimensions`, `sides`, `renamed` at line 1 column 52"
            ],
        );
        check(
            r#""renamed":[{"list":"items","old":"p:a","new":"p:b"}]"#,
            expect![
                "not a pack manifest: unknown variant `items`, expected one of `blocks`, `components`, `entities`, `structures`, `dimensions`, `sides` at line 1 column 71"
            ],
        );
    }

    #[test]
    fn the_documented_example_is_a_manifest() {
        let text = include_str!("../../docs/manifest.md");
        let json = text.split("```").find_map(|part| part.strip_prefix("json")).unwrap();
        let pack = PackManifest::from_json(json).unwrap();
        assert_eq!(pack.components[0].spec().default_bytes, [0, 0, 0, 0, 0, 0, 0, 0, 0xe8, 3, 0, 0]);
        let plan = crate::reconcile(&crate::Catalog::new(), &[pack], &crate::Policy::default());
        assert!(plan.is_accepted(), "{plan}");
    }

    #[test]
    fn an_absurd_width_allocates_next_to_nothing() {
        let mut offer = ComponentOffer::fixed(Name::new("p:c").unwrap(), u32::MAX);
        assert!(offer.spec().default_bytes.len() <= 65_537);
        let wide = FieldOffer::new("a", u32::MAX);
        offer.fields = vec![wide.clone(), wide];
        assert!(offer.spec().default_bytes.len() <= 65_537);
        assert!(offer.spec().check().is_err());
    }
}
