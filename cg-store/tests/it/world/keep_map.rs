//! Worlds that keep an opacity map, keep none, begin to, or end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use cg_format::{Space, key};

use super::*;
use crate::surviving::{Fuse, Surviving};
use cg_store::opacity::Keep;

/// The key of the row that says that the map is whole.
const WHOLE: &str = "opacityMap";

fn keeping(opacity: Keep) -> WorldOptions {
    WorldOptions { opacity, ..options() }
}

fn open(disk: &Disk, opacity: Keep) -> World {
    World::builder().options(&keeping(opacity)).open(disk.path()).expect("opens")
}

fn map_rows(world: &World) -> usize {
    rows(world).keys().filter(|(family, _)| *family == Family::OpacityMap).count()
}

fn says_whole(world: &World) -> bool {
    rows(world).contains_key(&(Family::WorldMeta, WHOLE.as_bytes().to_vec()))
}

/// The opaque runs over (0, 0) of the overworld.
fn runs(world: &World) -> Vec<std::ops::RangeInclusive<i64>> {
    let column = world.opacity().column(Ids::of(world).overworld, 0, 0).expect("the world keeps a map");
    column.runs().to_vec()
}

#[track_caller]
fn assert_not_kept(world: &World) {
    let error = world.opacity().column(Ids::of(world).overworld, 0, 0).expect_err("there is no map");
    assert!(matches!(error, Error::NotKept { what: "opacity map" }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the world keeps no opacity map: rebuild it, or open the world with `Keep::On`"
    );
    assert_eq!(error.kind(), cg_store::ErrorKind::NotFound);
    assert!(!world.opacity().is_kept());
    assert_eq!(world.opacity().fold(usize::MAX).expect("there is nothing to fold"), 0);
}

/// A closed world with a map, and stone in the chunk (0, 0, 0).
fn with_map() -> (Disk, Ids) {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
    assert_eq!(runs(&world), [0..=15]);
    world.close().expect("closes");
    (disk, ids)
}

#[test]
fn a_new_world_keeps_no_map_unless_asked_to() {
    assert_eq!(WorldOptions::default().opacity, Keep::AsStored);
    let disk = Disk::new();
    let world = World::builder().options(&keeping(Keep::AsStored)).create(disk.path()).expect("is created");
    let ids = Ids::register(&world);
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
    assert_eq!(map_rows(&world), 0);
    assert_not_kept(&world);
    assert_eq!(world.opacity().rebuild().expect("draws"), 1);
    assert!(world.opacity().is_kept());
    assert_eq!(runs(&world), [0..=15]);
    world.close().expect("closes");
    drop(world);

    let world = open(&disk, Keep::AsStored);
    assert_eq!(runs(&world), [0..=15], "the world remembers that it keeps a map");
    save(&world, [(ids.at(0, 2, 0), filled(&world, ids.stone))]);
    assert_eq!(runs(&world), [0..=15, 32..=47]);
    assert_sound(&world);
}

#[test]
fn a_world_that_was_once_opened_without_its_map_answers_from_none() {
    let (disk, ids) = with_map();
    let world = open(&disk, Keep::Off);
    assert_eq!((map_rows(&world), says_whole(&world)), (0, false));
    assert_not_kept(&world);
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.air)), (ids.at(0, 5, 0), filled(&world, ids.stone))]);
    assert_eq!(map_rows(&world), 0);
    let last = world.last_commit();
    world.close().expect("closes");
    drop(world);

    let world = open(&disk, Keep::Off);
    assert_eq!(world.last_commit(), last, "there was nothing to delete");
    drop(world);
    let world = open(&disk, Keep::AsStored);
    assert_not_kept(&world);
    assert_sound(&world);
    drop(world);
    let world = open(&disk, Keep::On);
    assert_eq!(runs(&world), [80..=95]);
    assert_sound(&world);
    drop(world);
    assert_eq!(runs(&open(&disk, Keep::AsStored)), [80..=95]);
}

#[test]
fn a_map_of_an_earlier_draft_is_not_used_before_it_is_drawn_again() {
    let (disk, ids) = with_map();
    let world = open(&disk, Keep::AsStored);
    // What such a draft does with `opacity: false`: the chunk is stored, and no patch.
    let air = filled(&world, ids.air);
    let chunk = Draft::plain(Codec::None, 0, |out| air.encode(out));
    plant(
        &world,
        [
            (Space::ChunkL0, key::chunk(ids.at(0, 0, 0)).to_vec(), Some(chunk)),
            (Space::WorldMeta, WHOLE.into(), None),
        ],
    );
    drop(world);
    let world =
        World::builder().options(&keeping(Keep::AsStored)).open_read_only(disk.path()).expect("opens");
    assert_not_kept(&world);
    drop(world);
    let world = open(&disk, Keep::AsStored);
    assert_not_kept(&world);
    save(&world, [(ids.at(0, 3, 0), filled(&world, ids.stone))]);
    let report = world.tick(cg_tiering::GameTick::new(7), &[], std::time::Duration::from_secs(60));
    assert_eq!(report.expect("ticks").tiles_folded, 0);
    assert_sound(&world);
    drop(world);
    let world = open(&disk, Keep::On);
    assert_eq!(runs(&world), [48..=63]);
    assert_sound(&world);
}

#[test]
fn a_world_that_is_only_read_is_read_as_it_is_stored() {
    let (disk, _) = with_map();
    for opacity in [Keep::AsStored, Keep::On, Keep::Off] {
        let world = World::builder().options(&keeping(opacity)).open_read_only(disk.path()).expect("opens");
        assert_eq!(runs(&world), [0..=15], "{opacity:?}");
    }
    drop(open(&disk, Keep::Off));
    for opacity in [Keep::AsStored, Keep::On, Keep::Off] {
        let world = World::builder().options(&keeping(opacity)).open_read_only(disk.path()).expect("opens");
        assert_not_kept(&world);
    }
}

#[test]
fn a_map_whose_first_drawing_stopped_is_none() {
    for commits in 0.. {
        let fuse = Fuse::new();
        let engine = Surviving::new(&fuse);
        let world = World::builder().options(&keeping(Keep::AsStored)).over(engine.clone()).expect("a world");
        let ids = Ids::register(&world);
        save(&world, (0..5).map(|x| (ids.at(x * 4, 0, 0), filled(&world, ids.stone))));
        world.close().expect("closes");
        drop(world);

        fuse.set(commits);
        let begun = World::builder().options(&keeping(Keep::On)).over(engine.clone());
        let is_drawn = begun.is_ok();
        drop(begun);
        fuse.set(i64::MAX);
        let world = World::builder().options(&keeping(Keep::AsStored)).over(engine.clone()).expect("opens");
        if is_drawn {
            assert_eq!(runs(&world), [0..=15]);
            assert_eq!(commits, 6, "one for each tile, and one that says that the map is whole");
            return;
        }
        assert_not_kept(&world);
        save(&world, [(ids.at(0, 0, 0), filled(&world, ids.air))]);
        drop(world);
        let world = World::builder().options(&keeping(Keep::On)).over(engine).expect("opens");
        assert_eq!(runs(&world), [], "{commits}");
        assert_sound(&world);
    }
}

#[test]
fn commits_beside_the_first_drawing_are_in_the_map() {
    for round in 0..crate::long::size(20, 200) {
        let world = World::builder().options(&keeping(Keep::AsStored)).in_memory().expect("a world");
        let ids = Ids::register(&world);
        save(&world, (0..64).map(|n| (ids.at(n & 7, n >> 3, 0), filled(&world, ids.stone))));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..3_i64 {
                let (world, done) = (&world, &done);
                scope.spawn(move || {
                    for n in (0..).take_while(|_| !done.load(Ordering::Acquire)) {
                        let at = ids.at(thread, i64::from(n & 7), 0);
                        save(world, [(at, marked(world, &ids, n))]);
                    }
                });
            }
            world.opacity().rebuild().expect("draws");
            done.store(true, Ordering::Release);
        });
        assert!(findings(&world).is_empty(), "round {round}: {:?}", findings(&world));
    }
}

#[test]
fn a_block_that_changes_its_opacity_ends_the_map() {
    let (disk, ids) = with_map();
    let set = |world: &World, opaque| {
        world.registry().set_opacity(&BTreeMap::from([(ids.stone, opaque)])).expect("it is registered");
    };
    let world = open(&disk, Keep::On);
    set(&world, true);
    assert_eq!(runs(&world), [0..=15], "nothing changed");
    set(&world, false);
    assert_not_kept(&world);
    // A commit by the new opacity would have no patch.
    save(&world, [(ids.at(0, 1, 0), filled(&world, ids.stone))]);
    set(&world, true);
    assert_not_kept(&world);
    drop(world);
    let world = open(&disk, Keep::AsStored);
    assert_not_kept(&world);
    assert_eq!(world.opacity().rebuild().expect("draws"), 1);
    assert_eq!(runs(&world), [0..=31]);
    assert_sound(&world);
    drop(world);
    assert_eq!(runs(&open(&disk, Keep::AsStored)), [0..=31]);
}

#[test]
fn a_pack_that_changes_the_opacity_of_a_block_ends_the_map() {
    let pack = |opaque: bool| {
        let json = format!(
            r#"{{ "pack": "mill", "version": "1", "namespaces": ["mill"],
                "blocks": [{{ "name": "mill:sail", "opaque": {opaque} }}] }}"#
        );
        [PackManifest::from_json(&json).expect("a manifest")]
    };
    let disk = Disk::new();
    let world = disk.create(&pack(true));
    let ids = Ids::register(&world);
    let sail = world.catalog().block_id("mill:sail").expect("is registered");
    save(&world, [(ids.at(0, 0, 0), filled(&world, sail))]);
    assert_eq!(runs(&world), [0..=15]);
    drop(world);
    let open = |packs: &[PackManifest], opacity| {
        World::builder().packs(packs).options(&keeping(opacity)).open(disk.path()).expect("opens")
    };
    assert_not_kept(&open(&pack(false), Keep::AsStored));
    // Taken back, it has had another opacity all the same.
    assert_not_kept(&open(&pack(true), Keep::AsStored));
    let world = open(&pack(false), Keep::On);
    assert_eq!(runs(&world), []);
    assert_sound(&world);
}

#[test]
fn a_damaged_row_of_the_map_closes_no_world() {
    let (disk, _) = with_map();
    disk.raw().flip(Family::WorldMeta, WHOLE, cg_format::frame::LEN_BYTES);
    let world = open(&disk, Keep::AsStored);
    assert_not_kept(&world);
    let [said] = &findings(&world)[..] else { panic!("{:?}", findings(&world)) };
    assert!(said.ends_with("; `cg opacity rebuild` draws the map anew"), "{said}");
    assert_eq!(world.opacity().rebuild().expect("draws"), 1, "a patch becomes a tile");
    assert_eq!(runs(&world), [0..=15]);
    assert_sound(&world);
    drop(world);

    disk.raw().flip(Family::WorldMeta, WHOLE, cg_format::frame::LEN_BYTES);
    let world = open(&disk, Keep::Off);
    assert_eq!((map_rows(&world), says_whole(&world)), (0, false));
    assert_sound(&world);
}

#[test]
fn where_lost_commits_are_accepted_the_map_ends() {
    let (disk, _) = with_map();
    let accepting = WorldOptions { accept_lost_commits: true, ..keeping(Keep::AsStored) };
    let world = World::builder().options(&accepting).open_read_only(disk.path()).expect("opens");
    assert_not_kept(&world);
    drop(world);
    let world = World::builder().options(&accepting).open(disk.path()).expect("opens");
    assert_not_kept(&world);
    drop(world);
    assert_not_kept(&open(&disk, Keep::AsStored));
}

#[test]
fn a_map_that_lost_all_its_rows_is_wrong() {
    let (disk, _) = with_map();
    let world = open(&disk, Keep::AsStored);
    let all = rows(&world).into_keys().filter(|(family, _)| *family == Family::OpacityMap);
    let delete = |(family, key): (_, Vec<u8>)| (Space::of_row(family, &key).expect("is known"), key, None);
    plant(&world, all.map(delete).collect::<Vec<_>>());
    let [said] = &findings(&world)[..] else { panic!("{:?}", findings(&world)) };
    assert!(said.contains("it says opaque nowhere, and by the chunks it is at y 0 to 15"), "{said}");
}
