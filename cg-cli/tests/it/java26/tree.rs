//! Difference of two trees of NBT: typed, fields in any order, block states by cell.

use std::collections::BTreeMap;

use cg_anvil::nbt::{Compound, Document, Limits, Value};

const CELLS: usize = 4096;

/// Where two slots differ first, or nothing. Palettes may have another order; everything else is compared.
pub(super) fn difference(before: &[u8], after: &[u8]) -> Option<String> {
    if before == after {
        return None;
    }
    let root = |bytes| Document::parse(bytes, &Limits::default()).expect("NBT").root;
    compounds("", root(before), root(after))
}

fn compounds(path: &str, before: Compound<'_>, after: Compound<'_>) -> Option<String> {
    if before == after {
        return None;
    }
    let (before, after) = (fields(path, before), fields(path, after));
    let lost =
        before.keys().find(|name| !after.contains_key(*name)).map(|name| format!("{path}/{name} is lost"));
    let new =
        || after.keys().find(|name| !before.contains_key(*name)).map(|name| format!("{path}/{name} is new"));
    let changed =
        || before.iter().find_map(|(name, before)| values(&format!("{path}/{name}"), *before, after[name]));
    lost.or_else(new).or_else(changed)
}

fn fields<'a>(path: &str, compound: Compound<'a>) -> BTreeMap<String, Value<'a>> {
    let mut fields = BTreeMap::new();
    for field in compound.fields() {
        let name = field.name.lossy().into_owned();
        assert!(fields.insert(name, field.value).is_none(), "{path}: a field is there twice");
    }
    fields
}

fn values(path: &str, before: Value<'_>, after: Value<'_>) -> Option<String> {
    match (before, after) {
        (Value::Compound(before), Value::Compound(after)) if path.ends_with("/block_states") => {
            (before != after && cells(before) != cells(after)).then(|| format!("{path}: other blocks"))
        }
        (Value::Compound(before), Value::Compound(after)) => compounds(path, before, after),
        (Value::List(before), Value::List(after)) => {
            if (before.tag(), before.len()) != (after.tag(), after.len()) {
                let shape = |list: cg_anvil::nbt::List<'_>| format!("{} of {:?}", list.len(), list.tag());
                return Some(format!("{path}: {} became {}", shape(before), shape(after)));
            }
            let pairs = before.values().zip(after.values()).enumerate();
            pairs
                .into_iter()
                .find_map(|(at, (before, after))| values(&format!("{path}[{at}]"), before, after))
        }
        (Value::Float(before), Value::Float(after)) if before.to_bits() == after.to_bits() => None,
        (Value::Double(before), Value::Double(after)) if before.to_bits() == after.to_bits() => None,
        _ => (before != after).then(|| format!("{path}: {before:?} became {after:?}")),
    }
}

/// The state of each cell: its entry with fields in order.
fn cells(container: Compound<'_>) -> Vec<String> {
    let palette = container.list("palette").expect("a palette");
    let entry = |entry: Value<'_>| match entry {
        Value::Compound(entry) => text("block_states", entry),
        // A name is not the same as a compound of it.
        other => format!("{other:?}"),
    };
    let palette: Vec<_> = palette.values().map(entry).collect();
    let Some(Value::LongArray(words)) = container.get("data") else { return vec![palette[0].clone(); CELLS] };
    let bits = (usize::BITS - (palette.len() - 1).leading_zeros()).max(4);
    let per_word = 64 / bits;
    let mut cells = Vec::with_capacity(CELLS);
    for word in words.values() {
        let indices = (0..per_word).map(|at| word.cast_unsigned() >> (at * bits) & ((1 << bits) - 1));
        cells.extend(indices.take(CELLS - cells.len()).map(|index| palette[index as usize].clone()));
    }
    assert_eq!(cells.len(), CELLS);
    cells
}

/// A compound as text, fields by name.
fn text(path: &str, compound: Compound<'_>) -> String {
    let fields = fields(path, compound).into_iter().map(|(name, value)| match value {
        Value::Compound(inner) => format!("{name}: {{{}}}", text(path, inner)),
        other => format!("{name}: {other:?}"),
    });
    fields.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_difference_is_found_and_an_order_is_none() {
    use cg_anvil::nbt::document;
    let whole = document(|root| {
        root.int("a", 1);
        root.compounds("list", [1, 2].iter(), |out, n| {
            out.int("n", *n);
            Ok::<_, std::convert::Infallible>(())
        })
    });
    let other = |a, list: &'static [i32]| {
        document(|root| {
            root.compounds("list", list.iter(), |out, n| {
                out.int("n", *n);
                Ok::<_, std::convert::Infallible>(())
            })
            .expect("short");
            root.int("a", a);
        })
    };
    assert_eq!(difference(&whole, &other(1, &[1, 2])), None);
    for (bytes, found) in [
        (other(2, &[1, 2]), "/a: Int(1) became Int(2)"),
        (other(1, &[2, 1]), "/list[0]/n: Int(1) became Int(2)"),
        (other(1, &[1]), "/list: 2 of Compound became 1 of Compound"),
        (document(|root| root.int("a", 1)), "/list is lost"),
    ] {
        assert_eq!(difference(&whole, &bytes).as_deref(), Some(found));
    }
}
