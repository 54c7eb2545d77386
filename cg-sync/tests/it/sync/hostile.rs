//! Peers that follow no rule: what they send takes a bounded amount of memory, and is refused whole.

use super::made::*;
use super::*;
use cg_store::view::Area;
use cg_sync::{ValueKind, ValueSet};

/// The error of a reply that is refused. Nothing of it is there afterwards.
#[track_caller]
fn refused(cache: &SyncClient, request: &SyncRequest, reply: &Reply) -> SyncError {
    let kept = || {
        let world = cache.world();
        let all = world.objects().list(b"", None, usize::MAX).expect("lists").entries;
        let hash = world.content_hash(Area::World).expect("hashes").to_string();
        (cache.server(), all, hash, world.last_commit())
    };
    let before = kept();
    let reply = SyncReply::decode(&reply.to(&request.encode()), SyncLimits::default()).expect("decodes");
    let error = cache.apply(request, &reply).expect_err("is refused");
    assert_eq!(kept(), before, "nothing of it is applied: {error}");
    error
}

#[track_caller]
fn applied(cache: &SyncClient, request: &SyncRequest, reply: &Reply) -> SyncOutcome {
    let reply = SyncReply::decode(&reply.to(&request.encode()), SyncLimits::default()).expect("decodes");
    cache.apply(request, &reply).expect("applies")
}

#[test]
fn parts_of_messages_take_a_bounded_amount_of_memory() {
    let request = client().request(&[]).expect("asks").encode();
    let limits = SyncLimits { request_bytes: 1 << 20, reply_bytes: 4 << 20 };
    // Areas that are too large, each one byte.
    let decoded = |count: usize| {
        let reply = Reply { areas: vec![vec![1]; count], ..Reply::default() }.to(&request);
        SyncReply::decode(&reply, limits).map(drop)
    };
    assert_eq!(decoded(1_000_000), Ok(()));
    let error = decoded(4_000_000).expect_err("takes 56 bytes for each byte");
    expect!["the message says what cannot be: its parts take more than 201326592 bytes of memory"]
        .assert_eq(&error.to_string());
    // A request that leaves out a million components. None of them has a name.
    let nameless = [vec![0; 6], list(&vec![vec![0]; 1_000_000]), vec![0]].concat();
    let error = SyncRequest::decode(&sealed(1, &nameless), limits).expect_err("takes 24 bytes for each");
    expect!["the message says what cannot be: its parts take more than 16777216 bytes of memory"]
        .assert_eq(&error.to_string());
    // The longest answers that a server gives by default to those who ask about nothing but chunks.
    let all = [vec![1], number(64), vec![2; 64]].concat();
    let longest = Reply { cubes: vec![all; 65_536], ..Reply::default() }.to(&request);
    assert!(SyncReply::decode(&longest, SyncLimits::default()).is_ok());
}

#[test]
fn a_request_names_no_more_dimensions_than_it_can_number() {
    let server = in_memory();
    let dimension = [text(b"a:b"), vec![0]].concat();
    let asked = |count: usize| {
        let fields = [vec![0, 0], list(&vec![dimension.clone(); count]), vec![0; 5]].concat();
        let request = SyncRequest::decode(&sealed(1, &fields), SyncLimits::default()).expect("decodes");
        answer(&server, &request, &SyncServerLimits::default()).map(drop)
    };
    assert!(asked(65_536).is_ok());
    expect!["the message asks about 65537 dimensions, 65536 are allowed; ask in parts"]
        .assert_eq(&asked(65_537).expect_err("is refused").to_string());
}

#[test]
fn other_names_count_as_names() {
    let cache = client().with_max_names(20);
    let named = |from: u64, ids: u64, each: u64| Reply {
        blocks: vec![block("a:b")],
        aliases: (from..from + ids)
            .map(|id| {
                let names: Vec<_> = (0..each).map(|n| format!("a:n{id}-{n}")).collect();
                aliases(id, &names)
            })
            .collect(),
        ..Reply::default()
    };
    let request = cache.request(&[]).expect("asks");
    // One id with many names.
    let error = refused(&cache, &request, &named(0, 1, 30));
    assert!(matches!(error, SyncError::TooManyNames { limit: 20, .. }), "{error}");
    // Other names in the next reply.
    applied(&cache, &request, &named(0, 4, 3));
    let request = cache.request(&[]).expect("asks");
    let error = refused(&cache, &request, &Reply { first: [1, 0], blocks: vec![], ..named(4, 4, 3) });
    assert!(matches!(error, SyncError::TooManyNames { limit: 20, .. }), "{error}");
    // Of values.
    let entry = aliases(0, &(0..30).map(|n| format!("a:n{n}")).collect::<Vec<_>>());
    let error = refused(&cache, &request, &Reply { value_aliases: vec![entry], ..Reply::default() });
    assert!(matches!(error, SyncError::TooManyNames { limit: 20, .. }), "{error}");
}

/// A limit of names is one of memory and of the disk.
#[test]
fn long_names_count_as_several() {
    let cache = client().with_max_names(20);
    let long = |n: u32| format!("a:{n}{}", "b".repeat(3 * 256));
    let request = cache.request(&[]).expect("asks");
    let five = Reply { blocks: (0..5).map(|n| block(&long(n))).collect(), ..Reply::default() };
    applied(&cache, &request, &five);
    let request = cache.request(&[]).expect("asks");
    let sixth = Reply { first: [5, 0], blocks: vec![block(&long(5))], ..Reply::default() };
    let error = refused(&cache, &request, &sixth);
    assert!(matches!(error, SyncError::TooManyNames { names: 24, limit: 20 }), "{error}");
}

#[test]
fn names_of_another_generation_take_the_place_of_those_before() {
    let cache = client();
    let pages = || cache.world().objects().list(b"\0sync/names/", None, 99).expect("lists").entries.len();
    for generation in 1..5 {
        let request = cache.request(&[]).expect("asks");
        let blocks = vec![block("a:b"), block(&format!("a:c{generation}"))];
        let named = Reply { generation, blocks, commit: 9 + generation, ..Reply::default() };
        applied(&cache, &request, &named);
        assert_eq!(pages(), 1);
        let request = cache.request(&[]).expect("asks");
        let [blocks, sides] =
            [[1, 0], [0, 1]].map(|first| Reply { generation: 9, first, ..Reply::default() });
        for beginning in [blocks, sides] {
            let error = refused(&cache, &request, &Reply { commit: 9 + generation, ..beginning });
            assert!(matches!(error, SyncError::Message(MessageError::NamesMissing)), "{error}");
        }
        let again = SyncClient::open(cache.world().clone()).expect("the page is all that is needed");
        assert_eq!(again.server(), cache.server());
    }
    // Of the same generation a page more.
    let request = cache.request(&[]).expect("asks");
    let more =
        Reply { generation: 4, commit: 20, first: [2, 0], blocks: vec![block("a:d")], ..Reply::default() };
    applied(&cache, &request, &more);
    assert_eq!(pages(), 2);
    SyncClient::open(cache.world().clone()).expect("both pages are there");
}

#[test]
fn an_area_lists_each_chunk_once_and_damage_that_meets_it() {
    let cache = client();
    let dimension = here(&cache, [0, 0, 0]).dimension;
    let request = cache.request_area(dimension, area()).expect("asks");
    // Whole or not, cubes, damaged cubes.
    let listed = |cubes: &[Vec<u8>], damaged: &[[i8; 3]]| {
        let damaged: Vec<_> = damaged.iter().map(|cube| corner(*cube)).collect();
        let area = [vec![0, 1], list(cubes), list(&damaged)].concat();
        Reply { areas: vec![area], is_restart: true, ..Reply::default() }
    };
    let cube = |at, places: &[u8]| {
        let places: Vec<_> = places.iter().map(|place| vec![*place, 1, 5]).collect();
        [corner(at), list(&places)].concat()
    };
    let error = |reply: &Reply| refused(&cache, &request, reply).to_string();
    let twice = expect!["the message says what cannot be: an area lists a chunk twice"];
    twice.assert_eq(&error(&listed(&[cube([0; 3], &[1, 1])], &[])));
    twice.assert_eq(&error(&listed(&[cube([0; 3], &[1]), cube([0; 3], &[1])], &[])));
    let beside =
        expect!["the message says what cannot be: an area lists a damaged cube twice, or one beside it"];
    beside.assert_eq(&error(&listed(&[], &[[0; 3], [1, 0, 0], [0; 3]])));
    beside.assert_eq(&error(&listed(&[], &[[2, 0, 0]])));
    expect!["the message says what cannot be: a 4³ cube has places 0 to 63"]
        .assert_eq(&error(&listed(&[cube([0; 3], &[64])], &[])));
    let found = applied(&cache, &request, &listed(&[cube([0; 3], &[1, 2])], &[[1, 0, 0], [-2; 3]]));
    assert_eq!((found.stale, found.damaged.len()), (2, 2));
}

#[test]
fn a_position_is_not_after_the_newest_commit() {
    let server = in_memory();
    let cache = client();
    let all = [ValueSet::of(ValueKind::Objects)];
    SyncServer::new(server.clone(), SyncServerLimits::default()).keep_log().expect("begins");
    let first = cache.request_values(&all).expect("asks");
    let reply = answer(&server, &first, &SyncServerLimits::default()).expect("answers");
    cache.apply(&first, &reply).expect("applies");
    let asked = cache.request_values(&all).expect("asks").encode();
    // The last fields are the set's position, no components, no limit: the position is changes after a commit.
    let kept = asked.len() - 2 - 3;
    assert_eq!(asked[kept - 1..], [1, 0, asked[kept + 1], 0, 0, 0], "a position of one byte");
    for (position, is_sound) in [
        ([vec![0], number(server.last_commit().get()), vec![0]].concat(), true),
        ([vec![0], number(1 << 40), vec![0]].concat(), false),
        ([vec![1], number(1), vec![0], text(b"a")].concat(), true),
        ([vec![1], number(1 << 40), vec![0], text(b"a")].concat(), false),
        ([vec![1], number(1), vec![1], number(1 << 40), text(b"a")].concat(), false),
    ] {
        let fields = [&asked[6..kept], &position, &[0, 0]].concat();
        let request = SyncRequest::decode(&sealed(1, &fields), SyncLimits::default()).expect("decodes");
        let answered = answer(&server, &request, &SyncServerLimits::default());
        let error = answered.err().map(|error| error.to_string());
        let expected = (!is_sound)
            .then(|| "the message says what cannot be: a position is after the newest commit".to_owned());
        assert_eq!(error, expected, "{position:?}");
    }
}

#[test]
fn errors_show_a_part_of_what_is_long() {
    let server = in_memory();
    let long = vec![0x7f; 1 << 20];
    // One dimension.
    let fields = [vec![0, 0], list(&[[text(&long), vec![0]].concat()]), vec![0; 5]].concat();
    let request = SyncRequest::decode(&sealed(1, &fields), SyncLimits::default()).expect("decodes");
    let error = answer(&server, &request, &SyncServerLimits::default()).expect_err("is no name").to_string();
    assert!(error.len() < 1000, "{} bytes", error.len());
    assert!(error.ends_with("...`: it has 1048576 bytes, at most 65535 are allowed"), "{error}");
    // A key of values.
    let cache = client();
    let request = cache.request_values(&[ValueSet::of(ValueKind::Objects)]).expect("asks");
    let told = [vec![0], list(&[[text(&long), vec![0]].concat()]), vec![0, 0]].concat();
    let error = refused(&cache, &request, &Reply { values: vec![told], ..Reply::default() });
    let shown = error.to_string();
    assert!(shown.len() < 3000, "{} bytes", shown.len());
    assert!(shown.ends_with("`, as the server sent it: it was not asked for"), "{shown}");
    assert!(matches!(error, SyncError::Value { key, .. } if key == [0x7f; 512]));
}
