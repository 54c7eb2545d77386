//! Block entities between a schematic and a world.
//!
//! A save's block entity says its kind and place itself: `id`, `x`, `y`, `z`. One in a schematic may say them in its
//! data or not; beside them it always does. In a world they are there, so that a save can be made of it. Fields that
//! were there stay where they were. Fields that were not go to the end in an order that no tool writes, and that is how
//! the way back knows them.

use cg_format::BlockPos;
use cg_snapshot::schem::BlockEntity;

use crate::nbt::{self, Compound, Field, NbtError};

/// Fields that are put after data without a place, and without place and kind.
const PLACE: [&str; 3] = ["z", "y", "x"];
const PLACE_AND_KIND: [&str; 4] = ["z", "y", "id", "x"];

/// The NBT of a block entity at a place of a world: a compound's fields and end tag.
///
/// # Errors
/// The data is no compound.
pub(super) fn to_world(entity: &BlockEntity, at: BlockPos) -> Result<Vec<u8>, NbtError> {
    let data = Compound::parse(&entity.data, &nbt::Limits::default())?;
    let has_place = PLACE.iter().all(|axis| data.long(axis).is_some());
    let has_kind = data.text("id").is_some();
    Ok(nbt::payload(|out| {
        for field in data.fields() {
            match axis(&field, at) {
                Some((axis, number)) if has_place => put(out, axis, number),
                Some(_) => {}
                None if field.name == *"id" && field.value.as_text().is_some() => kind(out, &entity.id),
                None => out.raw_fields(field.raw),
            }
        }
        let missing: &[&'static str] = match (has_place, has_kind) {
            (true, true) => &[],
            (true, false) => &["id"],
            (false, true) => &PLACE,
            (false, false) => &PLACE_AND_KIND,
        };
        for name in missing {
            match *name {
                "x" => put(out, "x", at.x),
                "y" => put(out, "y", at.y),
                "z" => put(out, "z", at.z),
                _ => kind(out, &entity.id),
            }
        }
    }))
}

/// A world's block entity as a schematic has it, whose lowest corner is this block.
///
/// # Errors
/// The NBT is no compound. `Ok(None)` is an NBT without a kind, which a schematic cannot hold.
pub(super) fn from_world(
    raw: &[u8],
    at: BlockPos,
    corner: BlockPos,
) -> Result<Option<BlockEntity>, NbtError> {
    let found = Compound::parse(raw, &nbt::Limits::default())?;
    let Some(id) = found.text("id").and_then(nbt::Text::decode) else { return Ok(None) };
    let pos = [at.x.wrapping_sub(corner.x), at.y.wrapping_sub(corner.y), at.z.wrapping_sub(corner.z)];
    let fields: Vec<_> = found.fields().collect();
    let ends_with = |names: &[&str]| {
        let tail = fields.len().checked_sub(names.len()).and_then(|from| fields.get(from..));
        tail.is_some_and(|tail| tail.iter().zip(names).all(|(field, name)| field.name == **name))
    };
    let added = [&PLACE_AND_KIND[..], &PLACE[..]].into_iter().find(|names| ends_with(names));
    let own = fields.get(..fields.len() - added.map_or(0, <[_]>::len)).unwrap_or_default();
    let here = BlockPos::new(pos[0], pos[1], pos[2]);
    let data = nbt::payload(|out| {
        for field in own {
            match axis(field, here) {
                Some((axis, number)) => put(out, axis, number),
                None => out.raw_fields(field.raw),
            }
        }
    });
    // A box of a schematic is at most 65,535 blocks along each side.
    Ok(Some(BlockEntity { id: id.into_owned(), pos: pos.map(|number| number as i32), data }))
}

/// The place that a save's block entity says.
pub(super) fn place(raw: &[u8]) -> Option<BlockPos> {
    let found = Compound::parse(raw, &nbt::Limits::default()).ok()?;
    Some(BlockPos::new(found.long("x")?, found.long("y")?, found.long("z")?))
}

/// The axis that a field stands for, and the number that it should say.
fn axis(field: &Field<'_>, at: BlockPos) -> Option<(&'static str, i64)> {
    let number = [("x", at.x), ("y", at.y), ("z", at.z)].into_iter().find(|(axis, _)| field.name == **axis);
    number.filter(|_| field.value.as_long().is_some())
}

/// A place as the game writes it; beyond what it can have, a long, so that nothing is wrong.
fn put(out: &mut nbt::CompoundWriter<'_>, axis: &'static str, number: i64) {
    match i32::try_from(number) {
        Ok(number) => out.int(axis, number),
        Err(_) => out.long(axis, number),
    }
}

fn kind(out: &mut nbt::CompoundWriter<'_>, id: &str) {
    // It was read from NBT, so it fits.
    let _ = out.string("id", id);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(fields: impl FnOnce(&mut nbt::CompoundWriter<'_>)) -> Vec<u8> {
        let entity = BlockEntity { id: "a:chest".to_owned(), pos: [3, 0, 5], data: nbt::payload(fields) };
        let (at, corner) = (BlockPos::new(-7, 64, 10), BlockPos::new(-10, 64, 5));
        let raw = to_world(&entity, at).expect("a compound");
        assert_eq!(place(&raw), Some(at));
        let found = Compound::parse(&raw, &nbt::Limits::default()).expect("just written");
        assert!(found.text("id").is_some_and(|id| id == *"a:chest"));
        let again = from_world(&raw, at, corner).expect("a compound").expect("it has a kind");
        assert_eq!(again, entity);
        raw
    }

    #[test]
    fn data_comes_back_byte_for_byte() {
        check(|_| ());
        check(|out| out.int("Items", 3));
        // As WorldEdit and as FAWE write it.
        check(|out| out.string("id", "a:chest").expect("short"));
        check(|out| {
            out.int("x", 3);
            out.int("y", 0);
            out.byte("Lock", 1);
            out.int("z", 5);
            out.string("id", "a:chest").expect("short");
        });
        check(|out| {
            out.string("id", "a:chest").expect("short");
            ["z", "x"].into_iter().zip([5, 3]).for_each(|(axis, at)| out.int(axis, at));
            out.int("y", 0);
            out.byte("Lock", 1);
        });
    }

    #[test]
    fn a_world_without_a_kind_and_a_place_beyond_the_game() {
        let raw = nbt::payload(|out| out.int("x", 1));
        let at = BlockPos::new(0, 0, 0);
        assert_eq!(from_world(&raw, at, at), Ok(None));
        let far = BlockPos::new(1 << 40, 0, 0);
        let entity = BlockEntity { id: "a:b".to_owned(), pos: [0; 3], data: vec![0] };
        assert_eq!(place(&to_world(&entity, far).expect("a compound")), Some(far));
    }
}
