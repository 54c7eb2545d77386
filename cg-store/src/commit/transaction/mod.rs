//! Transactions: changes that become visible together or not at all, also after a crash.

mod boxes;
mod changes;
mod check;
mod chunk_writes;
mod commit;
mod logged;
mod named_cells;
mod ownership;
mod prepare;
mod rows;
mod tx;
mod tx_values;
mod values;
mod world;
mod writes;

pub use changes::ChunkChange;
pub(crate) use changes::{Changeable, Changed, Changes};
pub use check::{Check, Checked};
pub use chunk_writes::ChunkWrites;
pub(crate) use commit::accept_reserved;
pub use commit::{Committed, Durable, KeepsCommits};
pub(crate) use ownership::RELEASED;
pub use ownership::{Ground, Resolved, reason, resolve_ownership};
pub(crate) use prepare::Prepared;
pub(crate) use rows::{Rows, put_change_marks};
pub use tx::Tx;
pub use world::{Transaction, TxStore, ValueStore};
pub use writes::Writes;
