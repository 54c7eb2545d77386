//! Limits: exact, checked before anything is written, and those of the world, not of whoever opens it.

use super::*;
use cg_store::StoreLimits;

/// The frame around every stored value.
const FRAME: u64 = cg_format::frame::LEN_BYTES as u64;

/// Bytes that do not compress.
pub(super) fn noise(len: usize) -> Vec<u8> {
    let byte = |n: u64| {
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 56) as u8
    };
    (0..len as u64).map(byte).collect()
}

fn limited(limits: StoreLimits) -> World {
    World::builder().options(&WorldOptions { limits, ..options() }).in_memory().expect("a world in memory")
}

fn refused<T: std::fmt::Debug>(
    world: &World,
    body: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error>,
) -> (String, u64, u64) {
    let before = rows(world);
    match world.transaction(body) {
        Err(Error::TooLarge { what, len_bytes, limit_bytes }) => {
            assert!(before == rows(world), "a refused transaction wrote something");
            (what, len_bytes, limit_bytes)
        }
        other => panic!("not refused as too large: {other:?}"),
    }
}

#[test]
fn a_chunk_of_exactly_the_limit_is_taken_and_a_byte_more_is_not() {
    let limits = StoreLimits { chunk_bytes: 1000, ..StoreLimits::default() };
    let world = limited(limits);
    let ids = Ids::register(&world);
    let a = ids.at(0, 0, 0);
    let sized = |len_bytes: u64| {
        let mut chunk = filled(&world, ids.air);
        chunk.set_side(ids.light, Vec::new());
        let rest = len_bytes - FRAME - chunk.to_bytes().len() as u64;
        chunk.set_side(ids.light, vec![7; rest as usize]);
        chunk
    };
    save(&world, [(a, sized(1000))]);
    let error = refused(&world, |tx| {
        tx.save(ids.at(1, 0, 0), filled(&world, ids.stone));
        tx.save(a, sized(1001));
        Ok(())
    });
    assert_eq!(error, (a.to_string(), 1001, 1000));
    assert_eq!(world.load(a).expect("loads").as_deref(), Some(&sized(1000)));
}

#[test]
fn an_entity_of_exactly_the_limit_is_taken_and_a_byte_more_is_not() {
    let world = limited(StoreLimits { entity_bytes: 300, ..StoreLimits::default() });
    let ids = Ids::register(&world);
    let a = ids.at(0, 0, 0);
    save(&world, [(a, filled(&world, ids.air))]);
    let sized = |len_bytes: u64| {
        let mut cow = ids.cow_in(a);
        cow.set_component(ids.items, Vec::new()).expect("short");
        let mut bytes = Vec::new();
        cow.encode(&mut bytes);
        let rest = len_bytes - FRAME - bytes.len() as u64;
        cow.set_component(ids.items, vec![7; rest as usize]).expect("short");
        cow
    };
    let put = world.transaction(|tx| {
        tx.put_entity(uuid(1), sized(300));
        Ok::<_, Error>(())
    });
    put.expect("fits");
    let error = refused(&world, |tx| {
        tx.put_entity(uuid(2), sized(301));
        Ok(())
    });
    assert_eq!(error, (format!("entity {}", uuid(2)), 301, 300));
    assert_eq!(world.entity(uuid(2)).expect("reads"), None);
}

#[test]
fn a_property_of_exactly_the_limit_is_taken_and_a_byte_more_is_not() {
    let world = limited(StoreLimits { property_bytes: 64, ..StoreLimits::default() });
    let note = Property::Named(name("game:note"));
    let set = |len: usize| {
        let note = note.clone();
        move |tx: &mut Transaction<'_>| {
            tx.set_property(note, Some(vec![1; len]));
            Ok(())
        }
    };
    world.transaction::<_, Error>(set(64)).expect("fits");
    assert_eq!(refused(&world, set(65)), ("game:note".into(), 65, 64));
    assert_eq!(world.property(&note).expect("reads"), Some(vec![1; 64]));
}

#[test]
fn a_row_that_no_batch_takes_is_refused_and_a_transaction_of_any_size_is_not() {
    let engine = MemEngine::new().with_max_batch_bytes(20_000);
    let limits = StoreLimits { batch_bytes: 5000, ..StoreLimits::default() };
    let world =
        World::builder().options(&WorldOptions { limits, ..options() }).over(engine).expect("a world");
    let ids = Ids::register(&world);
    let sized = |len: usize| {
        let mut chunk = filled(&world, ids.air);
        chunk.set_side(ids.light, noise(len));
        chunk
    };
    let row_bytes = |len: usize| {
        let draft = Draft::plain(Codec::Lz4, 0, |out| sized(len).encode(out));
        draft.len_bytes() as u64
    };
    let a = ids.at(-1, 0, 0);
    let (what, len_bytes, limit_bytes) = refused(&world, |tx| {
        tx.save(a, sized(16_000));
        tx.save(ids.at(0, 0, 0), sized(1));
        Ok(())
    });
    let row: String = cg_format::key::chunk(a).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(what, format!("row {row} of chunkl0"));
    // A part needs room around its rows.
    assert_eq!(limit_bytes, 20_000 - 4096);
    let around = len_bytes - row_bytes(16_000);
    let fits = |len: &usize| around + row_bytes(*len) <= limit_bytes;
    let fitting = (0..16_000).rev().find(fits).expect("a shorter one fits");
    let (_, len_bytes, _) = refused(&world, |tx| {
        tx.save(a, sized(fitting + 1));
        Ok(())
    });
    assert_eq!(len_bytes, limit_bytes + 1);
    save(
        &world,
        (0..300).map(|x| (ids.at(x, 0, 0), marked(&world, &ids, x as u16))).chain([(a, sized(fitting))]),
    );
    assert_eq!(world.metrics().stats.commits_staged, 1);
    assert_eq!(world.load(a).expect("loads").as_deref(), Some(&sized(fitting)));
    assert_sound(&world);
}

#[test]
fn a_raised_limit_holds_for_transactions_of_many_megabytes() {
    let limits = StoreLimits { batch_bytes: 100 << 20, chunk_bytes: 40 << 20, ..StoreLimits::default() };
    let disk = Disk::new();
    let roomy = WorldOptions { limits, ..options() };
    let world = World::builder().options(&roomy).create(disk.path()).expect("is created");
    let ids = Ids::register(&world);
    let big = |fill: u8| {
        let mut chunk = filled(&world, ids.air);
        chunk.set_side(ids.light, vec![fill; 35 << 20]);
        chunk
    };
    save(&world, [(ids.at(0, 0, 0), big(1)), (ids.at(0, 0, 1), big(2))]);
    drop(world);
    let world = disk.open(&[]);
    let chunk = world.load(ids.at(0, 0, 1)).expect("loads").expect("is there");
    assert_eq!(chunk.side(ids.light).map(<[u8]>::len), Some(35 << 20));
}

#[test]
fn a_world_keeps_the_limits_it_was_created_with() {
    let disk = Disk::new();
    let limits = StoreLimits { chunk_bytes: 200, ..StoreLimits::default() };
    let strict = WorldOptions { limits, ..options() };
    drop(World::builder().options(&strict).create(disk.path()).expect("is created"));
    let world = disk.open(&[]);
    assert_eq!(world.limits(), limits);
    let ids = Ids::register(&world);
    let error = world.transaction(|tx| {
        let mut chunk = filled(&world, ids.air);
        chunk.set_side(ids.light, vec![7; 200]);
        tx.save(ids.at(0, 0, 0), chunk);
        Ok::<_, Error>(())
    });
    assert!(matches!(error, Err(Error::TooLarge { limit_bytes: 200, .. })), "{error:?}");
}

#[test]
fn setting_aside_is_bound_by_the_limit_on_a_transaction() {
    use cg_format::{Space, key};
    let world = limited(StoreLimits { batch_bytes: 6000, ..StoreLimits::default() });
    let ids = Ids::register(&world);
    let a = ids.at(0, 0, 0);
    save(&world, [(a, filled(&world, ids.air))]);
    for n in 1..=3 {
        let mut cow = ids.cow_in(a);
        cow.set_component(ids.items, vec![7; 2500]).expect("short");
        let put = world.transaction(|tx| {
            tx.put_entity(uuid(n), cow);
            Ok::<_, Error>(())
        });
        put.expect("puts");
    }
    plant(
        &world,
        [
            (Space::ChunkL0, key::chunk(a).to_vec(), Some(plain(b"spoilt"))),
            (Space::Entity, key::entity(uuid(4)).to_vec(), Some(plain(&[9; 9000]))),
        ],
    );
    let refused = |set_aside: &dyn Fn() -> Result<bool, Error>, expected: &str| {
        let before = rows(&world);
        match set_aside() {
            Err(Error::TooLarge { what, len_bytes, limit_bytes }) => {
                assert!(before == rows(&world), "what is refused writes nothing");
                assert_eq!((what.as_str(), limit_bytes), (expected, world.limits().batch_bytes));
                len_bytes
            }
            other => panic!("not refused as too large: {other:?}"),
        }
    };
    let raise = |batch_bytes| {
        world.raise_limits(StoreLimits { batch_bytes, ..StoreLimits::default() }).expect("raises");
    };
    for (set_aside, what) in [
        (
            &(|| world.quarantine().chunk(a)) as &dyn Fn() -> _,
            format!("setting {a} and its 3 entities aside"),
        ),
        (&|| world.quarantine().entity(uuid(4)), format!("setting entity {} aside", uuid(4))),
    ] {
        let len_bytes = refused(set_aside, &what);
        raise(len_bytes - 1);
        assert_eq!(refused(set_aside, &what), len_bytes);
        raise(len_bytes);
        assert!(set_aside().expect("is exactly the limit"));
    }
    assert_eq!(world.quarantine().list().expect("lists").len(), 2);
    assert_sound(&world);
}
