//! Worlds over an engine that fails at the nth call, and that go on after it.

mod engine;
mod large;
mod reads;
mod refused;
mod ticks;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use cg_store::engine::{EngineError, RocksOptions};
use cg_store::error::NotResumed;
use cg_store::{Durable, StoreLimits};
use engine::{Fault, Faulty, Plan};

/// A world over an engine that fails as it is planned, with no memory of chunks.
struct Failing {
    world: World,
    plan: Arc<Plan>,
    ids: Ids,
}

impl Failing {
    fn over(engine: impl Engine) -> Self {
        Self::in_batches_of(StoreLimits::default().batch_bytes, engine)
    }

    /// A world whose batches are no larger than this.
    fn in_batches_of(batch_bytes: u64, engine: impl Engine) -> Self {
        let plan = Arc::new(Plan::default());
        let limits = StoreLimits { batch_bytes, ..StoreLimits::default() };
        let options = WorldOptions { cache_bytes: 0, durability: Durability::Fast, limits, ..options() };
        let engine = Faulty::new(engine, Arc::clone(&plan));
        let world = World::builder().options(&options).over(engine).expect("begins");
        let ids = Ids::register(&world);
        Self { world, plan, ids }
    }

    /// The chunk, the entity and the property of a step.
    fn put(&self, durability: Durability, step: i64) -> Result<Durable, Error> {
        let Self { world, ids, .. } = self;
        let committed = world.transaction_at(durability, |tx| {
            let at = ids.at(step, 0, 0);
            tx.save(at, filled(world, ids.stone));
            tx.put_entity(uuid(step as u128), ids.cow_in(at));
            tx.set_property(Property::Named(name(&format!("game:step/{step}"))), Some(vec![step as u8]));
            Ok::<_, Error>(())
        });
        Ok(committed?.durable())
    }

    /// Whether a step is there, which it is wholly or not at all.
    #[track_caller]
    fn has(&self, step: i64) -> bool {
        let (world, at) = (&self.world, self.ids.at(step, 0, 0));
        let parts = [
            world.load(at).expect("loads").is_some(),
            world.entity(uuid(step as u128)).expect("reads").is_some(),
            world.property(&Property::Named(name(&format!("game:step/{step}")))).expect("reads").is_some(),
        ];
        assert!(parts == [parts[0]; 3], "step {step} is torn: {parts:?}");
        parts[0]
    }
}

/// Steps of a script: what is done, and what is to be found if it succeeded.
const SCRIPT: [Durability; 7] = [
    Durability::Process,
    Durability::Fast,
    Durability::Balanced,
    Durability::Safe,
    Durability::Fast,
    Durability::SafeBatch,
    Durability::Process,
];

/// Runs the script with a failing nth commit, resumes, and looks for every step.
fn fails_and_goes_on(failing: &Failing, nth: u64, fault: Fault) {
    let Failing { world, plan, .. } = failing;
    let context = format!("{fault:?} at commit {nth}");
    plan.fail(nth, fault);
    let mut tickets = Vec::new();
    let mut ends = Vec::new();
    for (step, durability) in SCRIPT.into_iter().enumerate() {
        let end = failing.put(durability, step as i64);
        // A name between two steps is a commit past the queue.
        let name = format!("game:dimension{step}");
        ends.push((
            name.clone(),
            end.as_ref().err().map(cant_be_there),
            world.registry().register_dimension(&name),
        ));
        tickets.extend(end);
    }
    assert!(world.engine().failure().is_some(), "{context}: nothing failed");
    for ticket in &tickets {
        match ticket.wait_for(Level::Process) {
            Ok(()) | Err(Error::Engine(EngineError::ReadOnly { .. })) => {}
            Err(error) => panic!("{context}: {error}"),
        }
    }
    let last = world.last_commit();
    world.resume().unwrap_or_else(|error| panic!("{context}: {error}"));
    assert!(world.last_commit() >= last, "{context}: promised commits are gone");
    assert!(tickets.iter().all(Durable::is_durable), "{context}: a ticket was forgotten");
    for (step, (name, end, named)) in ends.iter().enumerate() {
        let (is_there, is_named) = (failing.has(step as i64), world.catalog().dimension(name).is_some());
        match end {
            None => assert!(is_there, "{context}: step {step} was accepted and is gone"),
            Some(true) => assert!(!is_there, "{context}: step {step} wrote nothing and is there"),
            Some(false) => {}
        }
        match named {
            Ok(_) => assert!(is_named, "{context}: a name was given and is gone"),
            Err(error) if cant_be_there(error) => {
                assert!(!is_named, "{context}: a name was refused: {error}");
            }
            Err(_) => assert_eq!(is_named, fault == Fault::Whole, "{context}: {name}"),
        }
    }
    // Everything goes on, in the memory that was brought up to the disk.
    for (step, (name, ..)) in ends.iter().enumerate() {
        failing.put(Durability::Safe, step as i64).unwrap_or_else(|error| panic!("{context}: {error}"));
        world.registry().register_dimension(name).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert!(failing.has(step as i64), "{context}");
    }
    assert_sound(world);
    world.close().unwrap_or_else(|error| panic!("{context}: {error}"));
}

/// Whether an error says that nothing was written, and is one that a failed disk may give.
#[track_caller]
fn cant_be_there(error: &Error) -> bool {
    match error {
        Error::Engine(error @ (EngineError::NoSpace { .. } | EngineError::ReadOnly { .. })) => {
            error.wrote_nothing()
        }
        Error::Engine(EngineError::WriteFailed { .. }) => false,
        error => panic!("{error}"),
    }
}

fn every_commit_fails_once<E: Engine>(every: usize, over: impl Fn() -> E) {
    for fault in [Fault::NoSpace, Fault::Lost, Fault::Whole] {
        for nth in (1..=2 * SCRIPT.len() as u64).step_by(every) {
            fails_and_goes_on(&Failing::over(over()), nth, fault);
        }
    }
}

/// Engines on a disk, each in a folder of its own.
fn engines_on(disk: &Disk) -> impl Fn() -> RocksEngine {
    let number = AtomicU64::new(0);
    move || {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let db = disk.root().join(format!("db{number}"));
        RocksEngine::create(&db, &RocksOptions::default()).expect("is created")
    }
}

#[test]
fn whichever_commit_fails_all_that_was_promised_is_there_when_the_world_goes_on() {
    every_commit_fails_once(1, MemEngine::new);
}

#[test]
fn whichever_commit_fails_on_disk_all_that_was_promised_is_there_when_the_world_goes_on() {
    let disk = Disk::new();
    every_commit_fails_once(3, engines_on(&disk));
}

#[test]
fn a_resumed_world_knows_which_states_its_packs_declare() {
    let json = r#"{ "pack": "doors", "version": "1", "namespaces": ["", "doors"], "blocks": [
        { "name": ":air", "opaque": false },
        { "name": "doors:door", "states": { "open": ["false", "true"] } }] }"#;
    let packs = [PackManifest::from_json(json).expect("a manifest")];
    let plan = Arc::new(Plan::default());
    let engine = Faulty::new(MemEngine::new(), Arc::clone(&plan));
    let world = World::builder().packs(&packs).options(&options()).over(engine).expect("begins");
    let illegal = || world.registry().register_blocks(["doors:door[open=ajar]"]).map(drop);
    let refused = illegal().expect_err("no pack declares it").to_string();
    plan.fail(1, Fault::Whole);
    world.registry().register_dimension("doors:home").expect_err("the write failed");
    world.resume().expect("goes on");
    assert!(world.catalog().dimension("doors:home").is_some());
    assert_eq!(illegal().expect_err("no pack declares it").to_string(), refused);
}
