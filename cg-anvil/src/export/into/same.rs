//! Whether two slots say the same: fields in any order, blocks cell by cell.

use crate::column::{Blocks, Column, Section};
use crate::nbt::{self, Compound, Document, Field, List, Value};
use crate::{Decoder, Payload};

/// Compares slots. The texts of block states are shared between them.
#[derive(Debug, Default)]
pub(super) struct Judge {
    decoder: Decoder,
}

impl Judge {
    /// Whether two slots say the same to the game. What cannot be read is the same as its own bytes alone.
    pub(super) fn is_same(&mut self, before: &[u8], after: &[u8]) -> bool {
        if before == after {
            return true;
        }
        let limits = nbt::Limits::default();
        let (Ok(one), Ok(other)) = (Document::parse(before, &limits), Document::parse(after, &limits)) else {
            return false;
        };
        match (self.decoder.decode(before), self.decoder.decode(after)) {
            (Ok(Payload::Column(before)), Ok(Payload::Column(after))) => {
                let version = |root: Compound<'_>| root.int("DataVersion");
                version(one.root) == version(other.root) && columns(&before, &after)
            }
            _ => compounds(one.root, other.root),
        }
    }
}

fn columns(before: &Column, after: &Column) -> bool {
    let is_whole = |column: &Column| column.problems.is_empty() && column.not_carried.is_empty();
    let of = |column: &Column| (column.pos, column.data_version, column.lists);
    let block_entities = |column: &Column| -> Vec<Vec<u8>> {
        column.block_entities.iter().map(|block_entity| block_entity.nbt.clone()).collect()
    };
    is_whole(before)
        && is_whole(after)
        && of(before) == of(after)
        && raw(before.stated.as_ref(), after.stated.as_ref())
        && raw(Some(&before.carried), Some(&after.carried))
        && raw(before.left.as_ref(), after.left.as_ref())
        && raw(before.beside.as_ref(), after.beside.as_ref())
        && all(&before.entities, &after.entities)
        && all(&block_entities(before), &block_entities(after))
        && before.sections.len() == after.sections.len()
        && before.sections.iter().zip(&after.sections).all(|(before, after)| sections(before, after))
}

fn sections(before: &Section, after: &Section) -> bool {
    let blocks = match (&before.blocks, &after.blocks) {
        (None, None) => true,
        (Some(before), Some(after)) => cells(before, after),
        _ => false,
    };
    blocks
        && before.y == after.y
        && before.block_light == after.block_light
        && before.sky_light == after.sky_light
        && raw(before.biomes.as_ref(), after.biomes.as_ref())
        && raw(before.left.as_ref(), after.left.as_ref())
}

fn cells(before: &Blocks, after: &Blocks) -> bool {
    let index = |blocks: &Blocks, cell: usize| {
        let indices = blocks.indices.as_ref();
        indices.map_or(0, |indices| indices.get(cell).copied().unwrap_or_default()).into()
    };
    let mut last = None;
    (0..crate::column::CELLS).all(|cell| {
        let pair: (usize, usize) = (index(before, cell), index(after, cell));
        if last == Some(pair) {
            return true;
        }
        last = Some(pair);
        before.palette.get(pair.0) == after.palette.get(pair.1)
    })
}

fn all(before: &[Vec<u8>], after: &[Vec<u8>]) -> bool {
    before.len() == after.len()
        && before.iter().zip(after).all(|(before, after)| raw(Some(before), Some(after)))
}

/// Compares the bytes of two compounds.
fn raw(before: Option<&Vec<u8>>, after: Option<&Vec<u8>>) -> bool {
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (None, None) => return true,
        _ => return false,
    };
    let limits = nbt::Limits::default();
    before == after
        || match (Compound::parse(before, &limits), Compound::parse(after, &limits)) {
            (Ok(before), Ok(after)) => compounds(before, after),
            _ => false,
        }
}

fn compounds(before: Compound<'_>, after: Compound<'_>) -> bool {
    before.raw() == after.raw() || {
        let (mut before, mut after): (Vec<Field<'_>>, Vec<Field<'_>>) =
            (before.fields().collect(), after.fields().collect());
        // Stable: fields of one name stay in their order.
        before.sort_by_key(|field| field.name.0);
        after.sort_by_key(|field| field.name.0);
        before.len() == after.len()
            && before
                .iter()
                .zip(&after)
                .all(|(before, after)| before.name.0 == after.name.0 && values(before.value, after.value))
    }
}

fn values(before: Value<'_>, after: Value<'_>) -> bool {
    match (before, after) {
        (Value::Compound(before), Value::Compound(after)) => compounds(before, after),
        (Value::List(before), Value::List(after)) => lists(before, after),
        // As bits: what is no number is the same as itself.
        (Value::Float(before), Value::Float(after)) => before.to_bits() == after.to_bits(),
        (Value::Double(before), Value::Double(after)) => before.to_bits() == after.to_bits(),
        (before, after) => before == after,
    }
}

fn lists(before: List<'_>, after: List<'_>) -> bool {
    (before.tag(), before.len()) == (after.tag(), after.len())
        && before.values().zip(after.values()).all(|(before, after)| values(before, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::ColumnPos;
    use crate::write;

    fn column(palette: [&str; 2], first: u16) -> Column {
        let mut column = Column::new(ColumnPos::new(1, 2), 3955);
        let mut indices = Box::new([1 - first; 4096]);
        indices[7] = first;
        let blocks = Blocks { palette: palette.map(Into::into).into(), indices: Some(indices) };
        column.sections.push(Section { blocks: Some(blocks), ..Section::new(0) });
        column.carried = nbt::payload(|out| out.int("yPos", -4));
        column
    }

    #[test]
    fn columns_are_the_same_by_cell_and_fields_in_any_order() {
        let mut judge = Judge::default();
        let written = |column: &Column| write::column(column).expect("a column");
        let one = written(&column(["a:a", "a:b"], 0));
        assert!(judge.is_same(&one, &written(&column(["a:b", "a:a"], 1))));
        assert!(!judge.is_same(&one, &written(&column(["a:a", "a:b"], 1))));
        let mut left = column(["a:a", "a:b"], 0);
        let mut fields = |names: [&'static str; 2], value| {
            left.left = Some(nbt::payload(|out| names.map(|name| out.int(name, value))));
            written(&left)
        };
        let [one, other, third] = [fields(["a", "b"], 1), fields(["b", "a"], 1), fields(["b", "a"], 2)];
        assert!(judge.is_same(&one, &other));
        assert!(!judge.is_same(&one, &third));
        let newer = Column { data_version: 3956, ..column(["a:a", "a:b"], 0) };
        assert!(!judge.is_same(&written(&column(["a:a", "a:b"], 0)), &written(&newer)));
    }

    #[test]
    fn what_cannot_be_read_is_the_same_as_its_own_bytes_alone() {
        let mut judge = Judge::default();
        assert!(judge.is_same(b"no NBT", b"no NBT") && !judge.is_same(b"no NBT", b"none"));
        let points = |value| nbt::document(|root| root.compound("Sections", |out| out.int("a", value)));
        assert!(!judge.is_same(&points(1), &points(2)));
    }
}
