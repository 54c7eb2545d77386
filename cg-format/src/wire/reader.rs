//! Reads fields in order. An error contains the offset of the missing field.

use alloc::vec::Vec;
use core::cell::RefCell;

use crate::{ClusterTier, DecodeError, Problem, Section};

/// A field that a decoder read. Dumps print it, and the tables in `docs/format/` are checked against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The part of the layout.
    pub section: Section,
    /// The field's name in the layout table.
    pub field: &'static str,
    /// Its offset.
    pub offset_bytes: u64,
    /// Its length.
    pub len_bytes: u64,
}

/// The fields that a traced [`Reader`] and its parts took, in the order of reading.
pub type Trace = RefCell<Vec<Span>>;

/// A position in bytes that are read from front to back.
///
/// After an error it has not moved.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    offset_bytes: u64,
    section: Section,
    trace: Option<&'a Trace>,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub const fn new(bytes: &'a [u8], section: Section) -> Self {
        Self { rest: bytes, offset_bytes: 0, section, trace: None }
    }

    /// Starts at the first byte of a part at an offset of the whole.
    pub const fn at_offset(bytes: &'a [u8], offset_bytes: u64, section: Section) -> Self {
        Self { rest: bytes, offset_bytes, section, trace: None }
    }

    /// Records every field from now on, so that the decoder itself explains the bytes.
    #[must_use]
    pub const fn traced(mut self, trace: Option<&'a Trace>) -> Self {
        self.trace = trace;
        self
    }

    /// The trace of this reader, for the readers of parts.
    pub const fn trace(&self) -> Option<&'a Trace> {
        self.trace
    }

    /// Begins another section.
    pub const fn enter(&mut self, section: Section) {
        self.section = section;
    }

    /// The section for errors.
    pub const fn section(&self) -> Section {
        self.section
    }

    /// The offset of the next field.
    pub const fn offset_bytes(&self) -> u64 {
        self.offset_bytes
    }

    /// The number of remaining bytes.
    pub const fn left_bytes(&self) -> usize {
        self.rest.len()
    }

    /// An error about the field that starts at the present offset.
    pub const fn error(&self, problem: Problem) -> DecodeError {
        DecodeError::new(self.section, self.offset_bytes, problem)
    }

    /// Takes this many bytes.
    ///
    /// # Errors
    /// [`Problem::Truncated`] if fewer are left.
    #[inline]
    pub fn take(&mut self, field: &'static str, len_bytes: usize) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(len_bytes) else {
            return Err(self.truncated(field, len_bytes));
        };
        self.rest = rest;
        if let Some(trace) = self.trace {
            self.note(trace, field, len_bytes);
        }
        self.offset_bytes += len_bytes as u64;
        Ok(taken)
    }

    #[cold]
    fn truncated(&self, field: &'static str, len_bytes: usize) -> DecodeError {
        let (needed, left) = (len_bytes as u64, self.rest.len() as u64);
        self.error(Problem::Truncated { field, needed, left })
    }

    #[cold]
    fn note(&self, trace: &Trace, field: &'static str, len_bytes: usize) {
        let (section, offset_bytes) = (self.section, self.offset_bytes);
        trace.borrow_mut().push(Span { section, field, offset_bytes, len_bytes: len_bytes as u64 });
    }

    /// Takes bytes whose number comes from the input.
    ///
    /// # Errors
    /// [`Problem::Truncated`] if fewer are left, also where an address has too few bits for the number.
    pub(crate) fn take_long(&mut self, field: &'static str, len_bytes: u64) -> Result<&'a [u8], DecodeError> {
        let Ok(len) = usize::try_from(len_bytes) else {
            let left = self.rest.len() as u64;
            return Err(self.error(Problem::Truncated { field, needed: len_bytes, left }));
        };
        self.take(field, len)
    }

    /// Takes `count` items of one width, where the count comes from the input.
    ///
    /// # Errors
    /// [`Problem::CountExceedsInput`] if the remaining bytes cannot hold them, however large the count.
    pub fn take_items(
        &mut self,
        field: &'static str,
        count: u64,
        width_bytes: u64,
    ) -> Result<&'a [u8], DecodeError> {
        let left = self.rest.len() as u64;
        match count.checked_mul(width_bytes).filter(|needed| *needed <= left) {
            Some(needed) => self.take(field, needed as usize),
            None => Err(self.error(Problem::CountExceedsInput { field, count, width: width_bytes, left })),
        }
    }

    /// Takes all remaining bytes.
    pub const fn rest(&mut self) -> &'a [u8] {
        let rest = self.rest;
        self.offset_bytes += rest.len() as u64;
        self.rest = &[];
        rest
    }

    /// Takes a fixed number of bytes.
    ///
    /// # Errors
    /// [`Problem::Truncated`] if fewer are left.
    #[inline]
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(field, N)?);
        Ok(out)
    }

    /// Takes one byte.
    ///
    /// # Errors
    /// [`Problem::Truncated`] if none is left.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.array(field).map(|[byte]| byte)
    }

    /// Takes a little-endian `u16`.
    ///
    /// # Errors
    /// [`Problem::Truncated`] if fewer than 2 bytes are left.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// Takes a little-endian `u32`.
    ///
    /// # Errors
    /// [`Problem::Truncated`] if fewer than 4 bytes are left.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// Takes a little-endian `u64`.
    ///
    /// # Errors
    /// [`Problem::Truncated`] if fewer than 8 bytes are left.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// Takes a little-endian `i64`.
    ///
    /// # Errors
    /// [`Problem::Truncated`] if fewer than 8 bytes are left.
    pub fn i64(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        self.array(field).map(i64::from_le_bytes)
    }

    /// Takes a little-endian `f32`, any bit pattern.
    ///
    /// # Errors
    /// [`Problem::Truncated`] if fewer than 4 bytes are left.
    pub fn f32(&mut self, field: &'static str) -> Result<f32, DecodeError> {
        self.array(field).map(f32::from_le_bytes)
    }

    /// Takes a byte that must have one value.
    ///
    /// # Errors
    /// [`Problem::Truncated`], or [`Problem::Disagrees`] with the byte found.
    pub fn expect_u8(&mut self, field: &'static str, expected: u8) -> Result<(), DecodeError> {
        let here = self.clone();
        let found = self.u8(field)?;
        if found == expected {
            return Ok(());
        }
        *self = here;
        let problem = if expected == 0 {
            Problem::NotZero { field, found: found.into() }
        } else {
            Problem::Disagrees { field, found: found.into(), expected: expected.into() }
        };
        Err(self.error(problem))
    }

    /// Takes the `u64` version of a layout: 1 to the newest that the caller reads.
    ///
    /// # Errors
    /// [`Problem::Truncated`], [`Problem::Newer`] for a layout of a later release, or [`Problem::OutOfRange`] for 0.
    pub fn version_u64(&mut self, field: &'static str, newest: u64) -> Result<u64, DecodeError> {
        let here = self.clone();
        let found = self.u64(field)?;
        here.check_version(field, found, newest).map(|()| found)
    }

    /// Takes the one-byte version of a layout, as [`version_u64`](Self::version_u64) does.
    ///
    /// # Errors
    /// As [`version_u64`](Self::version_u64).
    pub fn version_u8(&mut self, field: &'static str, newest: u8) -> Result<u8, DecodeError> {
        let here = self.clone();
        let found = self.u8(field)?;
        here.check_version(field, found.into(), newest.into()).map(|()| found)
    }

    fn check_version(&self, field: &'static str, found: u64, newest: u64) -> Result<(), DecodeError> {
        match found {
            0 => Err(self.error(Problem::OutOfRange { field, found, allowed: "1 and up" })),
            _ if found > newest => Err(self.error(Problem::Newer { field, found, newest })),
            _ => Ok(()),
        }
    }

    /// Takes the byte of a cluster's scale: 1 or 2.
    ///
    /// # Errors
    /// [`Problem::Truncated`], or [`Problem::OutOfRange`] with the byte found.
    pub(crate) fn scale_level(&mut self) -> Result<ClusterTier, DecodeError> {
        let here = self.clone();
        let field = "scale level";
        let found = self.u8(field)?;
        ClusterTier::from_scale_level(found)
            .ok_or_else(|| here.error(Problem::OutOfRange { field, found: found.into(), allowed: "1 or 2" }))
    }

    /// Checks that no bytes remain.
    ///
    /// # Errors
    /// [`Problem::NotZero`] with the number of remaining bytes.
    pub fn end(&self, field: &'static str) -> Result<(), DecodeError> {
        match self.rest.len() as u64 {
            0 => Ok(()),
            found => Err(self.error(Problem::NotZero { field, found })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn reads_little_endian_in_order() {
        let mut reader = Reader::new(&[1, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 9], Section::ChunkHeader);
        assert_eq!(reader.u8("a"), Ok(1));
        assert_eq!(reader.u16("b"), Ok(2));
        assert_eq!(reader.u32("c"), Ok(3));
        assert_eq!(reader.u64("d"), Ok(4));
        assert_eq!(reader.offset_bytes(), 15);
        assert_eq!(reader.rest(), &[9]);
        assert_eq!(reader.end("tail"), Ok(()));
    }

    #[test]
    fn a_count_that_overflows_is_an_error_not_an_allocation() {
        let mut reader = Reader::at_offset(&[0; 312], 88, Section::Components);
        let error = reader.take_items("items", u64::MAX, 8).unwrap_err();
        assert_eq!(
            error.to_string(),
            "component section: 18446744073709551615 items of 8 bytes exceed the 312 bytes left (at byte 88)"
        );
        assert_eq!(reader.left_bytes(), 312, "nothing was taken");
    }

    #[test]
    fn a_length_that_no_address_reaches_is_said_as_it_was_found() {
        let mut reader = Reader::at_offset(&[0; 312], 88, Section::Components);
        for (found, expected) in [
            (u64::MAX, "component section: x needs 18446744073709551615 bytes and 312 are left (at byte 88)"),
            // Cut to 32 bits it would fit.
            (1 << 32, "component section: x needs 4294967296 bytes and 312 are left (at byte 88)"),
        ] {
            assert_eq!(reader.take_long("x", found).unwrap_err().to_string(), expected);
        }
        assert_eq!(reader.take_long("x", 312).map(<[u8]>::len), Ok(312));
    }

    #[test]
    fn a_wrong_byte_and_a_short_field_say_where() {
        let mut reader = Reader::new(&[7], Section::Frame);
        assert_eq!(
            reader.expect_u8("frame version", 1).unwrap_err().to_string(),
            "frame: frame version is 7, but the rest of the value implies 1 (at byte 0)"
        );
        assert_eq!(
            reader.expect_u8("reserved", 0).unwrap_err().to_string(),
            "frame: reserved must be zero or absent, found 7 (at byte 0)"
        );
        assert_eq!(
            reader.u32("x").unwrap_err().to_string(),
            "frame: x needs 4 bytes and 1 are left (at byte 0)"
        );
    }
}
