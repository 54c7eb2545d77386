//! Which tiles have patches, so that a tick does not go through the map to find them.
//!
//! Commits tell what they add. What was there when the world was opened is found by one search through the map, a
//! part of it in each tick; that search is made again when more tiles have patches than are remembered.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::TileKey;

/// So many tiles are remembered.
const REMEMBERED_TILES: usize = 1 << 14;

/// Tiles that are to be folded. A commit adds the tile when its patch can be read, and who folds a tile takes it out before
/// the patches are read, so none is missed.
#[derive(Debug)]
pub(crate) struct Unfolded {
    tiles: BTreeSet<TileKey>,
    /// The tile that was looked at last: those behind it come next, so that one which changes all the time keeps no other waiting.
    behind: Option<TileKey>,
    /// `None` when it is over.
    search: Option<Search>,
    searches: u64,
}

/// A search through the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Search {
    /// Where it goes on.
    pub(super) behind: Vec<u8>,
    number: u64,
}

/// What is to be looked at next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// This tile has patches.
    Tile(TileKey),
    /// Tiles that lie there may have some.
    Search(Search),
}

impl Unfolded {
    /// Nothing is known of the map.
    pub(crate) const fn new() -> Self {
        let search = Some(Search { behind: Vec::new(), number: 0 });
        Self { tiles: BTreeSet::new(), behind: None, search, searches: 1 }
    }

    /// Forgets what is known, and has the map searched from its beginning.
    pub(crate) fn begin_again(&mut self) {
        self.tiles.clear();
        self.search = Some(Search { behind: Vec::new(), number: self.searches });
        self.searches += 1;
    }

    /// Notes that tiles have patches.
    pub(crate) fn add(&mut self, tiles: impl IntoIterator<Item = TileKey>) {
        self.tiles.extend(tiles);
        if self.tiles.len() > REMEMBERED_TILES {
            self.begin_again();
        }
    }

    /// How many tiles are known to have patches.
    pub(crate) fn len(&self) -> usize {
        self.tiles.len()
    }

    /// What to look at next, if anything is to be folded.
    pub(super) fn next(&self) -> Option<Next> {
        let behind = self.behind.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.tiles.range((behind, Bound::Unbounded)).next().or_else(|| self.tiles.first());
        next.copied().map(Next::Tile).or_else(|| self.search.clone().map(Next::Search))
    }

    /// Forgets that a tile has patches, which is looked at now.
    pub(super) fn forget(&mut self, tile: &TileKey) {
        self.tiles.remove(tile);
        self.behind = Some(*tile);
    }

    /// Notes how far a search came, or that it came to the end, unless another was begun meanwhile.
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

    fn search(known: &Unfolded) -> Search {
        match known.next() {
            Some(Next::Search(search)) => search,
            next => panic!("{next:?} is no search"),
        }
    }

    #[test]
    fn what_does_not_fit_is_searched_for() {
        let mut known = Unfolded::new();
        let first = search(&known);
        known.searched(&first, Some(vec![7]));
        assert_eq!(search(&known).behind, [7], "what an older process left is not known");
        known.add((0..=REMEMBERED_TILES).map(tile));
        assert!(search(&known).behind.is_empty());
        known.searched(&first, None);
        let second = search(&known);
        known.searched(&second, None);
        assert_eq!(known.next(), None, "the end of the first search is not that of the second");
        known.add((0..REMEMBERED_TILES).map(tile));
        for n in 0..REMEMBERED_TILES {
            assert!(matches!(known.next(), Some(Next::Tile(_))));
            known.forget(&tile(n));
        }
        assert_eq!(known.next(), None);
    }

    #[test]
    fn a_tile_that_changes_all_the_time_keeps_no_other_waiting() {
        let mut known = Unfolded::new();
        known.add([1, 2, 3].map(tile));
        let mut met = Vec::new();
        for _ in 0..5 {
            let Some(Next::Tile(next)) = known.next() else { panic!("one waits") };
            known.forget(&next);
            met.push(next);
            // Somebody commits over the first one again and again.
            known.add([tile(1)]);
        }
        assert_eq!(met, [1, 2, 3, 1, 1].map(tile));
    }

    #[test]
    fn the_end_of_a_search_that_was_given_up_ends_no_other() {
        let mut known = Unfolded::new();
        let first = search(&known);
        known.add([tile(1)]);
        known.begin_again();
        known.searched(&first, None);
        assert_eq!(search(&known).behind, Vec::<u8>::new(), "the map is to be searched from its beginning");
    }
}
