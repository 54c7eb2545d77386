//! The state of reader and writer after the earlier records. It is the same on both sides.

use std::collections::{BTreeSet, HashMap};

use cg_format::{BlockPos, ChunkAt, ChunkPos, Dimension, EntityId, Problem};

use super::Event;
use super::record::{Place, Record, What};
use crate::{GameTick, PlayerAt};

#[derive(Debug, Clone, Default)]
pub(super) struct State {
    now: GameTick,
    /// Players by number: the id and the position; `None` after the player left.
    players: Vec<(EntityId, Option<(Dimension, BlockPos)>)>,
    numbers: HashMap<EntityId, u32>,
    /// The chunk of the last record with one.
    chunk: Option<ChunkAt>,
    held: BTreeSet<u64>,
    pinned: BTreeSet<u64>,
}

impl State {
    /// The record of an event, which is its only form; `None` if the event has no new information.
    pub(super) fn record_of(&self, event: &Event) -> Option<Record> {
        match *event {
            Event::Tick(now) => match now.since(self.now) {
                0 => None,
                ticks => Some(u32::try_from(ticks).map_or(Record::Tick(now.get()), Record::Advance)),
            },
            Event::Player(PlayerAt { id, dimension, block }) => {
                let Some(player) = self.numbers.get(&id).copied() else {
                    return Some(Record::Appear { id, dimension, block });
                };
                match self.place_of(player) {
                    Some(known) if known == (dimension, block) => None,
                    Some((known, before)) if known == dimension => {
                        Some(step(before, block).map_or(Record::Place { player, dimension, block }, |step| {
                            Record::Step { player, step }
                        }))
                    }
                    _ => Some(Record::Place { player, dimension, block }),
                }
            }
            Event::Leave(id) => {
                let player = self.numbers.get(&id).copied()?;
                self.place_of(player).map(|_| Record::Leave { player })
            }
            Event::Load { chunk, len_bytes } => Some(self.chunk_record(chunk, What::Load { len_bytes })),
            Event::Save { chunk, len_bytes } => Some(self.chunk_record(chunk, What::Save { len_bytes })),
            Event::Unload(chunk) => Some(self.chunk_record(chunk, What::Unload)),
            Event::Hold { hold, dimension, place } => {
                (!self.held.contains(&hold)).then_some(Record::Hold { hold, dimension, place })
            }
            Event::Release(hold) => self.held.contains(&hold).then_some(Record::Release { hold }),
            Event::Pin { pin, dimension, place } => {
                (!self.pinned.contains(&pin)).then_some(Record::Pin { pin, dimension, place })
            }
            Event::Unpin(pin) => self.pinned.contains(&pin).then_some(Record::Unpin { pin }),
        }
    }

    /// The event of a record, in the present state.
    pub(super) fn event_of(&self, record: &Record) -> Result<Event, Problem> {
        Ok(match *record {
            Record::Advance(ticks) => {
                let now = self.now.get().checked_add(ticks.into());
                let beyond = Problem::OutOfRange {
                    field: "advance",
                    found: ticks.into(),
                    allowed: "what leaves the tick below 2^64",
                };
                Event::Tick(GameTick::new(now.ok_or(beyond)?))
            }
            Record::Tick(tick) => Event::Tick(GameTick::new(tick)),
            Record::Appear { id, dimension, block } => Event::Player(PlayerAt { id, dimension, block }),
            Record::Step { player, step } => {
                let (id, Some((dimension, before))) = self.player(player)? else {
                    let allowed = "a player who is there";
                    return Err(Problem::OutOfRange { field: "player", found: player.into(), allowed });
                };
                let add = |field, from: i64, by: i16| {
                    let by = i64::from(by);
                    let beyond = Problem::OutsideWorld { field, found: by, min: i64::MIN, max: i64::MAX };
                    from.checked_add(by).ok_or(beyond)
                };
                let x = add("step x", before.x, step[0])?;
                let y = add("step y", before.y, step[1])?;
                let z = add("step z", before.z, step[2])?;
                Event::Player(PlayerAt { id, dimension, block: BlockPos::new(x, y, z) })
            }
            Record::Place { player, dimension, block } => {
                Event::Player(PlayerAt { id: self.player(player)?.0, dimension, block })
            }
            Record::Leave { player } => Event::Leave(self.player(player)?.0),
            Record::Chunk { what, place } => {
                let chunk = self.chunk(place)?;
                match what {
                    What::Load { len_bytes } => Event::Load { chunk, len_bytes },
                    What::Save { len_bytes } => Event::Save { chunk, len_bytes },
                    What::Unload => Event::Unload(chunk),
                }
            }
            Record::Hold { hold, dimension, place } => Event::Hold { hold, dimension, place },
            Record::Release { hold } => Event::Release(hold),
            Record::Pin { pin, dimension, place } => Event::Pin { pin, dimension, place },
            Record::Unpin { pin } => Event::Unpin(pin),
        })
    }

    /// Updates the state with an event.
    pub(super) fn apply(&mut self, event: &Event) {
        match *event {
            Event::Tick(now) => self.now = self.now.max(now),
            Event::Player(PlayerAt { id, dimension, block }) => {
                let next = self.players.len() as u32;
                let number = *self.numbers.entry(id).or_insert(next);
                if number == next {
                    self.players.push((id, None));
                }
                self.set_place(number, Some((dimension, block)));
            }
            Event::Leave(id) => {
                if let Some(number) = self.numbers.get(&id).copied() {
                    self.set_place(number, None);
                }
            }
            Event::Load { chunk, .. } | Event::Save { chunk, .. } | Event::Unload(chunk) => {
                self.chunk = Some(chunk);
            }
            Event::Hold { hold, .. } => {
                self.held.insert(hold);
            }
            Event::Release(hold) => {
                self.held.remove(&hold);
            }
            Event::Pin { pin, .. } => {
                self.pinned.insert(pin);
            }
            Event::Unpin(pin) => {
                self.pinned.remove(&pin);
            }
        }
    }

    /// The players that are present and not listed.
    pub(super) fn missing(&self, listed: &[PlayerAt]) -> Vec<EntityId> {
        let listed: BTreeSet<EntityId> = listed.iter().map(|player| player.id).collect();
        let there = self.players.iter().filter(|(id, place)| place.is_some() && !listed.contains(id));
        there.map(|(id, _)| *id).collect()
    }

    fn chunk_record(&self, chunk: ChunkAt, what: What) -> Record {
        let near = self.chunk.filter(|last| last.dimension == chunk.dimension).and_then(|last| {
            let [x, y, z] = chunk.pos.relative_to(last.pos);
            Some([i8::try_from(x).ok()?, i8::try_from(y).ok()?, i8::try_from(z).ok()?])
        });
        Record::Chunk { what, place: near.map_or(Place::At(chunk), Place::Near) }
    }

    fn chunk(&self, place: Place) -> Result<ChunkAt, Problem> {
        let step = match place {
            Place::At(chunk) => return Ok(chunk),
            Place::Near(step) => step,
        };
        let [dx, dy, dz] = step.map(i64::from);
        let Some(last) = self.chunk else {
            let allowed = "a place in full, as no chunk was named before";
            return Err(Problem::OutOfRange { field: "chunk step x", found: dx.unsigned_abs(), allowed });
        };
        let pos = last.pos.offset(dx, dy, dz).ok_or(Problem::OutsideWorld {
            field: "chunk step x",
            found: dx,
            min: ChunkPos::MIN,
            max: ChunkPos::MAX,
        })?;
        Ok(ChunkAt::new(last.dimension, pos))
    }

    fn player(&self, number: u32) -> Result<(EntityId, Option<(Dimension, BlockPos)>), Problem> {
        let allowed = "a player who appeared before";
        let unknown = Problem::OutOfRange { field: "player", found: number.into(), allowed };
        self.players.get(number as usize).copied().ok_or(unknown)
    }

    fn place_of(&self, number: u32) -> Option<(Dimension, BlockPos)> {
        self.players.get(number as usize)?.1
    }

    fn set_place(&mut self, number: u32, place: Option<(Dimension, BlockPos)>) {
        if let Some(player) = self.players.get_mut(number as usize) {
            player.1 = place;
        }
    }
}

/// The distance between two blocks, if a step can encode it.
fn step(from: BlockPos, to: BlockPos) -> Option<[i16; 3]> {
    let axis = |from: i64, to: i64| i16::try_from(to.checked_sub(from)?).ok();
    Some([axis(from.x, to.x)?, axis(from.y, to.y)?, axis(from.z, to.z)?])
}
