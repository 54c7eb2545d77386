//! Traces: the pinned layout, refused input, and that each history has one form.

use super::*;
use cg_format::wire::annotate;
use cg_format::{BlockPos, ChunkPos};
use expect_test::{Expect, expect};
use proptest::prelude::*;

fn player(id: u8, dimension: u64, [x, y, z]: [i64; 3]) -> Event {
    Event::Player(PlayerAt {
        id: EntityId::from_bytes([id; 16]),
        dimension: Dimension::new(dimension),
        block: BlockPos::new(x, y, z),
    })
}

fn chunk(dimension: u64, [x, y, z]: [i64; 3]) -> ChunkAt {
    ChunkAt::new(Dimension::new(dimension), ChunkPos::constant(x, y, z))
}

fn tick(now: u64) -> Event {
    Event::Tick(GameTick::new(now))
}

fn encoded(events: &[Event]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes);
    for event in events {
        writer.write(event, &mut bytes);
    }
    bytes
}

/// Every kind of record: a player walks, teleports, leaves and returns, and the world has events meanwhile.
fn visit() -> Vec<Event> {
    let yard = ChunkBox::new(ChunkPos::constant(-1, 0, 7), ChunkPos::constant(1, 2, 9));
    vec![
        tick(20),
        player(7, 0, [100, 64, -3]),
        Event::Load { chunk: chunk(0, [6, 4, -1]), len_bytes: 1800 },
        Event::Load { chunk: chunk(0, [6, 4, -2]), len_bytes: 0 },
        tick(40),
        player(7, 0, [104, 63, -3]),
        Event::Save { chunk: chunk(0, [6, 4, -1]), len_bytes: 1900 },
        Event::Hold { hold: 5, dimension: Dimension::new(0), place: yard },
        player(7, 1, [13, 63, 0]),
        Event::Save { chunk: chunk(1, [0, 3, 0]), len_bytes: 90 },
        Event::Unload(chunk(0, [6, 4, -1])),
        Event::Unload(chunk(0, [6, 4, -2])),
        Event::Leave(EntityId::from_bytes([7; 16])),
        tick(1 << 33),
        player(7, 1, [13, 63, 0]),
        Event::Release(5),
    ]
}

#[test]
fn bytes_are_pinned() {
    let text: String = visit().iter().map(|event| format!("{event:?}\n")).collect();
    let bytes = encoded(&visit());
    crate::testing::golden("trace/visit", &bytes, &text);
    crate::testing::golden("trace/empty", &encoded(&[]), "");
    let (spans, events) = explain(&bytes);
    assert_eq!(events, Ok(visit()));
    let explained: u64 = spans.iter().map(|span| span.len_bytes).sum();
    assert_eq!(explained, bytes.len() as u64, "every byte belongs to a field");
    expect![[r#"
        tier trace
          000000  63 68 65 72 72 79 67 72 6f 76 65 20 74 72 61 63   signature
          000010  65 20 31 0a
          000014  01                                                kind
          000015  14 00 00 00                                       advance
          000019  02                                                kind
          00001a  07 07 07 07 07 07 07 07 07 07 07 07 07 07 07 07   uuid
          00002a  00 00 00 00 00 00 00 00                           dimension
          000032  64 00 00 00 00 00 00 00                           block x
          00003a  40 00 00 00 00 00 00 00                           block y
          000042  fd ff ff ff ff ff ff ff                           block z
          00004a  85                                                kind
          00004b  00 00 00 00 00 00 00 00                           dimension
          000053  06 00 00 00 00 00 00 00                           chunk x
          00005b  04 00 00 00 00 00 00 00                           chunk y
          000063  ff ff ff ff ff ff ff ff                           chunk z
          00006b  08 07 00 00                                       len
          00006f  05                                                kind
          000070  00                                                chunk step x
          000071  00                                                chunk step y
          000072  ff                                                chunk step z
          000073  00 00 00 00                                       len
          000077  01                                                kind
          000078  14 00 00 00                                       advance
          00007c  03                                                kind
          00007d  00 00 00 00                                       player
          000081  04 00                                             step x
          000083  ff ff                                             step y
          000085  00 00                                             step z
          000087  06                                                kind
          000088  00                                                chunk step x
          000089  00                                                chunk step y
          00008a  01                                                chunk step z
          00008b  6c 07 00 00                                       len
          00008f  08                                                kind
          000090  05 00 00 00 00 00 00 00                           hold
          000098  00 00 00 00 00 00 00 00                           dimension
          0000a0  ff ff ff ff ff ff ff ff                           least x
          0000a8  00 00 00 00 00 00 00 00                           least y
          0000b0  07 00 00 00 00 00 00 00                           least z
          0000b8  01 00 00 00 00 00 00 00                           greatest x
          0000c0  02 00 00 00 00 00 00 00                           greatest y
          0000c8  09 00 00 00 00 00 00 00                           greatest z
          0000d0  83                                                kind
          0000d1  00 00 00 00                                       player
          0000d5  01 00 00 00 00 00 00 00                           dimension
          0000dd  0d 00 00 00 00 00 00 00                           block x
          0000e5  3f 00 00 00 00 00 00 00                           block y
          0000ed  00 00 00 00 00 00 00 00                           block z
          0000f5  86                                                kind
          0000f6  01 00 00 00 00 00 00 00                           dimension
          0000fe  00 00 00 00 00 00 00 00                           chunk x
          000106  03 00 00 00 00 00 00 00                           chunk y
          00010e  00 00 00 00 00 00 00 00                           chunk z
          000116  5a 00 00 00                                       len
          00011a  87                                                kind
          00011b  00 00 00 00 00 00 00 00                           dimension
          000123  06 00 00 00 00 00 00 00                           chunk x
          00012b  04 00 00 00 00 00 00 00                           chunk y
          000133  ff ff ff ff ff ff ff ff                           chunk z
          00013b  07                                                kind
          00013c  00                                                chunk step x
          00013d  00                                                chunk step y
          00013e  ff                                                chunk step z
          00013f  04                                                kind
          000140  00 00 00 00                                       player
          000144  81                                                kind
          000145  00 00 00 00 02 00 00 00                           tick
          00014d  83                                                kind
          00014e  00 00 00 00                                       player
          000152  01 00 00 00 00 00 00 00                           dimension
          00015a  0d 00 00 00 00 00 00 00                           block x
          000162  3f 00 00 00 00 00 00 00                           block y
          00016a  00 00 00 00 00 00 00 00                           block z
          000172  09                                                kind
          000173  05 00 00 00 00 00 00 00                           hold
    "#]]
    .assert_eq(&annotate(&spans, &bytes));
}

#[test]
fn pins_are_pinned_too() {
    let place = ChunkBox::new(ChunkPos::constant(-1, 0, 7), ChunkPos::constant(1, 2, 9));
    let events = vec![Event::Pin { pin: 6, dimension: Dimension::new(2), place }, tick(9), Event::Unpin(6)];
    let text: String = events.iter().map(|event| format!("{event:?}\n")).collect();
    let bytes = encoded(&events);
    crate::testing::golden("trace/pinned", &bytes, &text);
    let (spans, read) = explain(&bytes);
    assert_eq!(read, Ok(events));
    expect![[r#"
        tier trace
          000000  63 68 65 72 72 79 67 72 6f 76 65 20 74 72 61 63   signature
          000010  65 20 31 0a
          000014  0a                                                kind
          000015  06 00 00 00 00 00 00 00                           pin
          00001d  02 00 00 00 00 00 00 00                           dimension
          000025  ff ff ff ff ff ff ff ff                           least x
          00002d  00 00 00 00 00 00 00 00                           least y
          000035  07 00 00 00 00 00 00 00                           least z
          00003d  01 00 00 00 00 00 00 00                           greatest x
          000045  02 00 00 00 00 00 00 00                           greatest y
          00004d  09 00 00 00 00 00 00 00                           greatest z
          000055  01                                                kind
          000056  09 00 00 00                                       advance
          00005a  0b                                                kind
          00005b  06 00 00 00 00 00 00 00                           pin
    "#]]
    .assert_eq(&annotate(&spans, &bytes));
}

#[test]
fn what_stands_when_a_trace_begins_is_written_first() {
    let [yard, spawn] = [3, -40].map(|at| ChunkBox::new(chunk(0, [at; 3]).pos, chunk(0, [at + 9; 3]).pos));
    let mut seen = Observers::new(crate::TierPolicy::default(), GameTick::new(5));
    let dimension = Dimension::new(1);
    let released = seen.hold(dimension, &spawn, GameTick::new(5)).unwrap();
    let hold = seen.hold(dimension, &yard, GameTick::new(5)).unwrap().get();
    let pin = seen.pin(dimension, spawn).get();
    assert!(seen.release(released, GameTick::new(6)));
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes);
    writer.write_standing(&seen, &mut bytes);
    assert!(writer.write(&Event::Unpin(pin), &mut bytes) && writer.write(&Event::Release(hold), &mut bytes));
    let events: Vec<_> = TraceReader::new(&bytes).unwrap().map(Result::unwrap).collect();
    let cubes = ChunkBox::new(chunk(0, [0; 3]).pos, chunk(0, [15; 3]).pos);
    assert_eq!(
        events,
        [
            Event::Hold { hold, dimension, place: cubes },
            Event::Pin { pin, dimension, place: spawn },
            Event::Unpin(pin),
            Event::Release(hold)
        ]
    );
}

#[test]
fn what_says_nothing_new_is_not_written() {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes);
    let gone = Event::Leave(EntityId::from_bytes([9; 16]));
    for event in [tick(0), gone, Event::Release(3), Event::Unpin(3)] {
        assert!(!writer.write(&event, &mut bytes), "{event:?}");
    }
    let yard = Event::Hold { hold: 3, dimension: Dimension::new(0), place: ChunkBox::EVERYTHING };
    let pin = Event::Pin { pin: 3, dimension: Dimension::new(0), place: ChunkBox::EVERYTHING };
    for event in [tick(5), player(9, 0, [1, 2, 3]), yard, pin] {
        assert!(writer.write(&event, &mut bytes));
        assert!(!writer.write(&event, &mut bytes), "{event:?} again");
    }
    assert!(!writer.write(&tick(4), &mut bytes));
    assert!(writer.write(&gone, &mut bytes) && !writer.write(&gone, &mut bytes));
}

#[test]
fn a_tick_tells_who_is_there() {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes);
    let at = |id, x| {
        let Event::Player(player) = player(id, 0, [x, 0, 0]) else { unreachable!() };
        player
    };
    writer.write_tick(GameTick::new(1), &[at(1, 0), at(2, 0)], &mut bytes);
    writer.write_tick(GameTick::new(2), &[at(2, 5)], &mut bytes);
    writer.write_tick(GameTick::new(3), &[at(2, 5), at(1, 1)], &mut bytes);
    let events: Vec<_> = TraceReader::new(&bytes).unwrap().map(Result::unwrap).collect();
    let [one, two] = [1, 2].map(|id| EntityId::from_bytes([id; 16]));
    let came = |event: &Event| match event {
        Event::Tick(now) => format!("tick {}", now.get()),
        Event::Player(at) if at.id == one => format!("one {}", at.block.x),
        Event::Player(at) if at.id == two => format!("two {}", at.block.x),
        other => format!("{other:?}"),
    };
    assert_eq!(
        events.iter().map(came).collect::<Vec<_>>(),
        [
            "tick 1",
            "one 0",
            "two 0",
            "tick 2",
            &format!("{:?}", Event::Leave(one)),
            "two 5",
            "tick 3",
            "one 1"
        ]
    );
}

/// The error for a trace with these records after the first line.
#[track_caller]
fn check_error(records: &[&[u8]], expected: Expect) {
    let mut bytes = encoded(&[player(1, 0, [0, 0, 0])]);
    bytes.extend(records.concat());
    let error = TraceReader::new(&bytes).unwrap().find_map(Result::err).expect("an error");
    expected.assert_eq(&error.to_string());
}

#[test]
fn wrong_records_are_named() {
    check_error(
        &[&[12]],
        expect!["tier trace: kind is 12, allowed is 1 to 11, 129, 131, 133 to 135 (at byte 69)"],
    );
    check_error(
        &[&[0]],
        expect!["tier trace: kind is 0, allowed is 1 to 11, 129, 131, 133 to 135 (at byte 69)"],
    );
    check_error(&[&[1, 5, 0]], expect!["tier trace: advance needs 4 bytes and 2 are left (at byte 70)"]);
    check_error(
        &[&[1, 0, 0, 0, 0]],
        expect![
            "tier trace: kind is 1, allowed is the shortest form of what says something new (at byte 69)"
        ],
    );
    check_error(
        &[&[0x81, 9, 0, 0, 0, 0, 0, 0, 0]],
        expect![
            "tier trace: kind is 129, allowed is the shortest form of what says something new (at byte 69)"
        ],
    );
    check_error(
        &[&[3, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0]],
        expect!["tier trace: player is 1, allowed is a player who appeared before (at byte 69)"],
    );
    check_error(
        &[&[3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
        expect![
            "tier trace: kind is 3, allowed is the shortest form of what says something new (at byte 69)"
        ],
    );
    check_error(
        &[&[4, 0, 0, 0, 0], &[4, 0, 0, 0, 0]],
        expect![
            "tier trace: kind is 4, allowed is the shortest form of what says something new (at byte 74)"
        ],
    );
    check_error(
        &[&[4, 0, 0, 0, 0], &[3, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]],
        expect!["tier trace: player is 0, allowed is a player who is there (at byte 74)"],
    );
    check_error(
        &[&[7, 1, 0, 0]],
        expect![
            "tier trace: chunk step x is 1, allowed is a place in full, as no chunk was named before (at byte 69)"
        ],
    );
    check_error(
        &[&[9, 1, 0, 0, 0, 0, 0, 0, 0]],
        expect![
            "tier trace: kind is 9, allowed is the shortest form of what says something new (at byte 69)"
        ],
    );
    let mut full = vec![0x87, 0, 0, 0, 0, 0, 0, 0, 0];
    full.extend([0, 0, 0, 0, 0, 0, 0, 8]);
    full.extend([0; 16]);
    check_error(
        &[&full],
        expect![
            "tier trace: chunk x is 576460752303423488, the world runs from -576460752303423488 to 576460752303423487 (at byte 78)"
        ],
    );
    full[16] = 0;
    check_error(
        &[&full, &full],
        expect![
            "tier trace: kind is 135, allowed is the shortest form of what says something new (at byte 102)"
        ],
    );
    let hold = [&[8][..], &[0; 16], &[1, 0, 0, 0, 0, 0, 0, 0], &[0; 40]].concat();
    check_error(
        &[&hold],
        expect![
            "tier trace: greatest x is 0, allowed is a corner that is nowhere less than the least (at byte 110)"
        ],
    );
}

#[test]
fn other_files_and_other_versions_are_told_apart() {
    let message = |bytes: &[u8]| TraceReader::new(bytes).unwrap_err().to_string();
    expect!["tier trace: signature is 2, and this release reads up to 1; use a newer release (at byte 0)"]
        .assert_eq(&message(b"cherrygrove trace 2\nwhatever"));
    expect![
        "tier trace: first byte of the signature is 99, allowed is the line `cherrygrove trace 1` (at byte 0)"
    ]
    .assert_eq(&message(b"cherrygrove world 1\nwhatever"));
    expect!["tier trace: signature needs 20 bytes and 11 are left (at byte 0)"]
        .assert_eq(&message(b"cherrygrove"));
}

fn any_event() -> impl Strategy<Value = Event> {
    let coordinate =
        || prop_oneof![4 => -40..40_i64, 1 => Just(i64::MIN), 1 => Just(i64::MAX), 1 => any::<i64>()];
    let block = prop::array::uniform3(coordinate());
    let at = prop::array::uniform3(coordinate().prop_map(|at| at >> 4));
    let any_chunk = (0..2_u64, at.clone()).prop_map(|(dimension, at)| chunk(dimension, at));
    let corner = move |[x, y, z]: [i64; 3]| ChunkPos::constant(x, y, z);
    prop_oneof![
        3 => prop_oneof![0..100_u64, any::<u64>()].prop_map(tick),
        3 => (0..3_u8, 0..2_u64, block).prop_map(|(id, dimension, block)| player(id, dimension, block)),
        1 => (0..3_u8).prop_map(|id| Event::Leave(EntityId::from_bytes([id; 16]))),
        2 => (any_chunk.clone(), any::<u32>()).prop_map(|(chunk, len_bytes)| Event::Load { chunk, len_bytes }),
        2 => (any_chunk.clone(), any::<u32>()).prop_map(|(chunk, len_bytes)| Event::Save { chunk, len_bytes }),
        1 => any_chunk.prop_map(Event::Unload),
        1 => (0..3_u64, at.clone(), at.clone()).prop_map(move |(hold, a, b)| {
            Event::Hold { hold, dimension: Dimension::new(0), place: ChunkBox::new(corner(a), corner(b)) }
        }),
        1 => (0..3_u64).prop_map(Event::Release),
        1 => (0..3_u64, at.clone(), at).prop_map(move |(pin, a, b)| {
            Event::Pin { pin, dimension: Dimension::new(0), place: ChunkBox::new(corner(a), corner(b)) }
        }),
        1 => (0..3_u64).prop_map(Event::Unpin),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(events in prop::collection::vec(any_event(), 0..60)) {
        let mut bytes = Vec::new();
        let mut writer = TraceWriter::new(&mut bytes);
        let written: Vec<_> = events.into_iter().filter(|event| writer.write(event, &mut bytes)).collect();
        let (spans, read) = explain(&bytes);
        prop_assert_eq!(read.as_ref(), Ok(&written));
        prop_assert_eq!(spans.iter().map(|span| span.len_bytes).sum::<u64>(), bytes.len() as u64);
        prop_assert_eq!(encoded(&written), bytes);
    }

    #[test]
    fn a_trace_cut_off_gives_what_came_before(events in prop::collection::vec(any_event(), 1..20), share in 0.0..1.0_f64) {
        let bytes = encoded(&events);
        let cut = SIGNATURE.len() + ((bytes.len() - SIGNATURE.len()) as f64 * share) as usize;
        let mut reader = TraceReader::new(&bytes[..cut]).unwrap();
        let whole: Vec<_> = reader.by_ref().map_while(Result::ok).collect();
        prop_assert_eq!(reader.next(), None);
        prop_assert_eq!(encoded(&whole).len() as u64, reader.offset_bytes());
        prop_assert!(encoded(&whole)[..] == bytes[..reader.offset_bytes() as usize]);
    }

    #[test]
    fn any_bytes_are_a_trace_or_an_error(
        events in prop::collection::vec(any_event(), 0..8),
        noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        tail in prop::collection::vec(0..14_u8, 0..40),
    ) {
        let mut bytes = encoded(&events);
        bytes.extend(tail);
        for (at, byte) in noise {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(reader) = TraceReader::new(&bytes)
            && let Ok(events) = reader.collect::<Result<Vec<_>, _>>()
        {
            prop_assert_eq!(encoded(&events), bytes);
        }
    }
}
