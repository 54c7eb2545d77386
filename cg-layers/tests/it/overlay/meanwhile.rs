//! Events below an overlay, or in its arena, in the middle of one of its calls.

use std::sync::Arc;

use cg_format::{ChunkSource, Lookup, SchemaView};
use cg_layers::{Found, Identity, OverlayError};
use cg_registry::{Catalog, UpgradeFunctions};
use cg_store::error::ConflictKey;
use parking_lot::Mutex;

use super::*;
use crate::fixture::name;
use crate::surviving::{Fuse, Surviving};

type Act = Box<dyn FnOnce() + Send>;

/// A base that does something once, after the next look at its identity, and that can forget names.
#[derive(Clone)]
struct Played<S> {
    below: S,
    act: Arc<Mutex<Option<Act>>>,
    names: Arc<Mutex<Option<Arc<Catalog>>>>,
}

impl<S: Base> Played<S> {
    fn over(below: &S) -> Self {
        Self { below: below.clone(), act: Arc::default(), names: Arc::default() }
    }

    fn meanwhile(&self, act: impl FnOnce() + Send + 'static) {
        *self.act.lock() = Some(Box::new(act));
    }

    #[track_caller]
    fn assert_happened(&self) {
        assert!(self.act.lock().is_none(), "it never happened");
    }
}

impl<S: Base> ChunkSource for Played<S> {
    type Error = Error;

    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, Error> {
        self.below.lookup(at)
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        self.below.schema()
    }
}

impl<S: Base> Base for Played<S> {
    fn identity(&self) -> Identity {
        let identity = self.below.identity();
        let act = self.act.lock().take();
        if let Some(act) = act {
            act();
        }
        identity
    }

    fn layers(&self) -> u32 {
        self.below.layers()
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.names.lock().clone().unwrap_or_else(|| self.below.catalog())
    }

    fn upgrades(&self) -> Arc<UpgradeFunctions> {
        self.below.upgrades()
    }

    fn find_chunk(&self, at: ChunkAt) -> Result<Found<Arc<Chunk>>, Error> {
        self.below.find_chunk(at)
    }

    fn find_entity(&self, id: EntityId) -> Result<Found<Entity>, Error> {
        self.below.find_entity(id)
    }

    fn spawn(&self, job: Box<dyn FnOnce() + Send>) {
        self.below.spawn(job);
    }

    kept_of!(below);

    fn keep_found(&self, level: cg_store::engine::Level) -> Result<(), Error> {
        self.below.keep_found(level)
    }
}

/// A change of the base between a transaction's look and its commit is not undone by promoting.
#[test]
fn what_the_base_changes_during_a_transaction_is_not_undone() {
    let (base, ids) = template();
    let at = ids.at(1, 0, 0);
    let overlay = over(&base);
    let edited = overlay.transaction(|tx| {
        let mut chunk = tx.load(at)?.as_deref().cloned().expect("the template has it");
        save(&base, [(at, filled(&base, ids.stone))]);
        chunk.set_block(LocalPos::new(9, 9, 9), ids.glass, &tx.catalog().current_schema())?;
        tx.save(at, chunk);
        Ok::<_, Error>(())
    });
    edited.expect("edits what it has seen");
    let refused = overlay.merge_into(&base).expect_err("would undo it");
    assert!(
        matches!(refused.layer(), Some(OverlayError::BaseChanged { key, .. }) if *key == ConflictKey::Chunk(at)),
        "{refused}"
    );
    assert_eq!(base.load(at).expect("loads").as_deref(), Some(&filled(&base, ids.stone)));

    let overlay = over(&base);
    let moved = overlay.transaction(|tx| {
        let cow = tx.entity(uuid(1))?.expect("the template has it");
        put_cow(&base, ids.cow_in(ids.at(3, 0, 0)));
        let mut detached = cow.owned_by(Owner::Detached(cg_format::entity::Reason::new("cargo")?));
        detached.position = ids.cow_in(at).position;
        tx.put_entity(uuid(1), detached);
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    moved.expect("puts what it has seen");
    let refused = overlay.merge_into(&base).expect_err("would undo it");
    assert!(
        matches!(refused.layer(), Some(OverlayError::BaseChanged { key, .. }) if *key == ConflictKey::Entity(uuid(1))),
        "{refused}"
    );
}

#[test]
fn whoever_had_an_arena_never_reads_what_the_next_one_writes() {
    let (base, ids) = template();
    let played = Played::over(&base);
    let arenas = Arenas::in_memory(played.clone(), &options()).expect("a base");
    let old = arenas.lease("ada", GameTick::new(0)).expect("leases");
    let (at, pool, given) = (ids.at(7, 0, 0), arenas.clone(), old.clone());
    let chunk = filled(&base, ids.glass);
    played.meanwhile(move || {
        given.release(GameTick::new(1)).expect("gives back");
        let next = pool.lease("grace", GameTick::new(2)).expect("leases");
        assert_eq!(next.arena(), 0, "the same arena");
        write(&next, [(at, Some(chunk))]);
    });
    let read = old.load(at);
    played.assert_happened();
    assert!(
        matches!(read.as_ref().err().and_then(Error::layer), Some(OverlayError::Released { arena: 0 })),
        "{read:?}"
    );
}

#[test]
fn a_base_that_is_reset_during_a_read_is_not_read_any_more() {
    let (base, ids) = template();
    let lower = over(&base);
    write(&lower, [(ids.at(1, 0, 0), None)]);
    let played = Played::over(&lower);
    let upper = over(&played);
    assert_eq!(upper.load(ids.at(1, 0, 0)).expect("loads"), None);
    played.meanwhile(move || lower.reset().expect("resets"));
    let read = upper.load(ids.at(1, 0, 0));
    played.assert_happened();
    assert!(
        matches!(read.as_ref().err().and_then(Error::layer), Some(OverlayError::BaseReplaced { .. })),
        "{read:?}"
    );
}

#[test]
fn an_arena_that_is_resumed_is_not_reclaimed() {
    let (base, ids) = template();
    let played = Played::over(&base);
    let arenas = Arenas::in_memory(played.clone(), &options()).expect("a base");
    drop(arenas.lease("ada", GameTick::new(0)).expect("leases"));
    let (held, pool, at) = (Arc::new(Mutex::new(None)), arenas.clone(), ids.at(7, 0, 0));
    let (keep, chunk) = (Arc::clone(&held), filled(&base, ids.glass));
    played.meanwhile(move || {
        let resumed = pool.resume(0).expect("is leased");
        write(&resumed, [(at, Some(chunk))]);
        *keep.lock() = Some(resumed);
    });
    assert_eq!(arenas.reclaim(GameTick::new(5)).expect("reclaims"), 0, "somebody holds it by now");
    played.assert_happened();
    let resumed = held.lock().take().expect("was resumed");
    assert!(resumed.load(at).expect("is still leased").is_some());
}

/// Names that the base issued while the overlay was open, and lost in a crash that the overlay's rows outlived.
#[test]
fn a_base_that_lost_names_is_not_taken_for_the_same() {
    let (base, ids) = template();
    let engine = Surviving::new(&Fuse::new());
    let played = Played::over(&base);
    let arenas = Arenas::over(engine.clone(), played.clone(), &options()).expect("a base");
    let overlay = arenas.lease("ada", GameTick::new(0)).expect("leases");
    let before = base.catalog();
    let [basalt] = base.registry().register_blocks(["game:basalt"]).expect("registers");
    write(&overlay, [(ids.at(7, 0, 0), Some(filled(&base, basalt)))]);
    drop((overlay, arenas));
    *played.names.lock() = Some(before);
    let opened = Arenas::over(engine.clone(), played.clone(), &options());
    let id = basalt.get();
    let list = cg_registry::ListKind::Blocks;
    let expected = OverlayError::BaseNames { list, id, expected: name("game:basalt"), found: None };
    let refused = opened.as_ref().err().and_then(Error::layer);
    assert_eq!(refused, Some(&expected), "the base lost a name that rows use: {opened:?}");
    *played.names.lock() = None;
    let arenas = Arenas::over(engine, played, &options()).expect("the base has it");
    let overlay = arenas.resume(0).expect("is leased");
    assert_eq!(overlay.load(ids.at(7, 0, 0)).expect("loads").as_deref(), Some(&filled(&base, basalt)));
}

/// The overlay forgets that names are its own once the base has them, so the base must not lose them.
#[test]
fn names_that_the_base_takes_over_survive_a_power_cut() {
    let fast = cg_store::WorldOptions { durability: Durability::Fast, ..options() };
    let base = World::builder().options(&fast).in_memory().expect("a world");
    let ids = Ids::register(&base);
    save(&base, [(ids.at(0, 0, 0), filled(&base, ids.stone))]);
    let overlay = over(&base);
    let own = Registration { dimensions: vec![name("duel:field")], ..Registration::default() };
    overlay.register(&own).expect("registers");
    write(&overlay, [(ids.at(0, 0, 0), None)]);
    save(&base, [(ids.at(0, 0, 0), filled(&base, ids.glass))]);
    let refused = overlay.merge_into(&base).expect_err("the base changed");
    assert!(matches!(refused.layer(), Some(OverlayError::BaseChanged { .. })), "{refused}");
    assert!(base.catalog().dimension("duel:field").is_some());
    assert_eq!(base.engine().last_synced(), base.engine().last_commit());
}

/// A base that opens, and registers what packs bring.
fn with_pack(engine: &Surviving, components: &str) -> World {
    let pack = format!(
        r#"{{ "pack": "mill", "version": "1", "namespaces": ["mill"],
            "components": [{{ "name": "mill:grain", "size": 4 }}],
            "blocks": [{{ "name": "mill:stone", "components": [{components}] }}] }}"#
    );
    let pack = PackManifest::from_json(&pack).expect("a manifest");
    let take = |catalog: &mut Catalog| {
        let plan = cg_registry::reconcile(catalog, &[pack], &cg_registry::Policy::default());
        plan.apply(catalog)?;
        Ok(())
    };
    cg_store::layer::world_over(engine.clone(), &options(), take).expect("a world")
}

/// A promotion that was killed when the base had its names, which got a new generation of its schema before the overlay
/// learned of it.
#[test]
fn a_base_that_goes_on_behind_an_interrupted_promotion_is_the_same() {
    let (below, above) = (Surviving::new(&Fuse::new()), Surviving::new(&Fuse::new()));
    let base = with_pack(&below, "");
    let ids = Ids::register(&base);
    let at = ids.at(0, 0, 0);
    save(&base, [(at, filled(&base, ids.stone))]);
    let arenas = Arenas::over(above.clone(), base.clone(), &options()).expect("a base");
    let overlay = arenas.lease("ada", GameTick::new(0)).expect("leases");
    let own = Registration {
        components: vec![ComponentOffer::fixed(name("duel:score"), 2)],
        blocks: vec![BlockOffer {
            components: vec![name("duel:score")],
            ..BlockOffer::new(name("duel:flag"))
        }],
        ..Registration::default()
    };
    let flag = overlay.register(&own).expect("registers").block_id("duel:flag").expect("just registered");
    overlay.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(1, 1, 1), flag)).expect("edits");
    base.registry().register(&own).expect("what the promotion did");
    drop((overlay, arenas, base));

    let base = with_pack(&below, r#""mill:grain""#);
    assert_eq!(base.catalog().current_generation(), 1);
    let arenas = Arenas::over(above, base.clone(), &options()).expect("the same base");
    let overlay = arenas.resume(0).expect("is leased");
    let block = |chunk: Option<Arc<Chunk>>| chunk.map(|chunk| chunk.block(LocalPos::new(1, 1, 1)));
    assert_eq!(block(overlay.load(at).expect("loads")), Some(flag));
    overlay.merge_into(&base).expect("merges");
    assert_eq!(block(base.load(at).expect("loads")), Some(flag));
}

/// A kill takes what was queued in the base, whose next commits get the same numbers: an overlay that outlived it must
/// not remember them.
#[test]
fn what_an_overlay_remembers_of_its_base_is_written_there() {
    let fuse = Fuse::new();
    let (below, above) = (Surviving::new(&fuse), Surviving::new(&Fuse::new()));
    let fast = cg_store::WorldOptions { durability: Durability::Fast, ..options() };
    let open = || {
        fuse.set(i64::MAX);
        World::builder().options(&fast).over(below.clone()).expect("a world")
    };
    let base = open();
    let ids = Ids::register(&base);
    let at = ids.at(0, 0, 0);
    base.flush().expect("writes");
    fuse.set(0);
    save(&base, [(at, filled(&base, ids.stone))]);
    let arenas = Arenas::over(above.clone(), base.clone(), &options()).expect("a base");
    let overlay = arenas.lease("ada", GameTick::new(0)).expect("leases");
    let edit = |overlay: &Overlay<World>| {
        overlay.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(1, 1, 1), ids.air))
    };
    let refused = edit(&overlay);
    assert!(
        matches!(refused, Err(Error::Engine(cg_store::engine::EngineError::ReadOnly { .. }))),
        "{refused:?}"
    );
    assert_eq!(
        overlay.load(at).expect("loads").as_deref(),
        Some(&filled(&base, ids.stone)),
        "nothing was written"
    );
    drop((overlay, arenas, base));

    let base = open();
    save(&base, [(at, filled(&base, ids.glass))]);
    let arenas = Arenas::over(above, base.clone(), &options()).expect("the same base");
    let overlay = arenas.resume(0).expect("is leased");
    overlay.merge_into(&base).expect("merges nothing");
    assert_eq!(base.load(at).expect("loads").as_deref(), Some(&filled(&base, ids.glass)));
    // What is only queued is written by whoever remembers it.
    edit(&overlay).expect("edits");
    assert_eq!(base.engine().last_commit(), base.last_commit());
}

/// Data that survives a power cut in the overlay does so in the base, whatever is between them.
#[test]
fn an_overlay_that_is_synced_syncs_its_base_before() {
    let (base, ids) = template();
    assert_ne!(base.engine().last_synced(), base.engine().last_commit());
    let safe = cg_store::WorldOptions { durability: Durability::Safe, ..options() };
    let overlay = Overlay::in_memory(over(&base), &safe).expect("a base");
    overlay.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(1, 1, 1), ids.glass)).expect("edits");
    assert_eq!(base.engine().last_synced(), base.engine().last_commit());
    save(&base, [(ids.at(1, 0, 0), filled(&base, ids.glass))]);
    let overlay = over(&base);
    write(&overlay, [(ids.at(1, 0, 0), None)]);
    overlay.arenas().flush().expect("syncs");
    assert_eq!(base.engine().last_synced(), base.engine().last_commit());
}
