//! Ids: numbers that have a meaning only with the registry that issued them.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name($inner);

        impl $name {
            /// Wraps the number of an entry.
            pub const fn new(value: $inner) -> Self {
                Self(value)
            }

            /// The number.
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

id! {
    /// A block kind: the position of its name in the world's `blocks` list, counted from 0.
    BlockId(u64)
}
id! {
    /// A block kind inside one chunk: the position of its [`BlockId`] in the chunk's palette.
    LocalBlockId(u32)
}
id! {
    /// A component: its position in the world's `components` list, with the top bit set for variable size.
    ComponentId(u64)
}
id! {
    /// A kind of entity: the position of its name in the world's `entities` list.
    EntityTypeId(u64)
}
id! {
    /// A structure: the position of its name in the world's `structures` list.
    StructureId(u64)
}
id! {
    /// A dimension: the position of its name in the world's `dimensions` list.
    Dimension(u64)
}
id! {
    /// A kind of side data: the position of its name in the world's `sides` list.
    SideKind(u16)
}

impl ComponentId {
    /// The bit for variable size.
    pub const VARIABLE_BIT: u64 = 1 << 63;

    /// The component of a fixed size at a position of the `components` list.
    pub const fn fixed(index: u64) -> Self {
        Self(index & !Self::VARIABLE_BIT)
    }

    /// The component of variable size at a position of the `components` list.
    pub const fn variable(index: u64) -> Self {
        Self(index | Self::VARIABLE_BIT)
    }

    /// Whether each instance has its own length.
    pub const fn is_variable(self) -> bool {
        self.0 & Self::VARIABLE_BIT != 0
    }

    /// The position in the `components` list.
    pub const fn index(self) -> u64 {
        self.0 & !Self::VARIABLE_BIT
    }
}

/// Declares an id that is a UUID.
macro_rules! uuids {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(uuid::Uuid);

        impl $name {
            /// The width of the stored form.
            pub const LEN_BYTES: usize = 16;

            /// Wraps a UUID.
            pub const fn new(uuid: uuid::Uuid) -> Self {
                Self(uuid)
            }

            /// Reads the stored form.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(uuid::Uuid::from_bytes(bytes))
            }

            /// The UUID.
            pub const fn get(self) -> uuid::Uuid {
                self.0
            }

            /// The stored form.
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0.into_bytes()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )* };
}

uuids! {
    /// An entity: a UUID, stored as its 16 bytes in RFC 4122 order wherever it appears.
    EntityId;
    /// A spatial record: a UUID, stored as [`EntityId`] is.
    RecordId;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn component_ids_say_their_kind_and_keep_their_index() {
        assert!(!ComponentId::fixed(7).is_variable());
        assert!(ComponentId::variable(7).is_variable());
        assert_eq!(ComponentId::variable(7).index(), 7);
        assert_eq!(ComponentId::variable(7).get(), (1 << 63) + 7);
        assert!(ComponentId::fixed(u64::MAX >> 1) < ComponentId::variable(0), "fixed sorts before variable");
    }

    #[test]
    fn ids_print_as_their_type() {
        assert_eq!(std::format!("{:?}", BlockId::new(7)), "BlockId(7)");
    }
}
