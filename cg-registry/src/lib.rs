#![doc = include_str!("../README.md")]
//!
//! The lists are a [`Catalog`], a manifest is a [`PackManifest`], and [`reconcile()`] returns a [`Plan`]. An
//! [`Upgrader`] converts a stored chunk to the newest generation. The store writes the rows that
//! [`Catalog::encode_full`] and [`Changes::encode_tail`] return, in the batch with the first chunk that uses the new
//! ids.
//!
//! # Promises
//! - An id is the position of a name in an append-only list. It never moves and is never reused.
//! - A chunk is always read with the generation in which it was written.
//! - Bytes of a component that a block loses are stored with the chunk and are restored with the component.
//! - An impossible change is refused with its reason before anything is changed.
//! - Stored rows are untrusted: any bytes give a catalog or an error with the row, the byte and the value.
//!
//! # Where is the layout?
//! In `docs/format/registry.md`; the JSON of manifests in `docs/manifest.md`.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::needless_raw_string_hashes, reason = "expectations are written by a tool that adds them")
)]

mod append;
mod block;
mod catalog;
mod changes;
pub mod codec;
mod component;
mod declared;
mod error;
pub mod kept;
mod kind;
mod list;
mod manifest;
mod name;
mod opacity;
mod pack;
mod policy;
pub mod portable;
pub mod reconcile;
mod register;
pub mod schema;
mod shared;
mod tables;
pub mod types;
mod upgrade;
mod view;

pub use block::BlockRow;
pub use catalog::{Catalog, LOST_COMPONENTS, STALE};
pub use changes::Changes;
pub use component::{ComponentRow, Replaces};
pub use error::RegistryError;
pub use kept::KeptComponents;
pub use kind::ListKind;
pub use list::AppendOnlyList;
pub use manifest::{
    BlockOffer, ComponentOffer, FieldOffer, HexBytes, ManifestError, PackManifest, Rename, Size,
};
pub use name::{Name, NameError, NamedError};
pub use pack::{PackRow, RenameRow};
pub use policy::{MissingPacks, Policy};
pub use reconcile::{Action, Cost, Plan, Refusal, What, reconcile};
pub use register::Registration;
pub use schema::{ComponentSpec, Conversion, Field};
pub use upgrade::{Gained, Instance, Upgrade, UpgradeError, UpgradeFunctions, Upgrader};
pub use view::Schema;
