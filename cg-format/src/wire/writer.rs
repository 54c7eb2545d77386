//! Writes little-endian fields in order at the end of a buffer.

use alloc::vec::Vec;

/// Appends fields to a buffer that the caller owns and may reuse.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Writer<'a> {
    /// Appends after the present content of the buffer; offsets count from there.
    pub const fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start }
    }

    /// Bytes written so far.
    pub const fn offset_bytes(&self) -> u64 {
        (self.out.len() - self.start) as u64
    }

    /// Reserves space for this many bytes.
    pub fn reserve(&mut self, len_bytes: usize) {
        self.out.reserve(len_bytes);
    }

    /// Appends bytes unchanged.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends zero bytes and returns them for filling.
    pub fn zeroed(&mut self, len_bytes: usize) -> &mut [u8] {
        let at = self.out.len();
        self.out.resize(at + len_bytes, 0);
        self.out.split_at_mut(at).1
    }

    /// Appends one byte.
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// Appends a little-endian `u16`.
    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends a little-endian `u32`.
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends a little-endian `u64`.
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends a little-endian `i64`.
    pub fn i64(&mut self, value: i64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends a little-endian `f32`.
    pub fn f32(&mut self, value: f32) {
        self.bytes(&value.to_le_bytes());
    }
}
