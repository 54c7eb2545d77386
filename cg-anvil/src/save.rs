//! The region files of a save, and which dimension each belongs to.

mod error;
mod file;
mod find;
mod forms;
mod layout;
mod level;
mod listing;
mod lock;
mod other;
mod regions;
mod server;
mod strays;

#[cfg(test)]
mod tests;

pub use error::SaveError;
pub(crate) use file::LEVEL;
pub use file::{RegionFile, RegionKind};
pub use find::find;
pub use forms::{Form, OtherForm};
pub use layout::{FOLDERS_OF_26, Layout, OVERWORLD, dimension_folder, found_folder, is_moved, only_layout};
pub(crate) use level::level;
pub use listing::Save;
pub use lock::{SaveLock, is_in_use};
pub use other::{OtherFiles, file_path, is_named_as_region};
pub use regions::{is_found, is_region_part};
pub use server::ServerFolder;
pub use strays::{Side, Strays, stray_name, stray_of};
