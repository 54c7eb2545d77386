//! Simulation: the cost of a trace under a policy.
//!
//! The real [`Observers`] and the real [`MovePlan`] decide. They move the rows of a model of the store that has sizes
//! and no contents. The rules of the model are those of the store:
//! - A load reads L0, then L1, then L2, and fetches the whole row where it finds the chunk.
//! - A save puts a row into L0, and so does a promotion.
//! - A demotion merges rows into a cluster, which is rewritten.
//! - A cluster with a quarter of its slots shadowed is rewritten after some time.
//!
//! A chunk that a trace loads and never saved existed before, in a full L2 cluster. The LSM tree below is not modelled.
//! The same trace, policy and model give the same report.

mod model;
mod report;
mod row_cache;
mod waiting;

use std::collections::BTreeMap;

use cg_format::{ChunkAt, ClusterTier, EntityId, Tier};

pub use model::StoreModel;
pub use report::{Comparison, Report};

use self::model::{Lying, Rows};
use self::row_cache::RowCache;
use self::waiting::Waiting;
use crate::trace::Event;
use crate::{
    Candidate, ClusterAt, CubeAt, GameTick, HoldId, MovePlan, Observation, Observers, PinId, PlayerAt,
    PolicyError, ShadowedSlots, Step, TierPolicy,
};

/// Replays a trace with a policy.
///
/// # Errors
/// [`PolicyError`] for an invalid policy.
pub fn simulate(
    events: impl IntoIterator<Item = Event>,
    policy: TierPolicy,
    model: StoreModel,
) -> Result<Report, PolicyError> {
    let mut simulation = Simulation::new(policy, model)?;
    for event in events {
        simulation.apply(&event);
    }
    Ok(simulation.finish())
}

/// The replay of a trace.
///
/// ```
/// use cg_format::{ChunkAt, ChunkPos, Dimension};
/// use cg_tiering::simulate::{Simulation, StoreModel};
/// use cg_tiering::trace::Event;
/// use cg_tiering::{GameTick, TierPolicy};
/// let mut simulation = Simulation::new(TierPolicy::default(), StoreModel::default())?;
/// let chunk = ChunkAt::new(Dimension::new(0), ChunkPos::constant(1, 2, 3));
/// simulation.apply(&Event::Save { chunk, len_bytes: 2000 });
/// simulation.apply(&Event::Tick(GameTick::new(20 * 60 * 60)));
/// let report = simulation.finish();
/// assert_eq!(report.chunks, [0, 0, 1], "an hour later, with nobody near, it is cold");
/// # Ok::<(), cg_tiering::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Simulation {
    model: StoreModel,
    seen: Observers,
    plan: MovePlan,
    rows: Rows,
    cache: RowCache,
    now: GameTick,
    players: BTreeMap<EntityId, PlayerAt>,
    players_changed: bool,
    holds: BTreeMap<u64, HoldId>,
    pins: BTreeMap<u64, PinId>,
    scanned_to: Option<CubeAt>,
    /// The cubes of the L2 move in progress.
    staged: Vec<CubeAt>,
    /// Clusters that are shadowed in part and may be rewritten later.
    shadowed: Waiting,
    report: Report,
}

/// The result of a tick: whether it was idle, and the next work.
struct Done {
    idle: bool,
    next: Option<GameTick>,
}

impl Simulation {
    /// Creates an empty store.
    ///
    /// # Errors
    /// [`PolicyError`] for an invalid policy.
    pub fn new(policy: TierPolicy, model: StoreModel) -> Result<Self, PolicyError> {
        policy.validate()?;
        Ok(Self {
            model,
            seen: Observers::new(policy, GameTick::default()),
            plan: MovePlan::new(),
            rows: Rows::default(),
            cache: RowCache::new(model.row_cache_bytes),
            now: GameTick::default(),
            players: BTreeMap::new(),
            players_changed: false,
            holds: BTreeMap::new(),
            pins: BTreeMap::new(),
            scanned_to: None,
            staged: Vec::new(),
            shadowed: Waiting::default(),
            report: Report::default(),
        })
    }

    /// Replays an event. When time advances, the work of every tick is done; ticks without work are skipped.
    pub fn apply(&mut self, event: &Event) {
        match *event {
            Event::Tick(now) => self.advance(now),
            Event::Player(player) => {
                self.players_changed |= self.players.insert(player.id, player) != Some(player);
            }
            Event::Leave(id) => self.players_changed |= self.players.remove(&id).is_some(),
            Event::Load { chunk, len_bytes } => self.load(chunk, len_bytes),
            Event::Save { chunk, len_bytes } => self.save(chunk, len_bytes),
            Event::Unload(chunk) => self.seen.touch(chunk, self.now),
            Event::Hold { hold, dimension, place } => match self.seen.hold(dimension, &place, self.now) {
                Ok(id) => {
                    self.holds.insert(hold, id);
                }
                Err(_) => self.report.refused_holds += 1,
            },
            Event::Release(hold) => {
                if let Some(id) = self.holds.remove(&hold) {
                    self.seen.release(id, self.now);
                }
            }
            Event::Pin { pin, dimension, place } => {
                self.pins.insert(pin, self.seen.pin(dimension, place));
            }
            Event::Unpin(pin) => {
                if let Some(id) = self.pins.remove(&pin) {
                    self.seen.unpin(id);
                }
            }
        }
    }

    /// The counters up to now, and the present content of each tier.
    pub fn finish(&self) -> Report {
        let mut report = Report { last_tick: self.now.get(), ..self.report };
        for cube in self.rows.cubes() {
            for tier in Tier::ALL {
                let lying = self.rows.lying(cube, tier);
                report.chunks[tier as usize] += u64::from(lying.chunks);
                if tier == Tier::L0 {
                    report.rows[0] += u64::from(lying.chunks);
                    report.bytes[0] += self.model.l0_row_bytes(lying);
                }
            }
            let bytes = self.rows.l1_row_bytes(&self.model, cube);
            report.rows[1] += u64::from(bytes > 0);
            report.bytes[1] += bytes;
            report.shadowed_slots += u64::from(self.rows.l1_slots(cube).shadowed);
        }
        for cluster in self.rows.cold_rows() {
            report.rows[2] += 1;
            report.chunks[2] += u64::from(self.rows.unheard(cluster));
            report.bytes[2] += self.rows.l2_row_bytes(&self.model, cluster);
            report.shadowed_slots += u64::from(self.rows.l2_slots(cluster).shadowed);
        }
        report
    }

    fn load(&mut self, chunk: ChunkAt, len_bytes: u32) {
        if self.rows.find(chunk).is_none() && len_bytes > 0 {
            self.rows.settled(chunk, len_bytes);
        }
        let Some((tier, bytes)) = self.rows.find(chunk) else {
            self.report.absent_loads += 1;
            self.report.keys_read += 3;
            return;
        };
        self.seen.touch(chunk, self.now);
        self.report.loads[tier as usize] += 1;
        self.report.keys_read += 1 + tier as u64;
        let cube = CubeAt::of(chunk);
        self.report.load_bytes += match tier {
            Tier::L0 => self.model.l0_row_bytes(Lying { chunks: 1, bytes: bytes.into() }),
            Tier::L1 => self.fetch(cube.cluster(ClusterTier::L1), Count::Load),
            Tier::L2 => self.fetch(cube.cluster(ClusterTier::L2), Count::Load),
        };
    }

    fn save(&mut self, chunk: ChunkAt, len_bytes: u32) {
        self.seen.touch(chunk, self.now);
        let was_in_cluster = self.rows.find(chunk).is_some_and(|(tier, _)| tier != Tier::L0);
        self.rows.save(chunk, len_bytes);
        if was_in_cluster {
            self.overshadow(CubeAt::of(chunk));
        }
        self.report.saves += 1;
        self.report.save_bytes += self.model.l0_row_bytes(Lying { chunks: 1, bytes: len_bytes.into() });
    }

    /// The bytes that are read to get a cluster's row: 0 if it is in memory.
    fn fetch(&mut self, row: ClusterAt, count: Count) -> u64 {
        let cached = self.cache.hit(row);
        if count == Count::Load {
            self.report.rows_cached += u64::from(cached);
            self.report.rows_fetched += u64::from(!cached);
        }
        if cached {
            return 0;
        }
        let bytes = self.row_bytes(row);
        if bytes > 0 {
            self.cache.insert(row, bytes);
        }
        bytes
    }

    fn row_bytes(&self, row: ClusterAt) -> u64 {
        match row.pos.tier() {
            ClusterTier::L1 => self.rows.l1_row_bytes(&self.model, CubeAt::of_cluster(row)),
            ClusterTier::L2 => self.rows.l2_row_bytes(&self.model, row),
        }
    }

    /// Does the work of the ticks before a moment. Nothing happens between two events, so ticks without work are
    /// skipped.
    fn advance(&mut self, to: GameTick) {
        let mut idle_cubes = 0;
        while self.now < to {
            let done = self.tick();
            let next = GameTick::new(self.now.get() + 1);
            idle_cubes = if done.idle { idle_cubes + self.model.scan_cubes.max(1) } else { 0 };
            // Time may be skipped only after every cube was checked once.
            self.now = if next < to && done.idle && idle_cubes >= self.rows.hot_count() {
                idle_cubes = 0;
                self.next_work(done.next).map_or(to, |work| work.max(next)).min(to)
            } else {
                next
            };
        }
    }

    /// The work of a tick: check, plan, move, rewrite, store heat.
    fn tick(&mut self) -> Done {
        if self.players_changed {
            self.players_changed = false;
            let players: Vec<_> = self.players.values().copied().collect();
            self.seen.check_players(&players, self.now);
        }
        let settled = self.seen.take_settled(self.now, self.model.scan_cubes);
        let hot = self.rows.hot_cubes_after(self.scanned_to, self.model.scan_cubes);
        self.scanned_to = hot.last().copied();
        for cube in settled {
            self.offer(cube, [Tier::L1, Tier::L2]);
        }
        for cube in hot {
            self.offer(cube, [Tier::L0, Tier::L1]);
        }
        let mut budget = self.model.budget;
        let mut worked = false;
        while let Some(step) = self.plan.next_step(&mut budget) {
            worked = true;
            self.step(&step);
        }
        self.report.full_ticks += u64::from(!self.plan.is_empty());
        if self.plan.is_empty() {
            worked |= self.rewrite();
        }
        self.report.heat_rows += self.seen.heat().take_dirty(usize::MAX).len() as u64;
        Done { idle: !worked, next: self.seen.next_settled() }
    }

    fn offer(&mut self, cube: CubeAt, tiers: [Tier; 2]) {
        let seen = self.seen.observe(cube, Tier::L0);
        for from in tiers {
            let Some(decision) = self.seen.policy().due(&Observation { tier: from, ..seen }, self.now) else {
                continue;
            };
            let lying = self.rows.lying(cube, from);
            if lying.chunks > 0 {
                self.plan.offer(Candidate {
                    cube,
                    from,
                    decision,
                    chunks: lying.chunks,
                    bytes: lying.bytes,
                    last_access: seen.last_access,
                    nearest_player_blocks: seen.nearest_player_blocks,
                });
            }
        }
    }

    fn step(&mut self, step: &Step) {
        let cube = step.cube;
        let confirmed = self.seen.confirms(step, self.now);
        self.report.outdated_steps += u64::from(!confirmed);
        match step.to {
            Tier::L0 if confirmed => self.promote(cube),
            Tier::L1 if confirmed => self.demote_to_l1(cube),
            Tier::L2 if confirmed => self.staged.push(cube),
            _ => {}
        }
        if step.to == Tier::L2 && step.remaining_steps == 0 {
            self.demote_to_l2(step.cluster);
        }
    }

    fn promote(&mut self, cube: CubeAt) {
        let (warm, cold) = (cube.cluster(ClusterTier::L1), cube.cluster(ClusterTier::L2));
        for (tier, row) in [(Tier::L1, warm), (Tier::L2, cold)] {
            if self.rows.lying(cube, tier).chunks > 0 {
                self.report.move_read_bytes += self.fetch(row, Count::Move);
            }
        }
        let moved = self.rows.promote(cube);
        self.report.moved[0] += u64::from(moved.chunks);
        self.report.move_write_bytes += self.model.l0_row_bytes(moved);
        self.seen.moved(cube, self.now);
        self.overshadow(cube);
    }

    /// Chunks of a cube have newer copies than its clusters from now on. A cluster without valid slots is dropped.
    fn overshadow(&mut self, cube: CubeAt) {
        for tier in [ClusterTier::L1, ClusterTier::L2] {
            let row = cube.cluster(tier);
            let slots = self.slots(row);
            if slots.present > 0 && slots.present == slots.shadowed {
                self.rewrite_row(row);
            } else if slots.shadowed > 0 {
                self.shadowed.touch(row, self.now);
            }
        }
    }

    fn slots(&self, row: ClusterAt) -> ShadowedSlots {
        match row.pos.tier() {
            ClusterTier::L1 => self.rows.l1_slots(CubeAt::of_cluster(row)),
            ClusterTier::L2 => self.rows.l2_slots(row),
        }
    }

    fn demote_to_l1(&mut self, cube: CubeAt) {
        let row = cube.cluster(ClusterTier::L1);
        let hot = self.model.l0_row_bytes(self.rows.lying(cube, Tier::L0));
        self.report.move_read_bytes += hot + self.fetch(row, Count::Move);
        let moved = self.rows.demote_to_l1(cube);
        self.cache.forget(row);
        self.report.moved[1] += u64::from(moved.chunks);
        self.report.move_write_bytes += self.row_bytes(row);
        self.seen.moved(cube, self.now);
    }

    fn demote_to_l2(&mut self, cluster: ClusterAt) {
        let cubes = std::mem::take(&mut self.staged);
        if cubes.is_empty() {
            return;
        }
        for cube in &cubes {
            let hot = self.model.l0_row_bytes(self.rows.lying(*cube, Tier::L0));
            self.report.move_read_bytes += hot + self.fetch(cube.cluster(ClusterTier::L1), Count::Move);
        }
        self.report.move_read_bytes += self.fetch(cluster, Count::Move);
        let moved = self.rows.demote_to_l2(cluster, &cubes);
        self.cache.forget(cluster);
        for cube in cubes {
            self.cache.forget(cube.cluster(ClusterTier::L1));
            self.seen.moved(cube, self.now);
        }
        self.report.moved[2] += u64::from(moved.chunks);
        self.report.move_write_bytes += self.row_bytes(cluster);
    }

    /// Rewrites the clusters that are due. Returns whether there was one.
    fn rewrite(&mut self) -> bool {
        let policy = *self.seen.policy();
        let before = self.report.rewrites;
        while let Some((row, since)) = self.shadowed.take_due(self.now, policy.rewrite_after_ticks) {
            if policy.should_rewrite(self.slots(row), since, self.now) {
                self.rewrite_row(row);
            }
        }
        self.report.rewrites > before
    }

    fn rewrite_row(&mut self, row: ClusterAt) {
        let (read, before) = (self.fetch(row, Count::Move), self.row_bytes(row));
        match row.pos.tier() {
            ClusterTier::L1 => self.rows.drop_shadowed_l1(CubeAt::of_cluster(row)),
            ClusterTier::L2 => self.rows.drop_shadowed(row),
        }
        self.cache.forget(row);
        self.shadowed.forget(row);
        let after = self.row_bytes(row);
        // A row that is dropped as a whole is not read.
        self.report.move_read_bytes += if after > 0 { read } else { 0 };
        self.report.move_write_bytes += after;
        self.report.rewrites += u64::from(before > 0);
    }

    /// The next moment with work, if nothing happens.
    fn next_work(&self, settled: Option<GameTick>) -> Option<GameTick> {
        let rewrite = self.shadowed.next_due(self.seen.policy().rewrite_after_ticks);
        let mut next = settled.into_iter().chain(rewrite).min();
        let mut at = |tick: GameTick| next = Some(next.map_or(tick, |known| known.min(tick)));
        for cube in self.rows.hot_cubes_after(None, usize::MAX) {
            for tier in [Tier::L0, Tier::L1] {
                if self.rows.lying(cube, tier).chunks > 0
                    && let Some(next_move) = self.seen.next_move(cube, tier, self.now)
                {
                    at(GameTick::new(self.now.get().saturating_add(next_move.after_ticks)));
                }
            }
        }
        next
    }
}

/// The purpose of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    Load,
    Move,
}
