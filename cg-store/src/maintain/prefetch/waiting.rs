//! Chunks that wait to be fetched, grouped by player.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use cg_format::{ChunkAt, EntityId};

/// **Invariant**: at most `max_count` chunks wait, and no player has an empty queue.
#[derive(Debug)]
pub(super) struct Waiting {
    by_player: BTreeMap<EntityId, VecDeque<ChunkAt>>,
    count: usize,
    max_count: usize,
    /// The player whose chunks were taken last.
    served: Option<EntityId>,
}

/// The result of replacing the chunks of a player.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    /// The chunks that waited before.
    pub(super) old: VecDeque<ChunkAt>,
    /// The number of new chunks that found no room.
    pub(super) no_room: usize,
}

impl Waiting {
    pub(super) const fn new(max_count: usize) -> Self {
        Self { by_player: BTreeMap::new(), count: 0, max_count, served: None }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Replaces the waiting chunks of a player by `wanted`, which is in the order of urgency. The player gets an equal
    /// share among `players`.
    pub(super) fn replace(&mut self, player: EntityId, wanted: Vec<ChunkAt>, players: usize) -> Replaced {
        let old = self.by_player.remove(&player).unwrap_or_default();
        self.count -= old.len();
        let share = (self.max_count / players.max(1)).max(1);
        let room = share.min(self.max_count - self.count);
        let no_room = wanted.len().saturating_sub(room);
        let mut wanted = VecDeque::from(wanted);
        wanted.truncate(room);
        self.count += wanted.len();
        if !wanted.is_empty() {
            self.by_player.insert(player, wanted);
        }
        Replaced { old, no_room }
    }

    /// Takes up to `max_count` chunks of one player. The players take turns.
    pub(super) fn take(&mut self, max_count: usize) -> Option<(EntityId, Vec<ChunkAt>)> {
        let after = |served| self.by_player.range((Bound::Excluded(served), Bound::Unbounded)).next();
        let player = self.served.and_then(after).or_else(|| self.by_player.iter().next());
        let player = player.map(|(player, _)| *player)?;
        let queue = self.by_player.get_mut(&player)?;
        let taken: Vec<_> = queue.drain(..max_count.min(queue.len())).collect();
        if queue.is_empty() {
            self.by_player.remove(&player);
        }
        self.count -= taken.len();
        self.served = Some(player);
        Some((player, taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{ChunkPos, Dimension};

    fn chunks(x: std::ops::Range<i64>) -> Vec<ChunkAt> {
        x.map(|x| ChunkAt::new(Dimension::new(0), ChunkPos::new(x, 0, 0).unwrap())).collect()
    }

    fn player(id: u8) -> EntityId {
        EntityId::from_bytes([id; 16])
    }

    #[test]
    fn what_waited_makes_way_for_what_is_wanted_now() {
        let mut waiting = Waiting::new(100);
        assert_eq!(
            waiting.replace(player(1), chunks(0..5), 1),
            Replaced { old: VecDeque::new(), no_room: 0 }
        );
        let replaced = waiting.replace(player(1), chunks(10..12), 1);
        assert_eq!(replaced, Replaced { old: chunks(0..5).into(), no_room: 0 });
        assert_eq!(waiting.take(9), Some((player(1), chunks(10..12))));
        assert!(waiting.is_empty());
        assert_eq!(waiting.take(9), None);
    }

    #[test]
    fn no_more_waits_than_may_and_players_share_it() {
        let mut waiting = Waiting::new(10);
        assert_eq!(waiting.replace(player(1), chunks(0..20), 1).no_room, 10);
        assert_eq!(
            waiting.replace(player(2), chunks(0..20), 2).no_room,
            20,
            "nothing is taken away from the first"
        );
        assert_eq!(waiting.replace(player(1), chunks(0..20), 2).no_room, 15);
        assert_eq!(waiting.replace(player(2), chunks(0..20), 2).no_room, 15);
        assert_eq!(waiting.count, 10);
    }

    #[test]
    fn players_take_turns() {
        let mut waiting = Waiting::new(100);
        for id in 1..=3 {
            let _ = waiting.replace(player(id), chunks(0..4), 3);
        }
        let order: Vec<_> =
            std::iter::from_fn(|| waiting.take(3)).map(|(who, taken)| (who, taken.len())).collect();
        let expected =
            [(1, 3), (2, 3), (3, 3), (1, 1), (2, 1), (3, 1)].map(|(id, count)| (player(id), count));
        assert_eq!(order, expected);
    }
}
