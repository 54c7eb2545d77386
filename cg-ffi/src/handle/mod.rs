//! Handles: numbers that stand for things of the library.
//!
//! A handle has a kind, an index and a generation. A place of the table that was released gets a new generation, so a handle
//! never stands for something else later.

mod exclusive;
mod lent;
mod table;

use std::any::Any;
use std::sync::Arc;

use cg_store::ErrorKind;
use parking_lot::Mutex;

use crate::error::Fault;
use crate::types::cg_handle;
use table::{Lost, Table};

pub(crate) use exclusive::Exclusive;
pub(crate) use lent::{Lent, OutLent, give_lent};

/// What a handle stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    World = 1,
    Binding,
    Column,
    Chunk,
    Transaction,
    Cursor,
    Queue,
    Pin,
    Text,
    Settings,
    Entity,
    Record,
    Walk,
}

/// Something that handles stand for.
pub(crate) trait Object: Any + Send + Sync {
    /// Called once, when its handle was released. Other threads may still use it.
    fn released(&self) {}
}

/// A type with a kind of handles of its own.
pub(crate) trait Held: Object {
    /// The kind.
    const KIND: Kind;
}

type Stored = Arc<dyn Object + Send + Sync>;

static TABLE: Mutex<Table<Stored>> = Mutex::new(Table::new());

impl Kind {
    const ALL: [Self; 13] = [
        Self::World,
        Self::Binding,
        Self::Column,
        Self::Chunk,
        Self::Transaction,
        Self::Cursor,
        Self::Queue,
        Self::Pin,
        Self::Text,
        Self::Settings,
        Self::Entity,
        Self::Record,
        Self::Walk,
    ];

    const fn noun(self) -> &'static str {
        match self {
            Self::World => "world",
            Self::Binding => "binding",
            Self::Column => "column",
            Self::Chunk => "chunk",
            Self::Transaction => "transaction",
            Self::Cursor => "cursor",
            Self::Queue => "queue",
            Self::Pin => "pin",
            Self::Text => "text",
            Self::Settings => "settings",
            Self::Entity => "entity",
            Self::Record => "record",
            Self::Walk => "walk over columns",
        }
    }

    fn of(handle: cg_handle) -> Option<Self> {
        let number = table::kind(handle);
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// Gives something a handle.
pub(crate) fn give<T: Held>(value: T) -> Result<cg_handle, Fault> {
    give_shared(Arc::new(value))
}

fn give_shared<T: Held>(value: Arc<T>) -> Result<cg_handle, Fault> {
    let given = TABLE.lock().insert(T::KIND as u8, value);
    given.ok_or_else(|| {
        let message =
            format!("{} handles of one kind are in use, which is the most", Table::<Stored>::MAX_LEN);
        Fault::of(ErrorKind::TooLarge, message)
    })
}

/// What a handle stands for.
pub(crate) fn find<T: Held>(handle: cg_handle) -> Result<Arc<T>, Fault> {
    check_kind::<T>(handle)?;
    let found = TABLE.lock().find(handle).cloned();
    typed(found.map_err(|lost| explain(handle, lost))?)
}

/// What a handle stands for; `None` for the handle 0.
pub(crate) fn optional<T: Held>(handle: cg_handle) -> Result<Option<Arc<T>>, Fault> {
    if handle == 0 { Ok(None) } else { find(handle).map(Some) }
}

/// Ends a handle of one type, and returns what it stood for.
pub(crate) fn take<T: Held>(handle: cg_handle) -> Result<Arc<T>, Fault> {
    check_kind::<T>(handle)?;
    let taken = TABLE.lock().remove(handle);
    typed(taken.map_err(|lost| explain(handle, lost))?)
}

/// Ends a handle of any kind.
pub(crate) fn release(handle: cg_handle) -> Result<(), Fault> {
    let taken = TABLE.lock().remove(handle);
    let taken = taken.map_err(|lost| explain(handle, lost))?;
    taken.released();
    Ok(())
}

fn check_kind<T: Held>(handle: cg_handle) -> Result<(), Fault> {
    let expected = T::KIND.noun();
    match Kind::of(handle) {
        Some(kind) if kind == T::KIND => Ok(()),
        Some(kind) => {
            let found = kind.noun();
            Err(Fault::invalid(format!("handle {handle:#x} is of a {found}, expected was a {expected}")))
        }
        None => Err(Fault::invalid(format!("{handle:#x} is no handle, expected was that of a {expected}"))),
    }
}

fn explain(handle: cg_handle, lost: Lost) -> Fault {
    let noun = Kind::of(handle).map_or("thing", Kind::noun);
    match lost {
        Lost::Released => {
            Fault::of(ErrorKind::Closed, format!("the {noun} of handle {handle:#x} was closed or released"))
        }
        Lost::NeverGiven => Fault::invalid(format!("handle {handle:#x} was never given out")),
    }
}

fn typed<T: Held>(stored: Stored) -> Result<Arc<T>, Fault> {
    let any: Arc<dyn Any + Send + Sync> = stored;
    any.downcast().map_err(|_| Fault::internal("a handle stands for something of another type"))
}
