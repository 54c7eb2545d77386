//! The table of handles.
//!
//! ```text
//! bits 56..64  kind, never 0
//! bits 32..56  index in the list of the kind
//! bits  0..32  generation, never 0
//! ```
//!
//! The keys of the crate `slotmap` are numbers of this kind too. Its generations begin again after 2³¹ things in a place, so a
//! handle could stand for another thing later.

/// The number of kinds, and one more.
const KINDS: usize = 14;
const INDEX_BITS: u32 = 24;

/// Things by handle: a list for each kind, so that each generation of a place was a handle of its kind.
#[derive(Debug)]
pub(super) struct Table<T> {
    lists: [List<T>; KINDS],
}

#[derive(Debug)]
struct List<T> {
    places: Vec<Place<T>>,
    /// Places without a thing that can have one.
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    /// Of the thing that is here, or of the last one that was.
    generation: u32,
    thing: Option<T>,
}

/// Why a handle stands for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// It was released.
    Released,
    /// No such handle was ever given out.
    NeverGiven,
}

/// The kind of a handle.
pub(super) const fn kind(handle: u64) -> u8 {
    (handle >> 56) as u8
}

const fn index(handle: u64) -> usize {
    (handle >> 32) as usize & ((1 << INDEX_BITS) - 1)
}

const fn generation(handle: u64) -> u32 {
    handle as u32
}

impl<T> Table<T> {
    /// The most things of a kind at once.
    pub(super) const MAX_LEN: usize = 1 << INDEX_BITS;

    pub(super) const fn new() -> Self {
        Self { lists: [const { List { places: Vec::new(), free: Vec::new() } }; KINDS] }
    }

    /// The handle of a new thing; `None` if there are too many.
    pub(super) fn insert(&mut self, kind: u8, thing: T) -> Option<u64> {
        let list = self.lists.get_mut(usize::from(kind))?;
        let at = match list.free.pop() {
            Some(at) => at,
            None if list.places.len() < Self::MAX_LEN => {
                list.places.push(Place { generation: 0, thing: None });
                (list.places.len() - 1) as u32
            }
            None => return None,
        };
        let place = list.places.get_mut(at as usize)?;
        place.generation += 1;
        place.thing = Some(thing);
        Some(u64::from(kind) << 56 | u64::from(at) << 32 | u64::from(place.generation))
    }

    /// The thing of a handle.
    pub(super) fn find(&self, handle: u64) -> Result<&T, Lost> {
        let place = self.lists.get(usize::from(kind(handle))).and_then(|list| list.places.get(index(handle)));
        let place = place.ok_or(Lost::NeverGiven)?;
        let lost = place.lost(handle);
        place.thing.as_ref().filter(|_| generation(handle) == place.generation).ok_or(lost)
    }

    /// Takes the thing of a handle out. The handle stands for nothing from then on.
    pub(super) fn remove(&mut self, handle: u64) -> Result<T, Lost> {
        let of_kind = self.lists.get_mut(usize::from(kind(handle))).ok_or(Lost::NeverGiven)?;
        let place = of_kind.places.get_mut(index(handle)).ok_or(Lost::NeverGiven)?;
        let lost = place.lost(handle);
        if generation(handle) != place.generation {
            return Err(lost);
        }
        let thing = place.thing.take().ok_or(lost)?;
        // A place without another generation is never used again.
        if place.generation < u32::MAX {
            of_kind.free.push(index(handle) as u32);
        }
        Ok(thing)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lists.iter().flat_map(|list| &list.places).filter(|place| place.thing.is_some()).count()
    }
}

impl<T> Place<T> {
    const fn lost(&self, handle: u64) -> Lost {
        let generation = generation(handle);
        if generation == 0 || generation > self.generation { Lost::NeverGiven } else { Lost::Released }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_handle_stands_for_nothing_for_ever() {
        let mut table = Table::new();
        let first = table.insert(3, "first").expect("room");
        assert_eq!((first, table.find(first)), (3 << 56 | 1, Ok(&"first")));
        assert_eq!(table.remove(first), Ok("first"));
        assert_eq!(table.remove(first), Err(Lost::Released));
        let second = table.insert(3, "second").expect("room");
        assert_eq!((second, index(second)), (3 << 56 | 2, 0));
        assert_eq!((table.find(first), table.find(second)), (Err(Lost::Released), Ok(&"second")));
    }

    #[test]
    fn an_invented_handle_was_never_given_out() {
        let mut table = Table::new();
        let given = table.insert(3, ()).expect("room");
        for invented in
            [0, 1, u64::MAX, given + 1, given + (1 << 32), given - 1, given ^ 7 << 56, 12 << 56 | 1]
        {
            assert_eq!(table.find(invented), Err(Lost::NeverGiven), "{invented:#x}");
            assert_eq!(table.remove(invented), Err(Lost::NeverGiven), "{invented:#x}");
        }
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn a_place_without_another_generation_is_not_used_again() {
        let mut table = Table::new();
        let first = table.insert(1, 1).expect("room");
        table.lists[1].places[0].generation = u32::MAX - 1;
        table.remove(first + u64::from(u32::MAX) - 2).expect("the last but one");
        let last = table.insert(1, 2).expect("room");
        assert_eq!(generation(last), u32::MAX);
        table.remove(last).expect("the last");
        let next = table.insert(1, 3).expect("room");
        assert_eq!((index(next), generation(next)), (1, 1));
        assert_eq!(table.find(last), Err(Lost::Released));
    }
}
