//! Transactions that run again until they commit.

use super::super::*;
use super::set;
use cg_store::ErrorKind;
use cg_store::error::ConflictKey;
use std::thread;

over_both_engines! {
    two_writers_lose_no_step_of_each_other
    an_error_of_the_closure_ends_it
    an_error_that_another_commit_led_to_runs_it_again
    what_is_always_overtaken_ends_as_a_conflict
    what_the_world_refuses_ends_it
}

/// A failure of the host's own, and those of the world.
#[derive(Debug)]
enum Failure {
    Mine,
    World(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::World(error)
    }
}

fn count_of(tx: &mut Transaction<'_>) -> Result<u8, Error> {
    Ok(tx.property(&Property::Time)?.map_or(0, |bytes| bytes[0]))
}

fn two_writers_lose_no_step_of_each_other(world: &World) {
    const STEPS: u8 = 100;
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..STEPS {
                    let stepped = world.transact(|tx| {
                        let count = count_of(tx)?;
                        // The other has a moment to come in between.
                        thread::yield_now();
                        tx.set_property(Property::Time, Some(vec![count + 1]));
                        Ok::<_, Error>(())
                    });
                    stepped.expect("nothing but conflicts");
                }
            });
        }
    });
    assert_eq!(world.property(&Property::Time).expect("reads"), Some(vec![2 * STEPS]));
}

fn an_error_of_the_closure_ends_it(world: &World) {
    let mut runs = 0;
    let ended = world.transact(|tx| {
        runs += 1;
        count_of(tx)?;
        tx.set_property(Property::Time, Some(vec![1]));
        Err::<(), _>(Failure::Mine)
    });
    assert!(matches!(ended, Err(Failure::Mine)), "{ended:?}");
    assert_eq!(runs, 1);
    assert_eq!(world.property(&Property::Time).expect("reads"), None);
}

fn an_error_that_another_commit_led_to_runs_it_again(world: &World) {
    let mut runs = 0;
    let done = world.transact(|tx| {
        runs += 1;
        let first = count_of(tx)?;
        if runs == 1 {
            thread::scope(|scope| {
                scope.spawn(|| set(world, &Property::Time, &[7])).join().expect("no panic")
            });
        }
        // What this thread reads now is not of the state that it read before.
        if count_of(tx)? == first { Ok(first) } else { Err(Failure::Mine) }
    });
    assert_eq!((done.expect("the second run sees one state").value, runs), (7, 2));
}

fn what_is_always_overtaken_ends_as_a_conflict(world: &World) {
    let mut runs = 0_u8;
    let ended = world.transact(|tx| {
        count_of(tx)?;
        runs += 1;
        thread::scope(|scope| scope.spawn(|| set(world, &Property::Time, &[runs])).join().expect("no panic"));
        tx.set_property(Property::Time, Some(vec![0]));
        Ok::<_, Error>(())
    });
    let error = ended.expect_err("never commits");
    assert!(
        matches!(&error, Error::Conflict { key: ConflictKey::Property(key) } if key == "time"),
        "{error}"
    );
    assert_eq!((runs, error.kind(), error.is_retryable()), (100, ErrorKind::Conflict, true));
    assert_eq!(world.property(&Property::Time).expect("reads"), Some(vec![100]));
}

fn what_the_world_refuses_ends_it(world: &World) {
    let ids = Ids::register(world);
    let mut runs = 0;
    let ended = world.transact(|tx| {
        runs += 1;
        tx.put_entity(uuid(1), ids.cow_in(ids.at(9, 0, 0)));
        Ok::<_, Failure>(())
    });
    let Err(Failure::World(error)) = ended else { panic!("{ended:?}") };
    assert!(matches!(error, Error::OwnerAbsent { .. }), "{error}");
    assert_eq!((runs, error.kind()), (1, ErrorKind::NotFound));
    let nested = world.transaction(|_| world.transact(|_| Ok::<_, Error>(())).map(drop));
    assert!(matches!(nested, Err(Error::Nested)), "{nested:?}");
}
