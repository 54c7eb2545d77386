//! Rows that another writer took.

use std::fmt;

use super::CommitSeq;

/// How an engine knows that another writer has its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fence {
    /// The caller's number is not the next one: another writer has committed, or the caller's state is old.
    Number {
        /// The number that the caller gave.
        given: CommitSeq,
        /// The number that the next commit gets.
        next: CommitSeq,
    },
    /// The rows have another owner.
    Owner {
        /// The owner, as the storage knows it.
        who: String,
    },
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { given, next } => write!(f, "the next commit is {next}, not {given}"),
            Self::Owner { who } => write!(f, "the rows were taken for writing by {who}"),
        }
    }
}
