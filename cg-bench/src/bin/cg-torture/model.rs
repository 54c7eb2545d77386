//! The expected world: plain maps, changed by the same steps as the world under test and by none of its code.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

use crate::filling::Filling;
use crate::rng::Rng;
use crate::size::{CHEST, COINS_EACH, ITEMS, KINDS, PLACES, PLAYERS};
use crate::step::{Action, Holder, Step};

/// The world after a number of steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    /// How many steps were taken.
    pub(crate) steps: u64,
    /// The chunks, by place.
    pub(crate) chunks: BTreeMap<u8, Ground>,
    /// The entities, by number.
    pub(crate) entities: BTreeMap<u16, Body>,
    /// The players' coins.
    pub(crate) players: [u64; PLAYERS as usize],
    notes: BTreeMap<u8, Filling>,
    /// The steps that registered a name, in the order of the ids they got.
    names: Vec<u64>,
}

/// A chunk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ground {
    /// The number from which its blocks are made.
    pub(crate) content: u64,
    /// Cells that were changed since.
    pub(crate) edits: BTreeMap<u16, u64>,
    /// Coins in its chest.
    pub(crate) coins: u64,
    /// Its side data.
    pub(crate) side: Option<Filling>,
}

/// An entity.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    /// The place of the chunk that owns it; `None` if it is detached.
    pub(crate) owner: Option<u8>,
    /// Its component.
    pub(crate) tag: Filling,
}

/// A thing that can be read by itself and be lost by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Thing {
    /// The property that counts the steps.
    Steps,
    /// The chunk of a place.
    Chunk(u8),
    /// An entity.
    Entity(u16),
    /// A player's coins.
    Player(u8),
    /// A property.
    Note(u8),
    /// The block that a step registered.
    Name(u64),
    /// The object that every step writes.
    Object,
    /// The record that every step moves.
    Record,
}

/// Content of every thing, as a digest. An absent thing is not in the map.
pub(crate) type Picture = BTreeMap<Thing, u64>;

impl Model {
    /// The world before the first step.
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, u64::MAX);
        let mut model = Self { players: [COINS_EACH; PLAYERS as usize], ..Self::default() };
        for place in (0..PLACES).step_by(2) {
            model.chunks.insert(place, Ground { content: rng.next(), ..Ground::default() });
        }
        for item in 0..ITEMS {
            let owner = (!rng.one_in(8)).then(|| rng.below(PLACES.into()) as u8 & !1);
            let tag = Filling { seed: rng.next(), len_bytes: 40 };
            model.entities.insert(item, Body { owner, tag });
        }
        model
    }

    /// Takes the next step.
    pub(crate) fn take(&mut self, step: &Step) {
        assert_eq!(step.index, self.steps, "steps are taken in order");
        if step.registers {
            self.names.push(step.index);
        }
        for action in &step.actions {
            self.act(*action);
        }
        self.steps += 1;
    }

    /// The digests of all things.
    pub(crate) fn picture(&self) -> Picture {
        let mut picture = Picture::from([(Thing::Steps, digest(&self.steps.to_le_bytes()))]);
        for (place, ground) in &self.chunks {
            let guests = self.entities.iter().filter(|(_, body)| body.owner == Some(*place));
            picture.insert(Thing::Chunk(*place), ground.digest(guests.map(|(id, _)| *id)));
        }
        for (id, body) in &self.entities {
            picture.insert(Thing::Entity(*id), entity_digest(body.owner, &body.tag.bytes()));
        }
        for (player, coins) in (0..).zip(self.players) {
            picture.insert(Thing::Player(player), digest(&coins.to_le_bytes()));
        }
        for (note, filling) in &self.notes {
            picture.insert(Thing::Note(*note), digest(&filling.bytes()));
        }
        picture.insert(Thing::Object, object_digest(self.steps as i64, &self.steps.to_le_bytes()));
        picture.insert(Thing::Record, record_digest(wandered(self.steps), self.steps as i64));
        for (index, step) in (KINDS..).zip(&self.names) {
            picture.insert(Thing::Name(*step), digest(&index.to_le_bytes()));
        }
        picture
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Rewrite { place, content } => {
                let ground = self.chunks.entry(place).or_default();
                *ground = Ground { content, edits: BTreeMap::new(), ..ground.clone() };
            }
            Action::Dig { place, cell, block } => {
                if let Some(ground) = self.chunks.get_mut(&place) {
                    ground.edits.insert(cell, block);
                }
            }
            Action::Side { place, side } => {
                if let Some(ground) = self.chunks.get_mut(&place) {
                    ground.side = side;
                }
            }
            Action::Pay { from, to, coins } => self.pay(from, to, coins),
            Action::Note { note, filling } => {
                match filling {
                    Some(filling) => self.notes.insert(note, filling),
                    None => self.notes.remove(&note),
                };
            }
            Action::Tag { entity, filling } => {
                if let Some(body) = self.entities.get_mut(&entity) {
                    body.tag = filling;
                }
            }
            Action::Move { entity, to } => {
                let owner = to.filter(|place| self.chunks.contains_key(place));
                if let Some(body) = self.entities.get_mut(&entity) {
                    body.owner = owner;
                }
            }
            Action::Hand { entity, to } => {
                let there = self.chunks.contains_key(&to);
                if let Some(body) = self.entities.get_mut(&entity).filter(|_| there) {
                    body.owner = Some(to);
                }
            }
            Action::Toggle { creature, place, filling } => {
                if self.entities.remove(&creature).is_none() {
                    let owner = Some(place).filter(|place| self.chunks.contains_key(place));
                    self.entities.insert(creature, Body { owner, tag: filling });
                }
            }
            Action::Remove { place } => {
                let Some(ground) = self.chunks.remove(&place) else { return };
                self.players[0] += ground.coins;
                self.entities.retain(|id, body| *id < ITEMS || body.owner != Some(place));
                for body in self.entities.values_mut().filter(|body| body.owner == Some(place)) {
                    body.owner = None;
                }
            }
        }
    }

    fn pay(&mut self, from: Holder, to: Holder, coins: u64) {
        if from == to || self.purse(to).is_none() {
            return;
        }
        let Some(purse) = self.purse(from) else { return };
        let paid = coins.min(*purse);
        *purse -= paid;
        if let Some(purse) = self.purse(to) {
            *purse += paid;
        }
    }

    fn purse(&mut self, holder: Holder) -> Option<&mut u64> {
        match holder {
            Holder::Player(player) => self.players.get_mut(usize::from(player)),
            Holder::Chest(place) => self.chunks.get_mut(&place).map(|ground| &mut ground.coins),
        }
    }
}

impl Ground {
    fn digest(&self, guests: impl Iterator<Item = u16>) -> u64 {
        let mut blocks = blocks(self.content);
        for (cell, block) in &self.edits {
            blocks[usize::from(*cell)] = *block;
        }
        let side = self.side.map(Filling::bytes);
        chunk_digest(&blocks, is_layered(self.content), self.coins, side.as_deref(), guests)
    }
}

/// The blocks that a chunk's content stands for.
pub(crate) fn blocks(content: u64) -> [u64; 4096] {
    let mut rng = Rng::new(content);
    let kinds = [1, 2, 5, 17, KINDS - 2][rng.below(5) as usize];
    // Air, then stones.
    let mut blocks = std::array::from_fn(|_| match rng.below(kinds) {
        0 => 0,
        stone => stone + CHEST,
    });
    blocks[0] = CHEST;
    blocks
}

/// Whether a chunk's content has a second layer.
pub(crate) const fn is_layered(content: u64) -> bool {
    content.is_multiple_of(3)
}

/// The digest of a chunk; guests ascending.
pub(crate) fn chunk_digest(
    blocks: &[u64; 4096],
    layered: bool,
    coins: u64,
    side: Option<&[u8]>,
    guests: impl Iterator<Item = u16>,
) -> u64 {
    let mut bytes: Vec<u8> = blocks.iter().flat_map(|block| (*block as u32).to_le_bytes()).collect();
    bytes.push(layered.into());
    bytes.extend(coins.to_le_bytes());
    bytes.extend(side.map_or(u64::MAX, |side| side.len() as u64).to_le_bytes());
    bytes.extend(side.unwrap_or_default());
    bytes.extend(guests.flat_map(u16::to_le_bytes));
    digest(&bytes)
}

/// The digest of an entity.
pub(crate) fn entity_digest(owner: Option<u8>, tag: &[u8]) -> u64 {
    let mut bytes = vec![owner.is_some().into(), owner.unwrap_or_default()];
    bytes.extend(tag);
    digest(&bytes)
}

/// The digest of the object: its version and what it holds.
pub(crate) fn object_digest(version: i64, bytes: &[u8]) -> u64 {
    digest(&[&version.to_le_bytes(), bytes].concat())
}

/// The digest of the record: its block's x and its timestamp.
pub(crate) fn record_digest(x: i64, timestamp: i64) -> u64 {
    digest(&[x.to_le_bytes(), timestamp.to_le_bytes()].concat())
}

/// Where the record is after some steps: mostly in another leaf than before, on both sides of the origin.
pub(crate) const fn wandered(steps: u64) -> i64 {
    (steps * 7 % 1000) as i64 - 500
}

/// The digest of bytes.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Demands of the checks on a world must hold for the expected one.
    #[test]
    fn steps_move_coins_and_items_and_neither_make_nor_lose_any() {
        let mut model = Model::new(1);
        let (mut absent, mut detached) = (false, false);
        for index in 0..3000 {
            model.take(&Step::new(1, index));
            let chests: u64 = model.chunks.values().map(|ground| ground.coins).sum();
            assert_eq!(chests + model.players.iter().sum::<u64>(), COINS_EACH * u64::from(PLAYERS));
            assert!((0..ITEMS).all(|item| model.entities.contains_key(&item)), "step {index}");
            let homeless = |body: &Body| body.owner.is_some_and(|place| !model.chunks.contains_key(&place));
            assert!(!model.entities.values().any(homeless), "step {index}");
            absent |= model.chunks.len() < usize::from(PLACES);
            detached |= model.entities.values().any(|body| body.owner.is_none());
        }
        assert!(absent && detached && model.players.iter().any(|coins| *coins < COINS_EACH));
    }

    #[test]
    fn every_step_is_seen_in_the_picture() {
        let mut model = Model::new(2);
        let mut before = model.picture();
        for index in 0..50 {
            model.take(&Step::new(2, index));
            let after = model.picture();
            assert_ne!(before, after);
            before = after;
        }
    }
}
