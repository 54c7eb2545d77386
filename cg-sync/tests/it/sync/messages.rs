//! Messages that are none, or ask for more than is allowed.

use super::made::sealed;
use super::*;
use cg_sync::{ValueKind, ValueSet};

fn sum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

#[test]
fn bytes_that_are_no_message_are_refused() {
    let server = in_memory();
    let ids = Ids::register(&server);
    save(&server, [(ids.at(0, 0, 0), machine(&server, &ids, 1))]);
    let cache = client();
    let request = cache.request(&[here(&cache, [0, 0, 0])]).expect("asks");
    let reply = answer(&server, &request, &SyncServerLimits::default()).expect("answers").encode();
    let limits = SyncLimits::default();
    let refused = |bytes: &[u8], limits| SyncReply::decode(bytes, limits).expect_err("is refused");
    assert_eq!(
        refused(&reply, SyncLimits { reply_bytes: 10, ..limits }),
        MessageError::TooLong { len_bytes: reply.len(), limit_bytes: 10 }
    );
    let asked = request.encode();
    assert_eq!(
        SyncRequest::decode(&asked, SyncLimits { request_bytes: 10, ..limits }),
        Err(MessageError::TooLong { len_bytes: asked.len(), limit_bytes: 10 })
    );
    let four_mib = vec![0; (4 << 20) + 1];
    assert_eq!(
        SyncRequest::decode(&four_mib, limits),
        Err(MessageError::TooLong { len_bytes: (4 << 20) + 1, limit_bytes: 4 << 20 })
    );
    assert_eq!(refused(&asked, limits), MessageError::Kind { found: 1, expected: 2 });
    assert_eq!(refused(&[7, 2, 0, 0, 0, 0], limits), MessageError::Version { found: 7, expected: 5 });
    let (fields, stored) = (&reply[6..], u32::from_le_bytes(*reply[2..].first_chunk().expect("a sum")));
    let longer = sealed(2, &[fields, &[0]].concat());
    assert_eq!(refused(&longer, limits), MessageError::Behind { extra_bytes: 1 });
    for len in 0..reply.len() {
        let cut = &reply[..len];
        if len < 6 {
            assert_eq!(refused(cut, limits), MessageError::Ends, "{len} bytes");
            continue;
        }
        let computed = sum(&[&cut[..2], &cut[6..]].concat());
        assert_eq!(refused(cut, limits), MessageError::Checksum { stored, computed }, "{len} bytes");
        assert_eq!(refused(&sealed(2, &cut[6..]), limits), MessageError::Ends, "{len} bytes");
    }
    // A request whose list of dimensions claims 2^60 entries.
    let claim = sealed(1, &[&[0, 0, 253][..], &(1_u64 << 60).to_le_bytes()].concat());
    assert_eq!(SyncRequest::decode(&claim, limits), Err(MessageError::Ends));
    // No changed byte passes; and where the sum is that of the changed bytes, what they say is checked before anything is
    // written.
    for (index, flip) in (0..reply.len()).flat_map(|index| [1, 0x80, 0xff].map(|flip| (index, flip))) {
        let mut bytes = reply.clone();
        bytes[index] ^= flip;
        let error = refused(&bytes, limits);
        let is_told = match index {
            0 => matches!(error, MessageError::Version { .. }),
            1 => matches!(error, MessageError::Kind { .. }),
            _ => matches!(error, MessageError::Checksum { .. }),
        };
        assert!(is_told, "byte {index}: {error}");
        if index >= 6
            && let Ok(reply) = SyncReply::decode(&sealed(2, &bytes[6..]), limits)
            && index % 7 == 0
        {
            let cache = client();
            let request = cache.request(&[here(&cache, [0, 0, 0])]).expect("asks");
            let before = cache.world().objects().list(b"", None, 1).expect("lists");
            if cache.apply(&request, &reply).is_err() {
                assert_eq!(cache.world().objects().list(b"", None, 1).expect("lists"), before);
                assert_eq!(cache.world().load(here(&cache, [0, 0, 0])).expect("reads"), None);
            }
        }
    }
    let error = answer(
        &server,
        &SyncRequest::decode(&sealed(1, &[0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]), limits)
            .expect("decodes"),
        &SyncServerLimits::default(),
    );
    expect!["the message says what cannot be: it has no name for a dimension"]
        .assert_eq(&error.expect_err("is refused").to_string());
}

#[test]
fn names_have_an_end() {
    let server = in_memory();
    let ids = Ids::register(&server);
    save(&server, [(ids.at(0, 0, 0), machine(&server, &ids, 1))]);
    let cache = client();
    let count = |world: &World| -> usize {
        let catalog = world.catalog();
        cg_registry::ListKind::ALL.iter().map(|list| catalog.list(*list).len()).sum()
    };
    let at = [here(&cache, [0, 0, 0])];
    ask(&server, &cache, &at);
    let full = count(cache.world());
    let cache = cache.with_max_names(full + 9);
    let more = |from: u32, to: u32| {
        let names: Vec<_> = (from..to).map(|number| format!("hostile:{number}")).collect();
        let new = names.iter().map(|name| BlockOffer::new(Name::new(name).expect("a name"))).collect();
        server
            .registry()
            .register(&Registration { blocks: new, ..Registration::default() })
            .expect("registers");
        let request = cache.request(&at).expect("asks");
        let reply = answer(&server, &request, &SyncServerLimits::default()).expect("answers");
        cache.apply(&request, &reply)
    };
    more(0, 9).expect("is as many as allowed");
    let error = more(9, 10).expect_err("is one too many");
    let limit = full + 9;
    assert!(
        matches!(error, SyncError::TooManyNames { names, limit: found } if names == limit + 1 && found == limit),
        "{error}"
    );
    assert_eq!(count(cache.world()), limit);
    // Names that the world has, again and again under other numbers, are kept in memory all the same.
    let small = client().with_max_names(3);
    let request = small.request(&[here(&small, [0, 0, 0])]).expect("asks");
    let reply = answer(&server, &request, &SyncServerLimits::default()).expect("answers");
    let before = count(small.world());
    let error = small.apply(&request, &reply).expect_err("are more than three");
    assert!(matches!(error, SyncError::TooManyNames { limit: 3, .. }), "{error}");
    assert_eq!((count(small.world()), small.server()), (before, None));
}

#[test]
fn a_request_asks_for_no_more_than_is_allowed() {
    let server = in_memory();
    let cache = client();
    let limits = SyncServerLimits { asked_cubes: 2, asked_areas: 0, ..SyncServerLimits::default() };
    let request = |cubes: i64| {
        let at: Vec<_> = (0..cubes).map(|cube| here(&cache, [cube * 4, 0, 0])).collect();
        cache.request(&at).expect("asks")
    };
    assert!(answer(&server, &request(2), &limits).is_ok());
    let refused =
        |request: &SyncRequest| answer(&server, request, &limits).expect_err("is refused").to_string();
    expect!["the message asks about 3 cubes, 2 are allowed; ask in parts"].assert_eq(&refused(&request(3)));
    let overworld = cache.world().catalog().dimension("game:overworld").expect("is registered");
    let area = cache.request_area(overworld, area()).expect("asks");
    expect!["the message asks about 1 areas, 0 are allowed; ask in parts"].assert_eq(&refused(&area));
    // One cube in which the first place is asked about 65 times.
    let mut bytes = vec![0, 0, 1, 3, b'a', b':', b'b', 0, 1, 0, 0, 0, 0, 0, 65];
    bytes.extend([0, 0].repeat(65));
    // No areas, no values, no components, no limit.
    bytes.extend([0; 4]);
    let many = SyncRequest::decode(&sealed(1, &bytes), SyncLimits::default()).expect("decodes");
    assert_eq!(many.chunk_count(), 65);
    expect!["the message says what cannot be: a 4³ cube has places 0 to 63, each once"]
        .assert_eq(&refused(&many));
}

#[test]
fn sets_have_limits_and_places() {
    let server = in_memory();
    let ids = Ids::register(&server);
    let cache = client();
    let limits = SyncServerLimits { asked_sets: 2, asked_areas: 1, ..SyncServerLimits::default() };
    let refused = |sets: &[ValueSet]| {
        let request = cache.request_values(sets).expect("asks");
        answer(&server, &request, &limits).expect_err("is refused").to_string()
    };
    let all = || ValueSet::of(ValueKind::Objects);
    expect!["the message asks about 3 sets of values, 2 are allowed; ask in parts"].assert_eq(&refused(&[
        all(),
        all(),
        all(),
    ]));
    let twice = ValueSet::of(ValueKind::Records).within(ids.overworld, area()).within(ids.overworld, area());
    expect!["the message asks about 2 areas of values, 1 are allowed; ask in parts"]
        .assert_eq(&refused(&[twice]));
    let without = (0..1025).fold(all(), |set, n| set.without(name(&format!("game:c{n}"))));
    expect!["the message asks about 1025 components, 1024 are allowed; ask in parts"]
        .assert_eq(&refused(&[without]));
    let asked = |fields: &[u8]| {
        // No number, server, dimension, cube or area; one set; no limit.
        let fields = [&[0, 0, 0, 0, 0, 1], fields, &[0, 0]].concat();
        let request = SyncRequest::decode(&sealed(1, &fields), SyncLimits::default()).expect("decodes");
        answer(&server, &request, &limits).expect_err("is refused").to_string()
    };
    // Kind, prefix, areas, components, position.
    expect!["the message says what cannot be: a kind of values is 1 to 4"]
        .assert_eq(&asked(&[9, 0, 0, 0, 0]));
    expect!["the message says what cannot be: it has no name for a dimension"]
        .assert_eq(&asked(&[4, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0, 0]));
    expect!["the message says what cannot be: `a b`: it has no namespace; write `namespace:identifier`"]
        .assert_eq(&asked(&[2, 0, 0, 1, 3, b'a', b' ', b'b', 0]));
}

#[test]
fn values_that_were_not_asked_for_are_refused_whole() {
    let server = in_memory();
    server.objects().put("a/1", *b"one").expect("commits");
    server.objects().put("a/2", *b"two").expect("commits");
    let cache = client();
    let request = cache.request_values(&[ValueSet::of(ValueKind::Objects).with_prefix("a/")]).expect("asks");
    let reply = answer(&server, &request, &SyncServerLimits::default()).expect("answers").encode();
    let changed = |from: &[u8], to: &[u8]| {
        let at = reply.windows(from.len()).position(|bytes| bytes == from).expect("is there");
        let mut fields = reply[6..].to_vec();
        fields[at - 6..at - 6 + from.len()].copy_from_slice(to);
        let reply = SyncReply::decode(&sealed(2, &fields), SyncLimits::default()).expect("decodes");
        let error = cache.apply(&request, &reply).expect_err("is refused");
        assert_eq!(
            cache.world().objects().list("", None, 9).expect("lists").entries,
            [],
            "nothing is half applied"
        );
        assert_eq!(cache.server(), None);
        error.to_string()
    };
    expect!["Objects, `b/2`, as the server sent it: it was not asked for"]
        .assert_eq(&changed(b"a/2", b"b/2"));
    expect!["Objects, `a/0`, as the server sent it: it is out of the order of the listing"]
        .assert_eq(&changed(b"a/2", b"a/0"));
    // The state of `two`: neither here nor deleted.
    expect!["Objects, `a/2`, as the server sent it: object: state is 3, allowed is 1 for here or 2 for deleted (at byte 16)"].assert_eq(&changed(b"\x01two", b"\x03two"));
    expect!["Objects, `a/2`, as the server sent it: object: bytes after a deleted object must be zero or absent, found 3 (at byte 17)"].assert_eq(&changed(b"\x01two", b"\x02two"));
    // What a cache keeps for itself, as a server that knows of it would write it.
    let request = cache.request_values(&[ValueSet::of(ValueKind::Objects)]).expect("asks");
    server.objects().put("Xsync/head", *b"no").expect("commits");
    let reply = answer(&server, &request, &SyncServerLimits::default()).expect("answers").encode();
    let at = reply.windows(4).position(|bytes| bytes == b"Xsyn").expect("is there");
    let mut fields = reply[6..].to_vec();
    fields[at - 6] = 0;
    let reply = SyncReply::decode(&sealed(2, &fields), SyncLimits::default()).expect("decodes");
    let error = cache.apply(&request, &reply).expect_err("is refused");
    expect![[r"Objects, `\x00sync/head`, as the server sent it: it was not asked for"]]
        .assert_eq(&error.to_string());
}

#[test]
fn a_cache_takes_the_largest_reply_that_a_server_gives_by_default() {
    let largest =
        SyncServerLimits::default().chunk_bytes as u64 + cg_store::StoreLimits::default().object_bytes;
    assert!(SyncLimits::default().reply_bytes as u64 > largest + (1 << 20), "{largest}");
}
