//! A world as a server holds it: columns in its own numbers, groups of saves, and what the disk does not take yet.

mod batch;
mod commit;
mod damage;
mod group;
mod handle;
mod pending;
mod reads;
mod saves;
mod seen;
mod state;
mod writes;

pub use handle::{Host, Peeked};
pub use saves::Saved;
pub use state::{HostMetrics, HostOptions};
pub use writes::Writes;
