//! Refusals of an overlay, by their exact words.

use cg_format::key::Family;
use expect_test::{Expect, expect};

use super::*;
use crate::fixture::{name, registration};

#[track_caller]
fn check<T: std::fmt::Debug>(result: Result<T, Error>, hidden: &[(&str, String)], expected: Expect) {
    let mut text = result.expect_err("is refused").to_string();
    for (word, value) in hidden {
        text = text.replace(value, word);
    }
    expected.assert_eq(&text);
}

#[test]
fn another_world_or_another_life_of_it() {
    let (base, _) = template();
    let (other, _) = template();
    let disk = Disk::new();
    let dir = disk.root().join("arenas");
    drop(Arenas::create(&dir, base.clone(), &options()).expect("an empty directory"));
    let hidden = [("OTHER", other.identity().uuid.to_string()), ("BASE", base.identity().uuid.to_string())];
    check(
        Arenas::open(&dir, other, &options()),
        &hidden,
        expect!["the overlay was written over BASE, and this is OTHER; open it over the world it belongs to"],
    );
    let upper = over(&base);
    let top = over(&upper);
    upper.reset().expect("resets");
    let error =
        top.load(ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, 0))).expect_err("is refused");
    assert!(
        matches!(error.layer(), Some(cg_layers::OverlayError::BaseReplaced { expected, found }) if expected != found),
        "{error}"
    );
    let (third, _) = template();
    let wrong = upper.merge_into(&third).expect_err("is refused");
    assert!(
        matches!(wrong.layer(), Some(cg_layers::OverlayError::WrongBase { expected, found })
            if (*expected, *found) == (base.identity().uuid, third.identity().uuid)),
        "{wrong}"
    );
}

#[test]
fn a_copy_that_lives_on_is_another_base() {
    let disk = Disk::new();
    let base = disk.create(&[]);
    Ids::register(&base);
    let copy = disk.root().join("copy");
    base.checkpoint(&copy, cg_store::CheckpointFiles::Linked).expect("copies");
    let dir = disk.root().join("arenas");
    drop(Arenas::create(&dir, base.clone(), &options()).expect("an empty directory"));
    let lives_on = World::builder().options(&options()).open(&copy).expect("opens");
    let hidden = [
        ("NEW", lives_on.identity().incarnation.to_string()),
        ("OLD", base.identity().incarnation.to_string()),
    ];
    check(
        Arenas::open(&dir, lives_on, &options()),
        &hidden,
        expect![
            "the overlay was written over incarnation OLD of its base, which is now incarnation NEW: it was restored from a copy or reset; create the overlay anew"
        ],
    );
}

#[test]
fn names_that_collide_with_the_bases() {
    let (base, _) = template();
    let overlay = over(&base);
    let own = Registration { dimensions: vec![name("game:arena")], ..Registration::default() };
    let catalog = overlay.register(&own).expect("registers");
    assert_eq!(catalog.dimension("game:arena").map(Dimension::get), Some(2));
    assert_eq!(base.catalog().dimension("game:arena"), None, "the base does not learn of it");
    overlay.reset().expect("resets");
    assert!(overlay.catalog().expect("fits").dimension("game:arena").is_some(), "names stay");
    base.registry().register_dimension("game:moon").expect("registers");
    let refused = overlay.merge_into(&base).expect_err("is refused").to_string();
    assert_eq!(overlay.transaction(|_| Ok::<_, Error>(())).expect_err("is refused").to_string(), refused);
    check(
        overlay.catalog(),
        &[],
        expect![
            "the base has 3 dimensions, and the overlay's own names begin at 2: the ids of both would mean different things; register names in the base before overlays over it register their own"
        ],
    );
    assert_eq!(overlay.catalog().expect_err("is refused").to_string(), refused);
}

#[test]
fn an_overlay_without_names_follows_its_base() {
    let (base, _) = template();
    let overlay = over(&base);
    let moon = base.registry().register_dimension("game:moon").expect("registers");
    let at = ChunkAt::new(moon, ChunkPos::constant(0, 0, 0));
    write(
        &overlay,
        [(at, Some(Chunk::filled(BlockId::new(1), &base.catalog().current_schema()).expect("known")))],
    );
    assert!(overlay.load(at).expect("loads").is_some());
}

#[test]
fn a_registry_that_lost_names() {
    let (base, _) = template();
    let engine = MemEngine::new();
    let disk = Disk::new();
    let dir = disk.root().join("arenas");
    drop(engine);
    drop(
        Arenas::create(&dir, Fake { world: base.clone(), names: base.catalog() }, &options())
            .expect("is new"),
    );
    let mut other = cg_registry::Catalog::new();
    let mut other_names = registration();
    other_names.dimensions = vec![name("game:overworld"), name("game:aether")];
    other.register(&other_names).expect("registers");
    check(
        Arenas::open(&dir, Fake { world: base.clone(), names: other.into() }, &options()),
        &[],
        expect![
            "dimension 1 is `game:aether` in the base, and was `game:nether` when the overlay was written; the base is not the same any more"
        ],
    );
    let fewer = Registration { dimensions: vec![name("game:overworld")], ..registration() };
    let mut other = cg_registry::Catalog::new();
    other.register(&fewer).expect("registers");
    check(
        Arenas::open(&dir, Fake { world: base, names: other.into() }, &options()),
        &[],
        expect![
            "dimension 1 is missing in the base, and was `game:nether` when the overlay was written; the base is not the same any more"
        ],
    );
}

/// A world that claims other names.
#[derive(Debug, Clone)]
struct Fake {
    world: World,
    names: std::sync::Arc<cg_registry::Catalog>,
}

impl cg_format::ChunkSource for Fake {
    type Error = Error;

    fn lookup(&self, at: ChunkAt) -> Result<cg_format::Lookup<std::sync::Arc<Chunk>>, Error> {
        self.world.lookup(at)
    }

    fn schema(&self) -> std::sync::Arc<dyn cg_format::SchemaView + Send + Sync> {
        self.world.schema()
    }
}

impl Base for Fake {
    fn identity(&self) -> cg_layers::Identity {
        self.world.identity()
    }

    fn layers(&self) -> u32 {
        0
    }

    fn catalog(&self) -> std::sync::Arc<cg_registry::Catalog> {
        std::sync::Arc::clone(&self.names)
    }

    fn upgrades(&self) -> std::sync::Arc<cg_registry::UpgradeFunctions> {
        self.world.upgrades()
    }

    fn find_chunk(&self, at: ChunkAt) -> Result<cg_layers::Found<std::sync::Arc<Chunk>>, Error> {
        self.world.find_chunk(at)
    }

    fn find_entity(&self, id: EntityId) -> Result<cg_layers::Found<Entity>, Error> {
        self.world.find_entity(id)
    }

    fn spawn(&self, job: Box<dyn FnOnce() + Send>) {
        self.world.spawn(job);
    }

    kept_of!(world);

    fn keep_found(&self, level: cg_store::engine::Level) -> Result<(), Error> {
        self.world.keep_found(level)
    }
}

#[test]
fn directories_that_are_none() {
    let (base, _) = template();
    let disk = Disk::new();
    let hidden = [("ROOT", disk.root().display().to_string())];
    check(
        Arenas::open(disk.root().join("no"), base.clone(), &options()),
        &hidden,
        expect!["ROOT/no is no overlay: it has no directory `overlay`"],
    );
    let dir = disk.root().join("half");
    let resources = cg_store::Resources::new(16 << 20, 2);
    let engine = RocksEngine::create(
        &{
            std::fs::create_dir(&dir).expect("is new");
            dir.join("overlay")
        },
        &cg_store::engine::RocksOptions::new(resources.budget().clone()),
    );
    drop(engine.expect("is new"));
    check(
        Arenas::open(&dir, base.clone(), &options()),
        &hidden,
        expect![
            "ROOT/half was never finished being created; delete the directory and create the world again"
        ],
    );
    check(
        Arenas::create(&dir, base, &options()),
        &hidden,
        expect!["ROOT/half already holds files; a world is created in an empty or missing directory"],
    );
}

#[test]
fn damage_is_an_error_and_never_the_bases_chunk() {
    let (base, ids) = template();
    let disk = Disk::new();
    let overlay = on_disk(&disk, &base);
    let at = ids.at(1, 0, 0);
    write(&overlay, [(at, Some(filled(&base, ids.glass)))]);
    drop(overlay);
    let families = Family::ALL.map(Family::name);
    let path = disk.root().join("arena/overlay");
    {
        let db = rocksdb::DB::open_cf(&rocksdb::Options::default(), &path, families).expect("is closed");
        let family = db.cf_handle("chunkl0").expect("is there");
        let key = cg_format::key::overlay_chunk(1, at);
        let mut row = db.get_cf(&family, key).expect("reads").expect("is there");
        *row.last_mut().expect("a row") ^= 1;
        db.put_cf(&family, key, row).expect("writes");
    }
    let overlay = Overlay::open(disk.root().join("arena"), base.clone(), &options()).expect("opens");
    // The sums cover the number of the opening, which is another one each time.
    let error = overlay.load(at).expect_err("is refused").to_string();
    let sums: Vec<_> = error.match_indices("0x").map(|(at, _)| error[at..at + 10].to_owned()).collect();
    let hidden: Vec<_> = ["STORED", "FOUND"].into_iter().zip(sums).collect();
    check(
        overlay.load(at),
        &hidden,
        expect![
            "chunk 1, 0, 0 of dimension 0 is damaged (ChunkL0 row 00000000000000010000000000000000e00000000000000000000000000000000000000000000004): frame: checksum is STORED, the bytes give FOUND: damaged, or stored under a wrong key (at byte 4); reset the overlay, or restore it from a copy; its base is not touched"
        ],
    );
    assert!(matches!(overlay.diff(), Err(Error::Corrupt(_))));
    assert!(matches!(overlay.merge_into(&base), Err(Error::Corrupt(_))));
    assert_eq!(overlay.load(ids.at(2, 0, 0)).expect("loads"), base.load(ids.at(2, 0, 0)).expect("loads"));
    overlay.reset().expect("resets");
    assert_eq!(overlay.load(at).expect("loads"), base.load(at).expect("loads"));
}
