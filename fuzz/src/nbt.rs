//! Laws for any bytes that are taken for NBT: what parses is walked whole, encodes to the same, and needs exactly the
//! limits that a walk counts.
#![expect(clippy::big_endian_bytes, reason = "NBT is big-endian by its own definition")]

use std::borrow::Cow;

use cg_anvil::nbt::{Compound, Document, Field, Limits, List, NbtError, NbtProblem, Tag, Text, Value};

/// Parses bytes and says whether they begin with a tree.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let document = match Document::parse(bytes, &Limits::default()) {
        Ok(document) => document,
        Err(NbtError { at_bytes, .. }) => {
            assert!(at_bytes <= bytes.len(), "an error lies inside the bytes");
            return false;
        }
    };
    let root = document.root;
    assert!(Compound::parse(root.raw(), &Limits::default()) == Ok(root), "the root stands alone");

    let mut walk = Walk::default();
    walk.put(&[Tag::Compound as u8]);
    walk.text(document.name);
    walk.compound(root, 1);
    let (whole, trailing) = bytes.split_at(bytes.len() - document.trailing.len());
    assert!(trailing == document.trailing);
    assert!(walk.out == whole, "what is walked encodes to the same");

    let Walk { depth, elements, .. } = walk;
    let problem = |limits| Document::parse(bytes, &limits).map(drop).map_err(|error| error.problem);
    assert_eq!(problem(Limits { depth, elements }), Ok(()));
    let shallower = depth - 1;
    assert_eq!(problem(Limits { depth: shallower, elements }), Err(NbtProblem::TooDeep(shallower)));
    if let Some(fewer) = elements.checked_sub(1) {
        assert_eq!(problem(Limits { depth, elements: fewer }), Err(NbtProblem::TooManyElements(fewer)));
    }
    true
}

/// A second encoder, and what it counts on its way.
#[derive(Default)]
struct Walk {
    out: Vec<u8>,
    /// Compounds and lists inside each other, the root included.
    depth: u16,
    /// Fields and elements of lists.
    elements: u64,
}

impl Walk {
    fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn text(&mut self, text: Text<'_>) {
        if let Some(decoded) = text.decode() {
            assert_eq!(decoded, text.lossy());
        }
        assert!(text.lossy().len() <= 3 * text.0.len(), "a byte becomes at most one mark of replacement");
        self.put(&(text.0.len() as u16).to_be_bytes());
        self.put(text.0);
    }

    fn count(&mut self, count: usize) {
        self.put(&(count as u32).to_be_bytes());
    }

    fn compound(&mut self, compound: Compound<'_>, depth: u16) {
        self.depth = self.depth.max(depth);
        let mut at_bytes = 0;
        for Field { name, value, raw, offset_bytes } in compound.fields() {
            assert_eq!(offset_bytes, at_bytes);
            at_bytes += raw.len();
            self.elements += 1;
            let from = self.out.len();
            self.put(&[tag(value) as u8]);
            self.text(name);
            self.value(value, depth);
            assert!(self.out[from..] == *raw);
        }
        assert_eq!(compound.raw().len(), at_bytes + 1);
        self.put(&[Tag::End as u8]);
        let plain = |name: &Cow<'_, str>| name.is_ascii() && !name.contains('\0');
        if let Some(first) = compound.fields().next()
            && let Some(name) = first.name.decode().filter(plain)
        {
            let found = compound.field(&name).expect("it has a field of that name");
            assert!(found.name == first.name && found.offset_bytes >= first.offset_bytes);
        }
    }

    fn list(&mut self, list: List<'_>, depth: u16) {
        self.depth = self.depth.max(depth);
        self.elements += list.len() as u64;
        self.put(&[list.tag() as u8]);
        self.count(list.len());
        let mut count = 0;
        for value in list.values() {
            assert_eq!(tag(value), list.tag());
            self.value(value, depth);
            count += 1;
        }
        assert_eq!(count, list.len());
    }

    fn value(&mut self, value: Value<'_>, depth: u16) {
        match value {
            Value::Byte(value) => self.put(&value.to_be_bytes()),
            Value::Short(value) => self.put(&value.to_be_bytes()),
            Value::Int(value) => self.put(&value.to_be_bytes()),
            Value::Long(value) => self.put(&value.to_be_bytes()),
            Value::Float(value) => self.put(&value.to_bits().to_be_bytes()),
            Value::Double(value) => self.put(&value.to_bits().to_be_bytes()),
            Value::String(text) => self.text(text),
            Value::ByteArray(bytes) => {
                self.count(bytes.len());
                self.put(bytes);
            }
            Value::IntArray(ints) => {
                self.count(ints.len());
                ints.values().for_each(|value| self.put(&value.to_be_bytes()));
            }
            Value::LongArray(longs) => {
                self.count(longs.len());
                longs.values().for_each(|value| self.put(&value.to_be_bytes()));
            }
            Value::List(list) => self.list(list, depth + 1),
            Value::Compound(compound) => self.compound(compound, depth + 1),
        }
    }
}

const fn tag(value: Value<'_>) -> Tag {
    match value {
        Value::Byte(_) => Tag::Byte,
        Value::Short(_) => Tag::Short,
        Value::Int(_) => Tag::Int,
        Value::Long(_) => Tag::Long,
        Value::Float(_) => Tag::Float,
        Value::Double(_) => Tag::Double,
        Value::ByteArray(_) => Tag::ByteArray,
        Value::String(_) => Tag::String,
        Value::List(_) => Tag::List,
        Value::Compound(_) => Tag::Compound,
        Value::IntArray(_) => Tag::IntArray,
        Value::LongArray(_) => Tag::LongArray,
    }
}
