//! A list that issues ids and never revokes one.

use std::collections::{BTreeMap, HashMap};

use crate::Name;

/// Names in the order of registration; the position is the id.
///
/// Entries are never moved or removed. A name may have aliases, which find the same id. An alias distinguishes a rename
/// from a new entry. Finding an id costs one hash lookup; finding a name costs one array access.
///
/// ```
/// use cg_registry::{AppendOnlyList, Name};
/// let mut list = AppendOnlyList::new();
/// let air = Name::new(":air")?;
/// assert_eq!(list.issue(air.clone()), Some(0));
/// assert_eq!(list.issue(air), None, "a name is issued once");
/// assert_eq!(list.id(":air"), Some(0));
/// # Ok::<_, cg_registry::NameError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct AppendOnlyList {
    names: Vec<Name>,
    ids: HashMap<Name, u64>,
    /// The names that entries have now, if they are not those of their registration.
    current: HashMap<u64, Name>,
    /// Entries that were united with another one, and that one. It may be united itself.
    united: BTreeMap<u64, u64>,
}

impl AppendOnlyList {
    /// A list without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of issued ids, which is the next id.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether no id was issued yet.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The id of a name or of an alias.
    pub fn id(&self, name: &str) -> Option<u64> {
        self.ids.get(name).copied()
    }

    /// The name under which an id was issued.
    pub fn name(&self, id: u64) -> Option<&Name> {
        self.names.get(usize::try_from(id).ok()?)
    }

    /// The name that an entry has now: the last one by which it was renamed, or else the name under which it was issued.
    /// An entry that was united with another one has the name of that one.
    pub fn current_name(&self, id: u64) -> Option<&Name> {
        let id = self.newest(id);
        self.current.get(&id).or_else(|| self.name(id))
    }

    /// The entry with which an entry was united, at the end of the chain; the entry itself if it was not.
    pub fn newest(&self, id: u64) -> u64 {
        self.chain(id).last().unwrap_or(id)
    }

    /// The entry, that with which it was united, that with which this one was united, and so on.
    pub(crate) fn chain(&self, id: u64) -> impl Iterator<Item = u64> {
        // A union joins an entry that was not united with one of another chain, so this ends.
        std::iter::successors(Some(id), |id| self.united.get(id).copied())
    }

    /// The entries that were united with another one, ascending, each with that one at the end of the chain.
    pub fn united(&self) -> impl Iterator<Item = (u64, u64)> {
        self.united.keys().map(|id| (*id, self.newest(*id)))
    }

    /// All names in the order of their ids, without aliases.
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// Issues the next id; `None` if the name exists already, as a name or an alias.
    pub fn issue(&mut self, name: Name) -> Option<u64> {
        let id = self.names.len() as u64;
        if self.ids.contains_key(&name) {
            return None;
        }
        self.ids.insert(name.clone(), id);
        self.names.push(name);
        Some(id)
    }

    /// Adds an alias of an issued id. Returns `false` and changes nothing if the id was never issued or the name
    /// exists.
    pub fn alias(&mut self, id: u64, name: Name) -> bool {
        if id >= self.names.len() as u64 || self.ids.contains_key(&name) {
            return false;
        }
        self.ids.insert(name, id);
        true
    }

    /// Makes a name that finds an entry the entry's current one.
    pub(crate) fn set_current(&mut self, id: u64, name: Name) {
        if self.name(id) == Some(&name) {
            self.current.remove(&id);
        } else {
            self.current.insert(id, name);
        }
    }

    /// Unites an entry with another one: all its names find the other one.
    pub(crate) fn unite(&mut self, id: u64, with: u64) {
        self.ids.values_mut().filter(|found| **found == id).for_each(|found| *found = with);
        self.united.insert(id, with);
    }
}

impl PartialEq for AppendOnlyList {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names
            && self.ids == other.ids
            && self.current == other.current
            && self.united == other.united
    }
}

impl Eq for AppendOnlyList {}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    #[test]
    fn an_alias_finds_the_id_and_takes_no_place() {
        let mut list = AppendOnlyList::new();
        assert_eq!(list.issue(name("a:old")), Some(0));
        assert!(list.alias(0, name("a:new")));
        assert_eq!((list.id("a:old"), list.id("a:new"), list.len()), (Some(0), Some(0), 1));
        assert_eq!(list.name(0), Some(&name("a:old")), "the stored name stays");
        assert_eq!(list.issue(name("a:new")), None, "an alias is never issued");
        assert!(!list.alias(0, name("a:old")), "a name is no alias");
        assert!(!list.alias(1, name("a:other")), "no such id");
        assert_eq!(list.issue(name("a:other")), Some(1));
        assert_eq!(list.name(u64::MAX), None);
    }
}
