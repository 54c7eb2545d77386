//! Taking riders off their vehicles and putting them back gives the same bytes.

use expect_test::expect;
use proptest::prelude::*;

use super::*;

fn limits() -> nbt::Limits {
    nbt::Limits::default()
}

/// An entity with its riders after `before` other fields, and `after` fields after them.
fn entity(before: usize, after: usize, riders: &[Vec<u8>]) -> Vec<u8> {
    nbt::payload(|out| {
        (0..before).for_each(|number| out.int("before", number as i32));
        if !riders.is_empty() {
            out.raw_compounds(PASSENGERS, riders.iter().map(Vec::as_slice));
        }
        (0..after).for_each(|number| out.int("after", number as i32));
    })
}

fn entities() -> impl Strategy<Value = Vec<u8>> {
    let leaf = (0usize..3, 0usize..3).prop_map(|(before, after)| entity(before, after, &[]));
    leaf.prop_recursive(5, 20, 3, |rider| {
        (0usize..3, 0usize..3, prop::collection::vec(rider, 0..3))
            .prop_map(|(before, after, riders)| entity(before, after, &riders))
    })
}

proptest! {
    #[test]
    fn join_is_the_way_back_of_split(raw in entities()) {
        let records = split(&raw, &limits()).expect("an entity");
        prop_assert_eq!(join(&records[0], |&id| records.get(id)), Ok(raw));
        for record in &records {
            Compound::parse(&record.nbt, &limits()).expect("a record is a compound by itself");
        }
    }
}

#[test]
fn a_record_keeps_every_byte_that_is_not_its_riders() {
    let rider = nbt::payload(|out| out.int("r", 1));
    let raw = nbt::payload(|out| {
        out.int("a", 1);
        out.raw_compounds(PASSENGERS, [rider.as_slice()].into_iter());
        out.int("b", 2);
    });
    let records = split(&raw, &limits()).expect("an entity");
    let without = nbt::payload(|out| {
        out.int("a", 1);
        out.int("b", 2);
    });
    assert_eq!(records[0].nbt, without);
    assert_eq!(records[0].riders, Some(Riders { offset_bytes: 8, ids: vec![1] }));
    assert_eq!(records[1].nbt, rider);
}

#[test]
fn empty_and_mistyped_passengers_stay_where_they_are() {
    // An empty list with the element kind that old versions wrote, and one of numbers.
    for passengers in [
        &b"\x09\x00\x0aPassengers\x0a\x00\x00\x00\x00"[..],
        b"\x09\x00\x0aPassengers\x01\x00\x00\x00\x01\x07",
    ] {
        let raw = nbt::payload(|out| out.raw_fields(passengers));
        let records = split(&raw, &limits()).expect("an entity");
        assert_eq!((records.len(), &records[0].nbt, &records[0].riders), (1, &raw, &None));
    }
}

#[test]
fn both_forms_of_uuid_are_the_same() {
    let new =
        nbt::payload(|out| out.int_array("UUID", &[0x0123_4567, -0x7654_3211, 0x0246_8ACE, 0x1357_9BDF]));
    let old = nbt::payload(|out| {
        out.long("UUIDMost", 0x0123_4567_89AB_CDEF);
        out.long("UUIDLeast", 0x0246_8ACE_1357_9BDF);
    });
    for raw in [new, old] {
        let found = uuid(Compound::parse(&raw, &limits()).expect("a compound")).expect("a UUID");
        assert_eq!(found.to_string(), "01234567-89ab-cdef-0246-8ace13579bdf");
    }
    let short = nbt::payload(|out| out.int_array("UUID", &[1, 2, 3]));
    assert_eq!(uuid(Compound::parse(&short, &limits()).expect("a compound")), None);
}

#[test]
fn very_deep_riders_stay_inside_and_come_back() {
    let mut raw = entity(1, 1, &[]);
    for _ in 0..100 {
        raw = entity(1, 1, &[raw]);
    }
    let records = split(&raw, &limits()).expect("an entity");
    assert_eq!(records.len(), MAX_RIDER_DEPTH + 1);
    assert_eq!(join(&records[0], |&id| records.get(id)), Ok(raw));
}

/// Positions of an entity: one as it is, as fields that are moved, and as fields that are none.
fn places() -> [(&'static str, Vec<u8>); 5] {
    let fields = |fields: fn(&mut nbt::CompoundWriter<'_>)| {
        let mut raw = nbt::payload(fields);
        raw.pop();
        raw
    };
    [
        ("doubles", fields(|out| out.doubles(POS, &[1.0, 2.0, 3.0]))),
        ("too few", fields(|out| out.doubles(POS, &[1.0]))),
        ("floats", b"\x09\x00\x03Pos\x05\x00\x00\x00\x03\x3f\x80\0\0\x40\0\0\0\x40\x40\0\0".to_vec()),
        ("a number", fields(|out| out.int(POS, 7))),
        ("nothing", Vec::new()),
    ]
}

#[test]
fn a_moved_entity_says_where_it_is_and_keeps_every_other_byte() {
    let rider = nbt::payload(|out| out.int("r", 1));
    let moved = [-0.5, 1e9, 16.25];
    let mut said = Vec::new();
    said.extend(nbt::payload(|out| out.doubles(POS, &moved)));
    said.pop();
    for (what, place) in places() {
        for riders_first in [false, true] {
            let raw = |place: &[u8], last: &[u8]| {
                nbt::payload(|out| {
                    out.int("a", 1);
                    if !riders_first {
                        out.raw_fields(place);
                    }
                    out.raw_compounds(PASSENGERS, [rider.as_slice()].into_iter());
                    if riders_first {
                        out.raw_fields(place);
                    }
                    out.int("b", 2);
                    out.raw_fields(last);
                })
            };
            let mut records = split(&raw(&place, &[]), &limits()).expect("an entity");
            records[0].move_to(moved, &limits()).expect("a compound");
            assert_eq!(records[0].pos, Some(moved));
            // Where there was none it stands after the rest.
            let expected = if place.is_empty() { raw(&[], &said) } else { raw(&said, &[]) };
            let joined = join(&records[0], |&id| records.get(id)).expect("they belong together");
            assert_eq!(joined, expected, "{what}, riders first: {riders_first}");
            assert_eq!(split(&joined, &limits()).expect("an entity")[0].pos, Some(moved));
        }
    }
    let mut broken =
        EntityRecord::<usize> { uuid: None, kind: String::new(), pos: None, nbt: vec![9], riders: None };
    let error = broken.move_to(moved, &limits()).expect_err("no compound").to_string();
    assert_eq!((broken.nbt.as_slice(), broken.pos), (&[9][..], None), "{error}");
}

#[test]
fn records_that_do_not_belong_together_are_refused() {
    let vehicle = |offset_bytes, ids| EntityRecord {
        uuid: None,
        kind: String::new(),
        pos: None,
        nbt: vec![0],
        riders: Some(Riders { offset_bytes, ids }),
    };
    let own_rider = vehicle(0, vec![0]);
    let error = join(&own_rider, |_| Some(&own_rider)).expect_err("it rides itself");
    expect!["riders are nested deeper than 64"].assert_eq(&error.to_string());
    let error = join(&vehicle(0, vec![0]), |_| None).expect_err("no record");
    expect!["rider 0 of a vehicle has no record"].assert_eq(&error.to_string());
    let error = join(&vehicle(2, vec![0]), |_| None).expect_err("past the end");
    expect!["riders stand at byte 2 of an NBT of 1 bytes"].assert_eq(&error.to_string());
}
