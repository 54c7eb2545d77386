//! From a transaction to the disk: preparation, conflicts, commit numbers, the queue, syncs.

mod change_log;
pub(crate) mod commit_log;
pub(crate) mod disk_guard;
mod fence;
pub(crate) mod names;
pub(crate) mod persist;
pub(crate) mod pin_load;
pub(crate) mod queue;
pub(crate) mod recent_changes;
pub(crate) mod refresh;
pub(crate) mod resume;
pub(crate) mod settings_file;
pub(crate) mod snapshot;
pub(crate) mod state;
pub(crate) mod submit;
pub(crate) mod threads;
pub(crate) mod transaction;
mod waiting;
pub(crate) mod write;
