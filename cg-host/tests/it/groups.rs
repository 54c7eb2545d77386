//! Groups: what is submitted is seen at once, and is one commit.

use std::time::{Duration, Instant};

use cg_host::{HostOptions, Saved, Writes};
use cg_store::World;
use cg_store::prelude::Property;
use cg_store::settings::WorldSettings;

use crate::maker::{AIR, STONE, at, known, made, over, uniform};
use crate::scene::grouped;

#[test]
fn a_submitted_column_is_seen_at_once_and_committed_within_the_group() {
    let made = made();
    let before = made.host.world().last_commit();
    let begun = Instant::now();
    assert_eq!(made.submit(&uniform(made.at, &[STONE])), Saved::Accepted);
    assert_eq!(made.load(), Some(uniform(made.at, &[STONE])));
    while made.host.metrics().pending > 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the group ends by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(made.host.world().last_commit() > before);
    assert_eq!(made.load(), Some(uniform(made.at, &[STONE])));
}

#[test]
fn what_is_submitted_together_is_one_commit() {
    let options = HostOptions { group: Duration::from_secs(600), ..HostOptions::default() };
    let made = over(World::builder().in_memory().expect("memory"), options, known(0));
    let before = made.host.world().last_commit().get();
    for x in 0..20 {
        let column = uniform(at(made.at.dimension, x, 0), &[STONE]);
        made.host.submit(&made.binding, column, false).expect("it fits");
    }
    let mut writes = Writes::new();
    writes.property(Property::Named(crate::maker::name("game:x")), Some(vec![1]));
    made.host.submit_writes(&mut writes).expect("it fits");
    assert_eq!((made.host.world().last_commit().get(), made.host.metrics().pending), (before, 21));
    made.host.flush().expect("written");
    assert_eq!((made.host.world().last_commit().get(), made.host.metrics().pending), (before + 1, 0));
}

#[test]
fn a_group_after_a_flush_has_its_own_time() {
    const GROUP: Duration = Duration::from_secs(2);
    let made = grouped(GROUP);
    made.submit(&uniform(made.at, &[STONE]));
    made.host.flush().expect("written");
    // The time of the group that the flush ended runs out within the next one.
    std::thread::sleep(GROUP * 3 / 4);
    let begun = Instant::now();
    made.submit(&uniform(made.at, &[AIR]));
    loop {
        let pending = made.host.metrics().pending;
        if begun.elapsed() >= GROUP {
            break;
        }
        assert_eq!(pending, 1, "the group ended {:?} after its begin", begun.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    }
    while made.host.metrics().pending > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the group ends by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_full_group_ends_before_its_time() {
    let options = HostOptions { group: Duration::from_secs(600), ..HostOptions::default() };
    let made = over(World::builder().in_memory().expect("memory"), options, known(0));
    let before = made.host.world().last_commit().get();
    for x in 0..4096 {
        let column = uniform(at(made.at.dimension, x, 0), &[STONE]);
        made.host.submit(&made.binding, column, false).expect("it fits");
    }
    let begun = Instant::now();
    while made.host.world().last_commit().get() == before {
        assert!(begun.elapsed() < Duration::from_secs(60), "4,096 columns end it");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_newest_of_two_submissions_wins() {
    let made = made();
    made.submit(&uniform(made.at, &[STONE]));
    made.submit(&uniform(made.at, &[AIR]));
    assert_eq!(made.load(), Some(uniform(made.at, &[AIR])));
    made.host.flush().expect("written");
    assert_eq!(made.load(), Some(uniform(made.at, &[AIR])));
    // And one that is saved at once comes after them.
    made.submit(&uniform(made.at, &[STONE]));
    made.save(&uniform(made.at, &[AIR, AIR]));
    assert_eq!(made.load(), Some(uniform(made.at, &[AIR, AIR])));
}

#[test]
fn settings_are_read_as_they_were_submitted() {
    let made = made();
    let mut settings = WorldSettings::default();
    settings.name = Some("Grove".into());
    let mut writes = Writes::new();
    writes.settings(settings.clone());
    made.host.submit_writes(&mut writes).expect("it fits");
    assert_eq!(made.host.settings().expect("sound").name.as_deref(), Some("Grove"));
}

#[test]
fn ten_thousand_saves_of_unchanged_columns_write_nothing() {
    let made = made();
    let columns: Vec<_> = (0..10).map(|x| uniform(at(made.at.dimension, x, 0), &[STONE, AIR])).collect();
    for column in &columns {
        made.submit(column);
    }
    made.host.flush().expect("written");
    let before = made.host.world().last_commit();
    for round in 0..1000 {
        for column in &columns {
            let mut column = column.clone();
            column.tick = round;
            assert_eq!(made.host.submit(&made.binding, column, false).expect("it fits"), Saved::Unchanged);
        }
    }
    made.host.flush().expect("written");
    assert_eq!((made.host.world().last_commit(), made.host.metrics().unchanged), (before, 10_000));
}

#[test]
fn at_a_safe_durability_a_submission_is_a_commit() {
    let options = HostOptions {
        durability: cg_store::Durability::Safe,
        group: Duration::from_secs(600),
        ..HostOptions::default()
    };
    let made = over(World::builder().in_memory().expect("memory"), options, known(0));
    assert!(matches!(made.submit(&uniform(made.at, &[STONE])), Saved::Changed(_)));
}

#[test]
fn calls_after_close_say_so() {
    let made = made();
    made.submit(&uniform(made.at, &[STONE]));
    made.host.close().expect("written");
    let error = made.host.submit(&made.binding, uniform(made.at, &[AIR]), false).expect_err("closed");
    assert_eq!(error.kind(), cg_store::ErrorKind::Closed);
    let error = made.host.load(&made.binding, made.at).expect_err("closed");
    assert_eq!(error.kind(), cg_store::ErrorKind::Closed);
}
