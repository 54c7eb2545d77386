//! Segmented worlds: one world per region, under one root.
//!
//! A [`SegmentedWorld`] stores each cube of a given side in a world of its own, which can be deleted, compacted and
//! copied alone. A root world owns the names, so an id means the same in all of them. It also stores which segment
//! contains each entity, and each property, object and record of a segment. Segments are opened when they are needed, or [ahead](Segments::open_ahead) of that, and
//! closed when too many are open.
//!
//! What it is *not*: a transaction over several segments. One transaction is in one segment; only entities are
//! [transferred](SegmentedWorld::transfer_entities) between segments. An overlay is merged segment by segment, each in
//! one transaction.
//!
//! A world is made of parts, each with its own state. A part uses those before it in this list, and no part knows the
//! world:
//!
//! | part | it has | it answers |
//! |---|---|---|
//! | `Root` | the root's world, the list of segments | names, states of segments, places of what they have |
//! | `GameTime` | the time and the players that segments were told last | what a segment is told when it is opened |
//! | `OpenSegments` | the home, a slot for each segment that is used, and the one before it | calls with a segment's world |
//! | `Ticks` | the segment that had the last turn | ticks over all open segments |
//! | `Borders` | the locks of transfers, and what is being put, was deleted, or got a place while the world is copied | whether an entity may be put, and where it is |
//! | `Transfers` | `OpenSegments` and `Borders` | transfers, and reads that see none half done |
//! | `Submissions` | batches that wait for their segments | submissions, and that every call sees what was submitted before it |
//!
//! | what is to be added | its place |
//! |---|---|
//! | a call of the host for chunks or entities | a method of [`SegmentedWorld`], after `Submissions::apply`, over `OpenSegments` or, if it reads, `Parts::look_up`; one that waits for no disk in `tick_thread` |
//! | work on all open segments, as `metrics` | `OpenSegments::for_each_open`; without waiting for any, as ticks, `list` and `if_open` |
//! | an action on a whole segment | a method of [`Segments`] |
//! | another kind of value in a segment's transaction | `reads`, which is the store of a transaction, `written` and `held` |
//! | a read of a property, an object or a record | `values`, by `Transfers::find_value` |

mod accept;
mod acceptance;
mod ahead;
#[cfg(feature = "rocks")]
mod archive;
mod at_rest;
mod borders;
#[cfg(feature = "rocks")]
mod checkpoint;
mod checks;
#[cfg(feature = "rocks")]
mod closed;
mod column_walk;
mod compaction;
#[cfg(feature = "rocks")]
mod content_hash;
mod departures;
#[cfg(feature = "rocks")]
mod disk;
mod error;
mod held;
mod history;
mod home;
mod inside;
mod layers;
mod look_up;
mod merge;
mod metrics;
mod objects;
mod old_merge;
mod open;
mod options;
mod origin;
mod parts;
mod pending;
mod pinned_loads;
mod pins;
mod place;
mod placed;
mod placed_commit;
mod places;
mod pos;
mod putting;
#[cfg(feature = "rocks")]
mod read_base;
mod reads;
mod records;
mod resolve;
#[cfg(feature = "rocks")]
mod restored;
mod root;
mod root_part;
mod rows;
mod segments;
mod slots;
mod submissions;
mod tick_thread;
mod ticks;
mod time;
mod transaction;
mod transfer;
mod transfers;
mod values;
#[cfg(feature = "rocks")]
mod verify;
mod waiting;
mod walks;
mod world;
#[cfg(feature = "rocks")]
mod worlds;
mod written;

pub use accept::AcceptedSegments;
pub use compaction::SegmentsCompaction;
#[cfg(feature = "rocks")]
pub use disk::OnDisk;
pub use error::{MergedInPart, SegmentError};
pub use home::{InMemory, SegmentHome};
pub use metrics::SegmentedMetrics;
pub use objects::SegmentedObjects;
pub use options::SegmentOptions;
pub use pins::SegmentsPin;
pub use pos::SegmentPos;
pub use records::SegmentedRecords;
pub use segments::Segments;
pub use transaction::SegmentTransaction;
#[cfg(feature = "rocks")]
pub use verify::SegmentedReport;
pub use world::SegmentedWorld;
