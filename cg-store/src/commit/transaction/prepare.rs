//! Preparation of a commit: reads what is replaced, resolves owners, drops what is unchanged, and checks the rest.

use std::sync::Arc;

use super::Writes;
use super::changes::Changes;
use super::check::check;
use super::logged::logged;
use super::ownership::resolve_ownership;
use super::rows::Rows;
use super::values::{changed_objects, changed_records};
use crate::commit::disk_guard::Reserve;
use crate::commit::queue::Admission;
use crate::commit::state::CommitState;
use crate::kinds::kind::{self, Kind as _};
use crate::rt::stats::Counters;
use crate::storage::error::{ConflictKey, Error};

/// Changes that are ready to commit, unless what they depend on has changed.
pub(crate) struct Prepared {
    pub(crate) changes: Arc<Changes>,
    /// The encoded rows of the changes, if they are encoded already.
    pub(crate) rows: Option<Rows>,
    /// The keys that the commit changes.
    pub(crate) written: Vec<ConflictKey>,
    /// The commit after which the stored state was read.
    pub(crate) since: u64,
    /// The keys of the stored state on which the changes depend.
    pub(crate) consulted: Vec<ConflictKey>,
}

/// Converts the writes of a transaction into the changes of its commit.
pub(super) fn prepare(
    world: &CommitState,
    writes: &Writes,
    room: Admission,
    reserve: Reserve,
) -> Result<Prepared, Error> {
    let since = world.log.published();
    let catalog = world.shared.registry.catalog();
    let limits = *world.shared.limits.read();
    let resolved = resolve_ownership(&*world.read, &writes.chunks, &writes.entities)?;
    let written = resolved.chunks.keys().chain(&resolved.unchanged);
    let mut consulted: Vec<_> = written.copied().map(ConflictKey::Chunk).collect();
    consulted.extend(resolved.consulted.into_iter().map(ConflictKey::Entity));
    consulted.extend(writes.objects.keys().cloned().map(ConflictKey::Object));
    consulted.extend(writes.records.keys().copied().map(ConflictKey::Record));
    let beginning = world.shared.change_log.beginning();
    if beginning.is_some() {
        consulted.extend(writes.properties.keys().map(kind::Properties::conflict_key));
    }
    let mut changes = Changes {
        catalog,
        chunks: resolved.chunks.into_iter().collect(),
        entities: resolved.entities.into_iter().collect(),
        properties: writes.properties.clone().into_iter().collect(),
        objects: changed_objects(&world.read, &writes.objects)?,
        records: changed_records(&world.read, &writes.records)?,
        snapshot: None,
        logged: None,
    };
    changes.logged = beginning.map(|beginning| logged(&world.read, &changes, beginning)).transpose()?;
    Counters::add(&world.shared.counters.saves_elided, resolved.unchanged.len() as u64);
    check(&changes, &limits, &world.shared.values)?;
    let max_bytes = changes.max_rows_bytes();
    let limit_bytes = world.room_for(max_bytes, reserve == Reserve::Leaves && changes.puts_anything())?;
    // The thread that writes the queue encodes what fits into a batch.
    let encode_now = room == Admission::Bypass || max_bytes > limit_bytes;
    let rows = (encode_now && !changes.is_empty()).then(|| world.encode(&changes));
    if let Some(rows) = rows.as_ref().filter(|rows| rows.max_len_bytes() > limit_bytes) {
        rows.check_parts(world.shared.engine()?.caps().max_batch_bytes)?;
    }
    let written = changes.keys();
    Ok(Prepared { changes: Arc::new(changes), rows, written, since, consulted })
}
