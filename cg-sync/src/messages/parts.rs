//! The lists in messages. A part of a list may be one byte long and take a hundred in memory, so what all parts of a message
//! take is limited while they are decoded.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// A limit that nothing reaches, for what the caller wrote itself.
const NO_LIMIT: Room = Room { left_bytes: usize::MAX, limit_bytes: usize::MAX };

thread_local! {
    static ROOM: Cell<Room> = const { Cell::new(NO_LIMIT) };
}

#[derive(Clone, Copy)]
struct Room {
    left_bytes: usize,
    limit_bytes: usize,
}

/// Decodes a message whose parts may take this much memory.
pub(super) fn within<T>(limit_bytes: usize, decode: impl FnOnce() -> T) -> T {
    ROOM.set(Room { left_bytes: limit_bytes, limit_bytes });
    let decoded = decode();
    ROOM.set(NO_LIMIT);
    decoded
}

/// Decodes a list part by part.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(Parts(PhantomData))
}

struct Parts<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Parts<T> {
    type Value = Vec<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
        // Nothing is allocated for a number of parts, which may be made up.
        let mut parts = Vec::new();
        while let Some(part) = seq.next_element()? {
            let Room { left_bytes, limit_bytes } = ROOM.get();
            let Some(left_bytes) = left_bytes.checked_sub(size_of::<T>()) else {
                return Err(A::Error::custom(format_args!(
                    "its parts take more than {limit_bytes} bytes of memory"
                )));
            };
            ROOM.set(Room { left_bytes, limit_bytes });
            parts.push(part);
        }
        Ok(parts)
    }
}
