//! The entities in a slot of any kind and version, found and taken out by UUID.

use std::collections::HashSet;

use uuid::Uuid;

use crate::entity::{self, EntityRecord, Riders};
use crate::nbt::{self, Compound, Document, Field, List, Tag};

/// The names that lists of entities have.
const LISTS: [&str; 2] = ["Entities", "entities"];

/// The UUIDs of all entities of a slot, riders too. One without a UUID is `None`.
pub(super) fn uuids(root: Compound<'_>) -> Vec<Option<Uuid>> {
    let mut found = Vec::new();
    for (_, list) in lists(holder(root)) {
        for entity in list.compounds() {
            add(entity, 0, &mut found);
        }
    }
    found
}

/// The UUID of an entity and those of its riders.
pub(super) fn uuids_of_entity(entity: Compound<'_>) -> Vec<Option<Uuid>> {
    let mut found = Vec::new();
    add(entity, 0, &mut found);
    found
}

/// The slot without these entities, and how many it had; `None` if it has none of them, or is no NBT.
///
/// Who rode one of them stays, and rides what that rode, or nothing.
pub(super) fn without(slot: &[u8], gone: &HashSet<Uuid>) -> Option<(Vec<u8>, u64)> {
    let limits = nbt::Limits::default();
    let document = Document::parse(slot, &limits).ok()?;
    let root = document.root;
    let mut count = 0;
    let changed = |compound: Compound<'_>, count: &mut u64| -> Vec<u8> {
        nbt::payload(|out| {
            for field in compound.fields() {
                match list_of(&field) {
                    Some((name, list)) => {
                        let kept: Vec<_> =
                            list.compounds().flat_map(|entity| kept_of(entity, gone, count)).collect();
                        if kept.is_empty() && !list.is_empty() {
                            out.empty_list(name, Tag::End);
                        } else if kept.is_empty() {
                            out.raw_fields(field.raw);
                        } else {
                            out.raw_compounds(name, kept.iter().map(Vec::as_slice));
                        }
                    }
                    None => out.raw_fields(field.raw),
                }
            }
        })
    };
    let holder = holder(root);
    let payload = if holder == root {
        changed(root, &mut count)
    } else {
        let level = changed(holder, &mut count);
        nbt::payload(|out| {
            for field in root.fields() {
                if field.name == *"Level" {
                    out.raw_compound("Level", &level);
                } else {
                    out.raw_fields(field.raw);
                }
            }
        })
    };
    if count == 0 {
        return None;
    }
    let head_bytes = slot.len() - root.raw().len() - document.trailing.len();
    Some(([slot.get(..head_bytes)?, &payload].concat(), count))
}

/// The compound that holds the lists: `Level`, where the slot has one and no sections beside it.
fn holder(root: Compound<'_>) -> Compound<'_> {
    root.compound("Level").filter(|_| root.list("sections").is_none()).unwrap_or(root)
}

fn lists(holder: Compound<'_>) -> impl Iterator<Item = (&'static str, List<'_>)> {
    holder.fields().filter_map(|field| list_of(&field))
}

fn list_of<'a>(field: &Field<'a>) -> Option<(&'static str, List<'a>)> {
    let name = LISTS.into_iter().find(|name| field.name == **name)?;
    let list = field.value.as_list()?;
    (list.tag() == Tag::Compound || list.is_empty()).then_some((name, list))
}

fn add(entity: Compound<'_>, depth: usize, found: &mut Vec<Option<Uuid>>) {
    found.push(entity::uuid(entity));
    if depth < entity::MAX_RIDER_DEPTH {
        for rider in entity.list("Passengers").into_iter().flat_map(List::compounds) {
            add(rider, depth + 1, found);
        }
    }
}

/// Remainder of an entity and its riders without those in `gone`.
fn kept_of(entity: Compound<'_>, gone: &HashSet<Uuid>, count: &mut u64) -> Vec<Vec<u8>> {
    let whole = || vec![entity.raw().to_vec()];
    let Ok(mut records) = entity::split(entity.raw(), &nbt::Limits::default()) else { return whole() };
    let is_gone = |record: &EntityRecord| record.uuid.is_some_and(|uuid| gone.contains(&uuid));
    let gone_here = records.iter().filter(|record| is_gone(record)).count();
    if gone_here == 0 {
        return whole();
    }
    *count += gone_here as u64;
    // Riders come after what they ride, so that from the last on each knows which of its own stay.
    let mut stays = vec![Vec::new(); records.len()];
    for index in (0..records.len()).rev() {
        let Some(record) = records.get_mut(index) else { continue };
        let riders = record.riders.take();
        let offset_bytes = riders.as_ref().map_or(0, |riders| riders.offset_bytes);
        let ids = riders.map(|riders| riders.ids).unwrap_or_default();
        let ids: Vec<usize> = ids
            .into_iter()
            .flat_map(|id| stays.get_mut(id).map(std::mem::take).unwrap_or_default())
            .collect();
        let is_gone = is_gone(record);
        if !is_gone && !ids.is_empty() {
            record.riders = Some(Riders { offset_bytes, ids: ids.clone() });
        }
        if let Some(stays) = stays.get_mut(index) {
            *stays = if is_gone { ids } else { vec![index] };
        }
    }
    let roots = stays.first_mut().map(std::mem::take).unwrap_or_default();
    let join = |root: usize| entity::join(records.get(root)?, |&id| records.get(id)).ok();
    roots.into_iter().filter_map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn entity(number: i32, riders: &[Vec<u8>]) -> Vec<u8> {
        nbt::payload(|out| {
            out.int("before", number);
            if !riders.is_empty() {
                out.raw_compounds("Passengers", riders.iter().map(Vec::as_slice));
            }
            out.int_array("UUID", &[0, 0, 0, number]);
        })
    }

    /// A slot of each kind and version with these entities.
    fn slots(entities: &[Vec<u8>]) -> [Vec<u8>; 3] {
        let list = || entities.iter().map(Vec::as_slice);
        [
            nbt::document(|root| {
                root.int_array("Position", &[1, 2]);
                root.raw_compounds("Entities", list());
                root.int("after", 1);
            }),
            nbt::document(|root| {
                root.compound("Level", |level| {
                    level.int("xPos", 1);
                    level.raw_compounds("Entities", list());
                });
                root.int("DataVersion", 2000);
            }),
            nbt::document(|root| {
                root.raw_compounds("sections", [].into_iter());
                // What a tool left there; the game reads it no more.
                root.compound("Level", |level| {
                    level.raw_compounds("Entities", [&entity(9, &[])[..]].into_iter());
                });
                root.raw_compounds("entities", list());
            }),
        ]
    }

    #[test]
    fn entities_are_found_in_slots_of_every_kind() {
        let tower = entity(1, &[entity(2, &[entity(3, &[])]), entity(4, &[])]);
        for slot in slots(&[tower.clone(), entity(5, &[])]) {
            let root = Document::parse(&slot, &nbt::Limits::default()).expect("NBT").root;
            assert_eq!(uuids(root), [1, 2, 3, 4, 5].map(|number| Some(id(number))));
            assert_eq!(without(&slot, &HashSet::from([id(9)])), None);
        }
    }

    #[test]
    fn riders_of_what_is_taken_out_stay() {
        let tower = || entity(1, &[entity(2, &[entity(3, &[])]), entity(4, &[])]);
        for (gone, kept) in [
            (&[1][..], vec![entity(2, &[entity(3, &[])]), entity(4, &[]), entity(5, &[])]),
            (&[2], vec![entity(1, &[entity(3, &[]), entity(4, &[])]), entity(5, &[])]),
            (&[3, 4], vec![entity(1, &[entity(2, &[])]), entity(5, &[])]),
            (&[1, 2], vec![entity(3, &[]), entity(4, &[]), entity(5, &[])]),
            (&[2, 3, 4], vec![entity(1, &[]), entity(5, &[])]),
            (&[5], vec![tower()]),
        ] {
            let ids: HashSet<_> = gone.iter().map(|number| id(*number)).collect();
            for (slot, wanted) in slots(&[tower(), entity(5, &[])]).iter().zip(slots(&kept)) {
                assert_eq!(without(slot, &ids), Some((wanted, gone.len() as u64)), "{gone:?}");
            }
        }
    }

    #[test]
    fn a_list_without_its_last_entity_is_one_without_entities() {
        for (slot, wanted) in slots(&[entity(5, &[])]).iter().zip(slots(&[])) {
            assert_eq!(without(slot, &HashSet::from([id(5)])), Some((wanted, 1)));
        }
    }
}
