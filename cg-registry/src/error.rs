//! What the registry says when stored rows or requests do not fit.

use cg_format::DecodeError;

use crate::kind::ListKind;
use crate::name::{NameError, NamedError};
use crate::schema::SpecError;

/// Rows that do not decode, or a request that does not fit the catalog. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The bytes of a row end early or count more than they hold.
    #[error("row `{row}`: {error}")]
    Bytes {
        /// The row's name.
        row: String,
        /// What is wrong and where.
        #[source]
        error: DecodeError,
    },
    /// A stored name breaks a rule.
    #[error("row `{row}`: name {index} at byte {offset_bytes}: {error}")]
    StoredName {
        /// The row's name.
        row: String,
        /// Which name of the row, counted from 0.
        index: u64,
        /// Where its bytes start.
        offset_bytes: u64,
        /// The name found, and the rule.
        #[source]
        error: NamedError,
    },
    /// A stored name is not UTF-8.
    #[error("row `{row}`: name {index} is no UTF-8: byte {found:#04x} at byte {offset_bytes}")]
    Utf8 {
        /// The row's name.
        row: String,
        /// Which name of the row, counted from 0.
        index: u64,
        /// Where the offending byte stands.
        offset_bytes: u64,
        /// The byte found.
        found: u8,
    },
    /// A stored record does not decode.
    #[error("row `{row}`: record {index} at byte {offset_bytes}: {reason}")]
    Record {
        /// The row's name.
        row: String,
        /// Which record of the row, counted from 0.
        index: u64,
        /// Where the record starts.
        offset_bytes: u64,
        /// What its decoder said.
        reason: String,
    },
    /// A row's name looks like one of the registry's, but is none.
    #[error("row `{row}` is no registry row; a tail is named `<list>.tail.<first id>` in plain decimal")]
    RowName {
        /// The name found.
        row: String,
    },
    /// One of the registry's rows is not there.
    #[error("row `{row}` is missing; restore it from a backup")]
    MissingRow {
        /// The row's name.
        row: &'static str,
    },
    /// Entries between what was read so far and the next tail are missing.
    #[error("row `{row}` starts at entry {found}, but the rows before it end at {expected}")]
    Gap {
        /// The name of the tail.
        row: String,
        /// The first entry that was expected.
        expected: u64,
        /// The first entry that it holds.
        found: u64,
    },
    /// A tail disagrees with what was folded already.
    #[error("row `{row}`: entry {index} is {tail}, but the rows before it say {folded}")]
    Disagrees {
        /// The name of the tail.
        row: String,
        /// The entry, counted over the whole list.
        index: u64,
        /// What the earlier rows say.
        folded: String,
        /// What the tail says.
        tail: String,
    },
    /// A name that is in the list already.
    #[error("{list}: `{name}` is registered as {id} already")]
    Duplicate {
        /// The list.
        list: ListKind,
        /// The name.
        name: String,
        /// The id that it has.
        id: u64,
    },
    /// A list has as many entries as it can.
    #[error("{list} is full: it holds {max} entries; nothing was registered")]
    Full {
        /// The list.
        list: ListKind,
        /// The most entries that it holds.
        max: usize,
    },
    /// A record that contradicts those before it.
    #[error("{row}: record {index}: {reason}")]
    Inconsistent {
        /// The row.
        row: &'static str,
        /// The record, counted over the whole row.
        index: u64,
        /// The contradiction.
        reason: String,
    },
    /// The rows do not belong together.
    #[error("{0}; restore the registry's rows from one backup")]
    Incomplete(String),
    /// A name in a request breaks a rule.
    #[error("{name:?} cannot be registered: {error}")]
    Name {
        /// The name found.
        name: String,
        /// The rule.
        #[source]
        error: NameError,
    },
    /// A component in a request has a schema that does not add up.
    #[error("component `{name}`: {error}")]
    Spec {
        /// The component's name.
        name: String,
        /// What does not add up.
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
    /// A request describes an existing entry differently.
    #[error("`{name}` is registered with {registered}; use a manifest and a plan to change it")]
    Differs {
        /// The entry.
        name: String,
        /// What is registered, in words.
        registered: String,
    },
    /// More components than a block can have.
    #[error("block `{block}` has {found} components, at most {max} are allowed")]
    TooManyComponents {
        /// The block.
        block: String,
        /// The number found.
        found: usize,
        /// The most that are allowed.
        max: usize,
    },
    /// Changes or a plan made for another state of the catalog.
    #[error("the catalog has changed since: {row} has {found} entries, not {expected}; reconcile again")]
    Stale {
        /// The first row that differs.
        row: &'static str,
        /// The length that the plan was made for.
        expected: u64,
        /// The length now.
        found: u64,
    },
    /// A plan with refusals cannot be applied.
    #[error("the plan is refused: {0}")]
    Refused(String),
}
