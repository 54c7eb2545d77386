//! Worlds: opening, closing, and what they are.

mod info;
mod options;
mod tick;

use std::ffi::c_int;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use cg_host::{Host, Queue};
use cg_registry::Catalog;
use cg_store::{Durability, ErrorKind, World as Store};
use parking_lot::{Mutex, RwLock};

use crate::call::call;
use crate::error::{CG_OK, Fault};
use crate::handle::{self, Held, Kind, Object};
use crate::log;
use crate::memory::Out;
use crate::text;
use crate::types::{cg_error, cg_handle, cg_options, cg_str};
use options::{Mode, Options};

pub use info::{cg_world_checkpoint, cg_world_info_of, cg_world_usage, cg_world_verify};
pub(crate) use options::durability;
pub use tick::{cg_keep_loaded, cg_tick};

/// The path of a new world in memory.
const MEMORY: &str = ":memory:";

/// How long a close waits for calls of other threads, which end soon with an error.
const CALLS_END: Duration = Duration::from_secs(10);

/// A queue of a world, until either ends.
pub(crate) type QueueSlot = Mutex<Option<Arc<Queue>>>;

/// A world.
#[derive(Debug)]
pub(crate) struct World {
    open: RwLock<Open>,
    is_read_only: bool,
    durability: Durability,
    /// What was prefetched before the last tick.
    prefetched: AtomicU64,
}

/// What a world has while it is open. Nothing else keeps a part of it beyond a call, so its directory is free after it.
#[derive(Debug)]
struct Open {
    host: Option<Arc<Host>>,
    queues: Vec<Weak<QueueSlot>>,
}

impl World {
    /// The world for this call, unless it was closed.
    pub(crate) fn host(&self) -> Result<Arc<Host>, Fault> {
        self.open.read().host.clone().ok_or_else(|| Fault::closed("the world"))
    }

    /// The world with all that was accepted, for a read past what is accepted and not committed.
    pub(crate) fn committed(&self) -> Result<Arc<Host>, Fault> {
        let host = self.host()?;
        host.commit_accepted()?;
        Ok(host)
    }

    /// Makes a queue that ends with the world.
    pub(crate) fn queue(&self, capacity: usize) -> Result<Arc<QueueSlot>, Fault> {
        let queue = Queue::new(&self.host()?, capacity)?;
        let mut open = self.open.write();
        if open.host.is_none() {
            return Err(Fault::closed("the world"));
        }
        let slot = Arc::new(Mutex::new(Some(Arc::new(queue))));
        open.queues.retain(|queue| queue.strong_count() > 0);
        open.queues.push(Arc::downgrade(&slot));
        Ok(slot)
    }

    fn close(&self) -> Result<(), Fault> {
        let (host, queues) = {
            let mut open = self.open.write();
            let host = open.host.take().ok_or_else(|| Fault::closed("the world"))?;
            (host, std::mem::take(&mut open.queues))
        };
        for queue in queues.iter().filter_map(Weak::upgrade) {
            let taken = queue.lock().take();
            if let Some(queue) = taken {
                queue.close();
            }
        }
        let closed = host.close();
        let end = Instant::now() + CALLS_END;
        while Arc::strong_count(&host) > 1 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(closed?)
    }
}

impl Object for World {
    fn released(&self) {
        if let Err(fault) = self.close() {
            tracing::error!(
                "a world was released, and not all that was accepted is stored: {}",
                fault.message
            );
        }
    }
}

impl Held for World {
    const KIND: Kind = Kind::World;
}

fn open_at(path: &str, options: &Options) -> Result<World, Fault> {
    let builder = Store::builder().packs(&options.packs).options(&options.world);
    let store = match options.mode {
        Mode::Create | Mode::OpenOrCreate if path == MEMORY => builder.in_memory(),
        Mode::Open | Mode::ReadOnly if path == MEMORY => {
            return Err(Fault::of(ErrorKind::NotFound, "a world in memory is new: create it"));
        }
        Mode::Create => builder.create(path),
        Mode::OpenOrCreate if is_free(Path::new(path)) => builder.create(path),
        Mode::Open | Mode::OpenOrCreate => builder.open(path),
        Mode::ReadOnly => builder.open_read_only(path),
    };
    let host = Host::new(store?, options.host.clone())?;
    Ok(World {
        open: RwLock::new(Open { host: Some(Arc::new(host)), queues: Vec::new() }),
        is_read_only: options.mode == Mode::ReadOnly,
        durability: options.world.durability,
        prefetched: AtomicU64::new(0),
    })
}

/// Whether a world can be made at a path: nothing is there, or an empty directory.
fn is_free(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Opens a world. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_world_open(
    path: cg_str,
    options: *const cg_options,
    world: *mut cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_world_open", error, || {
            log::start();
            let out = Out::new(world, "world")?;
            out.put(0);
            let options = Options::read(options)?;
            let path = path_of(path, "path")?;
            out.put(handle::give(open_at(path, &options)?)?);
            Ok(CG_OK)
        })
    }
}

/// Plans the open of a world. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_world_plan(
    path: cg_str,
    options: *const cg_options,
    text: *mut cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_world_plan", error, || {
            log::start();
            let out = Out::new(text, "text")?;
            out.put(0);
            let options = Options::read(options)?;
            let path = path_of(path, "path")?;
            let is_new = match options.mode {
                Mode::Create => true,
                Mode::OpenOrCreate => path == MEMORY || is_free(Path::new(path)),
                Mode::Open | Mode::ReadOnly => false,
            };
            let plan = if is_new {
                cg_registry::reconcile(&Catalog::new(), &options.packs, &options.world.packs)
            } else {
                Store::builder().packs(&options.packs).options(&options.world).plan(path)?
            };
            out.put(handle::give(text::Text::of(plan.report()))?);
            Ok(CG_OK)
        })
    }
}

/// Closes a world. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_world_close(world: cg_handle, error: *mut cg_error) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_world_close", error, || {
            handle::take::<World>(world)?.close()?;
            Ok(CG_OK)
        })
    }
}

/// Writes what was accepted. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_world_flush(world: cg_handle, error: *mut cg_error) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_world_flush", error, || {
            handle::find::<World>(world)?.host()?.flush()?;
            Ok(CG_OK)
        })
    }
}

/// Makes a world writable again. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_world_resume(world: cg_handle, error: *mut cg_error) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_world_resume", error, || {
            handle::find::<World>(world)?.host()?.resume()?;
            Ok(CG_OK)
        })
    }
}

/// A path that the caller gave.
///
/// # Safety
/// As [`text::text`].
unsafe fn path_of<'c>(given: cg_str, what: &str) -> Result<&'c str, Fault> {
    // SAFETY: as the caller says.
    let path = unsafe { text::text(given, what) }?;
    if path.is_empty() { Err(Fault::invalid(format!("{what} is empty"))) } else { Ok(path) }
}
