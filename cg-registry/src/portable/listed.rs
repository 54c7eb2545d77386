//! A map by id in one allocation, which clones share.

use std::sync::Arc;

/// Values by id, ascending. Clones share their memory until one of them is changed.
///
/// A lookup costs a binary search. Inserting above all ids is cheap; elsewhere it moves the values above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<K, V>(Arc<Vec<(K, V)>>);

impl<K: Ord + Copy, V: Clone> Listed<K, V> {
    /// The value of an id.
    pub fn get(&self, key: &K) -> Option<&V> {
        let place = self.0.binary_search_by_key(key, |(key, _)| *key).ok()?;
        self.0.get(place).map(|(_, value)| value)
    }

    /// Whether an id has a value.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// The number of ids with a value.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no id has a value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All ids and values, ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// The values, by ascending ids.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Sets the value of an id and returns the old one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let all = Arc::make_mut(&mut self.0);
        if all.last().is_none_or(|(last, _)| *last < key) {
            all.push((key, value));
            return None;
        }
        match all.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(place) => all.get_mut(place).map(|(_, there)| std::mem::replace(there, value)),
            Err(place) => {
                all.insert(place, (key, value));
                None
            }
        }
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.0 = Arc::default();
    }

    /// Replaces values with equal ones of another list, so that their content is in memory once. If all are equal,
    /// shares the whole list.
    pub(super) fn share_with(&mut self, other: &Self)
    where
        V: PartialEq,
    {
        if self == other {
            self.0 = Arc::clone(&other.0);
            return;
        }
        let mut theirs = other.0.iter().peekable();
        for (key, value) in Arc::make_mut(&mut self.0) {
            while theirs.next_if(|(there, _)| there < key).is_some() {}
            if let Some((_, there)) = theirs.next_if(|(there, _)| there == key)
                && there == value
            {
                *value = there.clone();
            }
        }
    }

    /// The memory of the list without the content of its values: 0 if `other` is the same list.
    pub(super) fn memory_beside(&self, other: Option<&Self>) -> usize {
        if other.is_some_and(|other| Arc::ptr_eq(&self.0, &other.0)) {
            return 0;
        }
        // An `Arc` has two counters.
        2 * size_of::<usize>() + size_of::<Vec<(K, V)>>() + self.0.capacity() * size_of::<(K, V)>()
    }
}

impl<K, V> Default for Listed<K, V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Ord + Copy, V: Clone> FromIterator<(K, V)> for Listed<K, V> {
    /// If an id occurs twice, its last value counts.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(all: I) -> Self {
        let mut all: Vec<(K, V)> = all.into_iter().collect();
        if !all.is_sorted_by(|(a, _), (b, _)| a < b) {
            // Puts the last of equal ids first, because the first one stays.
            all.reverse();
            all.sort_by_key(|(key, _)| *key);
            all.dedup_by_key(|(key, _)| *key);
        }
        all.shrink_to_fit();
        Self(Arc::new(all))
    }
}

impl<'l, K, V> IntoIterator for &'l Listed<K, V> {
    type Item = (&'l K, &'l V);
    type IntoIter = std::iter::Map<std::slice::Iter<'l, (K, V)>, fn(&'l (K, V)) -> (&'l K, &'l V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|(key, value)| (key, value))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_is_a_map(inserted in prop::collection::vec((0..40_u8, 0..9_u8), 0..60)) {
            let map: BTreeMap<u8, u8> = inserted.iter().copied().collect();
            let mut list = Listed::default();
            let mut twin: BTreeMap<u8, u8> = BTreeMap::new();
            for (key, value) in &inserted {
                prop_assert_eq!(list.insert(*key, *value), twin.insert(*key, *value));
            }
            let collected: Listed<u8, u8> = inserted.iter().copied().collect();
            prop_assert_eq!(&list, &collected);
            prop_assert!(list.iter().eq(map.iter()) && (&list).into_iter().eq(&map) && list.values().eq(map.values()));
            prop_assert_eq!((list.len(), list.is_empty()), (map.len(), map.is_empty()));
            for key in 0..=u8::MAX {
                prop_assert_eq!((list.get(&key), list.contains_key(&key)), (map.get(&key), map.contains_key(&key)));
            }
            list.clear();
            prop_assert!(list.is_empty());
        }

        #[test]
        fn what_is_shared_is_the_same(
            mine in prop::collection::btree_map(0..40_u8, 0..3_u8, 0..30),
            theirs in prop::collection::btree_map(0..40_u8, 0..3_u8, 0..30),
        ) {
            let listed = |map: &BTreeMap<u8, u8>| map.iter().map(|(key, value)| (*key, Arc::new(*value))).collect();
            let (mut list, other): (Listed<u8, Arc<u8>>, Listed<u8, Arc<u8>>) = (listed(&mine), listed(&theirs));
            let before: Listed<u8, Arc<u8>> = listed(&mine);
            list.share_with(&other);
            prop_assert_eq!(&list, &before);
            for (key, value) in &list {
                let there = other.get(key);
                let is_shared = there.is_some_and(|there| Arc::ptr_eq(there, value));
                prop_assert_eq!(is_shared, there == Some(value));
            }
            prop_assert_eq!(list.memory_beside(Some(&other)) == 0, mine == theirs);
        }
    }
}
