//! Records which tiles have patches, so that a tick need not search the map for them.
//!
//! Commits report the patches that they add. Those that existed when the world was opened are known from its last close, or
//! a search through the map finds them; each tick does a part of it. The search is repeated when more tiles have patches than
//! are recorded.
//!
//! A folded tile rests for some time. So a tile that is patched in every tick is folded a few times a minute and not in
//! every tick. The number of patches that readers apply to a tile stays bounded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use cg_tiering::GameTick;

use crate::kinds::opacity::TileKey;

/// The maximum number of recorded tiles.
const REMEMBERED_TILES: usize = 1 << 14;
/// A folded tile rests for this time.
const REST_TICKS: u64 = 5 * GameTick::PER_SECOND;
/// The rest ends early at this number of new patches. Several patches of one chunk are counted separately, although
/// they are one row.
const MOST_PATCHES: u32 = 256;

/// Tiles that are to be folded. A commit adds a tile when its patch can be read. A fold removes the tile before it
/// reads the patches, so no patch is missed.
#[derive(Debug)]
pub(crate) struct DirtyTiles {
    tiles: BTreeSet<TileKey>,
    /// Tiles that are being folded, with the number of threads that fold them.
    folding: BTreeMap<TileKey, u32>,
    /// Tiles that were folded recently.
    resting: BTreeMap<TileKey, Resting>,
    /// The same tiles by the end of their rest. It may contain tiles that were woken earlier.
    ends: VecDeque<(GameTick, TileKey)>,
    /// The tile that was returned last. Later tiles come next, so that a tile that changes all the time does not block
    /// the others.
    behind: Option<TileKey>,
    /// `None` when the search has ended.
    search: Option<Search>,
    /// Whether damage was met: then there may be patches that neither a search nor a fold found.
    met_damage: bool,
    searches: u64,
}

/// A folded tile.
#[derive(Debug)]
struct Resting {
    until: GameTick,
    /// The patches that were added since.
    patches: u32,
}

/// A search through the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Search {
    /// The key after which it continues.
    pub(super) behind: Vec<u8>,
    number: u64,
}

/// The next work: a tile to fold, or a part of the map to search.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A tile that has patches.
    Tile(TileKey),
    /// A part of the map that may have patches.
    Search(Search),
}

impl DirtyTiles {
    /// Creates a record that knows nothing of the map, unless all tiles with patches are given.
    pub(crate) fn new(known: Option<Vec<TileKey>>) -> Self {
        let search = known.is_none().then(|| Search { behind: Vec::new(), number: 0 });
        Self {
            tiles: known.into_iter().flatten().collect(),
            folding: BTreeMap::new(),
            resting: BTreeMap::new(),
            ends: VecDeque::new(),
            behind: None,
            search,
            met_damage: false,
            searches: 1,
        }
    }

    /// Forgets all tiles that are not being folded, and starts the search of the map again.
    pub(crate) fn begin_again(&mut self) {
        self.tiles.clear();
        self.resting.clear();
        self.ends.clear();
        self.search = Some(Search { behind: Vec::new(), number: self.searches });
        self.met_damage = false;
        self.searches += 1;
    }

    /// Records that tiles have patches, with the number of new ones.
    pub(crate) fn add(&mut self, tiles: impl IntoIterator<Item = (TileKey, u32)>) {
        for (tile, patches) in tiles {
            match self.resting.get_mut(&tile) {
                Some(resting) if resting.patches.saturating_add(patches) < MOST_PATCHES => {
                    resting.patches += patches;
                }
                Some(_) => {
                    self.resting.remove(&tile);
                    self.tiles.insert(tile);
                }
                None => {
                    self.tiles.insert(tile);
                }
            }
        }
        if self.tiles.len() > REMEMBERED_TILES {
            self.begin_again();
        }
    }

    /// The number of tiles that are known to have patches.
    pub(crate) fn len(&self) -> usize {
        self.tiles.len() + self.resting.values().filter(|resting| resting.patches > 0).count()
    }

    /// All tiles that may have patches, ascending. `None` if the next process must search the map: it is not searched yet,
    /// damage was met, or there are more tiles than are recorded.
    pub(super) fn all(&self) -> Option<Vec<TileKey>> {
        if self.search.is_some() || self.met_damage {
            return None;
        }
        let patched = self.resting.iter().filter(|(_, resting)| resting.patches > 0).map(|(tile, _)| tile);
        let all: BTreeSet<_> = self.tiles.iter().chain(self.folding.keys()).chain(patched).collect();
        (all.len() <= REMEMBERED_TILES).then(|| all.into_iter().copied().collect())
    }

    /// Records that damage was met in the map.
    pub(super) const fn met_damage(&mut self) {
        self.met_damage = true;
    }

    /// The search of the map, unless it has ended.
    pub(super) fn search(&self) -> Option<Search> {
        self.search.clone()
    }

    /// The next tile to fold or part of the map to search at a tick.
    pub(super) fn next(&mut self, now: GameTick) -> Option<Next> {
        while let Some((until, tile)) = self.ends.front().copied().filter(|(until, _)| *until <= now) {
            self.ends.pop_front();
            self.wake(tile, until);
        }
        let behind = self.behind.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.tiles.range((behind, Bound::Unbounded)).next().or_else(|| self.tiles.first());
        next.copied().map(Next::Tile).or_else(|| self.search.clone().map(Next::Search))
    }

    /// Removes a tile that is being folded now.
    pub(super) fn begin_folding(&mut self, tile: &TileKey) {
        self.tiles.remove(tile);
        self.resting.remove(tile);
        *self.folding.entry(*tile).or_default() += 1;
        self.behind = Some(*tile);
    }

    /// Records that a thread no longer folds a tile.
    pub(super) fn end_folding(&mut self, tile: &TileKey) {
        if let Some(threads) = self.folding.get_mut(tile) {
            *threads -= 1;
            if *threads == 0 {
                self.folding.remove(tile);
            }
        }
    }

    /// Lets a tile rest that was folded at a tick. Patches that were added meanwhile wait, too.
    pub(super) fn rest(&mut self, tile: TileKey, now: GameTick) {
        let patches = u32::from(self.tiles.remove(&tile));
        let until = GameTick::new(now.get().saturating_add(REST_TICKS));
        self.resting.insert(tile, Resting { until, patches });
        self.ends.push_back((until, tile));
        if self.ends.len() > REMEMBERED_TILES
            && let Some((until, tile)) = self.ends.pop_front()
        {
            self.wake(tile, until);
        }
    }

    fn wake(&mut self, tile: TileKey, until: GameTick) {
        if self.resting.get(&tile).is_none_or(|resting| resting.until != until) {
            return;
        }
        if self.resting.remove(&tile).is_some_and(|resting| resting.patches > 0) {
            self.tiles.insert(tile);
        }
    }

    /// Records how far a search came, or `None` for the end. Ignored if another search was begun meanwhile.
    pub(super) fn searched(&mut self, search: &Search, up_to: Option<Vec<u8>>) {
        if self.search.as_ref().is_some_and(|current| current.number == search.number) {
            self.search = up_to.map(|behind| Search { behind, number: search.number });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(n: usize) -> TileKey {
        let mut tile = TileKey::default();
        for (byte, value) in tile.iter_mut().zip(n.to_string().bytes()) {
            *byte = value;
        }
        tile
    }

    const NOW: GameTick = GameTick::new(7);

    /// Tiles with one patch each.
    fn patched(tiles: impl IntoIterator<Item = usize>) -> impl Iterator<Item = (TileKey, u32)> {
        tiles.into_iter().map(|n| (tile(n), 1))
    }

    fn search(known: &mut DirtyTiles) -> Search {
        match known.next(NOW) {
            Some(Next::Search(search)) => search,
            next => panic!("{next:?} is no search"),
        }
    }

    #[test]
    fn what_does_not_fit_is_searched_for() {
        let mut known = DirtyTiles::new(None);
        let first = search(&mut known);
        known.searched(&first, Some(vec![7]));
        assert_eq!(search(&mut known).behind, [7], "what an older process left is not known");
        known.add(patched(0..=REMEMBERED_TILES));
        assert!(search(&mut known).behind.is_empty());
        known.searched(&first, None);
        let second = search(&mut known);
        known.searched(&second, None);
        assert_eq!(known.next(NOW), None, "the end of the first search is not that of the second");
        known.add(patched(0..REMEMBERED_TILES));
        for n in 0..REMEMBERED_TILES {
            assert!(matches!(known.next(NOW), Some(Next::Tile(_))));
            known.begin_folding(&tile(n));
        }
        assert_eq!(known.next(NOW), None);
    }

    #[test]
    fn a_tile_that_changes_all_the_time_keeps_no_other_waiting() {
        let mut known = DirtyTiles::new(None);
        known.add(patched([1, 2, 3]));
        let mut met = Vec::new();
        for _ in 0..5 {
            let Some(Next::Tile(next)) = known.next(NOW) else { panic!("one waits") };
            known.begin_folding(&next);
            met.push(next);
            // Another commit patches the first tile again and again.
            known.add(patched([1]));
        }
        assert_eq!(met, [1, 2, 3, 1, 1].map(tile));
    }

    #[test]
    fn the_end_of_a_search_that_was_given_up_ends_no_other() {
        let mut known = DirtyTiles::new(None);
        let first = search(&mut known);
        known.add(patched([1]));
        known.begin_again();
        known.searched(&first, None);
        assert_eq!(
            search(&mut known).behind,
            Vec::<u8>::new(),
            "the map is to be searched from its beginning"
        );
    }

    /// The tiles that are due at a tick, in order.
    fn due(known: &mut DirtyTiles, now: u64) -> Vec<TileKey> {
        let mut due = Vec::new();
        while let Some(Next::Tile(tile)) = known.next(GameTick::new(now)) {
            known.begin_folding(&tile);
            due.push(tile);
        }
        due
    }

    #[test]
    fn a_tile_that_was_folded_rests_until_it_has_many_patches_or_a_while_has_passed() {
        let mut known = DirtyTiles::new(None);
        known.add(patched([1, 2]));
        assert_eq!(due(&mut known, 7), [1, 2].map(tile));
        // A patch of the second tile was added while it was folded.
        known.add(patched([2]));
        known.rest(tile(1), NOW);
        known.rest(tile(2), NOW);
        assert_eq!((due(&mut known, 7), known.len()), (vec![], 1));
        known.add(patched([1, 3]));
        assert_eq!((due(&mut known, 8), known.len()), (vec![tile(3)], 2), "another waits for none of them");
        for _ in 2..MOST_PATCHES {
            known.add(patched([1]));
        }
        assert!(due(&mut known, 8).is_empty(), "one less than too many");
        known.add(patched([1]));
        assert_eq!(due(&mut known, 8), [tile(1)]);
        known.rest(tile(1), GameTick::new(8));
        assert!(due(&mut known, 6 + REST_TICKS).is_empty());
        assert_eq!(due(&mut known, 7 + REST_TICKS), [tile(2)], "the first was folded again since");
        known.add(patched([1]));
        assert_eq!(due(&mut known, 8 + REST_TICKS), [tile(1)]);
        known.rest(tile(1), NOW);
        assert_eq!((due(&mut known, 1 << 20), known.len()), (vec![], 0));
        assert!(known.resting.is_empty() && known.ends.is_empty(), "what rested is forgotten: {known:?}");
    }

    #[test]
    fn all_are_those_that_wait_and_those_that_are_being_folded() {
        let mut known = DirtyTiles::new(None);
        known.add(patched([1, 2, 3]));
        assert_eq!(known.all(), None, "the map is still to be searched");
        let search = known.search().expect("is not ended");
        known.searched(&search, None);
        assert_eq!(known.all(), Some([1, 2, 3].map(tile).into()));
        known.begin_folding(&tile(1));
        known.begin_folding(&tile(2));
        assert_eq!(known.all(), Some([1, 2, 3].map(tile).into()), "a kill now leaves their patches");
        known.end_folding(&tile(1));
        known.rest(tile(1), NOW);
        known.begin_folding(&tile(2));
        known.end_folding(&tile(2));
        known.add(patched([4]));
        assert_eq!(known.all(), Some([2, 3, 4].map(tile).into()), "two threads fold the second");
        known.add(patched([1]));
        assert_eq!(known.all(), Some([1, 2, 3, 4].map(tile).into()), "a tile that rests has a patch");
        assert_eq!(DirtyTiles::new(known.all()).all(), known.all());
        known.met_damage();
        assert_eq!(known.all(), None, "there may be patches that were not found");
        known.begin_again();
        let search = known.search().expect("begins");
        known.searched(&search, None);
        assert_eq!(known.all(), Some([2].map(tile).into()));
        known.add((0..REMEMBERED_TILES).map(|n| (tile(n + 7), 1)));
        assert_eq!(known.all(), None, "these are more than are recorded");
    }

    #[test]
    fn no_more_rest_than_are_remembered() {
        let mut known = DirtyTiles::new(None);
        for n in 0..=REMEMBERED_TILES {
            known.rest(tile(n), NOW);
            known.add(patched([n]));
        }
        assert_eq!(known.resting.len(), REMEMBERED_TILES);
        assert_eq!(due(&mut known, 7), [tile(0)]);
    }
}
