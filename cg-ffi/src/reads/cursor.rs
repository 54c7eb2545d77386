//! Cursors: lists whose rows a caller takes a few at a time.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::Arc;

use cg_store::objects::{Object as Stored, ObjectKey};

use super::entity::EntityView;
use super::record::RecordView;
use crate::call::call;
use crate::error::{CG_OK, Fault};
use crate::handle::{self, Exclusive, Held, Kind, Lent as _, Object};
use crate::memory::{Out, OutSlice};
use crate::text::lend;
use crate::types::{cg_error, cg_handle, cg_row};
use crate::world::World;

/// The most rows that one call gives.
const MOST_ROWS: usize = 1024;
/// How many bytes of objects end a call before that.
const MOST_BYTES: usize = 16 << 20;

/// A list of rows of a world.
#[derive(Debug)]
pub(super) struct Cursor {
    world: Arc<World>,
    state: Exclusive<State>,
}

#[derive(Debug)]
struct State {
    left: Rows,
    /// What the last call lent.
    lent: Vec<Row>,
}

/// The rows that are left.
#[derive(Debug)]
pub(super) enum Rows {
    /// All of them.
    Read(VecDeque<Row>),
    /// Objects, which are read when they are asked for.
    Objects {
        /// What their keys begin with.
        prefix: Vec<u8>,
        /// The last one that was read.
        after: Option<ObjectKey>,
        /// Whether there are none after it.
        is_end: bool,
    },
}

/// A row that is lent.
#[derive(Debug)]
pub(super) enum Row {
    Object(ObjectKey, Stored),
    Property(String, Vec<u8>),
    Record(RecordView),
    Entity(EntityView),
}

impl Object for Cursor {}

impl Held for Cursor {
    const KIND: Kind = Kind::Cursor;
}

impl Cursor {
    pub(super) fn new(world: Arc<World>, left: Rows) -> Self {
        Self { world, state: Exclusive::new(State { left, lent: Vec::new() }) }
    }
}

impl Row {
    fn view(&self) -> cg_row {
        match self {
            Self::Object(key, Stored { bytes, version }) => {
                cg_row { key: lend(key.as_bytes()), bytes: lend(bytes), version: *version, ..cg_row::NONE }
            }
            Self::Property(name, bytes) => {
                cg_row { key: lend(name.as_bytes()), bytes: lend(bytes), ..cg_row::NONE }
            }
            Self::Record(record) => cg_row { record: *record.view(), ..cg_row::NONE },
            Self::Entity(entity) => cg_row { entity: *entity.view(), ..cg_row::NONE },
        }
    }
}

impl Rows {
    /// The next rows: none only at the end.
    fn next(&mut self, world: &World, most: usize) -> Result<Vec<Row>, Fault> {
        let most = most.min(MOST_ROWS);
        match self {
            Self::Read(rows) => Ok(rows.drain(..most.min(rows.len())).collect()),
            Self::Objects { prefix, after, is_end } => {
                let objects = world.committed()?.world().objects();
                let (mut rows, mut bytes) = (Vec::new(), 0);
                while rows.is_empty() && !*is_end {
                    let page = objects.list(&*prefix, after.as_ref(), most)?;
                    *is_end = page.next.is_none();
                    for entry in page.entries {
                        if bytes >= MOST_BYTES {
                            *is_end = false;
                            break;
                        }
                        // One that was deleted meanwhile is left out.
                        if let Some(object) = objects.get(&entry.key)? {
                            bytes += object.bytes.len();
                            rows.push(Row::Object(entry.key.clone(), object));
                        }
                        *after = Some(entry.key);
                    }
                }
                Ok(rows)
            }
        }
    }
}

/// The next rows of a cursor. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_cursor_next(
    cursor: cg_handle,
    out: *mut cg_row,
    cap: usize,
    n: *mut usize,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_cursor_next", error, || {
            let count = Out::new(n, "n")?;
            count.put(0);
            let out = OutSlice::new(out, cap, "out")?;
            let cursor = handle::find::<Cursor>(cursor)?;
            cursor.world.host()?;
            let state = &mut *cursor.state.enter("cursor")?;
            state.lent.clear();
            if cap == 0 {
                return Ok(CG_OK);
            }
            state.lent = state.left.next(&cursor.world, cap)?;
            out.put(state.lent.iter().map(Row::view));
            count.put(state.lent.len());
            Ok(CG_OK)
        })
    }
}
