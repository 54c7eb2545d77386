//! Ownership of entities: each rule by itself, then random histories against a naive model.

use super::*;
use cg_store::WriteBatch;
use proptest::prelude::*;

over_both_engines! {
    a_put_entity_is_referred_to_by_its_chunk
    an_entity_moves_by_being_put_elsewhere
    an_entity_moves_by_editing_both_chunks
    a_reference_to_an_entity_of_another_chunk_is_refused
    a_reference_to_an_unknown_entity_is_refused
    an_entity_needs_a_stored_chunk
    two_chunks_cannot_gain_one_entity
    a_deleted_chunk_takes_its_entities_along
    an_entity_survives_its_chunk_if_it_moves_in_the_same_transaction
    a_released_entity_is_detached
    a_deleted_entity_leaves_no_reference
    a_save_takes_the_place_of_a_deletion_before_it
    a_detached_entity_is_adopted_by_reference
    saving_an_old_copy_of_a_chunk_detaches_what_came_since
    saving_the_blocks_of_an_old_copy_keeps_what_came_since
    entities_live_at_the_ends_of_the_world
}

/// Two stored chunks, and an entity in the first.
fn pasture(world: &World) -> (Ids, ChunkAt, ChunkAt, EntityId) {
    let ids = Ids::register(world);
    let (a, b, cow) = (ids.at(0, 0, 0), ids.at(0, 0, 1), uuid(1));
    save(world, [(a, filled(world, ids.air)), (b, filled(world, ids.stone))]);
    let put = world.transaction(|tx| {
        tx.put_entity(cow, ids.cow_in(a));
        Ok::<_, Error>(())
    });
    put.expect("puts");
    (ids, a, b, cow)
}

/// Asserts who holds an entity, from both ends.
#[track_caller]
fn held(world: &World, id: EntityId, expected: Option<Owner>, chunks: &[ChunkAt]) {
    assert_eq!(world.entity(id).expect("reads").map(|entity| entity.owner), expected);
    for at in chunks {
        let refers = world.load(*at).expect("loads").is_some_and(|chunk| chunk.entities().contains(&id));
        assert_eq!(refers, expected == Some(Owner::Chunk(*at)), "{at}");
    }
    assert_sound(world);
}

fn detached(text: &str) -> Owner {
    Owner::Detached(cg_format::entity::Reason::new(text).expect("short"))
}

fn refused<T: std::fmt::Debug>(
    world: &World,
    body: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error>,
) -> Error {
    let before = (rows(world), world.last_commit());
    let error = world.transaction(body).expect_err("is refused");
    assert!(before == (rows(world), world.last_commit()), "a refused transaction wrote something");
    error
}

fn a_put_entity_is_referred_to_by_its_chunk(world: &World) {
    let (_, a, b, cow) = pasture(world);
    held(world, cow, Some(Owner::Chunk(a)), &[a, b]);
}

fn an_entity_moves_by_being_put_elsewhere(world: &World) {
    let (_, a, b, cow) = pasture(world);
    let moved = world.transaction(|tx| tx.move_entity(cow, Owner::Chunk(b))).expect("moves");
    assert!(moved.value);
    held(world, cow, Some(Owner::Chunk(b)), &[a, b]);
    let absent = world.transaction(|tx| tx.move_entity(uuid(99), Owner::Chunk(b))).expect("is no error");
    assert!(!absent.value);
}

fn an_entity_moves_by_editing_both_chunks(world: &World) {
    let (_, a, b, cow) = pasture(world);
    world
        .transaction(|tx| {
            assert!(tx.edit(b, |chunk| chunk.add_entity(cow))?);
            assert!(tx.edit(a, |chunk| chunk.remove_entity(cow))?);
            Ok::<_, Error>(())
        })
        .expect("moves");
    held(world, cow, Some(Owner::Chunk(b)), &[a, b]);
}

fn a_reference_to_an_entity_of_another_chunk_is_refused(world: &World) {
    let (ids, a, b, cow) = pasture(world);
    let error = refused(world, |tx| tx.edit(b, |chunk| chunk.add_entity(cow)));
    assert!(matches!(error, Error::EntityOwned { id, owner } if id == cow && owner == a), "{error}");
    // Putting the entity where it is does not make the second reference true.
    let error = refused(world, |tx| {
        tx.put_entity(cow, ids.cow_in(a));
        tx.edit(b, |chunk| chunk.add_entity(cow))
    });
    assert!(matches!(error, Error::EntityOwned { id, owner } if id == cow && owner == a), "{error}");
    // Nor does a chunk that is saved without having been loaded.
    let error = refused(world, |tx| {
        let mut chunk = filled(world, ids.glass);
        chunk.add_entity(cow);
        tx.save(ids.at(9, 9, 9), chunk);
        Ok(())
    });
    assert!(matches!(error, Error::EntityOwned { id, owner } if id == cow && owner == a), "{error}");
    held(world, cow, Some(Owner::Chunk(a)), &[a, b]);
}

fn a_reference_to_an_unknown_entity_is_refused(world: &World) {
    let (_, a, _, cow) = pasture(world);
    let stranger = uuid(7);
    let error = refused(world, |tx| tx.edit(a, |chunk| chunk.add_entity(stranger)));
    assert!(matches!(error, Error::EntityUnknown { id, at } if id == stranger && at == a), "{error}");
    let error = refused(world, |tx| {
        tx.delete_entity(stranger);
        tx.edit(a, |chunk| chunk.add_entity(stranger))
    });
    assert!(matches!(error, Error::EntityUnknown { id, at } if id == stranger && at == a), "{error}");
    assert!(error.to_string().contains("which the world does not have"), "{error}");
    held(world, cow, Some(Owner::Chunk(a)), &[a]);
}

fn an_entity_needs_a_stored_chunk(world: &World) {
    let (ids, a, b, cow) = pasture(world);
    let nowhere = ids.at(5, 5, 5);
    let error = refused(world, |tx| tx.move_entity(cow, Owner::Chunk(nowhere)));
    assert!(matches!(error, Error::OwnerAbsent { id, at } if id == cow && at == nowhere), "{error}");
    assert_eq!(
        error.to_string(),
        "chunk 5, 5, 5 of dimension 0 is to own entity 00000000-0000-0000-0000-000000000001 and is not stored; save it first, \
         or detach the entity"
    );
    let error = refused(world, |tx| {
        tx.put_entity(cow, ids.cow_in(a));
        tx.delete(a);
        Ok(())
    });
    assert!(matches!(error, Error::OwnerAbsent { id, at } if id == cow && at == a), "{error}");
    // Saved in the same transaction is stored.
    world
        .transaction(|tx| {
            tx.move_entity(cow, Owner::Chunk(nowhere))?;
            tx.save(nowhere, filled(world, ids.air));
            Ok::<_, Error>(())
        })
        .expect("moves");
    held(world, cow, Some(Owner::Chunk(nowhere)), &[a, b, nowhere]);
}

fn two_chunks_cannot_gain_one_entity(world: &World) {
    let (ids, a, b, cow) = pasture(world);
    let c = ids.at(1, 0, 0);
    save(world, [(c, filled(world, ids.air))]);
    let error = refused(world, |tx| {
        tx.edit(a, |chunk| chunk.remove_entity(cow))?;
        tx.edit(b, |chunk| chunk.add_entity(cow))?;
        tx.edit(c, |chunk| chunk.add_entity(cow))
    });
    assert!(matches!(error, Error::EntityOwned { id, .. } if id == cow), "{error}");
    let error = refused(world, |tx| {
        tx.put_entity(cow, ids.cow_in(c));
        tx.edit(b, |chunk| chunk.add_entity(cow))
    });
    assert!(matches!(error, Error::EntityOwned { id, .. } if id == cow), "{error}");
    held(world, cow, Some(Owner::Chunk(a)), &[a, b, c]);
}

fn a_deleted_chunk_takes_its_entities_along(world: &World) {
    let (_, a, b, cow) = pasture(world);
    world
        .transaction(|tx| {
            tx.delete(a);
            Ok::<_, Error>(())
        })
        .expect("deletes");
    held(world, cow, None, &[a, b]);
}

fn an_entity_survives_its_chunk_if_it_moves_in_the_same_transaction(world: &World) {
    let (ids, a, b, cow) = pasture(world);
    world
        .transaction(|tx| {
            tx.delete(a);
            tx.edit(b, |chunk| chunk.add_entity(cow))
        })
        .expect("moves by reference");
    held(world, cow, Some(Owner::Chunk(b)), &[a, b]);
    save(world, [(a, filled(world, ids.air))]);
    world
        .transaction(|tx| {
            tx.delete(b);
            tx.move_entity(cow, Owner::Chunk(a))
        })
        .expect("moves by owner");
    held(world, cow, Some(Owner::Chunk(a)), &[a, b]);
    world
        .transaction(|tx| {
            tx.delete(a);
            tx.move_entity(cow, detached("offline"))
        })
        .expect("detaches");
    held(world, cow, Some(detached("offline")), &[a, b]);
}

fn a_released_entity_is_detached(world: &World) {
    let (_, a, b, cow) = pasture(world);
    world.transaction(|tx| tx.edit(a, |chunk| chunk.remove_entity(cow))).expect("releases");
    held(world, cow, Some(detached(World::RELEASED)), &[a, b]);
}

fn a_deleted_entity_leaves_no_reference(world: &World) {
    let (_, a, b, cow) = pasture(world);
    for _ in 0..2 {
        world
            .transaction(|tx| {
                tx.delete_entity(cow);
                Ok::<_, Error>(())
            })
            .expect("deletes, or finds nothing to delete");
        held(world, cow, None, &[a, b]);
    }
}

/// Decision 11.
fn a_save_takes_the_place_of_a_deletion_before_it(world: &World) {
    let (ids, a, b, cow) = pasture(world);
    world
        .transaction(|tx| {
            tx.delete(a);
            tx.save(a, filled(world, ids.stone));
            Ok::<_, Error>(())
        })
        .expect("commits");
    held(world, cow, Some(detached(World::RELEASED)), &[a, b]);

    // The two ways without a detached entity.
    let second = uuid(2);
    let put = |id: EntityId| {
        let put = world.transaction(|tx| {
            tx.put_entity(id, ids.cow_in(a));
            Ok::<_, Error>(())
        });
        put.expect("puts");
    };
    put(second);
    let mut batch = WriteBatch::new();
    batch.delete(a);
    batch.save(a, filled(world, ids.air));
    batch.delete_entity(second);
    world.submit(batch).expect("is taken").wait().expect("is accepted");
    held(world, second, None, &[a, b]);
    put(second);
    for chunk in [None, Some(filled(world, ids.stone))] {
        let mut batch = WriteBatch::new();
        match chunk {
            None => batch.delete(a),
            Some(chunk) => batch.save(a, chunk),
        }
        world.submit(batch).expect("is taken").wait().expect("is accepted");
    }
    held(world, second, None, &[a, b]);
}

fn a_detached_entity_is_adopted_by_reference(world: &World) {
    let (_, a, b, cow) = pasture(world);
    world.transaction(|tx| tx.move_entity(cow, detached("cargo"))).expect("detaches");
    held(world, cow, Some(detached("cargo")), &[a, b]);
    world.transaction(|tx| tx.edit(b, |chunk| chunk.add_entity(cow))).expect("adopts");
    held(world, cow, Some(Owner::Chunk(b)), &[a, b]);
}

fn saving_an_old_copy_of_a_chunk_detaches_what_came_since(world: &World) {
    let (ids, a, b, cow) = pasture(world);
    let old = world.load(a).expect("loads").expect("is there");
    let second = uuid(2);
    world
        .transaction(|tx| {
            tx.put_entity(second, ids.cow_in(a));
            tx.move_entity(cow, Owner::Chunk(b))
        })
        .expect("commits");
    // The old copy still refers to the first cow, which lives in the other chunk by now.
    let error = refused(world, |tx| {
        tx.save(a, old);
        Ok(())
    });
    assert!(matches!(error, Error::EntityOwned { id, owner } if id == cow && owner == b), "{error}");
    save(world, [(a, filled(world, ids.air))]);
    held(world, second, Some(detached(World::RELEASED)), &[a, b]);
    held(world, cow, Some(Owner::Chunk(b)), &[a, b]);
}

fn saving_the_blocks_of_an_old_copy_keeps_what_came_since(world: &World) {
    let (ids, a, b, cow) = pasture(world);
    let second = uuid(2);
    // A copy from before the second entity came, and from before the first one left.
    let old = Chunk::clone(&*world.load(a).expect("loads").expect("is there"));
    let moves = world.transaction(|tx| {
        tx.put_entity(second, ids.cow_in(a));
        tx.move_entity(cow, Owner::Chunk(b))
    });
    moves.expect("commits");
    let schema = world.catalog().current_schema();
    for (cell, submitted) in [(1, false), (2, true)] {
        let mut changed = old.clone();
        changed.set_block(LocalPos::new(cell, 0, 0), ids.stone, &schema).expect("is registered");
        changed.set_side(ids.light, vec![cell]);
        let seen = if submitted {
            let mut batch = WriteBatch::new();
            batch.save_blocks(a, changed.clone());
            world.submit(batch).expect("is taken").wait().expect("is accepted");
            None
        } else {
            let save = world.transaction(|tx| {
                tx.save_blocks(a, changed.clone())?;
                tx.load(a)
            });
            save.expect("commits").value
        };
        let stored = world.load(a).expect("loads").expect("is there");
        assert_eq!((stored.entities(), stored.side(ids.light)), (&[second][..], Some(&[cell][..])));
        assert_eq!(stored.block(LocalPos::new(cell, 0, 0)), ids.stone);
        assert!(seen.is_none_or(|seen| seen == stored), "a transaction sees what it saved");
        held(world, second, Some(Owner::Chunk(a)), &[a, b]);
        held(world, cow, Some(Owner::Chunk(b)), &[a, b]);
    }
    // Where nothing was stored there is nothing to keep.
    let nowhere = ids.at(7, 0, 0);
    world.transaction(|tx| tx.save_blocks(nowhere, old)).expect("commits");
    assert!(world.load(nowhere).expect("loads").expect("is there").entities().is_empty());
    held(world, cow, Some(Owner::Chunk(b)), &[a, b, nowhere]);
}

fn entities_live_at_the_ends_of_the_world(world: &World) {
    let ids = Ids::register(world);
    let ends = [ChunkPos::MIN, -1, 0, ChunkPos::MAX];
    let mut all = Vec::new();
    for x in ends {
        for y in ends {
            for z in ends {
                all.push(ids.at(x, y, z));
            }
        }
    }
    world
        .transaction(|tx| {
            for (n, at) in all.iter().enumerate() {
                tx.save(*at, filled(world, ids.stone));
                tx.put_entity(uuid(n as u128), ids.cow_in(*at));
            }
            Ok::<_, Error>(())
        })
        .expect("saves");
    for (n, at) in all.iter().enumerate() {
        held(world, uuid(n as u128), Some(Owner::Chunk(*at)), &[]);
        assert_eq!(world.load(*at).expect("loads").expect("is there").entities(), [uuid(n as u128)]);
    }
}

/// One change of a random history, over few chunks and entities so that they meet.
#[derive(Debug, Clone)]
enum Change {
    Save(usize, Vec<usize>),
    Delete(usize),
    Refer(usize, usize),
    Forget(usize, usize),
    Put(usize, usize),
    Detach(usize),
    Remove(usize),
}

const CHUNKS: usize = 4;
const COWS: usize = 5;

fn change() -> impl Strategy<Value = Change> {
    let (chunk, cow) = (0..CHUNKS, 0..COWS);
    prop_oneof![
        2 => (chunk.clone(), prop::collection::vec(cow.clone(), 0..3))
            .prop_map(|(chunk, cows)| Change::Save(chunk, cows)),
        1 => chunk.clone().prop_map(Change::Delete),
        3 => (chunk.clone(), cow.clone()).prop_map(|(chunk, cow)| Change::Refer(chunk, cow)),
        3 => (chunk.clone(), cow.clone()).prop_map(|(chunk, cow)| Change::Forget(chunk, cow)),
        3 => (chunk, cow.clone()).prop_map(|(chunk, cow)| Change::Put(chunk, cow)),
        1 => cow.clone().prop_map(Change::Detach),
        1 => cow.prop_map(Change::Remove),
    ]
}

/// The model: which chunk is stored, and where each cow is. `None` means that it does not exist, `Some(None)` that
/// it is detached.
#[expect(
    clippy::option_option,
    reason = "the three cases of the rules, in the order in which they are asked"
)]
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    stored: [bool; CHUNKS],
    cows: [Option<Option<usize>>; COWS],
}

impl Model {
    /// Applies a transaction by the rules; `None` if they refuse it.
    fn apply(&self, changes: &[Change]) -> Option<Self> {
        // What the host leaves behind: references of the chunks it wrote, and entities it put or removed.
        let mut written: BTreeMap<usize, Option<Vec<usize>>> = BTreeMap::new();
        let mut put: BTreeMap<usize, Option<Option<usize>>> = BTreeMap::new();
        for change in changes {
            let of = |chunk: usize, written: &BTreeMap<usize, Option<Vec<usize>>>| match written.get(&chunk) {
                Some(references) => references.clone(),
                None => self.references(chunk),
            };
            match change {
                Change::Save(chunk, cows) => {
                    let mut cows = cows.clone();
                    cows.sort_unstable();
                    cows.dedup();
                    written.insert(*chunk, Some(cows));
                }
                Change::Delete(chunk) => drop(written.insert(*chunk, None)),
                Change::Refer(chunk, cow) => {
                    let mut references = of(*chunk, &written)?;
                    if !references.contains(cow) {
                        references.push(*cow);
                    }
                    written.insert(*chunk, Some(references));
                }
                Change::Forget(chunk, cow) => {
                    let mut references = of(*chunk, &written)?;
                    references.retain(|other| other != cow);
                    written.insert(*chunk, Some(references));
                }
                Change::Put(chunk, cow) => drop(put.insert(*cow, Some(Some(*chunk)))),
                Change::Detach(cow) => drop(put.insert(*cow, Some(None))),
                Change::Remove(cow) => drop(put.insert(*cow, None)),
            }
        }
        let mut stored = self.stored;
        for (chunk, references) in &written {
            stored[*chunk] = references.is_some();
        }
        let mut cows = self.cows;
        for (cow, now) in cows.iter_mut().enumerate() {
            let was = now.flatten();
            // A put entity takes its reference along; the host's own edits of the old chunk add nothing to that.
            let told = put.get(&cow).copied();
            let mut gained: Vec<usize> = Vec::new();
            for chunk in 0..CHUNKS {
                let refers = written.get(&chunk).is_some_and(|all| all.iter().flatten().any(|c| *c == cow));
                if refers && was != Some(chunk) {
                    gained.push(chunk);
                }
            }
            let keeps = was.is_some_and(|chunk| match written.get(&chunk) {
                Some(references) => references.iter().flatten().any(|c| *c == cow),
                None => true,
            });
            *now = match told {
                Some(Some(Some(chunk))) => {
                    if !stored[chunk] || gained.iter().any(|other| *other != chunk) {
                        return None;
                    }
                    Some(Some(chunk))
                }
                // Detached by name, but one chunk refers to it anew: the reference is the later word.
                Some(Some(None)) => match gained[..] {
                    [] => Some(None),
                    [chunk] => Some(Some(chunk)),
                    _ => return None,
                },
                Some(None) => {
                    if !gained.is_empty() {
                        return None;
                    }
                    None
                }
                None => match gained[..] {
                    [] if keeps || was.is_none() => self.cows[cow],
                    [] => was.and_then(|chunk| stored[chunk].then_some(None)),
                    [chunk] if !keeps && self.cows[cow].is_some() => Some(Some(chunk)),
                    _ => return None,
                },
            };
        }
        Some(Self { stored, cows })
    }

    fn references(&self, chunk: usize) -> Option<Vec<usize>> {
        self.stored[chunk].then(|| (0..COWS).filter(|cow| self.cows[*cow] == Some(Some(chunk))).collect())
    }

    #[track_caller]
    fn compare(&self, world: &World, places: &[ChunkAt]) {
        for (chunk, at) in places.iter().enumerate() {
            let references = world.load(*at).expect("loads").map(|chunk| chunk.entities().to_vec());
            let expected = self
                .references(chunk)
                .map(|cows| cows.iter().map(|cow| uuid(*cow as u128)).collect::<Vec<_>>());
            assert_eq!(references, expected, "{at}");
        }
        for cow in 0..COWS {
            let owner = world.entity(uuid(cow as u128)).expect("reads").map(|entity| match entity.owner {
                Owner::Chunk(at) => places.iter().position(|place| *place == at),
                Owner::Detached(_) => None,
            });
            assert_eq!(owner, self.cows[cow], "cow {cow}");
        }
        assert_sound(world);
    }
}

/// Does what a transaction of the model does.
fn run(world: &World, ids: &Ids, places: &[ChunkAt], changes: &[Change]) -> Result<(), Error> {
    let done = world.transaction(|tx| {
        for (step, change) in changes.iter().enumerate() {
            match change {
                Change::Save(chunk, cows) => {
                    let mut saved = marked(world, ids, step as u16);
                    for cow in cows {
                        saved.add_entity(uuid(*cow as u128));
                    }
                    tx.save(places[*chunk], saved);
                }
                Change::Delete(chunk) => tx.delete(places[*chunk]),
                Change::Refer(chunk, cow) => {
                    tx.edit(places[*chunk], |chunk| chunk.add_entity(uuid(*cow as u128)))?;
                }
                Change::Forget(chunk, cow) => {
                    tx.edit(places[*chunk], |chunk| chunk.remove_entity(uuid(*cow as u128)))?;
                }
                Change::Put(chunk, cow) => tx.put_entity(uuid(*cow as u128), ids.cow_in(places[*chunk])),
                Change::Detach(cow) => {
                    let cow_in = ids.cow_in(places[0]);
                    tx.put_entity(uuid(*cow as u128), cow_in.owned_by(detached("by name")));
                }
                Change::Remove(cow) => tx.delete_entity(uuid(*cow as u128)),
            }
        }
        Ok::<_, Error>(())
    });
    done.map(drop)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn references_and_owners_agree_after_any_history(
        history in prop::collection::vec(prop::collection::vec(change(), 1..6), 1..24),
    ) {
        let world = in_memory();
        let ids = Ids::register(&world);
        // Two share a cube, two lie in others.
        let places = [ids.at(0, 0, 0), ids.at(0, 0, 1), ids.at(-1, 0, 0), ids.at(40, 0, 0)];
        let mut model = Model::default();
        let mut accepted = 0;
        for changes in &history {
            let expected = model.apply(changes);
            let outcome = run(&world, &ids, &places, changes);
            match (&expected, &outcome) {
                (Some(_), Ok(())) => accepted += 1,
                (
                    None,
                    Err(
                        Error::EntityOwned { .. }
                        | Error::EntityUnknown { .. }
                        | Error::OwnerAbsent { .. }
                        | Error::ChunkAbsent { .. },
                    ),
                ) => {}
                _ => prop_assert!(false, "{changes:?} on {model:?}: the model says {expected:?}, the world {outcome:?}"),
            }
            model = expected.unwrap_or(model);
            model.compare(&world, &places);
        }
        prop_assert!(accepted <= history.len());
    }
}
