//! Changes of blocks, counted by kind.

use std::collections::BTreeMap;
use std::fmt;

use cg_format::BlockId;
use cg_registry::{Catalog, ListKind};
use cg_snapshot::BlockChange;
use serde::Serialize;

use crate::cmd::name_of;
use crate::output::counted;

/// How many blocks of each kind come and go.
#[derive(Debug, Default)]
pub(in crate::cmd) struct Kinds {
    gained: BTreeMap<BlockId, u64>,
    lost: BTreeMap<BlockId, u64>,
}

/// One kind in a report.
#[derive(Debug, Default, Serialize)]
pub(in crate::cmd) struct Kind {
    gained: u64,
    lost: u64,
}

/// All kinds by name.
pub(in crate::cmd) type ByKind = BTreeMap<String, Kind>;

impl Kinds {
    pub(in crate::cmd) fn count(&mut self, change: &BlockChange) {
        if change.old == change.new {
            return;
        }
        if let Some(new) = change.new {
            *self.gained.entry(new).or_default() += 1;
        }
        if let Some(old) = change.old {
            *self.lost.entry(old).or_default() += 1;
        }
    }

    pub(in crate::cmd) fn by_name(&self, catalog: &Catalog) -> ByKind {
        let name = |id: &BlockId| name_of(catalog, ListKind::Blocks, id.get());
        let mut all = ByKind::new();
        for (id, count) in &self.gained {
            all.entry(name(id)).or_default().gained = *count;
        }
        for (id, count) in &self.lost {
            all.entry(name(id)).or_default().lost = *count;
        }
        all
    }
}

pub(in crate::cmd) fn print(kinds: &ByKind, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (name, Kind { gained, lost }) in kinds {
        writeln!(f, "  {name}: {} more, {} fewer", counted(*gained, "block"), counted(*lost, "block"))?;
    }
    Ok(())
}
