//! Leftovers of a column: taken, as bytes, and put back.

use super::*;
use crate::column::{Blocks as Palette, Section};
use crate::region::ColumnPos;

fn column(state: &str) -> Column {
    let mut column = Column::new(ColumnPos::new(-1, 33), 3955);
    let left = Some(nbt::payload(|out| out.int("mod:depth", 4)));
    column.sections = vec![Section { blocks: Some(Palette::uniform(state)), left, ..Section::new(4) }];
    column.left = Some(nbt::payload(|out| {
        out.compound("Heightmaps", |out| out.long_array("WORLD_SURFACE", &[1]));
        out.byte("isLightOn", 1);
        out.compound("structures", |_| ());
        out.raw_compounds("block_ticks", [].into_iter());
    }));
    column
}

fn names(fields: Option<&Vec<u8>>) -> Vec<String> {
    let Some(fields) = fields else { return Vec::new() };
    let fields = Compound::parse(fields, &nbt::Limits::default()).expect("a compound");
    fields.fields().map(|field| field.name.lossy().into_owned()).collect()
}

#[test]
fn fields_come_back_byte_for_byte_to_the_same_blocks() {
    let mut taken = column("a:stone");
    let leftovers = Leftovers::take(&mut taken, 77);
    assert_eq!((&taken.left, &taken.sections[0].left), (&None, &None));
    let read = Leftovers::decode(&leftovers.encode()).expect("an object");
    assert_eq!(read, leftovers);
    let back = read.put_back(&mut taken);
    assert_eq!((back.blocks, back.timestamp(&taken)), (Blocks::Same, 77));
    assert_eq!(taken, column("a:stone"));
    taken.entities.push(vec![0]);
    assert_eq!(back.timestamp(&taken), 0, "there is an entity more than was written then");
}

#[test]
fn a_tree_as_deep_as_a_slot_may_be_comes_back() {
    let deep = (0..510).fold(nbt::payload(|out| out.byte("a", 1)), |inner, _| {
        nbt::payload(|out| out.raw_compound("a", &inner))
    });
    let mut column = Column::new(ColumnPos::new(0, 0), 3955);
    column.left = Some(nbt::payload(|out| out.raw_compound("mod:deep", &deep)));
    let before = column.left.clone();
    let written = crate::write::column(&column).expect("a slot's tree");
    assert!(nbt::Document::parse(&written, &nbt::Limits::default()).is_ok());
    let read = Leftovers::decode(&Leftovers::take(&mut column, 0).encode()).expect("an object");
    assert_eq!(read.put_back(&mut column).blocks, Blocks::Same);
    assert!(column.left == before);
}

#[test]
fn where_blocks_could_not_be_read_no_blocks_are_the_same() {
    let mut torn = column("a:stone");
    let fault = crate::column::Fault::NoPalette;
    torn.problems.push(crate::column::ColumnProblem { y: Some(5), fault });
    let read = Leftovers::decode(&Leftovers::take(&mut torn, 77).encode()).expect("an object");
    assert_eq!(read.put_back(&mut torn), Back::NOTHING);
    assert_eq!(names(torn.left.as_ref()), ["structures"]);
}

#[test]
fn where_light_is_gone_nobody_says_that_it_is_done() {
    let mut lit = column("a:stone");
    lit.sections[0].sky_light = Some(vec![7; 2048]);
    let leftovers = Leftovers::take(&mut lit, 0);
    let mut other = lit.clone();
    other.sections[0].sky_light = Some(vec![1; 2048]);
    assert_eq!(leftovers.clone().put_back(&mut other).blocks, Blocks::Same);
    assert_eq!(names(other.left.as_ref()), ["Heightmaps", "isLightOn", "structures", "block_ticks"]);
    lit.sections[0].sky_light = None;
    assert_eq!(leftovers.put_back(&mut lit).blocks, Blocks::Same);
    assert_eq!(names(lit.left.as_ref()), ["Heightmaps", "structures", "block_ticks"]);
}

#[test]
fn what_follows_from_blocks_does_not_come_back_to_others() {
    let leftovers = Leftovers::take(&mut column("a:stone"), 77);
    let mut dug = column("a:dirt");
    (dug.left, dug.sections[0].left) = (None, None);
    assert_eq!(leftovers.clone().put_back(&mut dug), Back::NOTHING);
    assert_eq!(names(dug.left.as_ref()), ["structures"]);
    assert_eq!(names(dug.sections[0].left.as_ref()), ["mod:depth"]);
    // A newer game has other names for the same.
    let mut newer = Column { data_version: 4000, left: None, ..column("a:stone") };
    assert_eq!(leftovers.put_back(&mut newer), Back::NOTHING);
    assert_eq!(newer.left, None);
}

#[test]
fn an_object_that_another_wrote_puts_no_name_twice() {
    let mut leftovers = Leftovers::take(&mut column("a:stone"), 0);
    leftovers.left = Some(nbt::payload(|out| {
        // Either would make a slot of another kind of it.
        out.compound("Level", |level| level.int("xPos", 7));
        out.int_array("Position", &[7, 7]);
        out.int("xPos", 7);
        out.long("InhabitedTime", 7);
        out.int("mod:a", 7);
    }));
    leftovers.sections[0].1 = nbt::payload(|out| out.int("Y", 7));
    leftovers.beside = Some(nbt::payload(|out| out.int("DataVersion", 7)));
    let mut column = column("a:stone");
    leftovers.stated = Some(nbt::payload(|out| {
        out.int("DataVersion", 2230);
        out.int("xPos", -1);
        out.int("zPos", 33);
    }));
    let mut of_sections = column.clone();
    assert_eq!(leftovers.clone().put_back(&mut of_sections).blocks, Blocks::Same);
    // Beside sections they are fields as others.
    assert_eq!(names(of_sections.left.as_ref()), ["Level", "Position", "mod:a"]);
    assert_eq!((&of_sections.beside, of_sections.sections[0].left.as_ref()), (&None, None));
    assert_eq!(of_sections.stated, None, "it is of another version");
    let written = crate::write::column(&of_sections).expect("written");
    let read = crate::Decoder::default().decode(&written).expect("a slot");
    assert_eq!(read.position(), Some(ColumnPos::new(-1, 33)));
    column.sections.clear();
    leftovers.lists = Some(Lists::NONE);
    leftovers.clone().put_back(&mut column);
    assert_eq!(names(column.left.as_ref()), ["Level", "mod:a"], "the version is one without it");
    leftovers.data_version = NO_LEVEL;
    column.data_version = NO_LEVEL;
    leftovers.put_back(&mut column);
    assert_eq!(names(column.left.as_ref()), ["mod:a"], "the version is stated as one with it");
}

#[test]
fn an_order_and_what_was_stated_come_back_and_cost_nothing_otherwise() {
    let usual = Leftovers::take(&mut column("a:stone"), 0).encode();
    let mut odd = column("a:stone");
    odd.order = crate::column::SectionOrder::decode(&[4, 3]);
    odd.stated = Some(nbt::payload(|out| {
        out.long("DataVersion", 3955);
        out.int("xPos", -1);
        out.int("zPos", 33);
    }));
    let before = odd.clone();
    let bytes = Leftovers::take(&mut odd, 0).encode();
    assert_eq!((odd.order.as_ref(), odd.stated.as_ref()), (None, None));
    assert!(!usual.windows(6).any(|bytes| bytes == b"stated"), "a usual column says nothing more");
    Leftovers::decode(&bytes).expect("an object").put_back(&mut odd);
    assert_eq!(odd, before);
}

#[test]
fn what_is_no_such_object_is_none() {
    let bytes = Leftovers::take(&mut column("a:stone"), 0).encode();
    assert_eq!(Leftovers::decode(&bytes[..bytes.len() - 1]), None);
    assert_eq!(Leftovers::decode(&[0]), None);
    let newer = nbt::payload(|out| {
        out.raw_fields(&bytes[..bytes.len() - 1]);
        out.byte("format_version", 2);
    });
    assert_eq!(Leftovers::decode(&newer), None);
}
