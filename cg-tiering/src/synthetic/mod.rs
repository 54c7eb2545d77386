//! Traces from a seed: typical players on servers, and the requests of a host for them.
//!
//! The host is simple. It shows each player the chunks around it, loads what comes into view and generates absent
//! chunks. It unloads what no player sees, and saves changed chunks every half minute. Once a second it reports the
//! time and all positions to the world.

mod rng;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use cg_format::{BlockPos, ChunkAt, ChunkBox, ChunkPos, Dimension, EntityId};

use self::rng::{Rng, mix};
use crate::trace::Event;
use crate::{GameTick, PlayerAt};

/// The behaviour of players.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scenario {
    /// Ten players walk into new land, each alone, and turn sometimes.
    Explorers,
    /// Twenty players live within 150 blocks of each other, in an existing world, and build.
    Town,
    /// Five players dig straight down through new land.
    Mine,
    /// One player jumps between eight places of an existing world, and stays for half a minute to a minute and a half.
    Admin,
    /// A hundred players live apart, spread over 100,000 blocks on every axis, in an existing world, and build.
    Spread,
    /// A hundred players fly over an existing world at 30 blocks per second, each straight ahead.
    Fliers,
}

/// The description of a trace.
///
/// ```
/// use cg_tiering::simulate::{StoreModel, simulate};
/// use cg_tiering::synthetic::{Scenario, Synthetic};
/// use cg_tiering::TierPolicy;
/// let visit = Synthetic { minutes: 1, ..Synthetic::new(Scenario::Admin, 7) };
/// let report = simulate(visit.events(), TierPolicy::default(), StoreModel::default())?;
/// assert!(report.loads[2] > 1000, "what he sees is cold");
/// # Ok::<(), cg_tiering::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Synthetic {
    /// The behaviour of players.
    pub scenario: Scenario,
    /// Equal seeds give equal traces.
    pub seed: u64,
    /// The number of players.
    pub players: u32,
    /// The duration, in game time.
    pub minutes: u64,
    /// The view distance of players, in chunks, the same on every axis.
    pub view_chunks: u32,
}

impl Scenario {
    /// All scenarios.
    pub const ALL: [Self; 6] =
        [Self::Explorers, Self::Town, Self::Mine, Self::Admin, Self::Spread, Self::Fliers];

    /// Its name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Explorers => "explorers",
            Self::Town => "town",
            Self::Mine => "mine",
            Self::Admin => "admin",
            Self::Spread => "spread",
            Self::Fliers => "fliers",
        }
    }

    /// The scenario of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scenario| scenario.name() == name)
    }

    const fn players(self) -> u32 {
        match self {
            Self::Explorers => 10,
            Self::Town => 20,
            Self::Mine => 5,
            Self::Admin => 1,
            Self::Spread | Self::Fliers => 100,
        }
    }

    /// Whether chunks existed in the world before.
    const fn is_settled(self) -> bool {
        !matches!(self, Self::Explorers | Self::Mine)
    }

    /// In how many of a hundred seconds a player changes a chunk.
    const fn busy_percent(self) -> u64 {
        match self {
            Self::Explorers => 5,
            Self::Town | Self::Spread => 40,
            Self::Mine => 100,
            Self::Admin | Self::Fliers => 0,
        }
    }
}

impl Synthetic {
    /// A scenario with its number of players, one hour, and a view of five chunks.
    pub const fn new(scenario: Scenario, seed: u64) -> Self {
        Self { scenario, seed, players: scenario.players(), minutes: 60, view_chunks: 5 }
    }

    /// The events, generated lazily.
    pub fn events(self) -> Events {
        Events::new(self)
    }
}

/// The events of a [`Synthetic`] trace.
#[derive(Debug, Clone)]
pub struct Events {
    plan: Synthetic,
    rng: Rng,
    players: Vec<Player>,
    /// The number of players that see each chunk.
    seen: HashMap<ChunkPos, u32>,
    /// Chunks that were generated, in a world that did not exist before.
    generated: HashSet<ChunkPos>,
    dirty: BTreeSet<ChunkPos>,
    second: u64,
    queue: VecDeque<Event>,
}

#[derive(Debug, Clone, Copy)]
struct Player {
    id: EntityId,
    home: BlockPos,
    /// In thousandths of a block.
    at: [i64; 3],
    /// In thousandths of a block per second.
    speed: [i64; 3],
    /// When the player changes its direction.
    until_second: u64,
    view: Option<ChunkBox>,
}

const MILLI: i64 = 1000;
const AUTOSAVE_SECONDS: u64 = 30;
const DIMENSION: Dimension = Dimension::new(0);

impl Events {
    fn new(plan: Synthetic) -> Self {
        let mut rng = Rng::new(plan.seed);
        // A random place far from the ends of the world.
        let center = BlockPos::new(rng.around(1 << 40), rng.around(1 << 40), rng.around(1 << 40));
        let reach = match plan.scenario {
            Scenario::Explorers | Scenario::Mine => 30,
            Scenario::Town => 150,
            Scenario::Admin => 0,
            Scenario::Spread => 50_000,
            Scenario::Fliers => 20_000,
        };
        let players = (0..plan.players).map(|number| {
            let away = |rng: &mut Rng| rng.around(reach);
            let home = BlockPos::new(
                center.x + away(&mut rng),
                center.y + away(&mut rng),
                center.z + away(&mut rng),
            );
            let mut id = [0; 16];
            for (byte, value) in id.iter_mut().zip(number.to_le_bytes()) {
                *byte = value;
            }
            Player {
                id: EntityId::from_bytes(id),
                home,
                at: [home.x * MILLI, home.y * MILLI, home.z * MILLI],
                speed: [0; 3],
                until_second: 0,
                view: None,
            }
        });
        let players = players.collect();
        Self {
            plan,
            rng,
            players,
            seen: HashMap::new(),
            generated: HashSet::new(),
            dirty: BTreeSet::new(),
            second: 0,
            queue: VecDeque::new(),
        }
    }

    /// One second of the server.
    fn play_second(&mut self) {
        self.second += 1;
        self.queue.push_back(Event::Tick(GameTick::new(self.second * GameTick::PER_SECOND)));
        for number in 0..self.players.len() {
            let Some(mut player) = self.players.get(number).copied() else { continue };
            self.decide(&mut player);
            for (at, speed) in player.at.iter_mut().zip(player.speed) {
                *at += speed;
            }
            let at = PlayerAt { id: player.id, dimension: DIMENSION, block: player.block() };
            self.queue.push_back(Event::Player(at));
            self.look(&mut player);
            self.build(&player);
            if let Some(place) = self.players.get_mut(number) {
                *place = player;
            }
        }
        if self.second.is_multiple_of(AUTOSAVE_SECONDS) {
            for pos in std::mem::take(&mut self.dirty) {
                self.save(pos);
            }
        }
    }

    /// Chooses a player's next movement.
    fn decide(&mut self, player: &mut Player) {
        if self.second < player.until_second {
            return;
        }
        let rng = &mut self.rng;
        let (seconds, speed) = match self.plan.scenario {
            Scenario::Explorers => (30 + rng.below(60), heading(rng, 4317)),
            Scenario::Town | Scenario::Spread => {
                // It walks about, and turns back when it is far from home.
                let away =
                    player.block().x.abs_diff(player.home.x).max(player.block().z.abs_diff(player.home.z));
                let back = [player.home.x * MILLI - player.at[0], 0, player.home.z * MILLI - player.at[2]];
                if away > 60 {
                    (10, back.map(|way| way / 10))
                } else if rng.below(3) == 0 {
                    (5 + rng.below(10), heading(rng, 4317))
                } else {
                    (5 + rng.below(20), [0; 3])
                }
            }
            Scenario::Mine => (3600, [0, -500, 0]),
            Scenario::Admin => {
                let place = mix(self.plan.seed ^ (rng.below(8) + 1));
                let away = |shift: u32| ((place >> shift & 0xffff) as i64 - 0x8000) * MILLI;
                let home = [player.home.x, player.home.y, player.home.z].map(|at| at * MILLI);
                player.at = [home[0] + away(0), home[1] + away(16) / 100, home[2] + away(32)];
                (30 + rng.below(60), [0; 3])
            }
            Scenario::Fliers => (u64::MAX, heading(rng, 30_000)),
        };
        player.speed = speed;
        player.until_second = self.second.saturating_add(seconds);
    }

    /// Loads what came into a player's view, and unloads what no player sees any more.
    fn look(&mut self, player: &mut Player) {
        let view = ChunkBox::around(player.block().chunk(), self.plan.view_chunks).ok();
        if view == player.view {
            return;
        }
        let before = std::mem::replace(&mut player.view, view);
        let is_in = |place: Option<ChunkBox>, pos| place.is_some_and(|place| place.contains(pos));
        for pos in view.iter().flat_map(ChunkBox::iter).filter(|pos| !is_in(before, *pos)) {
            let count = self.seen.entry(pos).or_default();
            *count += 1;
            if *count == 1 {
                self.load(pos);
            }
        }
        for pos in before.iter().flat_map(ChunkBox::iter).filter(|pos| !is_in(view, *pos)) {
            let count = self.seen.get_mut(&pos).map_or(0, |count| {
                *count -= 1;
                *count
            });
            if count == 0 {
                self.seen.remove(&pos);
                if self.dirty.remove(&pos) {
                    self.save(pos);
                }
                self.queue.push_back(Event::Unload(ChunkAt::new(DIMENSION, pos)));
            }
        }
    }

    fn load(&mut self, pos: ChunkPos) {
        let chunk = ChunkAt::new(DIMENSION, pos);
        let is_new = !self.plan.scenario.is_settled() && self.generated.insert(pos);
        let len_bytes = if is_new { 0 } else { len_bytes(pos) };
        self.queue.push_back(Event::Load { chunk, len_bytes });
        if is_new {
            self.save(pos);
        }
    }

    fn save(&mut self, pos: ChunkPos) {
        let chunk = ChunkAt::new(DIMENSION, pos);
        self.queue.push_back(Event::Save { chunk, len_bytes: len_bytes(pos) });
    }

    /// Sometimes changes a chunk near a player.
    fn build(&mut self, player: &Player) {
        if self.rng.below(100) < self.plan.scenario.busy_percent() {
            let near = [self.rng.around(1), self.rng.around(1), self.rng.around(1)];
            self.dirty.extend(player.block().chunk().offset(near[0], near[1], near[2]));
        }
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        while self.queue.is_empty() {
            if self.second >= self.plan.minutes * 60 {
                return None;
            }
            self.play_second();
        }
        self.queue.pop_front()
    }
}

impl Player {
    const fn block(&self) -> BlockPos {
        let [x, y, z] = self.at;
        BlockPos::new(x.div_euclid(MILLI), y.div_euclid(MILLI), z.div_euclid(MILLI))
    }
}

/// A direction on the ground, with a speed in thousandths of a block per second.
fn heading(rng: &mut Rng, speed: i64) -> [i64; 3] {
    let (x, z) = (rng.around(1000), rng.around(1000));
    let len = (x * x + z * z).isqrt().max(1);
    [x * speed / len, 0, z * speed / len]
}

/// The size of a chunk. It is derived from the position, so that it is the same each time.
fn len_bytes(pos: ChunkPos) -> u32 {
    let [x, y, z] = [pos.x() as u64, pos.y() as u64, pos.z() as u64];
    800 + (mix(mix(mix(x) ^ y) ^ z) % 2400) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_traces_and_others_do_not() {
        for scenario in Scenario::ALL {
            let plan = Synthetic { players: 2, minutes: 1, view_chunks: 2, ..Synthetic::new(scenario, 5) };
            let events: Vec<_> = plan.events().collect();
            assert!(events.len() > 300, "{scenario:?}: {}", events.len());
            assert!(plan.events().eq(events.iter().copied()), "{scenario:?}");
            assert!(!Synthetic { seed: 6, ..plan }.events().eq(events), "{scenario:?}");
            assert_eq!(Scenario::from_name(scenario.name()), Some(scenario));
        }
    }

    #[test]
    fn what_is_loaded_is_let_go_and_loaded_again_as_it_was_saved() {
        for scenario in Scenario::ALL {
            let plan = Synthetic { players: 2, minutes: 3, view_chunks: 2, ..Synthetic::new(scenario, 5) };
            let (mut loaded, mut known) = (HashSet::new(), HashMap::new());
            for event in plan.events() {
                match event {
                    Event::Load { chunk, len_bytes } => {
                        assert!(loaded.insert(chunk), "{scenario:?}: {chunk} is loaded already");
                        let before = known.insert(chunk, len_bytes);
                        let expected = if scenario.is_settled() { len_bytes } else { 0 };
                        assert_eq!(before.unwrap_or(expected), len_bytes, "{scenario:?}: {chunk}");
                    }
                    Event::Save { chunk, len_bytes } => {
                        assert!(loaded.contains(&chunk), "{scenario:?}: {chunk} is not loaded");
                        known.insert(chunk, len_bytes);
                    }
                    Event::Unload(chunk) => assert!(loaded.remove(&chunk), "{scenario:?}: {chunk}"),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn fliers_fly_thirty_blocks_a_second_and_miners_go_down() {
        let way = |scenario| {
            let plan = Synthetic { players: 1, minutes: 1, view_chunks: 0, ..Synthetic::new(scenario, 1) };
            let mut places = plan.events().filter_map(|event| match event {
                Event::Player(player) => Some(player.block),
                _ => None,
            });
            let (first, last) = (places.next().unwrap(), places.last().unwrap());
            [last.x - first.x, last.y - first.y, last.z - first.z]
        };
        let [x, y, z] = way(Scenario::Fliers);
        let blocks = (x * x + z * z).isqrt();
        assert!((30 * 59 - 3..=30 * 59 + 3).contains(&blocks) && y == 0, "{blocks} blocks");
        assert_eq!(way(Scenario::Mine), [0, -29, 0], "half a block a second");
    }
}
