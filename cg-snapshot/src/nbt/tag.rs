//! The kinds of values in a tree.

/// The kind of a value, one byte before its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Tag {
    /// Ends a compound; the element kind of an empty list.
    End = 0,
    /// i8.
    Byte = 1,
    /// i16.
    Short = 2,
    /// i32.
    Int = 3,
    /// i64.
    Long = 4,
    /// f32.
    Float = 5,
    /// f64.
    Double = 6,
    /// i32 length, then bytes.
    ByteArray = 7,
    /// u16 length in bytes, then modified UTF-8.
    String = 8,
    /// u8 element kind, i32 count, then the elements without names.
    List = 9,
    /// Fields until [`Tag::End`].
    Compound = 10,
    /// i32 count, then i32 each.
    IntArray = 11,
    /// i32 count, then i64 each.
    LongArray = 12,
}

impl Tag {
    /// Returns the kind that this byte encodes.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::End,
            1 => Self::Byte,
            2 => Self::Short,
            3 => Self::Int,
            4 => Self::Long,
            5 => Self::Float,
            6 => Self::Double,
            7 => Self::ByteArray,
            8 => Self::String,
            9 => Self::List,
            10 => Self::Compound,
            11 => Self::IntArray,
            12 => Self::LongArray,
            _ => return None,
        })
    }

    /// The fewest bytes that one value of this kind takes.
    pub(crate) const fn min_bytes(self) -> usize {
        match self {
            Self::End => 0,
            Self::Byte | Self::Compound => 1,
            Self::Short | Self::String => 2,
            Self::Int | Self::Float | Self::ByteArray | Self::IntArray | Self::LongArray => 4,
            Self::List => 5,
            Self::Long | Self::Double => 8,
        }
    }
}
