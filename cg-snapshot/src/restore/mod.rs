//! Restores a snapshot, at once or within the ticks of a server.

mod budget;
mod dry_run;
mod entities;
mod held;
mod job;
mod operation;
mod options;
mod piece;
mod queue;
mod reading;
mod report;
mod running;

pub use budget::TickBudget;
pub use dry_run::DryRun;
pub use job::RestoreJob;
pub use operation::{Event, Handle, Operation, OperationId, Outcome, Progress};
pub use options::{Merge, RestoreOptions, Unverifiable};
pub use queue::{Host, QueueHandle, RestoreQueue, StepWork, Stepped, TickReport};
pub use report::{BlockChange, RestoreReport};
