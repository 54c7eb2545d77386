//! A vector whose clones share their common items.

use std::sync::Arc;

/// Items per shared segment: a copy-on-write append copies at most this many items.
const SEGMENT: usize = 512;

/// A vector whose clone costs one step per 512 items. It makes views of a schema that outlive registrations cheap.
#[derive(Debug, Clone)]
pub(crate) struct SharedVec<T> {
    segments: Vec<Arc<Vec<T>>>,
}

impl<T> Default for SharedVec<T> {
    fn default() -> Self {
        Self { segments: Vec::new() }
    }
}

impl<T: Clone> SharedVec<T> {
    pub(crate) fn len(&self) -> usize {
        self.segments.last().map_or(0, |last| (self.segments.len() - 1) * SEGMENT + last.len())
    }

    pub(crate) fn get(&self, index: u64) -> Option<&T> {
        let index = usize::try_from(index).ok()?;
        self.segments.get(index / SEGMENT)?.get(index % SEGMENT)
    }

    pub(crate) fn get_mut(&mut self, index: u64) -> Option<&mut T> {
        let index = usize::try_from(index).ok()?;
        Arc::make_mut(self.segments.get_mut(index / SEGMENT)?).get_mut(index % SEGMENT)
    }

    pub(crate) fn push(&mut self, item: T) {
        match self.segments.last_mut().filter(|last| last.len() < SEGMENT) {
            Some(last) => Arc::make_mut(last).push(item),
            None => self.segments.push(Arc::new(vec![item])),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.segments.iter().flat_map(|segment| segment.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_keeps_what_it_saw() {
        let mut vec = SharedVec::default();
        for n in 0..2 * SEGMENT + 3 {
            assert_eq!(vec.len(), n);
            vec.push(n);
        }
        let copy = vec.clone();
        vec.push(0);
        *vec.get_mut(1).unwrap() = 77;
        assert_eq!((copy.len(), copy.get(1)), (2 * SEGMENT + 3, Some(&1)));
        assert_eq!((vec.len(), vec.get(1)), (2 * SEGMENT + 4, Some(&77)));
        assert!(copy.iter().copied().eq(0..2 * SEGMENT + 3));
        assert_eq!(vec.get(u64::MAX), None);
    }
}
