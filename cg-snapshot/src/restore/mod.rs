//! Restoring: a snapshot is put back, at once or within the ticks of a server.

mod budget;
mod dry_run;
mod job;
mod operation;
mod queue;

pub use budget::TickBudget;
pub use dry_run::DryRun;
pub use job::{BlockChange, Merge, RestoreJob, RestoreOptions, RestoreReport, Unverifiable};
pub use operation::{Event, Handle, Operation, OperationId, Outcome, Progress};
pub use queue::{Host, QueueHandle, RestoreQueue, TickReport};
