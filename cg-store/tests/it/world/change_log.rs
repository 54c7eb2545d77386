//! The log of changes: which values changed since a commit, against a map of all that ever changed.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::records::{id, record};
use super::*;
use cg_format::Space;
use cg_format::entity::Reason;
use cg_format::key::decode_change_log;
use cg_store::layer::values::{
    ValueKind, change_log_beginning, changed_values, drop_change_log, keep_change_log, list_values, values,
};
use cg_store::{Durability, Transaction};

over_both_engines! {
    it_says_what_changed_since_any_commit
    it_has_one_row_for_each_value
    purging_moves_its_beginning
    it_ends_and_begins_anew
    all_kinds_are_listed_in_the_order_of_keys
}

type Key = (ValueKind, Vec<u8>);

/// What changed after a commit, by the log. Rows that are out of date are left out; what is gone has no bytes.
#[track_caller]
fn since(world: &World, kind: ValueKind, commit: u64) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let read = world.read_view(|view| {
        let beginning = change_log_beginning(view)?.expect("a log is kept");
        assert!(beginning <= CommitSeq::new(commit), "the log begins later");
        let mut changed = Vec::new();
        changed_values(view, kind, (CommitSeq::new(commit), None), |commit, key| {
            changed.push((commit, key.to_vec()));
            ControlFlow::<()>::Continue(())
        })?;
        let keys: Vec<_> = changed.iter().map(|(_, key)| key).collect();
        let mut out = BTreeMap::new();
        for ((commit, key), found) in changed.iter().zip(values(view, kind, &keys)) {
            match found? {
                Some((version, bytes)) if version == *commit => drop(out.insert(key.clone(), Some(bytes))),
                Some(_) => {}
                None => drop(out.insert(key.clone(), None)),
            }
        }
        Ok::<_, Error>(out.into_iter().collect())
    });
    read.expect("reads")
}

fn rows(world: &World) -> Vec<(Space, u64, Vec<u8>)> {
    let mut rows = Vec::new();
    let all = (std::ops::Bound::Included(&[6][..]), std::ops::Bound::Excluded(&[7][..]));
    world.flush().expect("is written");
    let scanned = world.engine().scan(Family::Index, all, |key, _| {
        let (space, commit, value) = decode_change_log(key).expect("a key of the log");
        rows.push((space, commit, value.to_vec()));
        ControlFlow::<()>::Continue(())
    });
    scanned.expect("scans");
    rows
}

/// Writes a value of one of the kinds, or deletes it.
fn write(tx: &mut Transaction<'_>, ids: &Ids, key: &Key, value: Option<u8>) -> Result<(), Error> {
    let n = u128::from(*key.1.last().expect("a key"));
    match key.0 {
        ValueKind::Objects => match value {
            Some(value) => tx.put_object(&key.1, [value; 3]),
            None => tx.delete_object(&key.1),
        },
        ValueKind::Properties => {
            let name = Name::new(std::str::from_utf8(&key.1).expect("a name")).expect("a name");
            tx.set_property(Property::Named(name), value.map(|value| vec![value]));
            Ok(())
        }
        ValueKind::Records => {
            match value {
                Some(value) => {
                    tx.put_record(id(n), record(ids.overworld, [f64::from(value) * 99.0; 3], "sign", 1));
                }
                None => tx.delete_record(id(n)),
            }
            Ok(())
        }
        ValueKind::Entities => {
            let detached = Owner::Detached(Reason::new("test").expect("short"));
            match value {
                Some(value) => {
                    let mut cow = ids.cow_in(ids.at(value.into(), 0, 0)).owned_by(detached);
                    cow.set_component(ids.items, vec![value]).expect("short");
                    tx.put_entity(uuid(n), cow);
                }
                None => tx.delete_entity(uuid(n)),
            }
            Ok(())
        }
    }
}

fn key(kind: ValueKind, n: u8) -> Key {
    let key = match kind {
        ValueKind::Objects => format!("o/{n}").into_bytes(),
        ValueKind::Properties => format!("game:p{n}").into_bytes(),
        ValueKind::Records | ValueKind::Entities => {
            let last = *format!("{n}").as_bytes().last().expect("a digit");
            [&[0; 15][..], &[last]].concat()
        }
    };
    (kind, key)
}

/// Numbers that look random, always the same.
fn numbers() -> impl FnMut(u64) -> u64 {
    let mut state = 7_u64;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

fn it_says_what_changed_since_any_commit(world: &World) {
    let (ids, mut next) = (Ids::register(world), numbers());
    let mut last: BTreeMap<Key, u64> = BTreeMap::new();
    let mut stored: BTreeMap<Key, u8> = BTreeMap::new();
    let mut beginning = None;
    for turn in 0..400_u64 {
        if turn == 60 {
            keep_change_log(world).expect("begins");
            beginning = Some(world.last_commit().get());
        }
        // Half of them wait in the queue when the next one is prepared.
        let durability = [Durability::Balanced, Durability::Process][(turn % 2) as usize];
        let mut now = stored.clone();
        let committed = world.transaction_at(durability, |tx| {
            for _ in 0..=next(3) {
                let key = key(ValueKind::ALL[next(4) as usize], next(9) as u8);
                let value = (next(4) > 0).then(|| next(5) as u8);
                write(tx, &ids, &key, value)?;
                match value {
                    Some(value) => now.insert(key, value),
                    None => now.remove(&key),
                };
            }
            Ok::<_, Error>(())
        });
        let seq = committed.expect("commits").seq.get();
        let changed = |key: &&Key| {
            // A property is written again even if it is equal.
            stored.get(*key) != now.get(*key)
        };
        let changed: Vec<_> = stored.keys().chain(now.keys()).filter(changed).cloned().collect();
        last.extend(changed.into_iter().map(|key| (key, seq)));
        stored = now;
        let Some(beginning) = beginning.filter(|_| turn % 20 == 0) else { continue };
        for known in beginning..=world.last_commit().get() {
            for kind in ValueKind::ALL {
                let found = since(world, kind, known);
                let all = last.iter().filter(|((of, _), commit)| *of == kind && **commit > known);
                for ((_, key), _) in all {
                    let bytes =
                        found.iter().find(|(found, _)| found == key).map(|(_, bytes)| bytes.is_some());
                    let is_stored = stored.contains_key(&(kind, key.clone()));
                    // A deleted object keeps its row.
                    let expected = Some(is_stored || kind == ValueKind::Objects);
                    assert_eq!(bytes, expected, "{kind:?} {} since {known}", key.escape_ascii());
                }
            }
        }
    }
    assert_sound(world);
}

fn it_has_one_row_for_each_value(world: &World) {
    let ids = Ids::register(world);
    let put = |value: u8| {
        let all = ValueKind::ALL.map(|kind| key(kind, 1));
        let done = world.transaction(|tx| all.iter().try_for_each(|key| write(tx, &ids, key, Some(value))));
        done.expect("commits").seq.get()
    };
    put(1);
    assert_eq!(rows(world), [], "a world without a log pays nothing");
    keep_change_log(world).expect("begins");
    keep_change_log(world).expect("is kept already");
    assert_eq!(rows(world), [], "what was there before has no row");
    for value in 2..9 {
        let seq = put(value);
        let spaces = rows(world).into_iter().map(|(space, commit, _)| (space, commit)).collect::<Vec<_>>();
        let all = [Space::WorldProperty, Space::Entity, Space::Object, Space::RecordPlace];
        assert_eq!(spaces, all.map(|space| (space, seq)), "the older rows are gone");
    }
    let before = world.last_commit().get();
    world.transaction(|tx| tx.put_object("o/1", [8; 3])).expect("commits");
    assert_eq!(since(world, ValueKind::Objects, before), [], "equal bytes are no change");
    let deleted = world
        .transaction(|tx| ValueKind::ALL.iter().try_for_each(|kind| write(tx, &ids, &key(*kind, 1), None)));
    deleted.expect("commits");
    for kind in ValueKind::ALL {
        let [(found, bytes)] = &since(world, kind, before)[..] else { panic!("one changed") };
        assert_eq!(found, &key(kind, 1).1);
        assert_eq!(bytes.is_some(), kind == ValueKind::Objects, "{kind:?}");
    }
}

fn purging_moves_its_beginning(world: &World) {
    keep_change_log(world).expect("begins");
    let first = world.objects().put("a", *b"1").map(|_| world.last_commit()).expect("commits");
    world.objects().delete("a").expect("commits");
    world.objects().put("b", *b"2").expect("commits");
    let kept = world.last_commit();
    let horizon = world.tiers().purge_tombstones_before(kept).expect("purges");
    assert_eq!((horizon, horizon > first), (kept, true));
    let beginning = || world.read_view(change_log_beginning).expect("reads").expect("is kept");
    assert_eq!(beginning().next(), kept);
    assert_eq!(rows(world), [(Space::Object, kept.get(), b"b".to_vec())]);
    world.objects().put("b", *b"3").expect("commits");
    assert_eq!(rows(world).len(), 1);
    assert_eq!(since(world, ValueKind::Objects, kept.get()).len(), 1);
}

fn it_ends_and_begins_anew(world: &World) {
    keep_change_log(world).expect("begins");
    world.objects().put("a", *b"1").expect("commits");
    drop_change_log(world).expect("ends");
    drop_change_log(world).expect("is ended already");
    assert_eq!(rows(world), []);
    assert_eq!(world.read_view(change_log_beginning).expect("reads"), None);
    world.objects().put("a", *b"2").expect("commits");
    assert_eq!(rows(world), []);
    keep_change_log(world).expect("begins");
    let beginning = world.last_commit();
    world.objects().put("a", *b"3").expect("commits");
    let found = world.read_view(change_log_beginning).expect("reads");
    assert_eq!((found, rows(world).len()), (Some(beginning), 1));
}

fn all_kinds_are_listed_in_the_order_of_keys(world: &World) {
    let ids = Ids::register(world);
    for kind in ValueKind::ALL {
        for n in [5, 1, 9, 3] {
            world.transaction(|tx| write(tx, &ids, &key(kind, n), Some(1))).expect("commits");
        }
        let list = |behind: Option<&[u8]>, max_count: usize| {
            let mut keys = Vec::new();
            let listed = world.read_view(|view| {
                list_values(view, kind, b"", behind, |key, value| {
                    value.expect("is sound");
                    keys.push(key.to_vec());
                    if keys.len() < max_count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })
            });
            listed.expect("lists");
            keys
        };
        let all = [1, 3, 5, 9].map(|n| key(kind, n).1);
        assert_eq!(list(None, 9), all, "{kind:?}");
        assert_eq!(list(Some(&all[1]), 1), all[2..3], "{kind:?}");
    }
}

#[test]
fn it_survives_reopening_and_quarantine_begins_it_anew() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    keep_change_log(&world).expect("begins");
    world.objects().put("a", *b"1").expect("commits");
    let known = world.last_commit().get();
    world.close().expect("closes");
    drop(world);
    let world = disk.open(&[]);
    world.objects().put("a", *b"2").expect("commits");
    world.objects().put("b", *b"2").expect("commits");
    assert_eq!(rows(&world).len(), 2, "the row from before is replaced");
    assert_eq!(since(&world, ValueKind::Objects, known).len(), 2);
    // What is quarantined is gone without a row, so nothing before is known.
    plant(&world, [(Space::Object, b"a".to_vec(), Some(plain(b"nonsense")))]);
    world.quarantine().object("a").expect("quarantines");
    let beginning = world.read_view(change_log_beginning).expect("reads");
    assert_eq!(beginning, Some(world.last_commit()));
    assert_sound(&world);
}
