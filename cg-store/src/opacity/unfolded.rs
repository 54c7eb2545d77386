//! Which tiles have patches, so that a tick does not go through the map to find them.
//!
//! Commits tell what they add. What was there when the world was opened is found by one search through the map, a
//! part of it in each tick; that search is made again when more tiles have patches than are remembered.

use std::collections::BTreeSet;

use super::TileKey;

/// So many tiles are remembered.
const REMEMBERED_TILES: usize = 1 << 14;

/// Tiles that are to be folded. Changed under the commit lock only, so that no patch is missed.
#[derive(Debug)]
pub(crate) struct Unfolded {
    tiles: BTreeSet<TileKey>,
    /// The key behind which the search goes on; `None` when it is over.
    searched: Option<Vec<u8>>,
}

/// What is to be looked at next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// This tile has patches.
    Tile(TileKey),
    /// Tiles behind this key may have some.
    Behind(Vec<u8>),
}

impl Unfolded {
    /// Nothing is known of the map.
    pub(crate) const fn new() -> Self {
        Self { tiles: BTreeSet::new(), searched: Some(Vec::new()) }
    }

    /// Notes that tiles have patches.
    pub(crate) fn add(&mut self, tiles: impl IntoIterator<Item = TileKey>) {
        self.tiles.extend(tiles);
        if self.tiles.len() > REMEMBERED_TILES {
            self.tiles.clear();
            self.searched = Some(Vec::new());
        }
    }

    /// What to look at next, if anything is to be folded.
    pub(super) fn next(&self) -> Option<Next> {
        let tile = self.tiles.first().copied().map(Next::Tile);
        tile.or_else(|| self.searched.clone().map(Next::Behind))
    }

    /// Notes that a tile has no patches any more.
    pub(super) fn folded(&mut self, tile: &TileKey) {
        self.tiles.remove(tile);
    }

    /// Notes how far the search came, or that it came to the end.
    pub(super) fn searched(&mut self, up_to: Option<Vec<u8>>) {
        self.searched = up_to;
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

    #[test]
    fn what_does_not_fit_is_searched_for() {
        let mut known = Unfolded::new();
        assert_eq!(known.next(), Some(Next::Behind(Vec::new())), "what an older process left is not known");
        known.searched(None);
        assert_eq!(known.next(), None);
        known.add((0..REMEMBERED_TILES).map(tile));
        for n in 0..REMEMBERED_TILES {
            assert!(matches!(known.next(), Some(Next::Tile(_))));
            known.folded(&tile(n));
        }
        assert_eq!(known.next(), None);
        known.add((0..=REMEMBERED_TILES).map(tile));
        assert_eq!(known.next(), Some(Next::Behind(Vec::new())));
    }
}
