//! Transactions: changes that become visible together or not at all, also after a crash.

mod boxes;
mod changes;
mod check;
mod chunk_writes;
mod commit;
mod committed;
mod editor;
mod objects;
mod ownership;
mod prepare;
mod records;
mod retry;
mod rows;
mod store;
mod tx;
mod values;
mod world;
mod writes;

pub use changes::ChunkChange;
pub(crate) use changes::{Changeable, Changes};
pub use check::{Check, Checked};
pub use chunk_writes::ChunkWrites;
pub(crate) use commit::accept_reserved;
pub use committed::{Committed, Durable};
pub use ownership::{Ground, RELEASED, Resolved, reason, resolve_ownership};
pub(crate) use prepare::Prepared;
pub(crate) use rows::Rows;
pub use store::{TxStore, ValueStore};
pub use tx::Tx;
pub use world::Transaction;
pub use writes::Writes;
