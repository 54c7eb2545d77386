//! Queues: answers that a game fetches when it wants.

use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

use cg_host::{Answer, Done, Saved};

use crate::binding::Binding;
use crate::call::{call, unreported};
use crate::column::{self, ColumnView};
use crate::error::{CG_ABSENT, CG_OK, Fault};
use crate::handle::{self, Held, Kind, Object};
use crate::memory::{self, Out, OutSlice};
use crate::place;
use crate::text::Text;
use crate::tx::Tx;
use crate::types::{cg_column_at, cg_done, cg_error, cg_handle, cg_pos};
use crate::world::{self, QueueSlot, World};

/// The same call may succeed later.
const RETRYABLE: u32 = 1;
/// The error is about a chunk.
const HAS_PLACE: u32 = 2;
/// A time that never ends.
const FOR_EVER: u32 = u32::MAX;

/// A queue of a world.
#[derive(Debug)]
struct Queue {
    world: Arc<World>,
    slot: Arc<QueueSlot>,
}

impl Object for Queue {
    fn released(&self) {
        let taken = self.slot.lock().take();
        if let Some(queue) = taken {
            queue.close();
        }
    }
}

impl Queue {
    /// The queue for this call, unless it or its world was closed.
    fn open(&self) -> Result<Arc<cg_host::Queue>, Fault> {
        self.slot.lock().clone().ok_or_else(|| Fault::closed("the world of the queue, or the queue"))
    }
}

impl Held for Queue {
    const KIND: Kind = Kind::Queue;
}

/// Makes a queue. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_queue_new(
    world: cg_handle,
    capacity: u32,
    queue: *mut cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_queue_new", error, || {
            let out = Out::new(queue, "queue")?;
            out.put(0);
            if capacity == 0 {
                return Err(Fault::invalid("a queue without room has no answers; capacity is at least 1"));
            }
            let world = handle::find::<World>(world)?;
            let slot = world.queue(capacity as usize)?;
            out.put(handle::give(Queue { world, slot })?);
            Ok(CG_OK)
        })
    }
}

/// Starts a load. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_queue_load(
    queue: cg_handle,
    binding: cg_handle,
    at: *const cg_column_at,
    tag: u64,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_queue_load", error, || {
            let queue = handle::find::<Queue>(queue)?;
            let open = queue.open()?;
            let binding = handle::find::<Binding>(binding)?;
            let at = column::at_given(&memory::sized(at, "at")?)?;
            open.load(binding.of(&queue.world)?, at, tag)?;
            Ok(CG_OK)
        })
    }
}

/// Starts a commit. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_queue_commit(
    queue: cg_handle,
    tx: cg_handle,
    durability: u32,
    tag: u64,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_queue_commit", error, || {
            let durability = world::durability(durability)?;
            let queue = handle::find::<Queue>(queue)?;
            let open = queue.open()?;
            let tx = handle::find::<Tx>(tx)?;
            if !Arc::ptr_eq(&queue.world, &tx.world) {
                return Err(Fault::invalid("the transaction is of another world"));
            }
            let mut writes = tx.writes()?;
            // It keeps its writes unless the queue has room.
            open.commit(&mut writes, durability, tag)?;
            Ok(CG_OK)
        })
    }
}

/// Forgets what was not begun. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_queue_cancel(queue: cg_handle, tag: u64) -> c_int {
    unreported("cg_queue_cancel", || {
        let queue = handle::find::<Queue>(queue)?;
        Ok(if queue.open()?.cancel(tag) == 0 { CG_ABSENT } else { CG_OK })
    })
}

/// Fetches answers. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_queue_wait(
    queue: cg_handle,
    out: *mut cg_done,
    cap: usize,
    n: *mut usize,
    timeout_ms: u32,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_queue_wait", error, || {
            let count = Out::new(n, "n")?;
            count.put(0);
            let out = OutSlice::new(out, cap, "out")?;
            let queue = handle::find::<Queue>(queue)?;
            let open = queue.open()?;
            if cap == 0 {
                return Ok(CG_OK);
            }
            let timeout = match timeout_ms {
                FOR_EVER => Duration::MAX,
                ms => Duration::from_millis(ms.into()),
            };
            let done = open.wait(cap, timeout)?;
            count.put(done.len());
            out.put(done.into_iter().map(view));
            Ok(CG_OK)
        })
    }
}

/// An answer as the header has it.
fn view(done: Done) -> cg_done {
    let Done { tag, answer } = done;
    let mut view = cg_done {
        tag,
        result: CG_OK,
        flags: 0,
        dimension: 0,
        reserved: 0,
        chunk: cg_pos::default(),
        column: 0,
        view: std::ptr::null(),
        commit: 0,
        message: 0,
    };
    let filled = match answer {
        Ok(Answer::Loaded(None)) => {
            view.result = CG_ABSENT;
            Ok(())
        }
        Ok(Answer::Loaded(Some(column))) => {
            let given = handle::give_lent(ColumnView::new(*column));
            given.map(|(handle, lent)| (view.column, view.view) = (handle, lent))
        }
        Ok(Answer::Committed(saved)) => {
            view.result = column::result_of(saved);
            if let Saved::Changed(seq) = saved {
                view.commit = seq.get();
            }
            Ok(())
        }
        Err(error) => Err(error.into()),
    };
    if let Err(Fault { result, is_retryable, place, message }) = filled {
        view.result = result;
        view.flags = if is_retryable { RETRYABLE } else { 0 };
        if let Some(at) = place {
            view.flags |= HAS_PLACE;
            view.dimension = place::of_dimension(at.dimension);
            view.chunk = place::of_chunk(at.pos);
        }
        // Without room for another handle the result says enough.
        view.message = handle::give(Text::of(message)).unwrap_or(0);
    }
    view
}
