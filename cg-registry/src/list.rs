//! A list that issues ids and never revokes one.

use std::collections::HashMap;

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
}

impl PartialEq for AppendOnlyList {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names && self.ids == other.ids
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
