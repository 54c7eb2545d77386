//! Records, properties and objects of a world, added to a pack.

use std::io::Write;
use std::ops::ControlFlow;

use cg_anvil::mapping::key::is_of_player;
use cg_format::record::RecordView;
use cg_format::{BlockBox, Dimension, RecordId};
use cg_registry::Name;
use cg_snapshot::pack::{PackWriter, PackedObject};
use cg_snapshot::{Region, SnapshotError};
use cg_store::World;
use cg_store::objects::ObjectKey;
use cg_store::records::RecordQuery;

use crate::output::Failure;

/// Visits the records in a box. A damaged one ends it: it may be of the box.
pub(super) fn each_record(
    world: &World,
    dimension: Dimension,
    area: BlockBox,
    mut visit: impl FnMut(RecordId, RecordView<'_>),
) -> Result<(), Failure> {
    let failed = world.records().for_each_in(&RecordQuery::new(dimension, area), |record| match record {
        Ok((id, record)) => {
            if area.contains(record.position.block()) {
                visit(id, record);
            }
            ControlFlow::Continue(())
        }
        Err(error) => ControlFlow::Break(error),
    })?;
    Ok(failed.map_or(Ok(()), Err)?)
}

/// Adds the records in a box. They are in memory meanwhile, as the box is.
pub(super) fn add_records<W: Write>(
    world: &World,
    region: Region,
    pack: &mut PackWriter<W>,
    failed: impl Fn(SnapshotError) -> Failure,
) -> Result<(), Failure> {
    let mut records = Vec::new();
    each_record(world, region.dimension(), region.area(), |id, record| {
        records.push((id, record.to_record()));
    })?;
    records.sort_unstable_by_key(|(id, _)| id.to_bytes());
    records.iter().try_for_each(|(id, record)| pack.record(*id, record)).map_err(failed)
}

/// Whether a property says something of its own world: it is the engine's, or one of the settings.
pub(in crate::cmd) fn is_worlds_own(name: &[u8]) -> bool {
    name.starts_with(b":") || name.starts_with(b"cg:")
}

/// Adds the properties whose names begin with one of the prefixes, which ascend.
pub(super) fn add_properties<W: Write>(
    world: &World,
    prefixes: &[String],
    pack: &mut PackWriter<W>,
    failed: impl Fn(SnapshotError) -> Failure,
) -> Result<(), Failure> {
    for prefix in prefixes {
        let mut is_met = false;
        let refused = world.read_view(|view| {
            view.for_each_property(prefix, |property| {
                let added = property.map_err(Failure::from).and_then(|(name, bytes)| {
                    if is_worlds_own(name.as_bytes()) {
                        return Ok(());
                    }
                    let name = Name::new(name).map_err(Failure::failed)?;
                    is_met = true;
                    pack.property(&name, bytes).map_err(&failed)
                });
                added.map_or_else(ControlFlow::Break, ControlFlow::Continue)
            })
        })?;
        if let Some(failure) = refused {
            return Err(failure);
        }
        if !is_met {
            let prefix = prefix.escape_debug();
            return Err(Failure::absent(format!("no property begins with `{prefix}`; nothing was written")));
        }
    }
    Ok(())
}

/// Adds the objects whose keys begin with one of the prefixes, which ascend.
pub(super) fn add_objects<W: Write>(
    world: &World,
    prefixes: &[Vec<u8>],
    pack: &mut PackWriter<W>,
    failed: impl Fn(SnapshotError) -> Failure,
) -> Result<(), Failure> {
    for prefix in prefixes {
        let mut is_met = false;
        let refused = world.objects().for_each(prefix, |object| {
            // What the store keeps for itself holds of this world only, and so does what is said of its players.
            let is_own = |key: &[u8]| key.starts_with(ObjectKey::STORES_OWN) || is_of_player(key);
            if object.as_ref().is_ok_and(|(key, ..)| is_own(key)) {
                return ControlFlow::Continue(());
            }
            is_met = true;
            let added = object.map_err(Failure::from).and_then(|(key, version, bytes)| {
                pack.object(PackedObject { key, version, bytes }).map_err(&failed)
            });
            added.map_or_else(ControlFlow::Break, ControlFlow::Continue)
        })?;
        if let Some(failure) = refused {
            return Err(failure);
        }
        if !is_met {
            let prefix = prefix.escape_ascii();
            return Err(Failure::absent(format!("no object begins with `{prefix}`; nothing was written")));
        }
    }
    Ok(())
}
