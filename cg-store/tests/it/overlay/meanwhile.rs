//! What happens below an overlay, or to its arena, in the middle of one of its calls.

use std::sync::Arc;

use cg_format::{ChunkSource, Lookup, SchemaView};
use cg_registry::{Catalog, UpgradeFunctions};
use cg_store::{ConflictKey, Found, Identity, OverlayError};
use parking_lot::Mutex;

use super::*;
use crate::surviving::{Fuse, Surviving};
use crate::world::name;

type Act = Box<dyn FnOnce() + Send>;

/// A base that does something once, behind the next look at its identity, and that can forget names.
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
}

/// What the base changed between a transaction's look and its commit is not undone by promoting.
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
    let refused = overlay.promote_into(&base).expect_err("would undo it");
    assert!(
        matches!(&refused, Error::Overlay(OverlayError::BaseChanged { key, .. }) if *key == ConflictKey::Chunk(at)),
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
    let refused = overlay.promote_into(&base).expect_err("would undo it");
    assert!(
        matches!(&refused, Error::Overlay(OverlayError::BaseChanged { key, .. }) if *key == ConflictKey::Entity(uuid(1))),
        "{refused}"
    );
}

#[test]
fn whoever_had_an_arena_never_reads_what_the_next_one_writes() {
    let (base, ids) = template();
    let played = Played::over(&base);
    let arenas = Arenas::temporary(played.clone(), &options()).expect("a base");
    let old = arenas.lease("ada", GameTick::new(0)).expect("leases");
    let (at, pool, given) = (ids.at(7, 0, 0), arenas.clone(), old.clone());
    let chunk = filled(&base, ids.glass);
    played.meanwhile(move || {
        given.give_back(GameTick::new(1)).expect("gives back");
        let next = pool.lease("grace", GameTick::new(2)).expect("leases");
        assert_eq!(next.arena(), 0, "the same arena");
        write(&next, [(at, Some(chunk))]);
    });
    let read = old.load(at);
    played.assert_happened();
    assert!(matches!(read, Err(Error::Overlay(OverlayError::GivenBack { arena: 0 }))), "{read:?}");
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
    assert!(matches!(read, Err(Error::Overlay(OverlayError::BaseReplaced { .. }))), "{read:?}");
}

#[test]
fn an_arena_that_is_resumed_is_not_reclaimed() {
    let (base, ids) = template();
    let played = Played::over(&base);
    let arenas = Arenas::temporary(played.clone(), &options()).expect("a base");
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
    let [basalt] = base.register_blocks(["game:basalt"]).expect("registers");
    write(&overlay, [(ids.at(7, 0, 0), Some(filled(&base, basalt)))]);
    drop((overlay, arenas));
    *played.names.lock() = Some(before);
    let opened = Arenas::over(engine.clone(), played.clone(), &options());
    let id = basalt.get();
    let list = cg_registry::ListKind::Blocks;
    match opened {
        Err(Error::Overlay(found)) => {
            let expected = name("game:basalt");
            assert_eq!(found, OverlayError::BaseNames { list, id, expected, found: None });
        }
        other => panic!("the base lost a name that rows use: {other:?}"),
    }
    *played.names.lock() = None;
    let arenas = Arenas::over(engine, played, &options()).expect("the base has it");
    let overlay = arenas.resume(0).expect("is leased");
    assert_eq!(overlay.load(ids.at(7, 0, 0)).expect("loads").as_deref(), Some(&filled(&base, basalt)));
}

/// The overlay forgets that names are its own once the base has them, so the base must not lose them.
#[test]
fn names_that_the_base_takes_over_survive_a_power_cut() {
    let fast = cg_store::WorldOptions { durability: Durability::Fast, ..options() };
    let base = World::temporary(&[], &fast).expect("a world");
    let ids = Ids::register(&base);
    save(&base, [(ids.at(0, 0, 0), filled(&base, ids.stone))]);
    let overlay = over(&base);
    let own = Registration { dimensions: vec![name("duel:field")], ..Registration::default() };
    overlay.register(&own).expect("registers");
    write(&overlay, [(ids.at(0, 0, 0), None)]);
    save(&base, [(ids.at(0, 0, 0), filled(&base, ids.glass))]);
    let refused = overlay.promote_into(&base).expect_err("the base changed");
    assert!(matches!(refused, Error::Overlay(OverlayError::BaseChanged { .. })), "{refused}");
    assert!(base.dimension("duel:field").is_some());
    assert_eq!(base.engine().last_synced(), base.engine().last_commit());
}
