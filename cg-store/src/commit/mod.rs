//! From a transaction to the disk: preparing, conflicts, numbers, the queue, syncs.

pub(crate) mod commit_log;
pub(crate) mod gather;
pub(crate) mod hand_over;
pub(crate) mod names;
pub(crate) mod observers;
pub(crate) mod recent;
pub(crate) mod resume;
pub(crate) mod snapshot;
pub(crate) mod space;
pub(crate) mod state;
pub(crate) mod steady_sync;
pub(crate) mod transaction;
pub(crate) mod write_behind;
