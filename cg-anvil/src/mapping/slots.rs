//! Parts of a slot of `poi/` or `entities/` that are kept, as an object of a world.

use super::leftovers::{Written, begin, only, parse};
use crate::column::{EntityColumn, NO_LEVEL, is_column, is_mapped_in_entities, is_of_entities, sum_of_all};
use crate::nbt::{self, Compound, Field, Tag, Value};
use crate::{Decoder, Payload};

/// [`EntitySlot`]'s note that no list was there.
const NO_LIST: i8 = -1;

/// Points of interest of a column, as a slot of `poi/` held them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Points {
    /// When the slot was written, in seconds since 1970.
    pub timestamp: u32,
    /// The slot's NBT.
    pub slot: Vec<u8>,
    /// Whether the save had no column there, so that they belong to no blocks.
    pub is_alone: bool,
}

/// Leftovers of a slot of `entities/`: all that is no entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntitySlot {
    /// The slot's data version: what the fields' layout is of.
    pub data_version: i32,
    written: Option<Written>,
    left: Option<Vec<u8>>,
    /// [`EntityColumn::stated`].
    stated: Option<Vec<u8>>,
    was_empty: bool,
    /// [`EntityColumn::list`].
    list: Option<Tag>,
}

impl Points {
    /// The object's bytes: a compound.
    pub fn encode(&self) -> Vec<u8> {
        nbt::payload(|out| {
            begin_slot(out, self.timestamp, &self.slot);
            out.byte("alone", self.is_alone.into());
        })
    }

    /// Reads an object; `None` when it is none of this format, or holds no points of interest.
    ///
    /// Where an earlier release did not note whether they are alone, they are unless the world `has_column` there: the
    /// object of a column.
    pub fn decode(bytes: &[u8], has_column: bool) -> Option<Self> {
        let (root, timestamp, slot) = slot_of(bytes)?;
        // Nothing else may be in a file of them.
        let Ok(Payload::PointsOfInterest) = Decoder::default().decode(slot) else { return None };
        let is_alone = root.int("alone").map_or(!has_column, |alone| alone != 0);
        Some(Self { timestamp, slot: slot.to_vec(), is_alone })
    }
}

fn begin_slot(out: &mut nbt::CompoundWriter<'_>, timestamp: u32, slot: &[u8]) {
    begin(out);
    out.int("timestamp", timestamp.cast_signed());
    out.byte_array("slot", slot);
}

/// The tree of an object that holds a slot, and when the slot was written.
fn slot_of(bytes: &[u8]) -> Option<(Compound<'_>, u32, &[u8])> {
    let root = parse(bytes)?;
    let Some(Value::ByteArray(slot)) = root.get("slot") else { return None };
    Some((root, root.int("timestamp")?.cast_unsigned(), slot))
}

impl EntitySlot {
    /// Takes from a slot that was just read, and written at this time, what its entities do not hold; `None` when that is
    /// nothing.
    pub fn take(column: &mut EntityColumn, timestamp: u32) -> Option<Self> {
        let (left, stated) = (column.left.take(), column.stated.take());
        let was_empty = column.entities.is_empty();
        let is_nothing = left.is_none() && stated.is_none() && timestamp == 0 && !was_empty;
        let written = Written::at(timestamp, || sum_of(column));
        let (data_version, list) = (column.data_version, column.list);
        (!is_nothing).then_some(Self { data_version, written, left, stated, was_empty, list })
    }

    /// Puts the fields back beside the entities, unless their names are of another layout; gives the time when the slot was
    /// written, or zero if that held other entities.
    pub fn put_back(self, column: &mut EntityColumn) -> u32 {
        column.list = self.list;
        if column.data_version != self.data_version {
            return 0;
        }
        // A slot whose fields are a column's is one.
        let kept = self.left.as_deref().and_then(|left| Compound::parse(left, &nbt::Limits::default()).ok());
        let is_of_column = kept.is_some_and(is_column);
        let is_own = |field: &Field<'_>| match field.name.0 {
            // Before that version a compound of the name is a column.
            b"Level" => column.data_version >= NO_LEVEL,
            b"sections" => !is_of_column,
            name => !is_mapped_in_entities(name),
        };
        column.left = only(self.left.as_deref(), is_own);
        column.stated = self.stated.filter(|stated| is_of_entities(stated, column));
        Written::of(self.written, sum_of(column))
    }

    /// Whether there are fields.
    pub const fn has_fields(&self) -> bool {
        self.left.is_some()
    }

    /// Whether the slot held no entity, and is written again without one.
    pub const fn was_empty(&self) -> bool {
        self.was_empty
    }

    /// The object's bytes: a compound.
    pub fn encode(&self) -> Vec<u8> {
        nbt::payload(|out| {
            begin(out);
            out.int("data_version", self.data_version);
            if let Some(written) = self.written {
                written.encode(out);
            }
            if let Some(left) = &self.left {
                out.raw_compound("fields", left);
            }
            if let Some(stated) = &self.stated {
                out.raw_compound("stated", stated);
            }
            if self.was_empty {
                out.byte("empty", 1);
            }
            match self.list {
                Some(Tag::End) => {}
                list => out.byte("list", list.map_or(NO_LIST, |kind| kind as i8)),
            }
        })
    }

    /// Reads an object; `None` when it is none of this format.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let root = parse(bytes)?;
        let left = root.compound("fields").map(|fields| fields.raw().to_vec());
        let was_empty = root.int("empty").is_some_and(|empty| empty != 0);
        let list = match root.int("list") {
            Some(list) if list == i32::from(NO_LIST) => None,
            // Earlier releases did not note it.
            list => list.and_then(|list| u8::try_from(list).ok()).and_then(Tag::from_byte).or(Some(Tag::End)),
        };
        Some(Self {
            data_version: root.int("data_version")?,
            written: Written::decode(root),
            left,
            stated: root.compound("stated").map(|stated| stated.raw().to_vec()),
            was_empty,
            list,
        })
    }
}

fn sum_of(column: &EntityColumn) -> u32 {
    sum_of_all(column.entities.iter().map(Vec::as_slice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::ColumnPos;

    fn slot() -> EntityColumn {
        let left = Some(nbt::payload(|out| out.int("mod:flag", 4)));
        let entities = [1, 2].map(|n| nbt::payload(|out| out.int("n", n))).into();
        EntityColumn {
            pos: ColumnPos::new(1, 2),
            data_version: 3955,
            stated: None,
            entities,
            list: Some(Tag::End),
            left,
        }
    }

    #[test]
    fn fields_come_back_and_the_time_with_the_same_entities() {
        let mut taken = slot();
        let kept = EntitySlot::take(&mut taken, u32::MAX).expect("fields and a time");
        assert_eq!(taken.left, None);
        let kept = EntitySlot::decode(&kept.encode()).expect("an object");
        taken.entities.reverse();
        assert_eq!(kept.clone().put_back(&mut taken), u32::MAX);
        assert_eq!(taken.left, slot().left);
        taken.entities.pop();
        assert_eq!(kept.clone().put_back(&mut taken), 0);
        assert_eq!(taken.left, slot().left);
        let mut newer = EntityColumn { data_version: 4000, left: None, ..slot() };
        assert_eq!(kept.put_back(&mut newer), 0);
        assert_eq!(newer.left, None, "a newer game has other names for the same");
    }

    #[test]
    fn nothing_is_kept_where_nothing_is_left() {
        let bare = || EntityColumn { left: None, ..slot() };
        assert_eq!(EntitySlot::take(&mut bare(), 0), None);
        assert!(EntitySlot::take(&mut bare(), 1).is_some_and(|kept| !kept.has_fields()));
        // A slot without an entity is written again.
        let empty = EntitySlot::take(&mut EntityColumn { entities: vec![], ..bare() }, 0).expect("a slot");
        assert!(
            empty.was_empty() && EntitySlot::decode(&empty.encode()).is_some_and(|kept| kept.was_empty())
        );
        assert!(EntitySlot::take(&mut slot(), 0).is_some_and(|kept| kept.has_fields()));
    }

    #[test]
    fn an_object_that_another_wrote_makes_no_other_slot_of_it() {
        let mut kept = EntitySlot::take(&mut slot(), 0).expect("fields");
        kept.left = Some(nbt::payload(|out| {
            out.compound("Level", |level| level.int("xPos", 7));
            out.int_array("Position", &[7, 7]);
            out.int("DataVersion", 7);
            out.int("Entities", 7);
            out.int("mod:a", 7);
        }));
        let mut old = EntityColumn { data_version: 2843, ..slot() };
        EntitySlot { data_version: 2843, ..kept.clone() }.put_back(&mut old);
        assert_eq!(old.left, Some(nbt::payload(|out| out.int("mod:a", 7))));
        // From 2844 on, `Level` is a field as others; a column it becomes with sections and a place.
        kept.left = Some(nbt::payload(|out| {
            out.compound("Level", |level| level.int("xPos", 7));
            out.int("xPos", 7);
            out.int("zPos", 7);
            out.raw_compounds("sections", [].into_iter());
        }));
        let mut column = slot();
        kept.put_back(&mut column);
        let written = crate::write::entities(&column).expect("written");
        let Ok(Payload::Entities(read)) = Decoder::default().decode(&written) else { panic!("entities") };
        let names: Vec<_> = Compound::parse(read.left.as_deref().expect("fields"), &nbt::Limits::default())
            .expect("a compound")
            .fields()
            .map(|field| field.name.lossy().into_owned())
            .collect();
        assert_eq!(names, ["Level", "xPos", "zPos"]);
    }

    #[test]
    fn what_a_slot_states_otherwise_than_the_game_comes_back() {
        let stated = nbt::payload(|out| out.int_array("Position", &[1, 2]));
        let mut taken = EntityColumn { data_version: 0, stated: Some(stated), left: None, ..slot() };
        let before = taken.clone();
        let kept = EntitySlot::take(&mut taken, 0).expect("something is left");
        EntitySlot::decode(&kept.encode()).expect("an object").put_back(&mut taken);
        assert_eq!(taken, before);
        let other = nbt::payload(|out| out.int_array("Position", &[1, 3]));
        EntitySlot { stated: Some(other), ..kept }.put_back(&mut taken);
        assert_eq!(taken.stated, None, "it would be another slot");
    }

    #[test]
    fn what_holds_no_points_of_interest_is_none() {
        let slot = nbt::document(|root| root.compound("Sections", |_| ()));
        for is_alone in [false, true] {
            let points = Points { timestamp: 7, slot: slot.clone(), is_alone };
            assert_eq!(Points::decode(&points.encode(), is_alone), Some(points));
        }
        // As earlier releases wrote them.
        let unknown = nbt::payload(|out| begin_slot(out, 7, &slot));
        for has_column in [false, true] {
            let found = Points::decode(&unknown, has_column).expect("points of interest");
            assert_eq!(found.is_alone, !has_column);
        }
        let column = nbt::document(|root| ["xPos", "zPos"].map(|name| root.int(name, 0)));
        for other in [column, slot[..slot.len() - 1].to_vec(), vec![]] {
            assert_eq!(
                Points::decode(
                    &Points { timestamp: 7, slot: other.clone(), is_alone: false }.encode(),
                    false
                ),
                None,
                "{other:?}"
            );
        }
        assert_eq!(Points::decode(&slot, false), None);
        assert_eq!(EntitySlot::decode(&slot), None);
    }
}
