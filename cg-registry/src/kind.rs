//! The six lists of a world, as one enum.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One of the lists in which a world numbers names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListKind {
    /// Block kinds; an entry may name one state, as in `minecraft:oak_log[axis=y]`.
    Blocks,
    /// Components. Each registration of a name with another shape is a separate entry.
    Components,
    /// Kinds of entities.
    Entities,
    /// Structures.
    Structures,
    /// Dimensions.
    Dimensions,
    /// Kinds of side data.
    Sides,
}

impl ListKind {
    /// All lists, in the order of reports and of a world's rows.
    pub const ALL: [Self; 6] =
        [Self::Blocks, Self::Components, Self::Entities, Self::Structures, Self::Dimensions, Self::Sides];

    /// The list's name, which is also the name of its row.
    pub const fn row(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::Components => "components",
            Self::Entities => "entities",
            Self::Structures => "structures",
            Self::Dimensions => "dimensions",
            Self::Sides => "sides",
        }
    }

    /// The singular or plural noun for an entry, for messages.
    pub const fn noun(self, count: usize) -> &'static str {
        match (self, count) {
            (Self::Blocks, 1) => "block",
            (Self::Components, 1) => "component",
            (Self::Entities, 1) => "entity",
            (Self::Structures, 1) => "structure",
            (Self::Dimensions, 1) => "dimension",
            (Self::Sides, 1) => "side kind",
            (Self::Sides, _) => "side kinds",
            _ => self.row(),
        }
    }

    /// The maximum number of names in the list: 65,536 side kinds, whose id is a `u16`, and 2^24 for all others.
    pub const fn max_len(self) -> usize {
        match self {
            Self::Sides => 1 << 16,
            _ => 1 << 24,
        }
    }

    /// Whether two entries can be united: what is stored of one then becomes the other when it is read.
    pub(crate) const fn can_unite(self) -> bool {
        matches!(self, Self::Blocks | Self::Components | Self::Entities)
    }

    pub(crate) const fn place(self) -> usize {
        self as usize
    }
}

impl fmt::Display for ListKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row())
    }
}
