//! Lists of objects, properties, records and entities.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::ops::ControlFlow;

use cg_format::entity::Owner;
use cg_format::{BlockBox, Dimension};
use cg_store::records::RecordQuery;

use super::cursor::{Cursor, Row, Rows};
use super::entity::Shows;
use super::record::RecordView;
use crate::binding::Binding;
use crate::call::call;
use crate::error::CG_OK;
use crate::handle;
use crate::memory::{self, Out};
use crate::place;
use crate::text;
use crate::types::{cg_box, cg_bytes, cg_error, cg_handle, cg_str};
use crate::world::World;

/// Lists objects. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_object_list(
    world: cg_handle,
    prefix: cg_bytes,
    cursor: *mut cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_object_list", error, || {
            let out = Out::new(cursor, "cursor")?;
            out.put(0);
            let world = handle::find::<World>(world)?;
            world.host()?;
            let prefix = text::bytes(prefix, "prefix")?.to_vec();
            let rows = Rows::Objects { prefix, after: None, is_end: false };
            out.put(handle::give(Cursor::new(world, rows))?);
            Ok(CG_OK)
        })
    }
}

/// Lists records. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_records_in(
    world: cg_handle,
    dimension: u32,
    blocks: *const cg_box,
    cursor: *mut cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_records_in", error, || {
            let out = Out::new(cursor, "cursor")?;
            out.put(0);
            let world = handle::find::<World>(world)?;
            let cg_box { min, max } = memory::value(blocks, "blocks")?;
            place::ordered(min, max)?;
            let area = BlockBox::new(place::block(min), place::block(max));
            let query = RecordQuery::new(Dimension::new(dimension.into()), area);
            let found = world.committed()?.world().records().in_box(&query)?;
            let rows = found.into_iter().map(|(id, record)| Row::Record(RecordView::new(id, record)));
            out.put(handle::give(Cursor::new(world, Rows::Read(rows.collect())))?);
            Ok(CG_OK)
        })
    }
}

/// Lists properties. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_property_list(
    world: cg_handle,
    prefix: cg_str,
    cursor: *mut cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_property_list", error, || {
            let out = Out::new(cursor, "cursor")?;
            out.put(0);
            let world = handle::find::<World>(world)?;
            let prefix = text::text(prefix, "prefix")?;
            let mut rows = VecDeque::new();
            let failed = world.committed()?.world().read_view(|view| {
                view.for_each_property(prefix, |property| match property {
                    Ok((name, bytes)) => {
                        rows.push_back(Row::Property(name.to_owned(), bytes.to_vec()));
                        ControlFlow::Continue(())
                    }
                    Err(error) => ControlFlow::Break(error),
                })
            })?;
            if let Some(error) = failed {
                return Err(error.into());
            }
            out.put(handle::give(Cursor::new(world, Rows::Read(rows)))?);
            Ok(CG_OK)
        })
    }
}

/// Lists entities that belong to no chunk. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_entities_detached(
    world: cg_handle,
    binding: cg_handle,
    cursor: *mut cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_entities_detached", error, || {
            let out = Out::new(cursor, "cursor")?;
            out.put(0);
            let world = handle::find::<World>(world)?;
            let host = world.committed()?;
            let binding = handle::optional::<Binding>(binding)?;
            let bound = binding.as_ref().map(|binding| binding.of(&world)).transpose()?;
            let shows = Shows::new(&host, bound.map(|bound| &**bound));
            let mut rows = VecDeque::new();
            let failed = host.world().read_view(|view| {
                view.for_each_entity(|entity| match entity {
                    Ok((id, entity)) => {
                        if matches!(entity.owner, Owner::Detached(_)) {
                            rows.extend(shows.show(id, entity).map(Row::Entity));
                        }
                        ControlFlow::Continue(())
                    }
                    Err(error) => ControlFlow::Break(error),
                })
            })?;
            if let Some(error) = failed {
                return Err(error.into());
            }
            out.put(handle::give(Cursor::new(world, Rows::Read(rows)))?);
            Ok(CG_OK)
        })
    }
}
