//! The committed inputs of the fuzz target for messages between a server and its caches: made here, but for the ids of
//! worlds and requests, which are other ones every time.
//!
//! The target's folder may hold more: what a fuzzer found stays beside these. What is refused has a name in `bad_`.

use std::path::{Path, PathBuf};

use crate::fixture::*;
use cg_store::prelude::*;
use cg_sync::{
    SYNC_VERSION, SyncClient, SyncLimits, SyncReply, SyncRequest, SyncServerLimits, ValueKind, ValueSet,
};

/// The laws of arbitrary bytes, the same that the fuzz target checks.
#[path = "../../../fuzz/src/sync.rs"]
mod laws;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/sync_decode")
}

#[test]
fn messages_with_one_byte_altered_keep_the_laws_of_all_bytes() {
    let mut taken = 0;
    for name in
        ["request_area", "request", "request_values", "reply", "reply_gone", "reply_area", "reply_values"]
    {
        let mut bytes = std::fs::read(folder().join(name)).expect("readable");
        assert!(laws::check(&bytes), "{name}");
        for index in 0..bytes.len() {
            // Lengths, tags and numbers become others; of texts the case.
            bytes[index] ^= if index % 2 == 0 { 0x01 } else { 0x20 };
            let limits = SyncLimits::default();
            let is_refused =
                SyncRequest::decode(&bytes, limits).is_err() && SyncReply::decode(&bytes, limits).is_err();
            assert!(is_refused, "{name}: byte {index} is not summed");
            let sealed = laws::sealed(&bytes);
            taken += sealed.map_or(0, |sealed| u32::from(laws::check(&sealed)));
            bytes[index] ^= if index % 2 == 0 { 0x01 } else { 0x20 };
        }
    }
    assert!(taken > 100, "only {taken} altered messages are still messages");
}

/// After version, kind and checksum: the number of the request, and in a reply who answers.
fn settled(message: &[u8]) -> Vec<u8> {
    let number_len_bytes = match message[6] {
        253 => 9,
        252 => 5,
        251 => 3,
        _ => 1,
    };
    let mut rest = message[6 + number_len_bytes..].to_vec();
    let worlds = match (message[1], rest[0]) {
        (1, 0) => None,
        (1, _) => Some(1..41),
        _ => Some(0..40),
    };
    if let Some(worlds) = worlds {
        rest[worlds].fill(7);
    }
    sealed([&message[..6], &[5], &rest].concat())
}

/// The message with the sum of its bytes.
fn sealed(message: Vec<u8>) -> Vec<u8> {
    laws::sealed(&message).unwrap_or(message)
}

#[test]
fn the_inputs_for_messages_are_those_that_are_committed() {
    let server = in_memory();
    let ids = Ids::register(&server);
    let cache = SyncClient::open(in_memory()).expect("opens");
    let dimension = cache.world().registry().register_dimension("game:overworld").expect("registers");
    let pos = |x| ChunkPos::new(x, 0, 0).expect("inside the world");
    let at = [0, 1].map(|x| ChunkAt::new(dimension, pos(x)));
    let area = || cache.request_area(dimension, ChunkBox::new(pos(0), pos(1))).expect("asks");
    let answer = |request: &SyncRequest| {
        crate::sync::support::answer(&server, request, &SyncServerLimits::default()).expect("answers")
    };

    let first = cache.request(&at).expect("asks");
    let gone = answer(&first).encode();
    save(&server, [(ids.at(0, 0, 0), marked(&server, &ids, 9))]);
    let came = answer(&first);
    cache.apply(&first, &came).expect("applies");
    let again = cache.request(&at).expect("asks");
    let too_many = crate::sync::support::answer(
        &server,
        &area(),
        &SyncServerLimits { listed_chunks: 0, ..SyncServerLimits::default() },
    );
    let sets = || {
        let area = ChunkBox::new(pos(0), pos(1));
        let near = ValueSet::of(ValueKind::Entities).within(dimension, area).without(name("game:items"));
        cache.request_values(&[ValueSet::of(ValueKind::Objects).with_prefix("a"), near]).expect("asks")
    };
    server.objects().put("a/1", *b"one").expect("commits");
    let detached = Owner::Detached(cg_format::entity::Reason::new("test").expect("short"));
    let cow = ids.cow_in(ids.at(0, 0, 0)).owned_by(detached);
    let put = server.transaction(|tx| {
        tx.put_entity(uuid(7), cow);
        Ok::<_, Error>(())
    });
    put.expect("commits");
    let all = sets();
    let listed = answer(&all);
    cache.apply(&all, &listed).expect("applies");
    cg_store::layer::values::keep_change_log(&server).expect("begins");
    server.objects().delete("a/1").expect("commits");
    let later = sets();
    let seeds = [
        ("request_values", all.encode()),
        ("request_values_again", later.encode()),
        ("reply_values", listed.encode()),
        ("reply_values_again", answer(&later).encode()),
        ("request", first.encode()),
        ("request_again", again.encode()),
        ("request_area", area().encode()),
        ("request_without", cache.request(&at).expect("asks").without(&name("game:items")).encode()),
        ("request_nothing", cache.request(&[]).expect("asks").encode()),
        ("reply", came.encode()),
        ("reply_gone", gone),
        ("reply_again", answer(&again).encode()),
        ("reply_area", answer(&area()).encode()),
        ("reply_too_many", too_many.expect("answers").encode()),
    ];
    let mut seeds: Vec<_> = seeds.map(|(name, bytes)| (name, settled(&bytes))).into();
    let reply = settled(&came.encode());
    seeds.push(("bad_cut", reply[..reply.len() - 1].to_vec()));
    seeds.push(("bad_kind", [&[SYNC_VERSION, 3], &reply[2..]].concat()));
    seeds.push(("bad_sum", [&reply[..2], &[!reply[2]], &reply[3..]].concat()));
    seeds.push(("bad_version", [&[9], &reply[1..]].concat()));
    let claim = [&[SYNC_VERSION, 1, 0, 0, 0, 0, 0, 0, 253][..], &(1_u64 << 60).to_le_bytes()].concat();
    seeds.push(("bad_claim", sealed(claim)));

    let folder = folder();
    for (name, bytes) in seeds {
        let path = folder.join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(&path, &bytes).expect("written");
        }
        let committed = std::fs::read(&path).unwrap_or_default();
        assert!(committed == bytes, "{name} is not what is made here; UPDATE_GOLDEN=1 writes it");
    }
}
