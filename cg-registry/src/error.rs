//! Errors of stored rows and requests.

use cg_format::DecodeError;

use crate::kind::ListKind;
use crate::name::{NameError, NamedError};
use crate::schema::SpecError;

/// Rows do not decode, or a request does not fit the catalog. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The bytes of a row end early or have a count that they cannot hold.
    #[error("row `{row}`: {error}")]
    Bytes {
        /// The row's name.
        row: String,
        /// The problem and its place.
        #[source]
        error: DecodeError,
    },
    /// A stored name breaks a rule.
    #[error("row `{row}`: name {index} at byte {offset_bytes}: {error}")]
    StoredName {
        /// The row's name.
        row: String,
        /// The index of the name in the row, from 0.
        index: u64,
        /// Where its bytes start.
        offset_bytes: u64,
        /// The name found, and the violated rule.
        #[source]
        error: NamedError,
    },
    /// A stored name is not UTF-8.
    #[error("row `{row}`: name {index} is no UTF-8: byte {found:#04x} at byte {offset_bytes}")]
    Utf8 {
        /// The row's name.
        row: String,
        /// The index of the name in the row, from 0.
        index: u64,
        /// The offset of the invalid byte.
        offset_bytes: u64,
        /// The byte found.
        found: u8,
    },
    /// A stored record does not decode.
    #[error("row `{row}`: record {index} at byte {offset_bytes}: {reason}")]
    Record {
        /// The row's name.
        row: String,
        /// The index of the record in the row, from 0.
        index: u64,
        /// Where the record starts.
        offset_bytes: u64,
        /// The decoder's message.
        reason: String,
    },
    /// A row's name resembles a name of the registry and is not one.
    #[error("row `{row}` is no registry row; a tail is named `<list>.tail.<first id>` in plain decimal")]
    RowName {
        /// The name found.
        row: String,
    },
    /// A row of the registry is absent.
    #[error("row `{row}` is missing; restore it from a backup")]
    MissingRow {
        /// The row's name.
        row: &'static str,
    },
    /// Entries between the earlier rows and the next tail are missing.
    #[error("row `{row}` starts at entry {found}, but the rows before it end at {expected}")]
    Gap {
        /// The name of the tail.
        row: String,
        /// The expected first entry.
        expected: u64,
        /// The first entry of the tail.
        found: u64,
    },
    /// A tail disagrees with entries that were read before.
    #[error("row `{row}`: entry {index} is {tail}, but the rows before it say {folded}")]
    Disagrees {
        /// The name of the tail.
        row: String,
        /// The index of the entry in the whole list.
        index: u64,
        /// The value in the earlier rows.
        folded: String,
        /// The value in the tail.
        tail: String,
    },
    /// A name is already in the list.
    #[error("{list}: `{name}` is registered as {id} already")]
    Duplicate {
        /// The list.
        list: ListKind,
        /// The name.
        name: String,
        /// Its id.
        id: u64,
    },
    /// A list is full.
    #[error("{list} is full: it holds {max} entries; nothing was registered")]
    Full {
        /// The list.
        list: ListKind,
        /// The maximum number of entries.
        max: usize,
    },
    /// A record contradicts earlier ones.
    #[error("{row}: record {index}: {reason}")]
    Inconsistent {
        /// The row.
        row: &'static str,
        /// The index of the record in the whole row.
        index: u64,
        /// The contradiction.
        reason: String,
    },
    /// The rows do not belong together.
    #[error("{0}; restore the registry's rows from one backup")]
    Incomplete(String),
    /// A name in a request violates a rule.
    #[error("{name:?} cannot be registered: {error}")]
    Name {
        /// The name found.
        name: String,
        /// The rule.
        #[source]
        error: NameError,
    },
    /// The schema of a component in a request is invalid.
    #[error("component `{name}`: {error}")]
    Spec {
        /// The component's name.
        name: String,
        /// The problem.
        #[source]
        error: SpecError,
    },
    /// A request names a component that does not exist.
    #[error("block `{block}` names component `{component}`, which is not registered")]
    UnknownComponent {
        /// The block.
        block: String,
        /// The component.
        component: String,
    },
    /// A request has a block in a state that its pack does not declare.
    #[error("block `{name}` has a state that no pack declares; declared are {allowed}")]
    UndeclaredState {
        /// The block with its state.
        name: String,
        /// The declared keys with their values.
        allowed: String,
    },
    /// A request describes an existing entry differently.
    #[error("`{name}` is registered with {registered}; use a manifest and a plan to change it")]
    Differs {
        /// The entry.
        name: String,
        /// The registered description, in words.
        registered: String,
    },
    /// A block has more components than allowed.
    #[error("block `{block}` has {found} components, at most {max} are allowed")]
    TooManyComponents {
        /// The block.
        block: String,
        /// The number found.
        found: usize,
        /// The maximum.
        max: usize,
    },
    /// Changes or a plan were made for another state of the catalog.
    #[error("the catalog has changed since: {row} has {found} entries, not {expected}; reconcile again")]
    Stale {
        /// The first row that differs.
        row: &'static str,
        /// The length in that state.
        expected: u64,
        /// The present length.
        found: u64,
    },
    /// A plan with refusals cannot be applied.
    #[error("the plan is refused: {0}")]
    Refused(String),
}
