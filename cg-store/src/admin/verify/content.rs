//! Verification of chunks: every live one is decoded, every id looked up, every reference recorded.

use std::ops::ControlFlow;

use cg_registry::{Catalog, ListKind};

use super::Verifier;
use super::entities::Referrers;
use crate::admin::Admin;
use crate::engine::ErrorKind;
use crate::engine::Readable;
use crate::read::chunk::Area;
use crate::read::chunk::decode::row_of;
use crate::storage::error::Error;

impl Verifier<'_> {
    /// Decodes every live chunk, and checks every reference from both ends.
    pub(super) fn content(
        &mut self,
        view: &dyn Readable,
        world: &Admin<'_>,
        catalog: &Catalog,
    ) -> Result<(), Error> {
        let mut referrers = Referrers::new();
        let walked = world.read.walk(view, Area::World, |stored| {
            // A row that does not open was already reported.
            let Ok(stored) = stored else { return ControlFlow::<()>::Continue(()) };
            self.count("chunks");
            let (space, row) = row_of(stored.at, stored.tier);
            let chunk = match world.read.decode(catalog, stored) {
                Ok(chunk) => chunk,
                Err(Error::Corrupt(damage)) => {
                    self.damaged(space, &row, damage);
                    return ControlFlow::Continue(());
                }
                Err(error) => {
                    self.find(space.family(), Some(space), &row, error.to_string());
                    return ControlFlow::Continue(());
                }
            };
            let mut find = |what: String| self.find(space.family(), Some(space), &row, what);
            let issued = |list| catalog.list(list).len() as u64;
            let dimension = stored.at.dimension.get();
            if dimension >= issued(ListKind::Dimensions) {
                find(format!("dimension {dimension} was never issued"));
            }
            for entry in chunk.palette() {
                if entry.block.get() >= issued(ListKind::Blocks) {
                    find(format!("block id {} was never issued", entry.block.get()));
                }
            }
            for (kind, _) in chunk.sides() {
                if u64::from(kind.get()) >= issued(ListKind::Sides) {
                    find(format!("kind {} of side data was never issued", kind.get()));
                }
            }
            for id in chunk.entities() {
                self.count("references");
                if let Some((other, _)) = referrers.insert(*id, (stored.at, stored.tier)) {
                    let what = format!("entity {id} is referred to by {other} too");
                    self.find(space.family(), Some(space), &row, what);
                }
            }
            ControlFlow::Continue(())
        });
        match walked {
            Ok(_) => self.references(&referrers),
            // The deltas cannot be read, which was reported with their rows. The content of the chunks is unknown.
            Err(error) if error.kind() == ErrorKind::Damaged => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
