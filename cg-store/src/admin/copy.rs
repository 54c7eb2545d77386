//! Copying all rows of a world into an empty engine.

use std::ops::ControlFlow;

use cg_format::key::Family;

use crate::admin::Admin;
use crate::admin::load::{Check, Copied, KeepsIdentity, Original, RowSource, Visit, is_own, load_rows};
use crate::engine::{ALL_KEYS, Engine, Readable, ReadableExt as _};
use crate::storage::error::Error;

impl Admin<'_> {
    /// See [`WorldBuilder::copy_over`](crate::WorldBuilder::copy_over).
    pub(crate) fn copy(
        &self,
        to: &dyn Engine,
        identity: KeepsIdentity,
        progress: impl FnMut(&Copied),
    ) -> Result<Copied, Error> {
        let engine = self.commit.drained_engine()?;
        // Waits while a staged commit is rolled forward, so the copy has none to finish.
        let view = engine.snapshot()?;
        let of = Original::of_view(&self.shared.file, &self.shared.location, &*view)?;
        load_rows(OfView(&*view), &of, to, identity, progress)
    }
}

/// The rows of one state.
pub(crate) struct OfView<'v>(pub(crate) &'v dyn Readable);

impl RowSource for OfView<'_> {
    type Error = Error;

    const CHECK: Option<Check<Error>> = None;

    fn visit(&mut self, visit: &mut Visit<'_, Error>) -> Result<ControlFlow<()>, Error> {
        for family in Family::ALL {
            let ended = self.0.scan_uncached(family, ALL_KEYS, |key, row| {
                if family == Family::WorldMeta && is_own(key) {
                    return ControlFlow::Continue(());
                }
                match visit(family, key, row) {
                    Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
                    Ok(ControlFlow::Break(())) => ControlFlow::Break(Ok(())),
                    Err(error) => ControlFlow::Break(Err(error)),
                }
            })?;
            if ended.transpose()?.is_some() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
