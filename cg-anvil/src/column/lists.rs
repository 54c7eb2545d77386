//! Lists that a column has, and the kind of those that hold nothing.

use crate::nbt::{List, Tag};

/// Which lists of a column are there: the game leaves some out, and writes some that hold nothing.
///
/// The kind of a list that holds nothing is whatever its writer chose; one that holds something has compounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lists {
    /// Sections.
    pub sections: Option<Tag>,
    /// Block entities.
    pub block_entities: Option<Tag>,
    /// Entities: until 1.16, and in columns that are not generated to the end.
    pub entities: Option<Tag>,
}

impl Default for Lists {
    /// Those of a column that is generated to the end, since 1.17, without kinds.
    fn default() -> Self {
        Self { sections: Some(Tag::End), block_entities: Some(Tag::End), entities: None }
    }
}

impl Lists {
    /// No list is there.
    pub const NONE: Self = Self { sections: None, block_entities: None, entities: None };

    /// Kind to note for a list that is there.
    pub(super) const fn kind(list: List<'_>) -> Tag {
        if list.is_empty() { list.tag() } else { Tag::End }
    }

    /// A byte for each list: its kind, or -1 for one that is not there.
    pub(crate) fn encode(self) -> [u8; 3] {
        [self.sections, self.block_entities, self.entities]
            .map(|kind| kind.map_or(u8::MAX, |kind| kind as u8))
    }

    /// Reads what [`Lists::encode`] gave.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let kind = |byte: u8| match byte {
            u8::MAX => Some(None),
            byte => Tag::from_byte(byte).map(Some),
        };
        let [sections, block_entities, entities] = <[u8; 3]>::try_from(bytes).ok()?;
        Some(Self {
            sections: kind(sections)?,
            block_entities: kind(block_entities)?,
            entities: kind(entities)?,
        })
    }
}
