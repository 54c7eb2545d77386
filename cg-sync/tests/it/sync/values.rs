//! Values other than chunks: what is asked by sets, what comes, what is deleted, and in which order replies may come.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::*;
use cg_format::RecordId;
use cg_format::entity::Reason;
use cg_format::record::Record;
use cg_store::Transaction;
use cg_store::layer::values::list_values;
use cg_sync::{ValueKind, ValueSet};

over_both_engines! {
    caches_of_all_kinds_are_what_the_server_is
    without_a_log_they_are_too
    a_set_has_what_is_in_its_areas_alone
    components_may_stay_on_the_server
    an_entity_of_two_sets_has_what_one_of_them_wants
    replies_of_any_order_undo_nothing
    what_is_forgotten_is_asked_for_again
    what_a_server_keeps_for_itself_is_not_sent
    a_log_finds_changes_without_a_look_at_the_rest
}

pub(super) const SETS: [ValueKind; 4] = ValueKind::ALL;

pub(super) fn server_of(world: &World) -> SyncServer {
    let server = SyncServer::new(world.clone(), SyncServerLimits::default());
    server.keep_log().expect("begins");
    server
}

pub(super) fn all() -> Vec<ValueSet> {
    SETS.map(ValueSet::of).to_vec()
}

/// A request, and its reply, both as bytes.
#[track_caller]
pub(super) fn told(server: &SyncServer, request: &SyncRequest) -> SyncReply {
    let limit = SyncLimits::default();
    let asked = SyncRequest::decode(&request.encode(), limit).expect("decodes");
    let reply = server.answer(&asked).expect("answers");
    SyncReply::decode(&reply.encode(), limit).expect("decodes")
}

/// Asks until there is no more; returns how much came and went, and in how many replies.
#[track_caller]
pub(super) fn follow(server: &SyncServer, cache: &SyncClient, sets: &[ValueSet], max_bytes: u64) -> [u64; 3] {
    let mut all = [0; 3];
    loop {
        let request = cache.request_values(sets).expect("asks").with_max_bytes(max_bytes);
        let applied = cache.apply(&request, &told(server, &request)).expect("applies");
        assert_eq!((applied.outdated_values, applied.damaged_values.len()), (0, 0));
        all[0] += applied.values_updated;
        all[1] += applied.values_gone;
        all[2] += 1;
        if !applied.has_more_values {
            return all;
        }
    }
}

fn detached() -> Owner {
    Owner::Detached(Reason::new("test").expect("short"))
}

pub(super) fn cow(ids: &Ids, x: i64, items: &[u8]) -> Entity {
    let mut cow = ids.cow_in(ids.at(x, 0, 0)).owned_by(detached());
    cow.set_component(ids.items, items.to_vec()).expect("short");
    cow.set_component(ids.power, vec![1, 2, 3, 4]).expect("short");
    cow
}

fn record_id(n: u8) -> RecordId {
    RecordId::new(uuid::Uuid::from_u128(n.into()))
}

fn sign(ids: &Ids, x: i64, text: u8) -> Record {
    Record::new(ids.cow_in(ids.at(x, 0, 0)).position, "sign", 7, vec![text]).expect("short")
}

/// Writes a value of a kind, or deletes it.
pub(super) fn write(
    tx: &mut Transaction<'_>,
    ids: &Ids,
    kind: ValueKind,
    n: u8,
    value: Option<u8>,
) -> Result<(), Error> {
    let x = |value: u8| i64::from(value % 5) * 4;
    match (kind, value) {
        (ValueKind::Objects, Some(value)) => tx.put_object(format!("o/{n}"), vec![value; 9])?,
        (ValueKind::Objects, None) => tx.delete_object(format!("o/{n}"))?,
        (ValueKind::Properties, value) => {
            tx.set_property(Property::Named(name(&format!("game:p{n}"))), value.map(|value| vec![value]));
        }
        (ValueKind::Records, Some(value)) => tx.put_record(record_id(n), sign(ids, x(value), value)),
        (ValueKind::Records, None) => tx.delete_record(record_id(n)),
        (ValueKind::Entities, Some(value)) => tx.put_entity(uuid(n.into()), cow(ids, x(value), &[value])),
        (ValueKind::Entities, None) => tx.delete_entity(uuid(n.into())),
    }
    Ok(())
}

pub(super) fn put(world: &World, ids: &Ids, kind: ValueKind, n: u8, value: Option<u8>) {
    world.transaction(|tx| write(tx, ids, kind, n, value)).expect("commits");
}

/// All values of a world by kind and key, with names for ids. What a cache keeps for itself is left out.
pub(super) fn held(world: &World) -> BTreeMap<(ValueKind, Vec<u8>), String> {
    let (mut all, catalog) = (BTreeMap::new(), world.catalog());
    let at = |position: EntityPos| {
        let dimensions = catalog.list(cg_registry::ListKind::Dimensions);
        let dimension = dimensions.name(position.dimension().get()).expect("is named");
        format!("{dimension} {:?}", position.to_f64())
    };
    let mut keys = Vec::new();
    let listed = world.read_view(|view| {
        SETS.into_iter().try_for_each(|kind| {
            list_values(view, kind, b"", None, |key, _| {
                keys.push((kind, key.to_vec()));
                ControlFlow::<()>::Continue(())
            })
            .map(drop)
        })
    });
    listed.expect("lists");
    for (kind, key) in keys {
        let id = || uuid::Uuid::from_slice(&key).expect("a UUID");
        let text = match kind {
            ValueKind::Objects if key.starts_with(b"\0sync/") => continue,
            ValueKind::Objects => match world.objects().get(&key).expect("reads") {
                Some(object) => format!("{} {:?}", object.version, object.bytes),
                None => continue,
            },
            ValueKind::Properties => {
                let name = name(std::str::from_utf8(&key).expect("a name"));
                format!("{:?}", world.property(&Property::Named(name)).expect("reads"))
            }
            ValueKind::Records => {
                let record = world.records().get(RecordId::new(id())).expect("reads").expect("is there");
                format!("{} {} {} {:?}", at(record.position), record.kind(), record.timestamp, record.payload)
            }
            ValueKind::Entities => {
                let entity = world.entity(EntityId::new(id())).expect("reads").expect("is there");
                let kind = catalog.list(cg_registry::ListKind::Entities).name(entity.kind.get());
                let mut components: Vec<_> = entity
                    .components()
                    .map(|(id, bytes)| (catalog.component_name(id).expect("is named").to_string(), bytes))
                    .collect();
                components.sort();
                format!("{} {} {components:?}", kind.expect("is named"), at(entity.position))
            }
        };
        all.insert((kind, key), text);
    }
    all
}

#[track_caller]
pub(super) fn is_equal(server: &World, cache: &SyncClient) {
    assert_eq!(held(cache.world()), held(server));
}

/// Numbers that look random, always the same.
pub(super) fn numbers() -> impl FnMut(u64) -> u64 {
    let mut state = 11_u64;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

fn random_life(world: &World, server: &SyncServer) {
    let (ids, mut next) = (Ids::register(world), numbers());
    let caches = [client(), client(), client()];
    for turn in 0..60_u64 {
        for _ in 0..next(6) {
            let committed = world.transaction(|tx| {
                (0..=next(3)).try_for_each(|_| {
                    let (kind, n) = (SETS[next(4) as usize], next(7) as u8);
                    let value = (next(3) > 0).then(|| next(9) as u8);
                    write(tx, &ids, kind, n, value)
                })
            });
            committed.expect("commits");
        }
        if turn == 30 {
            world.tiers().purge_tombstones_before(world.last_commit()).expect("purges");
        }
        // One hears of each turn, one of every seventh, in replies of one value; one comes last.
        follow(server, &caches[0], &all(), u64::MAX);
        is_equal(world, &caches[0]);
        if turn % 7 == 0 {
            follow(server, &caches[1], &all(), 1);
            is_equal(world, &caches[1]);
        }
    }
    follow(server, &caches[2], &all(), 100);
    is_equal(world, &caches[2]);
    let again = follow(server, &caches[2], &all(), u64::MAX);
    assert_eq!(again, [0, 0, 1], "nothing changed since");
}

fn caches_of_all_kinds_are_what_the_server_is(world: &World) {
    random_life(world, &server_of(world));
}

fn without_a_log_they_are_too(world: &World) {
    let server = SyncServer::new(world.clone(), SyncServerLimits::default());
    random_life(world, &server);
    // One that is dropped, and begun again with gaps in between.
    let (ids, cache) = (Ids::of(world), client());
    for turn in 0..6 {
        match turn % 3 {
            0 => server.keep_log().expect("begins"),
            1 => server.drop_log().expect("ends"),
            _ => {}
        }
        put(world, &ids, SETS[turn % 4], 1, Some(turn as u8));
        put(world, &ids, SETS[turn % 3], 2, None);
        follow(&server, &cache, &all(), 50);
        is_equal(world, &cache);
    }
}

fn a_set_has_what_is_in_its_areas_alone(world: &World) {
    let (ids, server, cache) = (Ids::register(world), server_of(world), client());
    let dimension = cache.world().catalog().dimension("game:overworld").expect("is registered");
    let column = |x| {
        let corner = |y| ChunkPos::new(x, y, 0).expect("inside the world");
        ChunkBox::new(corner(-1), corner(1))
    };
    let sets = [ValueKind::Entities, ValueKind::Records]
        .into_iter()
        .flat_map(|kind| [0, 8].map(|x| ValueSet::of(kind).within(dimension, column(x))))
        .collect::<Vec<_>>();
    let places = || {
        let places = |id: u128| {
            let entity = cache.world().entity(uuid(id)).expect("reads");
            let record = cache.world().records().get(record_id(id as u8)).expect("reads");
            [entity.map(|it| it.position), record.map(|it| it.position)]
                .map(|at| at.map(|at| at.block().x / 16))
        };
        [1, 2].map(places)
    };
    let move_to = |x: i64| {
        let moved = world.transaction(|tx| {
            tx.put_entity(uuid(1), cow(&ids, x, b"1"));
            tx.put_record(record_id(1), sign(&ids, x, 1));
            Ok::<_, Error>(())
        });
        moved.expect("commits");
    };
    put(world, &ids, ValueKind::Entities, 2, Some(1));
    put(world, &ids, ValueKind::Records, 2, Some(1));
    for x in [0, 8, 0, 99, 8, 99, 0] {
        move_to(x);
        // In either order: the set that it leaves may hear of it after the one that it enters.
        for some in [&sets[..], &[sets[1].clone(), sets[0].clone(), sets[3].clone(), sets[2].clone()]] {
            follow(&server, &cache, some, u64::MAX);
            let here = [0, 8].contains(&x).then_some(x);
            assert_eq!(places(), [[here; 2], [None; 2]], "after the way to {x}");
        }
    }
}

fn components_may_stay_on_the_server(world: &World) {
    let (ids, server, cache) = (Ids::register(world), server_of(world), client());
    let set = [ValueSet::of(ValueKind::Entities).without(name("game:items"))];
    put(world, &ids, ValueKind::Entities, 1, Some(1));
    follow(&server, &cache, &set, u64::MAX);
    assert_eq!(components(&cache), ["game:power"]);
    put(world, &ids, ValueKind::Entities, 1, Some(2));
    follow(&server, &cache, &set, u64::MAX);
    assert_eq!(components(&cache), ["game:power"]);
}

/// The components of the first entity in a cache.
fn components(cache: &SyncClient) -> Vec<String> {
    let entity = cache.world().entity(uuid(1)).expect("reads").expect("came");
    let catalog = cache.world().catalog();
    let name = |id| catalog.component_name(id).expect("is named").to_string();
    entity.components().map(|(id, _)| name(id)).collect()
}

/// All about what is near, and no contents of what is far.
fn an_entity_of_two_sets_has_what_one_of_them_wants(world: &World) {
    let (ids, server, cache) = (Ids::register(world), server_of(world), client());
    let dimension = here(&cache, [0, 0, 0]).dimension;
    let near = ValueSet::of(ValueKind::Entities).within(dimension, ChunkBox::new(at(0), at(3)));
    let all = ValueSet::of(ValueKind::Entities).without(name("game:items"));
    for sets in [[near.clone(), all.clone()], [all, near]] {
        // The value says where: 5 is at x = 0, 6 at x = 4.
        for (value, expected) in
            [(6, &["game:power"][..]), (5, &["game:power", "game:items"]), (6, &["game:power"])]
        {
            put(world, &ids, ValueKind::Entities, 1, Some(value));
            follow(&server, &cache, &sets, u64::MAX);
            assert_eq!(components(&cache), expected, "{value}");
        }
    }
}

fn at(x: i64) -> ChunkPos {
    ChunkPos::new(x, 0, 0).expect("inside the world")
}

fn replies_of_any_order_undo_nothing(world: &World) {
    let (ids, server, cache) = (Ids::register(world), server_of(world), client());
    let say = || {
        let request = cache.request_values(&all()).expect("asks");
        let reply = told(&server, &request);
        (request, reply)
    };
    let mut late = vec![say()];
    for turn in 0..12_u8 {
        put(world, &ids, SETS[usize::from(turn % 4)], 1, (turn % 3 > 0).then_some(turn));
        put(world, &ids, SETS[usize::from(turn % 4)], 2, Some(turn));
        late.push(say());
        if turn % 3 == 0 {
            follow(&server, &cache, &all(), u64::MAX);
        }
        follow(&server, &cache, &all(), u64::MAX);
        // All that was ever said comes again, the newest first and twice.
        for (request, reply) in late.iter().rev().chain(&late) {
            let applied = cache.apply(request, reply).expect("applies");
            assert_eq!((applied.values_updated, applied.values_gone), (0, 0));
        }
        is_equal(world, &cache);
    }
}

fn what_is_forgotten_is_asked_for_again(world: &World) {
    let (ids, server, cache) = (Ids::register(world), server_of(world), client());
    for n in 0..4 {
        put(world, &ids, ValueKind::Objects, n, Some(n));
    }
    world.objects().put("other", *b"1").expect("commits");
    let [some, every] = ["o/", ""].map(|prefix| [ValueSet::of(ValueKind::Objects).with_prefix(prefix)]);
    follow(&server, &cache, &some, u64::MAX);
    assert_eq!(held(cache.world()).len(), 4);
    assert_eq!(cache.forget_values(&some[0]).expect("forgets"), 4);
    assert_eq!(held(cache.world()).len(), 0);
    assert_eq!(follow(&server, &cache, &some, u64::MAX), [4, 0, 1]);
    // What another set has too stays.
    follow(&server, &cache, &every, u64::MAX);
    assert_eq!(cache.forget_values(&some[0]).expect("forgets"), 0);
    assert_eq!(cache.forget_values(&every[0]).expect("forgets"), 5);
    // And chunks.
    save(world, (0..6).map(|x| (ids.at(x, 0, 0), marked(world, &ids, 3))));
    assert_eq!(catch_up(world, &cache).1, 6);
    let corner = |x| here(&cache, [x, 0, 0]).pos;
    let trimmed = ChunkBox::new(corner(2), corner(4));
    let overworld = here(&cache, [0, 0, 0]).dimension;
    assert_eq!(cache.forget_area(overworld, trimmed).expect("forgets"), 3);
    assert_eq!(cache.world().load(here(&cache, [3, 0, 0])).expect("reads"), None);
    assert!(cache.world().load(here(&cache, [1, 0, 0])).expect("reads").is_some());
    let (listed, came) = catch_up(world, &cache);
    assert_eq!((listed.stale, listed.gone, came), (3, 0, 3));
    is_same(world, &cache);
}

fn what_a_server_keeps_for_itself_is_not_sent(world: &World) {
    // The server is the cache of another one.
    let (origin, server) = (in_memory(), server_of(world));
    world.registry().register_dimension("game:overworld").expect("registers");
    let between = SyncClient::open(world.clone()).expect("opens");
    origin.objects().put("a", *b"1").expect("commits");
    follow(&server_of(&origin), &between, &all(), u64::MAX);
    let own = Property::Named(name(":own"));
    world
        .transaction(|tx| {
            tx.set_property(own.clone(), Some(vec![1]));
            Ok::<_, Error>(())
        })
        .expect("commits");
    let cache = client();
    follow(&server, &cache, &all(), u64::MAX);
    assert_eq!(held(cache.world()).len(), 1);
    assert_eq!(cache.world().property(&own).expect("reads"), None);
    let again = SyncClient::open(cache.world().clone()).expect("opens");
    assert_eq!(again.server().map(|(uuid, _)| uuid), Some(world.identity().uuid));
    assert_eq!(follow(&server, &again, &all(), u64::MAX), [0, 0, 1]);
}

fn a_log_finds_changes_without_a_look_at_the_rest(world: &World) {
    let (server, cache) = (server_of(world), client());
    let put = |from: u32, to: u32, value: u8| {
        let put = world
            .transaction(|tx| (from..to).try_for_each(|n| tx.put_object(format!("o/{n}"), vec![value; 9])));
        put.expect("commits");
    };
    put(0, 5000, 1);
    let objects = [ValueSet::of(ValueKind::Objects)];
    assert_eq!(follow(&server, &cache, &objects, u64::MAX)[0], 5000);
    let others = [ValueSet::of(ValueKind::Objects).with_prefix("q/")];
    follow(&server, &cache, &others, u64::MAX);
    put(100, 110, 2);
    let before = world.metrics().stats;
    server.answer(&cache.request_values(&others).expect("asks")).expect("answers");
    let cost = world.metrics().stats - before;
    assert_eq!((cost.keys_scanned, cost.engine_reads), (10, 0), "what is not of the set is not read");
    let request = cache.request_values(&objects).expect("asks");
    let before = world.metrics().stats;
    let reply = server.answer(&request).expect("answers");
    let cost = world.metrics().stats - before;
    assert_eq!((cost.keys_scanned, cost.engine_reads), (10, 10));
    assert_eq!(cache.apply(&request, &reply).expect("applies").values_updated, 10);
    is_equal(world, &cache);
}
