//! Laws for any bytes that are taken for a message between a server and a cache of it: what is read is written so that
//! it is read again; a server answers any request or refuses it, and changes nothing; a cache that applies any reply
//! has chunks where it asked for some, whole ones, values of the sets that it asked about, and few more names than the
//! message has bytes; one that refuses it has what it had.

use cg_format::{ChunkAt, ChunkBox, ChunkPos, LocalPos};
use cg_registry::ListKind;
use cg_store::Error;
use cg_store::prelude::{Chunk, Name, Property, World};
use cg_store::verify::VerifyDepth;
use cg_sync::{
    MessageError, SyncClient, SyncLimits, SyncReply, SyncRequest, SyncServer, SyncServerLimits, ValueKind,
    ValueSet,
};

/// Reads bytes as a message of either kind and says whether they are one. Those that are not as they were sent are refused,
/// and what they would say with the sum of what they are keeps the same laws: a checksum does not stop an attacker.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    if let Some(sealed) = sealed(bytes) {
        check_sealed(&sealed);
        return false;
    }
    check_sealed(bytes)
}

/// The bytes with the checksum that they should have; `None` if they have it, or are refused before it is looked at.
pub(crate) fn sealed(bytes: &[u8]) -> Option<Vec<u8>> {
    let limits = SyncLimits::default();
    let errors = [SyncRequest::decode(bytes, limits).err(), SyncReply::decode(bytes, limits).err()];
    let computed = errors.into_iter().flatten().find_map(|error| match error {
        MessageError::Checksum { computed, .. } => Some(computed),
        _ => None,
    })?;
    Some([&bytes[..2], &computed.to_le_bytes(), &bytes[6..]].concat())
}

fn check_sealed(bytes: &[u8]) -> bool {
    let limits = SyncLimits { request_bytes: 1 << 20, reply_bytes: 1 << 20 };
    if let Ok(request) = SyncRequest::decode(bytes, limits) {
        assert_eq!(SyncRequest::decode(&request.encode(), limits).as_ref(), Ok(&request));
        assert!(request.chunk_count() <= bytes.len());
        answered(&request);
        return true;
    }
    let Ok(reply) = SyncReply::decode(bytes, limits) else { return false };
    assert_eq!(SyncReply::decode(&reply.encode(), limits).as_ref(), Ok(&reply));
    // A reply is applied only if it answers as much as was asked: chunks of one cube, an area, two sets, or nothing.
    for ask in [Ask::Nothing, Ask::Chunks, Ask::Area, Ask::Values] {
        applied(&reply, ask, bytes.len());
    }
    true
}

fn world() -> World {
    World::builder().in_memory().expect("a world in memory")
}

fn names(world: &World) -> usize {
    let catalog = world.catalog();
    ListKind::ALL.iter().map(|list| catalog.list(*list).len()).sum()
}

fn stored(world: &World) -> String {
    world.content_hash(cg_store::view::Area::World).expect("no damage").to_string()
}

fn answered(request: &SyncRequest) {
    let server = world();
    let dimension = server.registry().register_dimension("a:b").expect("a name");
    let [stone] = server.registry().register_blocks(["a:stone"]).expect("a name");
    let saved = server.transaction(|tx| {
        for x in [-1, 0, 5] {
            let at = ChunkAt::new(dimension, ChunkPos::new(x, 0, 0)?);
            tx.save(at, Chunk::filled(stone, &tx.catalog().current_schema()).expect("registered"));
        }
        tx.put_object("a/1", *b"one")?;
        tx.put_object("b", *b"two")?;
        tx.set_property(Property::Named(Name::new("a:p")?), Some(vec![1]));
        Ok::<_, Error>(())
    });
    saved.expect("committed");
    let (before, commit) = (stored(&server), server.last_commit());
    let limits =
        SyncServerLimits { asked_cubes: 64, asked_areas: 4, asked_sets: 4, ..SyncServerLimits::default() };
    if let Ok(reply) = SyncServer::new(server.clone(), limits).answer(request) {
        let encoded = reply.encode();
        // The names, three chunks for each cube, and three that are listed for each area.
        assert!(encoded.len() <= 4096 + 64 * 1024, "{} bytes", encoded.len());
        assert_eq!(SyncReply::decode(&encoded, SyncLimits::default()), Ok(reply));
    }
    assert_eq!((stored(&server), server.last_commit()), (before, commit));
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    Nothing,
    Chunks,
    Area,
    Values,
}

/// What is asked for with [`Ask::Values`].
fn sets() -> [ValueSet; 2] {
    [ValueSet::of(ValueKind::Objects).with_prefix("a"), ValueSet::of(ValueKind::Entities)]
}

/// A cache has objects of that set, beside what it keeps for itself, and neither properties nor records.
fn only_asked_values(own: &World) {
    let all = own.objects().list(b"", None, usize::MAX).expect("lists").entries;
    let is_own = |key: &[u8]| key.starts_with(b"\0sync/");
    assert!(all.iter().all(|it| is_own(it.key.as_bytes()) || it.key.as_bytes().starts_with(b"a")));
    let census = own.tiers().census().expect("counts");
    assert_eq!(census.records, 0);
}

fn applied(reply: &SyncReply, ask: Ask, len_bytes: usize) {
    let cache = SyncClient::open(world()).expect("opens");
    let own = cache.world();
    let dimension = own.registry().register_dimension("a:b").expect("a name");
    let at = |x| ChunkAt::new(dimension, ChunkPos::new(x, 0, 0).expect("inside the world"));
    let asked = [at(0), at(1)];
    let ask = || {
        let request = match ask {
            Ask::Nothing => cache.request(&[]),
            Ask::Chunks => cache.request(&asked),
            Ask::Area => cache.request_area(dimension, ChunkBox::new(at(0).pos, at(1).pos)),
            Ask::Values => cache.request_values(&sets()),
        };
        let request = request.expect("asks").encode();
        let request = SyncRequest::decode(&request, SyncLimits::default()).expect("just written");
        // The number that the client gave is no secret: a hostile server echoes it.
        let reply = echoed(reply, &request);
        let kept = || (stored(own), cache.server());
        let before = kept();
        let applied = cache.apply(&request, &reply);
        if let Err(error) = &applied {
            let shown = error.to_string();
            assert!(!shown.is_empty() && shown.len() < 1 << 12, "{} bytes", shown.len());
            assert_eq!(kept(), before, "nothing of what was refused is kept: {shown}");
        }
        applied
    };
    let before = names(own);
    match ask() {
        Err(_) => {
            assert_eq!(cache.server(), None, "nothing is remembered of what was refused");
            assert_eq!(own.objects().list(b"", None, 1).expect("lists").entries, []);
            assert!(asked.iter().all(|at| own.load(*at).expect("reads").is_none()));
        }
        Ok(applied) => {
            assert!(applied.updated <= 2 && applied.stale <= 2);
            assert!(cache.server().is_some());
            only_asked_values(own);
            let mut count = 0;
            let elsewhere = own.read_view(|view| {
                view.for_each_place(cg_store::view::Area::World, |found| {
                    count += 1;
                    let found = found.expect("no damage").at;
                    if asked.contains(&found) {
                        std::ops::ControlFlow::Continue(())
                    } else {
                        std::ops::ControlFlow::Break(found)
                    }
                })
            });
            assert_eq!(elsewhere.expect("no damage"), None, "only what was asked about is written");
            assert_eq!(count, applied.updated);
            for at in asked {
                if let Some(chunk) = own.load(at).expect("reads") {
                    chunk.block(LocalPos::new(0, 0, 0));
                }
            }
            let again = SyncClient::open(own.clone()).expect("what is remembered is read");
            assert_eq!(again.server(), cache.server());
            // Once more, to a cache that knows the server.
            if ask().is_ok() {
                only_asked_values(own);
            }
            assert_eq!(cache.server(), again.server());
            SyncClient::open(own.clone()).expect("what is remembered is read");
        }
    }
    assert!(names(own) - before <= len_bytes, "a name takes more than a byte");
    assert_eq!(own.verify(VerifyDepth::Full, |_| {}).expect("verifies").findings, []);
}

/// The reply as one to this request.
fn echoed(reply: &SyncReply, request: &SyncRequest) -> SyncReply {
    let (reply, request) = (reply.encode(), request.encode());
    // Version, kind and checksum, then the number as a variable-length integer.
    let number = |bytes: &[u8]| match bytes.get(6) {
        Some(253) => 6..15,
        Some(252) => 6..11,
        Some(251) => 6..9,
        _ => 6..7,
    };
    let parts = [&reply[..6], &request[number(&request)], &reply[number(&reply).end..]].concat();
    let echoed = sealed(&parts).unwrap_or(parts);
    SyncReply::decode(&echoed, SyncLimits::default()).expect("another number is a number")
}
