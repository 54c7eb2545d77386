//! Demotion into a cold cluster: the warm clusters and hot rows of many cubes become groups of one row, two for each cube.
//!
//! The cluster is built cube by cube, so that a tick can stop between any two. One commit at the end writes all of it.
//! If the row would be too large, the largest of the new cubes are left out, and their chunks stay where they are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cg_format::cluster::{AssembleError, ClusterBuilder, EncodedGroup, Slot, StoredCluster, join_groups};
use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::{ClusterTier, DecodeError, Limits};
use cg_tiering::{ClusterAt, CubeAt, Heat};

use super::cube::{HotRows, bit, guard_of, number_of, row_of};
use super::{MoveWrites, Outcome, demote_warm, each_value, past_damage, split_damage};
use crate::engine::{Engine, Guard, Readable};
use crate::maintain::tiering::{delete_cold_heat, delete_heat, put_cold_heat, read_cold_heat};
use crate::rt::stats::Counters;
use crate::storage::error::{Damage, Error};

/// The maximum number of hot rows of a cube that go into the cold cluster directly. If there are more, they are merged
/// into the warm cluster first.
///
/// Every row of a move is compared under the engine's lock when the move commits, and a save waits for that.
const HOT_ROWS_TAKEN: usize = 4;

const TIER: ClusterTier = ClusterTier::L2;
/// The groups of a cube, which follow each other in the row.
const GROUPS_OF_CUBE: usize = TIER.group_count() * ClusterTier::L1.slot_count() / TIER.slot_count();

/// A cold cluster that is being built.
#[derive(Debug)]
pub(crate) struct ColdMerge {
    cluster: ClusterAt,
    /// The row that is replaced.
    base: Option<Vec<u8>>,
    /// The known accesses to the chunks in that row.
    heat: ColdHeat,
    /// The finished cubes by number. The groups of the others are copied as they are stored.
    made: BTreeMap<u8, CubeMade>,
    writes: MoveWrites,
}

/// The known accesses to the chunks of a cold cluster.
#[derive(Debug, Clone, Copy)]
enum ColdHeat {
    /// The cluster has no chunks.
    NoChunks,
    /// The newest access.
    Known(Heat),
    /// No access was recorded.
    Unknown,
}

/// The encoded groups of a cube, and the rows that they replace.
#[derive(Debug)]
pub(crate) struct CubeMade {
    cube: CubeAt,
    groups: Vec<EncodedGroup<'static>>,
    writes: MoveWrites,
    heat: Heat,
}

/// The result of committing a cold cluster.
#[derive(Debug)]
pub(crate) struct ColdEnd {
    pub(crate) end: Outcome,
    /// The finished cubes, with their heat.
    pub(crate) made: Vec<(CubeAt, Heat)>,
    /// The cubes that would have made the cluster too large. Nothing of them was written.
    pub(crate) left_out: Vec<CubeAt>,
    /// The cubes that a commit changed, if the others were committed without them.
    pub(crate) changed: Vec<CubeAt>,
}

impl CubeMade {
    fn stored_bytes(&self) -> usize {
        self.groups.iter().map(EncodedGroup::stored_bytes).sum()
    }
}

impl ColdMerge {
    /// Starts to merge cubes into their cold cluster. Costs the read of the cluster.
    pub(crate) fn begin(view: &dyn Readable, cluster: ClusterAt) -> Result<Self, Error> {
        let (space, row_key) = row_of(cluster);
        let base = view.get(space, &row_key)?.map(|row| row.to_vec());
        let damage = |problem| Damage::of_row(space, &row_key, cluster.to_string(), problem);
        base.as_deref().map(|row| StoredCluster::open(TIER, &row_key, row)).transpose().map_err(damage)?;
        let (known, guard_of_heat) = read_cold_heat(view, cluster)?;
        let heat = match (known, &base) {
            (Some(heat), _) => ColdHeat::Known(heat),
            (None, Some(_)) => ColdHeat::Unknown,
            (None, None) => ColdHeat::NoChunks,
        };
        let mut writes = MoveWrites::default();
        writes.guards.extend([guard_of(cluster, base.as_deref()), guard_of_heat]);
        writes.moved.bytes_read = base.as_ref().map_or(0, |row| row.len() as u64);
        Ok(Self { cluster, base, heat, made: BTreeMap::new(), writes })
    }

    /// The cluster.
    pub(crate) const fn cluster(&self) -> ClusterAt {
        self.cluster
    }

    /// The finished cubes.
    pub(crate) fn cubes(&self) -> impl Iterator<Item = CubeAt> {
        self.made.values().map(|made| made.cube)
    }

    /// Builds the groups of one cube: reads its rows, decompresses what it needs and compresses the result. Several
    /// threads may do this at once.
    ///
    /// An inner `Err` states why the groups stay as they are stored, and the cube's rows stay where they are.
    pub(crate) fn make(
        &self,
        engine: &dyn Engine,
        counters: &Counters,
        cube: CubeAt,
        heat: Heat,
    ) -> Result<Result<CubeMade, Outcome>, Error> {
        let gathered = || {
            let hot = HotRows::read(&engine.snapshot()?, cube, &mut MoveWrites::default())?;
            let takes_all = hot.rows.len() <= HOT_ROWS_TAKEN;
            if takes_all { Ok(Outcome::Nothing) } else { demote_warm(engine, counters, cube, heat) }
        };
        match past_damage(gathered())? {
            Outcome::Done(_) | Outcome::Nothing => self.make_from(&engine.snapshot()?, counters, cube, heat),
            end => Ok(Err(end)),
        }
    }

    /// Builds the groups of one cube from its rows in a view, however many they are.
    ///
    /// An inner `Err` as that of [`make`](Self::make).
    pub(crate) fn make_from(
        &self,
        view: &dyn Readable,
        counters: &Counters,
        cube: CubeAt,
        heat: Heat,
    ) -> Result<Result<CubeMade, Outcome>, Error> {
        let made = split_damage(self.make_of_sound(view, counters, cube, heat))?;
        Ok(made.unwrap_or_else(|damage| Err(Outcome::Damaged(damage))))
    }

    fn make_of_sound(
        &self,
        view: &dyn Readable,
        counters: &Counters,
        cube: CubeAt,
        heat: Heat,
    ) -> Result<Result<CubeMade, Outcome>, Error> {
        let (mut builder, mut writes) = (self.builder(), MoveWrites::default());
        let hot = HotRows::read(view, cube, &mut writes)?;
        let has_warm = take_warm(view, counters, cube, hot.sound_places, &mut builder, &mut writes)?;
        if hot.rows.is_empty() && !has_warm {
            return Ok(Err(Outcome::Nothing));
        }
        // A cube that is completely cold needs no heat row. A cube that stays hot gets a new one.
        delete_heat(&mut writes.batch, cube);
        hot.move_into(TIER, &mut builder, &mut writes);
        let groups = groups_of(number_of(cube, TIER))
            .map(|group| builder.encode_group(group, &mut Limits::default()).map(EncodedGroup::into_owned));
        match groups.collect() {
            Ok(groups) => Ok(Ok(CubeMade { cube, groups, writes, heat })),
            Err(AssembleError::Damaged(problem)) => Err(self.damage(problem)),
            // The chunks of the cube stay where they are: in the hottest tier each has a row of its own.
            Err(_) => Ok(Err(Outcome::TooLarge)),
        }
    }

    /// Adds a finished cube.
    pub(crate) fn take(&mut self, made: CubeMade) {
        self.made.insert(number_of(made.cube, TIER), made);
    }

    /// Commits the cluster in place of everything that is now in it. Returns the result. If a commit has changed some of
    /// the cubes, `goes_on` says whether the others are committed without them.
    pub(crate) fn commit(
        mut self,
        engine: &dyn Engine,
        counters: &Counters,
        goes_on: bool,
    ) -> Result<ColdEnd, Error> {
        let (mut left_out, mut changed) = (Vec::new(), Vec::new());
        let end = loop {
            let cluster = loop {
                if self.made.is_empty() {
                    return Ok(ColdEnd { end: Outcome::Nothing, made: Vec::new(), left_out, changed });
                }
                match self.join() {
                    Err(AssembleError::TooLarge { .. }) => left_out.extend(self.leave_largest_out()),
                    joined => break joined,
                }
            };
            let cluster = match cluster {
                Ok(cluster) => cluster,
                // The row ends before a group does, so the group cannot be copied; or it has groups of an earlier draft,
                // which are split, and one is damaged.
                Err(AssembleError::Damaged(problem)) => break Outcome::Damaged(self.damage(problem)),
                Err(_) => break Outcome::TooLarge,
            };
            let row = match split_damage(self.writes_with(cluster, goes_on).try_commit(engine, counters))? {
                Ok(Ok(end)) => break end,
                Ok(Err(row)) => row,
                Err(damage) => break Outcome::Damaged(damage),
            };
            let is_changed = |made: &CubeMade| goes_on && made.writes.has_guard(&row);
            let before = changed.len();
            changed.extend(self.made.values().filter(|made| is_changed(made)).map(|made| made.cube));
            if changed.len() == before {
                break Outcome::Conflict;
            }
            self.made.retain(|_, made| !is_changed(made));
        };
        let made = self.made.into_values().map(|made| (made.cube, made.heat)).collect();
        Ok(ColdEnd { end, made, left_out, changed })
    }

    /// The writes of all finished cubes with the row of their cluster. The cubes keep copies of theirs if they may have
    /// to be committed again.
    fn writes_with(&mut self, cluster: Option<Draft>, may_be_again: bool) -> MoveWrites {
        let (heat, mut writes) = (self.heat_with_made(), self.writes.clone());
        for made in self.made.values_mut() {
            let of_cube = if may_be_again { made.writes.clone() } else { std::mem::take(&mut made.writes) };
            writes.append(of_cube);
        }
        let (space, row_key) = row_of(self.cluster);
        if let Some(cluster) = cluster {
            writes.batch.put(space, row_key, cluster, Stamp::Commit);
            put_cold_heat(&mut writes.batch, self.cluster, heat);
        } else {
            writes.batch.delete(space, row_key);
            delete_cold_heat(&mut writes.batch, self.cluster);
        }
        writes
    }

    /// The last access to a chunk of the cluster, including the finished cubes. If the accesses to its other chunks
    /// are unknown, they count as now: they were accessed before their demotion, but the time is not known.
    fn heat_with_made(&self) -> Heat {
        let made = self.made.values().map(|made| made.heat);
        let latest = |a: Heat, b: Heat| Heat {
            last_access: a.last_access.max(b.last_access),
            moved_at: a.moved_at.max(b.moved_at),
        };
        let heat = made.reduce(latest).expect("at least one cube was made");
        match self.heat {
            ColdHeat::NoChunks => heat,
            ColdHeat::Known(known) => latest(known, heat),
            ColdHeat::Unknown => Heat { last_access: heat.moved_at.unwrap_or(heat.last_access), ..heat },
        }
    }

    /// The row of all groups, finished and stored.
    fn join(&self) -> Result<Option<Draft>, AssembleError> {
        let builder = self.builder();
        let mut groups = Vec::with_capacity(TIER.group_count());
        for cube in 0..(TIER.group_count() / GROUPS_OF_CUBE) as u8 {
            if let Some(made) = self.made.get(&cube) {
                groups.extend(made.groups.iter().map(Cow::Borrowed));
                continue;
            }
            for group in groups_of(cube) {
                groups.push(Cow::Owned(builder.encode_group(group, &mut Limits::default())?));
            }
        }
        join_groups(TIER, self.codec(), groups.iter().map(|group| &**group))
    }

    /// Leaves out the largest finished cube. Its rows continue to shadow the groups that are stored in the row.
    fn leave_largest_out(&mut self) -> Option<CubeAt> {
        let largest = self.made.iter().max_by_key(|(_, made)| made.stored_bytes());
        let cube = *largest?.0;
        self.made.remove(&cube).map(|made| made.cube)
    }

    fn builder(&self) -> ClusterBuilder<'_> {
        self.base().map_or(ClusterBuilder::new(TIER), |base| ClusterBuilder::over(&base))
    }

    fn base(&self) -> Option<StoredCluster<'_>> {
        let (_, row_key) = row_of(self.cluster);
        let row = self.base.as_deref()?;
        Some(StoredCluster::open(TIER, &row_key, row).expect("checked when the merge began"))
    }

    fn codec(&self) -> Codec {
        self.base().map_or(Codec::Zstd, |base| base.codec())
    }

    fn damage(&self, problem: DecodeError) -> Error {
        let (space, row_key) = row_of(self.cluster);
        Damage::of_row(space, &row_key, self.cluster.to_string(), problem)
    }
}

/// The numbers of the groups of a cube.
fn groups_of(cube: u8) -> impl Iterator<Item = u8> {
    let count = GROUPS_OF_CUBE as u8;
    (0..count).map(move |part| cube * count + part)
}

/// Puts the chunks of a cube's warm cluster into its cold one, without those at `shadowed` places, and deletes the warm
/// cluster. Returns whether there is one.
fn take_warm(
    view: &dyn Readable,
    counters: &Counters,
    cube: CubeAt,
    shadowed: u64,
    builder: &mut ClusterBuilder<'_>,
    writes: &mut MoveWrites,
) -> Result<bool, Error> {
    let (space, row_key) = row_of(cube.cluster(ClusterTier::L1));
    let Some(row) = view.get(space, &row_key)? else { return Ok(false) };
    let damage = |problem| Damage::of_row(space, &row_key, cube.to_string(), problem);
    let warm = StoredCluster::open(ClusterTier::L1, &row_key, &row).map_err(damage)?;
    let live = warm.slots().filter(|(slot, _)| shadowed & bit(slot.in_cube()) == 0);
    let taken = each_value(&warm, &live.collect::<Vec<_>>(), counters, |slot, info, value| {
        let place = Slot::in_cube_of(TIER, number_of(cube, TIER), slot.in_cube());
        builder.put(place.expect("cubes and places are counted"), info, value.into_owned());
        writes.moved.chunks += 1;
    });
    taken.map_err(damage)?;
    writes.moved.bytes_read += row.len() as u64;
    writes.guards.push(Guard::same(space, row_key, &row));
    writes.batch.delete(space, row_key);
    Ok(true)
}
