//! The registry in a store: ids are there before what uses them, never move, and schemas change over stored chunks.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use cg_engine::conformance::remote::Server;
use cg_engine::conformance::shared::Shared as _;
use cg_format::Space;
use cg_registry::UpgradeFunctions;
use cg_store::WriteBatch;

over_both_engines! {
    ids_are_committed_before_they_are_given
    a_refused_registration_changes_nothing
    threads_get_one_id_for_one_name
}

/// The keys of the registry's rows, of whole ones and of tails.
fn registry_rows(world: &World) -> BTreeSet<String> {
    let keys = rows(world).into_keys().filter(|(family, _)| *family == Family::WorldMeta);
    let names = keys.map(|(_, key)| String::from_utf8(key).expect("names are text"));
    names.filter(|name| cg_registry::codec::is_registry_row(name)).collect()
}

fn ids_are_committed_before_they_are_given(world: &World) {
    let before = registry_rows(world);
    let last = world.last_commit();
    let [copper] = world.registry().register_blocks(["game:copper"]).expect("registers");
    assert_eq!(world.last_commit(), last.next());
    assert!(registry_rows(world).len() > before.len(), "a row of its own, not the whole list again");
    // Whoever reads the engine now finds the name.
    let stored = rows(world).into_iter().any(|((family, _), row)| {
        family == Family::WorldMeta && row.windows(11).any(|part| part == b"game:copper")
    });
    assert!(stored);
    let known = (rows(world), world.last_commit());
    assert_eq!(world.registry().register_blocks(["game:copper"]).expect("is known"), [copper]);
    assert!(known == (rows(world), world.last_commit()), "what is known already costs no commit");
}

fn a_refused_registration_changes_nothing(world: &World) {
    let ids = Ids::register(world);
    let (before, catalog) = (rows(world), world.catalog());
    let offer = |text: &str| BlockOffer::new(name(text));
    for new in [
        // One bad entry refuses all of them.
        Registration {
            blocks: vec![
                offer("game:good"),
                BlockOffer { components: vec![name("game:nothing")], ..offer("game:bad") },
            ],
            ..Registration::default()
        },
        Registration {
            blocks: vec![BlockOffer { opaque: false, ..offer("game:stone") }],
            ..Registration::default()
        },
        Registration {
            components: vec![ComponentOffer::fixed(name("game:power"), 8)],
            ..Registration::default()
        },
    ] {
        let error = world.registry().register(&new).expect_err("is refused");
        assert!(matches!(error, Error::Registry(_)), "{error}");
        assert!(Arc::ptr_eq(&catalog, &world.catalog()) && before == rows(world));
    }
    assert!(matches!(world.registry().register_blocks(["no namespace"]), Err(Error::Name(_))));
    assert!(matches!(world.registry().register_dimension(""), Err(Error::Name(_))));
    assert!(before == rows(world));
    assert_eq!(issued(world, ListKind::Blocks), 4, "{ids:?}");
}

fn threads_get_one_id_for_one_name(world: &World) {
    const THREADS: usize = 4;
    let start = Barrier::new(THREADS);
    let given: Vec<Vec<BlockId>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let one = |n: usize| {
                        let name = format!("game:block_{}", (n + thread * 7) % 40);
                        world.registry().register_blocks([name.as_str()]).expect("registers")[0]
                    };
                    let mut ids: Vec<_> = (0..40).map(one).collect();
                    ids.rotate_right(thread * 7 % 40);
                    ids
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for ids in &given {
        assert_eq!(ids, &given[0], "one name, one id");
    }
    assert_eq!(given[0].iter().collect::<BTreeSet<_>>().len(), 40, "one id, one name");
    assert_eq!(issued(world, ListKind::Blocks), 40);
}

#[test]
fn tails_are_folded_when_the_world_closes_and_opens() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let whole = registry_rows(&world);
    let ids = Ids::register(&world);
    for n in 0..5 {
        world.registry().register_blocks([format!("game:block_{n}").as_str()]).expect("registers");
    }
    assert!(registry_rows(&world).len() > whole.len() + 5);
    let names = |world: &World| -> Vec<String> {
        let catalog = world.catalog();
        let count = catalog.list(ListKind::Blocks).len() as u64;
        (0..count).map(|id| catalog.block_name(BlockId::new(id)).expect("issued").to_string()).collect()
    };
    let expected = names(&world);
    // A copy of the world as a crash would leave it still has the tails.
    let crashed = Disk::new();
    world.checkpoint(crashed.path(), cg_store::CheckpointFiles::Linked).expect("copies");
    drop(world);
    let reader = World::builder().options(&options()).open_read_only(crashed.path()).expect("opens");
    assert!(registry_rows(&reader).len() > whole.len() + 5, "reading folds nothing");
    assert_eq!(names(&reader), expected);
    drop(reader);
    for disk in [&crashed, &disk] {
        let reader = World::builder().options(&options()).open_read_only(disk.path()).expect("opens");
        let folded = registry_rows(&reader);
        drop(reader);
        let world = disk.open(&[]);
        if disk.path() == crashed.path() {
            assert!(folded.len() > registry_rows(&world).len(), "opening folded them");
        }
        assert!(registry_rows(&world).iter().all(|row| folded.contains(row)));
        assert!(registry_rows(&world).len() < whole.len() + 5);
        assert_eq!(names(&world), expected);
        assert_eq!(format!("{:?}", Ids::of(&world)), format!("{ids:?}"));
        assert_sound(&world);
    }
}

fn pack(json: &str) -> PackManifest {
    PackManifest::from_json(json).expect("a manifest")
}

/// A pack with one block, whose components are told.
fn mill(components: &str, of_the_stone: &str) -> PackManifest {
    pack(&format!(
        r#"{{ "pack": "mill", "version": "1", "namespaces": ["mill"], "components": [{components}],
            "blocks": [{{ "name": "mill:stone", "components": [{of_the_stone}] }}], "dimensions": ["mill:valley"] }}"#
    ))
}

const GRAIN: &str =
    r#"{ "name": "mill:grain", "size": 2, "fields": [{ "name": "amount", "width_bytes": 2 }] }"#;
const DUST: &str = r#"{ "name": "mill:dust", "size": 1, "default": "2a" }"#;

/// Where the tests put their millstone.
fn stone_cell() -> CellLayer {
    LocalPos::new(4, 5, 6).into()
}

/// A world with one millstone whose grain is 0x0102.
fn milled(disk: &Disk, packs: &[PackManifest]) -> ChunkAt {
    let at = ChunkPos::constant(-1, 2, 3);
    ChunkAt::new(milled_at(disk, packs, [at]), at)
}

/// The same with a millstone in each of some chunks of the returned dimension.
fn milled_at(disk: &Disk, packs: &[PackManifest], places: impl IntoIterator<Item = ChunkPos>) -> Dimension {
    put_mills(&disk.create(packs), places)
}

/// Saves a millstone in each of some chunks of the returned dimension.
fn put_mills(world: &World, places: impl IntoIterator<Item = ChunkPos>) -> Dimension {
    let catalog = world.catalog();
    let [air] = world.registry().register_blocks([":air"]).expect("registers");
    let valley = catalog.dimension("mill:valley").expect("offered");
    let mut chunk = filled(world, air);
    let (stone, grain) =
        (catalog.block_id("mill:stone").expect("offered"), catalog.component_id("mill:grain"));
    chunk.set_block(stone_cell().cell, stone, &world.catalog().current_schema()).expect("is registered");
    chunk.set_component(stone_cell(), grain.expect("offered"), &[2, 1]).expect("has it");
    save(world, places.into_iter().map(|pos| (ChunkAt::new(valley, pos), chunk.clone())));
    valley
}

#[track_caller]
fn component(world: &World, at: ChunkAt, component: &str) -> Option<Vec<u8>> {
    let id = world.catalog().component_id(component).expect("is known");
    let chunk = world.load(at).expect("loads").expect("is there");
    chunk.component(stone_cell(), id).map(<[u8]>::to_vec)
}

#[test]
fn a_stored_chunk_gains_loses_and_regains_components() {
    let disk = Disk::new();
    let plain = mill(GRAIN, r#""mill:grain""#);
    let dusty = mill(&format!("{GRAIN}, {DUST}"), r#""mill:grain", "mill:dust""#);
    let bare = mill(&format!("{GRAIN}, {DUST}"), r#""mill:dust""#);
    let at = milled(&disk, std::slice::from_ref(&plain));

    let world = disk.open(std::slice::from_ref(&dusty));
    let row = world
        .engine()
        .get(Space::ChunkL0, &cg_format::key::chunk(at))
        .expect("reads")
        .expect("is there")
        .to_vec();
    let version = world.load_versioned(at).expect("loads").expect("is there").1;
    assert_eq!(component(&world, at, "mill:dust"), Some(vec![0x2a]), "gained with its default");
    assert_eq!(component(&world, at, "mill:grain"), Some(vec![2, 1]));
    // Upgrading is no change: neither by itself, nor when the upgraded chunk is saved as it is.
    let (chunk, last) = (world.load(at).expect("loads").expect("is there"), world.last_commit());
    save(&world, [(at, Chunk::clone(&chunk))]);
    assert_eq!(world.last_commit(), last);
    let stored = world
        .engine()
        .get(Space::ChunkL0, &cg_format::key::chunk(at))
        .expect("reads")
        .expect("is there")
        .to_vec();
    assert!(stored == row && world.load_versioned(at).expect("loads").expect("is there").1 == version);
    assert_sound(&world);
    let hash = world.content_hash(cg_store::view::Area::World).expect("hashes");
    // Saved with a change it is stored in the new form.
    let dust = world.catalog().component_id("mill:dust").expect("is known");
    world.transaction(|tx| tx.set_component(at, stone_cell(), dust, &[7])).expect("sets");
    world.transaction(|tx| tx.set_component(at, stone_cell(), dust, &[0x2a])).expect("sets back");
    assert_eq!(
        world.content_hash(cg_store::view::Area::World).expect("hashes"),
        hash,
        "the form is no content"
    );
    drop(world);

    let world = disk.open(std::slice::from_ref(&bare));
    assert_eq!(component(&world, at, "mill:grain"), None, "lost");
    let valley = at.dimension;
    let beside = at.pos.block(LocalPos::new(0, 0, 0));
    let stone = world.catalog().block_id("mill:stone").expect("is known");
    world.transaction(|tx| tx.set_block(valley, beside, stone)).expect("a save while it is lost");
    assert_sound(&world);
    drop(world);

    let world = disk.open(std::slice::from_ref(&dusty));
    assert_eq!(component(&world, at, "mill:grain"), Some(vec![2, 1]), "kept all the time");
    assert_eq!(component(&world, at, "mill:dust"), Some(vec![0x2a]));
    assert_sound(&world);
}

#[test]
fn a_stored_component_grows_and_is_renamed() {
    let disk = Disk::new();
    let at = milled(&disk, &[mill(GRAIN, r#""mill:grain""#)]);
    let wider = r#"{ "name": "mill:grain", "size": 6, "fields": [
        { "name": "amount", "width_bytes": 2 }, { "name": "kind", "width_bytes": 4, "default": "01000000" }] }"#;
    let world = disk.open(&[mill(wider, r#""mill:grain""#)]);
    assert_eq!(component(&world, at, "mill:grain"), Some(vec![2, 1, 1, 0, 0, 0]), "padded with its default");
    assert_sound(&world);
    drop(world);
    let renamed = pack(
        r#"{ "pack": "mill", "version": "2", "namespaces": ["mill"],
            "components": [{ "name": "mill:grain", "size": 6, "fields": [
                { "name": "amount", "width_bytes": 2 }, { "name": "kind", "width_bytes": 4, "default": "01000000" }] }],
            "blocks": [{ "name": "mill:runner", "components": ["mill:grain"] }], "dimensions": ["mill:valley"],
            "renamed": [{ "list": "blocks", "old": "mill:stone", "new": "mill:runner" }] }"#,
    );
    let world = disk.open(&[renamed]);
    let catalog = world.catalog();
    assert!(catalog.block_id("mill:runner").is_some());
    assert_eq!(catalog.block_id("mill:runner"), catalog.block_id("mill:stone"), "both names find it");
    let chunk = world.load(at).expect("loads").expect("is there");
    assert_eq!(Some(chunk.block(stone_cell().cell)), catalog.block_id("mill:runner"));
    assert_eq!(component(&world, at, "mill:grain"), Some(vec![2, 1, 1, 0, 0, 0]));
    assert_sound(&world);
}

#[test]
fn a_component_of_another_kind_needs_the_host_s_function() {
    let disk = Disk::new();
    let at = milled(&disk, &[mill(GRAIN, r#""mill:grain""#)]);
    let text = mill(r#"{ "name": "mill:grain", "size": "variable" }"#, r#""mill:grain""#);
    let mut functions = UpgradeFunctions::default();
    functions.converted(name("mill:grain"), |old| {
        Some(u16::from_le_bytes(old.bytes.try_into().ok()?).to_string().into_bytes())
    });
    let packs =
        cg_registry::Policy { conversions: functions.conversions(), ..cg_registry::Policy::default() };
    let converting = WorldOptions { packs, upgrades: Arc::new(functions), ..options() };
    let world = World::builder()
        .packs(std::slice::from_ref(&text))
        .options(&converting)
        .open(disk.path())
        .expect("opens");
    assert_eq!(component(&world, at, "mill:grain"), Some(b"258".to_vec()));
    assert_sound(&world);
    drop(world);
    // A host without the function can play on everywhere else; here it neither loses nor guesses.
    let world = disk.open(std::slice::from_ref(&text));
    let error = world.load(at).expect_err("cannot be upgraded");
    assert!(matches!(error, Error::NotUpgraded { at: found, .. } if found == at), "{error}");
    let error = world.quarantine().chunk(at).expect_err("it is not damaged");
    assert!(matches!(error, Error::NotUpgraded { .. }), "{error}");
    // The opacity map needs no component.
    assert_eq!(world.opacity().rebuild().expect("draws"), 1, "a patch becomes a tile");
    let stone = at.pos.block(stone_cell().cell);
    assert_eq!(
        world.opacity().column(at.dimension, stone.x, stone.z).expect("reads").runs(),
        [stone.y..=stone.y]
    );
    let error = world.transaction(|tx| {
        tx.save(at, filled(&world, BlockId::new(0)));
        Ok::<_, Error>(())
    });
    assert!(matches!(error, Err(Error::NotUpgraded { .. } | Error::UnknownBlock { .. })), "{error:?}");
    drop(world);
    let world = World::builder().packs(&[text]).options(&converting).open(disk.path()).expect("opens");
    assert_eq!(component(&world, at, "mill:grain"), Some(b"258".to_vec()));
}

#[test]
fn a_function_of_the_host_that_panics_ends_its_request_and_no_more() {
    let disk = Disk::new();
    let at = milled(&disk, &[mill(GRAIN, r#""mill:grain""#)]);
    let text = mill(r#"{ "name": "mill:grain", "size": "variable" }"#, r#""mill:grain""#);
    let mut functions = UpgradeFunctions::default();
    functions.converted(name("mill:grain"), |old| panic!("no grain of {} bytes", old.bytes.len()));
    let packs =
        cg_registry::Policy { conversions: functions.conversions(), ..cg_registry::Policy::default() };
    let panicking = WorldOptions { packs, upgrades: Arc::new(functions), ..options() };
    let world = World::builder().packs(&[text]).options(&panicking).open(disk.path()).expect("opens");
    let absent = ChunkAt::new(at.dimension, ChunkPos::constant(9, 9, 9));
    for asked in [vec![at], vec![absent, at]] {
        let found = world.load_in_background(&asked).wait().expect("an answer");
        assert_eq!(found.len(), asked.len());
        for (found, asked) in found.into_iter().zip(&asked) {
            let error = found.expect_err("its request panicked");
            assert!(
                matches!(&error, Error::LoadPanicked { at, message } if at == asked && message == "no grain of 2 bytes"),
                "{error}"
            );
        }
    }
    let pending = world.load_in_background(&[at]);
    let polled = std::iter::repeat_with(|| pending.poll()).find_map(|found| {
        std::thread::yield_now();
        found
    });
    assert!(matches!(polled.as_deref(), Some([Err(Error::LoadPanicked { .. })])), "{polled:?}");
    // The threads go on.
    for _ in 0..64 {
        let found = world.load_in_background(&[absent]).wait().expect("an answer");
        assert!(matches!(found[..], [Ok(None)]), "{found:?}");
    }
}

/// A world with chunks in two 16³ cubes, which a function upgrades. It has threads of its own: other tests may occupy the
/// shared ones.
fn of_two_cubes(
    disk: &Disk,
    upgrade: impl Fn() -> Option<Vec<u8>> + Send + Sync + 'static,
) -> (World, Vec<ChunkAt>) {
    let places = || (0..512).map(|n| ChunkPos::constant(n % 32, n / 32, 0));
    let valley = milled_at(disk, &[mill(GRAIN, r#""mill:grain""#)], places());
    let text = mill(r#"{ "name": "mill:grain", "size": "variable" }"#, r#""mill:grain""#);
    let mut functions = UpgradeFunctions::default();
    functions.converted(name("mill:grain"), move |_| upgrade());
    let packs =
        cg_registry::Policy { conversions: functions.conversions(), ..cg_registry::Policy::default() };
    let resources = Some(cg_store::Resources::new(64 << 20, 2));
    let converting = WorldOptions { packs, resources, upgrades: Arc::new(functions), ..options() };
    let world = World::builder().packs(&[text]).options(&converting).open(disk.path()).expect("opens");
    (world, places().map(|pos| ChunkAt::new(valley, pos)).collect())
}

/// A function of the host may call the world. Within a transaction that must be on the caller's own thread.
#[test]
fn threads_help_with_a_large_load_outside_of_transactions() {
    let disk = Disk::new();
    let seen = Arc::new(Mutex::new(HashSet::new()));
    let wanted = Arc::new(AtomicUsize::new(2));
    let (threads, count) = (Arc::clone(&seen), Arc::clone(&wanted));
    let (world, all) = of_two_cubes(&disk, move || {
        let begun = Instant::now();
        threads.lock().expect("no panic").insert(thread::current().id());
        while threads.lock().expect("no panic").len() < count.load(Ordering::Relaxed)
            && begun.elapsed() < Duration::from_secs(60)
        {
            thread::yield_now();
        }
        Some(vec![7])
    });
    let here = thread::current().id();
    let load = |world: &World| {
        world.cache().clear();
        let found = world.load_many(&all);
        assert!(found.into_iter().all(|found| found.expect("is upgraded").is_some()));
        std::mem::take(&mut *seen.lock().expect("no panic"))
    };
    let outside = load(&world);
    assert!(outside.len() == 2 && outside.contains(&here), "{outside:?}");
    wanted.store(1, Ordering::Relaxed);
    let within = world.transaction(|_| Ok::<_, Error>(load(&world))).expect("does not wait for itself");
    assert_eq!(within.value, HashSet::from([here]));
}

/// A panic of another thread is one of the call, as its own is.
#[test]
fn a_panic_of_a_helper_reaches_the_caller() {
    let disk = Disk::new();
    let here = thread::current().id();
    let panicked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&panicked);
    let (world, all) = of_two_cubes(&disk, move || {
        if thread::current().id() != here {
            count.fetch_add(1, Ordering::Relaxed);
            panic!("no grain here");
        }
        let begun = Instant::now();
        while count.load(Ordering::Relaxed) == 0 && begun.elapsed() < Duration::from_secs(60) {
            thread::yield_now();
        }
        Some(vec![7])
    });
    let load = || world.load_many(&all);
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(load)).expect_err("panics");
    assert_eq!(panic.downcast_ref(), Some(&"no grain here"));
    assert_eq!(panicked.load(Ordering::Relaxed), 1);
    // The threads go on.
    let absent = ChunkAt::new(all[0].dimension, ChunkPos::constant(9, 9, 9));
    let found = world.load_in_background(&[absent]).wait().expect("an answer");
    assert!(matches!(found[..], [Ok(None)]), "{found:?}");
}

#[test]
fn an_entity_s_component_grows_too() {
    let disk = Disk::new();
    let at = milled(&disk, &[mill(GRAIN, r#""mill:grain""#)]);
    let world = disk.open(&[]);
    let kind = world.registry().register_entity("game:cart").expect("registers");
    let grain = world.catalog().component_id("mill:grain").expect("is known");
    let position = EntityPos::new(at.dimension, at.pos.min_block(), [0.0; 3]).expect("a position");
    let mut cart = Entity::new(kind, Owner::Chunk(at), position);
    cart.set_component(grain, vec![2, 1]).expect("short");
    let put = world.transaction(|tx| {
        tx.put_entity(uuid(1), cart);
        Ok::<_, Error>(())
    });
    drop(put.expect("puts"));
    drop(world);
    let wider = r#"{ "name": "mill:grain", "size": 6, "fields": [
        { "name": "amount", "width_bytes": 2 }, { "name": "kind", "width_bytes": 4, "default": "01000000" }] }"#;
    let world = disk.open(&[mill(wider, r#""mill:grain""#)]);
    let grain = world.catalog().component_id("mill:grain").expect("is known");
    let cart = world.entity(uuid(1)).expect("reads").expect("is there");
    assert_eq!(cart.component(grain), Some(&[2, 1, 1, 0, 0, 0][..]));
    assert_eq!(cart.components().len(), 1, "under its newest id only");
    let last = world.last_commit();
    let put = world.transaction(|tx| {
        let cart = tx.entity(uuid(1))?.expect("is there");
        tx.put_entity(uuid(1), cart);
        Ok::<_, Error>(())
    });
    assert_eq!(put.expect("puts").seq, last, "upgrading is no change");
    assert_sound(&world);
}

#[test]
fn a_plan_changes_nothing_and_tells_what_opening_would() {
    let disk = Disk::new();
    let plain = mill(GRAIN, r#""mill:grain""#);
    milled(&disk, std::slice::from_ref(&plain));
    let before = disk.files();
    let same = World::builder()
        .packs(std::slice::from_ref(&plain))
        .options(&options())
        .plan(disk.path())
        .expect("plans");
    assert!(same.is_accepted() && same.is_unchanged(), "{}", same.report());
    let dusty = mill(&format!("{GRAIN}, {DUST}"), r#""mill:grain", "mill:dust""#);
    let grows = World::builder()
        .packs(std::slice::from_ref(&dusty))
        .options(&options())
        .plan(disk.path())
        .expect("plans");
    assert!(grows.is_accepted() && !grows.is_unchanged(), "{}", grows.report());
    assert!(before == disk.files());
    drop(disk.open(std::slice::from_ref(&dusty)));
    let after = World::builder()
        .packs(std::slice::from_ref(&dusty))
        .options(&options())
        .plan(disk.path())
        .expect("plans");
    assert!(after.is_unchanged(), "{}", after.report());
}

#[test]
fn a_pack_that_is_gone_keeps_its_ids() {
    let disk = Disk::new();
    let at = milled(&disk, &[mill(GRAIN, r#""mill:grain""#)]);
    let other = pack(
        r#"{ "pack": "barn", "version": "1", "namespaces": ["barn"], "blocks": [{ "name": "barn:hay" }] }"#,
    );
    let world = disk.open(&[other]);
    assert_eq!(component(&world, at, "mill:grain"), Some(vec![2, 1]));
    let stone = world.catalog().block_id("mill:stone").expect("is kept");
    assert_eq!(world.load(at).expect("loads").expect("is there").block(stone_cell().cell), stone);
    assert!(world.catalog().block_id("barn:hay").expect("is new") != stone);
    assert_sound(&world);
    drop(world);
    let world = disk.open(&[mill(GRAIN, r#""mill:grain""#)]);
    assert_eq!(world.catalog().block_id("mill:stone"), Some(stone));
}

/// Over a network, what batches replace is read ahead of acceptance, and upgraded by the host's function.
#[test]
fn a_function_of_the_host_may_load_or_panic_while_chunks_are_read_ahead() {
    let [at, neighbour] = [0, 1].map(|y| ChunkPos::constant(5, y, 5));
    for panics in [false, true] {
        let server = Server::new();
        let (engine, _link) = server.take().expect("connects");
        let packs = [mill(GRAIN, r#""mill:grain""#)];
        let before = World::builder().packs(&packs).options(&options()).over(engine).expect("a world");
        let valley = put_mills(&before, [at, neighbour]);
        before.close().expect("closes");
        drop(before);

        let here: Arc<Mutex<Option<World>>> = Arc::default();
        let (mut functions, world) = (UpgradeFunctions::default(), Arc::clone(&here));
        functions.converted(name("mill:grain"), move |_| {
            assert!(!panics, "no grain today");
            // Only the first call: the neighbour is upgraded too.
            let first = world.lock().expect("no panic").take();
            if let Some(world) = first {
                assert!(world.load(ChunkAt::new(valley, neighbour)).expect("is upgraded").is_some());
            }
            Some(vec![7])
        });
        let text = mill(r#"{ "name": "mill:grain", "size": "variable" }"#, r#""mill:grain""#);
        let packs =
            cg_registry::Policy { conversions: functions.conversions(), ..cg_registry::Policy::default() };
        let converting = WorldOptions { packs, upgrades: Arc::new(functions), ..options() };
        let (engine, _link) = server.take().expect("connects");
        let world = World::builder().packs(&[text]).options(&converting).over(engine).expect("opens");
        *here.lock().expect("no panic") = Some(world.clone());

        let [mut edit, mut other] = [(); 2].map(|()| WriteBatch::new());
        edit.edit(ChunkAt::new(valley, at), |_| Ok(()));
        other.set_property(Property::Time, Some(vec![1]));
        let [edit, other] = [edit, other].map(|batch| world.submit(batch).expect("is taken"));
        let edited = edit.wait();
        assert_eq!(edited.is_err(), panics, "{edited:?}");
        other.wait().expect("the next batch is accepted");
        assert_eq!(world.property(&Property::Time).expect("reads"), Some(vec![1]));
    }
}
