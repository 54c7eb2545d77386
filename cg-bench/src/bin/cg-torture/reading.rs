//! Reading a world back: every thing by itself, as a digest or an error.

use std::collections::BTreeMap;

use cg_format::key::Family;
use cg_store::prelude::*;
use cg_store::verify::VerifyDepth;

use crate::failure::Failure;
use crate::model::{self, Picture, Thing};
use crate::size::{COINS_EACH, ENTITIES, ITEMS, LAYERED_BLOCK, NOTES, PLACES, PLAYERS};
use crate::step::Step;
use crate::subject::{self, Ids, at, entity_id, entity_number, layered_cell, number};

/// Everything that was read from a world.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The content that was read, by thing.
    pub(crate) picture: Picture,
    /// Things that could not be read, with the error.
    pub(crate) unreadable: BTreeMap<Thing, String>,
    /// How many steps the world says it has taken, if that could be read.
    pub(crate) steps: Option<u64>,
    /// The coins of all players and chests.
    pub(crate) coins: u64,
    /// The places whose chunks refer to an item, and whether the item says the same.
    items: BTreeMap<u16, (Vec<u8>, Option<Owner>)>,
}

impl Reading {
    /// Reads every thing that the expected world may have, and every name that its steps may have registered.
    pub(crate) fn of(world: &World, steps: u64, seed: u64) -> Result<Self, Failure> {
        let ids = Ids::of(world)?;
        let mut reading = Self::default();
        reading.properties(world)?;
        for place in 0..PLACES {
            reading.note(Thing::Chunk(place), world.load(at(place)), |reading, chunk| {
                reading.chunk(ids, place, &chunk)
            });
        }
        for id in 0..ENTITIES {
            reading.note(Thing::Entity(id), world.entity(entity_id(id)), |reading, entity| {
                if id < ITEMS {
                    reading.items.entry(id).or_default().1 = Some(entity.owner.clone());
                }
                entity_digest(ids, id, &entity)
            });
        }
        reading.note(Thing::Object, world.objects().get(subject::OBJECT), |_, object| {
            model::object_digest(object.version, &object.bytes)
        });
        reading.note(Thing::Record, world.records().get(subject::RECORD), |_, record| {
            model::record_digest(record.position.block().x, record.timestamp)
        });
        let catalog = world.catalog();
        for step in (0..steps).filter(|step| Step::new(seed, *step).registers) {
            if let Some(id) = catalog.block_id(&subject::block_name(step)) {
                reading.picture.insert(Thing::Name(step), model::digest(&id.get().to_le_bytes()));
            }
        }
        Ok(reading)
    }

    /// Whether no coin and no item was lost or doubled, whatever the model says.
    pub(crate) fn conserved(&self) -> Result<(), String> {
        let coins = COINS_EACH * u64::from(PLAYERS);
        if self.coins != coins {
            return Err(format!("there are {} coins, not {coins}", self.coins));
        }
        if self.items.len() != usize::from(ITEMS) {
            return Err(format!("there are {} items, not {ITEMS}", self.items.len()));
        }
        for (id, (places, owner)) in &self.items {
            let agree = match (places.as_slice(), owner) {
                ([], Some(Owner::Detached(_))) => true,
                ([place], Some(Owner::Chunk(owner))) => *owner == at(*place),
                _ => false,
            };
            if !agree {
                return Err(format!("item {id} is owned by {owner:?} and referred to at {places:?}"));
            }
        }
        Ok(())
    }

    fn properties(&mut self, world: &World) -> Result<(), Failure> {
        self.note(Thing::Steps, world.property(&subject::named(subject::STEPS)?), |reading, bytes| {
            reading.steps = Some(number(&bytes));
            model::digest(&bytes)
        });
        for player in 0..PLAYERS {
            self.note(
                Thing::Player(player),
                world.property(&subject::player_name(player)?),
                |reading, bytes| {
                    reading.coins += number(&bytes);
                    model::digest(&bytes)
                },
            );
        }
        for note in 0..NOTES {
            let bytes = world.property(&subject::note_name(note)?);
            self.note(Thing::Note(note), bytes, |_, bytes| model::digest(&bytes));
        }
        Ok(())
    }

    fn chunk(&mut self, ids: Ids, place: u8, chunk: &Chunk) -> u64 {
        let blocks = Box::new(std::array::from_fn(|cell| {
            let cell = LocalPos::from_index(cell as u16).expect("there are 4096 cells");
            chunk.block(cell).get()
        }));
        let layers: Vec<_> = chunk.upper_layers().collect();
        let expected = (CellLayer::new(layered_cell(), 1), BlockId::new(LAYERED_BLOCK));
        let mut guests: Vec<u16> = chunk.entities().iter().map(|id| entity_number(*id)).collect();
        guests.sort_unstable();
        for id in guests.iter().filter(|id| **id < ITEMS) {
            self.items.entry(*id).or_default().0.push(place);
        }
        self.coins += ids.chest(chunk);
        let digest = model::chunk_digest(
            &blocks,
            !layers.is_empty(),
            ids.chest(chunk),
            chunk.side(ids.side),
            guests.into_iter(),
        );
        let as_made = layers.is_empty() || layers == [expected];
        if as_made && chunk.components().count() == 1 { digest } else { !digest }
    }

    fn note<T>(
        &mut self,
        thing: Thing,
        found: Result<Option<T>, Error>,
        digest: impl FnOnce(&mut Self, T) -> u64,
    ) {
        match found {
            Ok(Some(value)) => {
                let digest = digest(self, value);
                self.picture.insert(thing, digest);
            }
            Ok(None) => {}
            Err(error) => drop(self.unreadable.insert(thing, error.to_string())),
        }
    }
}

/// How many rows of each kind verification saw.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// Looks at every row: the first finding if there is one, else the counts.
pub(crate) fn verify(world: &World) -> Result<Counts, Failure> {
    let report = world.verify(VerifyDepth::Full, |_| {})?;
    match report.findings.first() {
        None => Ok(report.checked),
        Some(finding) => {
            let more = report.findings.len() - 1;
            Err(format!("verify: {} and {more} more", finding.what).into())
        }
    }
}

/// Compares counts with what is expected to be there, so that nothing is there which was not read.
pub(crate) fn compare_counts(found: &Counts, expected: &Picture) -> Result<(), Failure> {
    let count = |wanted: fn(&Thing) -> bool| expected.keys().filter(|thing| wanted(thing)).count() as u64;
    let counts = [
        ("chunks", count(|thing| matches!(thing, Thing::Chunk(_)))),
        (Family::Entity.name(), count(|thing| matches!(thing, Thing::Entity(_)))),
        (
            Family::WorldProperties.name(),
            count(|thing| matches!(thing, Thing::Steps | Thing::Player(_) | Thing::Note(_))),
        ),
        (Family::Object.name(), count(|thing| matches!(thing, Thing::Object))),
        // The record, and where it lies.
        (Family::Record.name(), 2 * count(|thing| matches!(thing, Thing::Record))),
    ];
    for (what, expected) in counts {
        let found = found.get(what).copied().unwrap_or_default();
        if found != expected {
            return Err(format!("verify saw {found} of {what}, not {expected}").into());
        }
    }
    Ok(())
}

fn entity_digest(ids: Ids, id: u16, entity: &Entity) -> u64 {
    let owner = match &entity.owner {
        Owner::Chunk(owner) => Some((0..PLACES).find(|place| at(*place) == *owner).unwrap_or(u8::MAX)),
        Owner::Detached(_) => None,
    };
    let tag = entity.component(ids.tag).unwrap_or_default();
    let digest = model::entity_digest(owner, tag);
    let as_made =
        entity.kind == ids.kind && subject::position(id).is_ok_and(|position| position == entity.position);
    if as_made { digest } else { !digest }
}
