//! Why bytes are no tree.

/// Why bytes are no tree, and at which byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("NBT: {problem} (at byte {at_bytes})")]
pub struct NbtError {
    /// Bytes from the start of what was parsed.
    pub at_bytes: usize,
    /// What is wrong there.
    pub problem: NbtProblem,
}

/// What is wrong at one place of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NbtProblem {
    /// The bytes end inside a value.
    #[error("{needed} bytes are needed and {left} are left")]
    Ended {
        /// Bytes that the value takes.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// A tag above the known ones.
    #[error("tag {0} does not exist")]
    UnknownTag(u8),
    /// The tree does not begin with a compound.
    #[error("the tree begins with tag {0} where a compound (10) has to be")]
    RootNotCompound(u8),
    /// Bytes after a compound that has to stand alone.
    #[error("{0} bytes follow the compound")]
    Trailing(usize),
    /// A negative length.
    #[error("a length is {0}")]
    NegativeLength(i32),
    /// A length that the rest of the bytes cannot hold.
    #[error("{count} elements of at least {element_bytes} bytes exceed the {left} bytes left")]
    LengthPastEnd {
        /// Promised elements.
        count: usize,
        /// The fewest bytes that each takes.
        element_bytes: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// Elements of no kind take no bytes: their count would be free.
    #[error("a list of {0} elements has no element kind")]
    UntypedList(usize),
    /// More levels than allowed.
    #[error("more than {0} levels deep")]
    TooDeep(u16),
    /// More fields and list elements than allowed.
    #[error("more than {0} fields and elements")]
    TooManyElements(u64),
}
