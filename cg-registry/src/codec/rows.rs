//! The names of the rows that store a catalog.

use crate::RegistryError;
use crate::kind::ListKind;

/// One of the rows, each a property of `worldMeta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Row {
    /// The names of a list, in the order of their ids.
    List(ListKind),
    /// Records about components.
    ComponentSchemas,
    /// Records about blocks.
    BlockSchemas,
    /// Aliases.
    Renames,
    /// Records about packs.
    PackRecords,
    /// Records about the types of components. A world without types does not have it.
    ComponentTypes,
}

const TAIL: &str = ".tail.";

impl Row {
    /// All rows, in the order in which they are read.
    pub const ALL: [Self; 11] = [
        Self::List(ListKind::Blocks),
        Self::List(ListKind::Components),
        Self::List(ListKind::Entities),
        Self::List(ListKind::Structures),
        Self::List(ListKind::Dimensions),
        Self::List(ListKind::Sides),
        Self::ComponentSchemas,
        Self::BlockSchemas,
        Self::Renames,
        Self::PackRecords,
        Self::ComponentTypes,
    ];

    /// The property's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::List(list) => list.row(),
            Self::ComponentSchemas => "componentSchemas",
            Self::BlockSchemas => "blockSchemas",
            Self::Renames => "renames",
            Self::PackRecords => "packRecords",
            Self::ComponentTypes => "componentTypes",
        }
    }

    /// Whether a world may be without it. Then it has no entries.
    pub const fn is_optional(self) -> bool {
        matches!(self, Self::ComponentTypes)
    }

    /// The name of a tail that starts at an entry.
    pub(crate) fn tail_name(self, first: u64) -> String {
        format!("{}{TAIL}{first}", self.name())
    }

    pub(crate) const fn place(self) -> usize {
        match self {
            Self::List(list) => list.place(),
            Self::ComponentSchemas => 6,
            Self::BlockSchemas => 7,
            Self::Renames => 8,
            Self::PackRecords => 9,
            Self::ComponentTypes => 10,
        }
    }
}

impl From<ListKind> for Row {
    fn from(list: ListKind) -> Self {
        Self::List(list)
    }
}

/// Whether a property of `worldMeta` belongs to the registry, as a complete row or a tail.
pub fn is_registry_row(name: &str) -> bool {
    matches!(parse_name(name), Ok(Some(_)))
}

/// A complete row or a tail.
pub(super) struct Part<'a> {
    pub(super) name: &'a str,
    pub(super) first: u64,
    pub(super) bytes: &'a [u8],
}

/// The row of a property, and its first entry if it is a tail; `None` for a property of the host.
pub(super) fn parse_name(name: &str) -> Result<Option<(Row, Option<u64>)>, RegistryError> {
    let found = Row::ALL.into_iter().find_map(|row| {
        Some((row, name.strip_prefix(row.name())?))
            .filter(|(_, rest)| rest.is_empty() || rest.starts_with('.'))
    });
    let Some((row, rest)) = found else { return Ok(None) };
    if rest.is_empty() {
        return Ok(Some((row, None)));
    }
    let first = rest.strip_prefix(TAIL).and_then(|digits| digits.parse().ok());
    match first.filter(|first| row.tail_name(*first) == name) {
        Some(first) => Ok(Some((row, Some(first)))),
        None => Err(RegistryError::RowName { row: name.into() }),
    }
}

/// Sorts the rows and tails by row, then by first entry. Complete rows come first.
pub(super) fn sort<'a>(
    rows: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Result<[Vec<Part<'a>>; Row::ALL.len()], RegistryError> {
    let mut whole = [false; Row::ALL.len()];
    let mut parts: [Vec<Part<'a>>; Row::ALL.len()] = Default::default();
    for (name, bytes) in rows {
        let Some((row, first)) = parse_name(name)? else { continue };
        whole[row.place()] |= first.is_none();
        parts[row.place()].push(Part { name, first: first.unwrap_or(0), bytes });
    }
    if let Some(row) = Row::ALL.into_iter().find(|row| !row.is_optional() && !whole[row.place()]) {
        return Err(RegistryError::MissingRow { row: row.name() });
    }
    for parts in &mut parts {
        parts.sort_by_key(|part| (part.first, part.name.len()));
    }
    Ok(parts)
}
