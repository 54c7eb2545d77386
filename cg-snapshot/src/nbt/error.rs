//! Errors of parsing a tree.

/// Why bytes are not a valid tree, and at which byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("NBT: {problem} (at byte {at_bytes})")]
pub struct NbtError {
    /// Bytes from the start of what was parsed.
    pub at_bytes: usize,
    /// The problem at that byte.
    pub problem: NbtProblem,
}

/// A problem at one place of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NbtProblem {
    /// The bytes end inside a value.
    #[error("{needed} bytes are needed and {left} are left")]
    Ended {
        /// Bytes that the value takes.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// A tag above the known ones.
    #[error("tag {0} does not exist")]
    UnknownTag(u8),
    /// The tree does not begin with a compound.
    #[error("the tree begins with tag {0} where a compound (10) has to be")]
    RootNotCompound(u8),
    /// Bytes follow a compound that must end the input.
    #[error("{0} bytes follow the compound")]
    Trailing(usize),
    /// A negative length.
    #[error("a length is {0}")]
    NegativeLength(i32),
    /// A length that the rest of the bytes cannot hold.
    #[error("{count} elements of at least {element_bytes} bytes exceed the {left} bytes left")]
    LengthPastEnd {
        /// The claimed number of elements.
        count: usize,
        /// The fewest bytes of each element.
        element_bytes: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// A list without an element kind has elements. They would take no bytes, so nothing would bound their count.
    #[error("a list of {0} elements has no element kind")]
    UntypedList(usize),
    /// More levels than allowed.
    #[error("more than {0} levels deep")]
    TooDeep(u16),
    /// More fields and list elements than allowed.
    #[error("more than {0} fields and elements")]
    TooManyElements(u64),
}
