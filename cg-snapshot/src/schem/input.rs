//! Reads a compressed tree from beginning to end in bounded memory.
#![expect(clippy::big_endian_bytes, reason = "NBT is big-endian by its own definition")]

use std::io::{self, BufRead as _, BufReader, Read};

use flate2::bufread::GzDecoder;

use super::{SchemError, SchemLimits};
use crate::nbt::{NbtProblem, Tag};

/// Bytes that are decompressed at once.
const BUFFER_BYTES: usize = 64 << 10;
/// The number of characters in the message about a text file.
const SHOWN: usize = 24;

/// A position in decompressed bytes that only moves forward.
pub(super) struct Input<R: Read> {
    gzip: GzDecoder<BufReader<R>>,
    buffer: Box<[u8]>,
    from: usize,
    to: usize,
    at_bytes: u64,
    /// The field that is being read, for messages.
    pub(super) field: &'static str,
    limits: SchemLimits,
    elements_left: u64,
    held_left: u64,
    skipped_left: u64,
}

/// The destination of the bytes of a walk.
pub(super) enum Walked<'a> {
    Held(&'a mut Vec<u8>),
    Skipped,
}

impl<R: Read> Input<R> {
    pub(super) fn new(input: R, limits: &SchemLimits) -> Result<Self, SchemError> {
        let mut input = BufReader::new(input);
        let first = input.fill_buf().map_err(SchemError::Io)?;
        if first.is_empty() {
            return Err(SchemError::CutOff { field: "Schematic", at_bytes: 0 });
        }
        if !first.starts_with(&[0x1F, 0x8B]) && first != [0x1F] {
            let shown = first.get(..SHOWN.min(first.len())).unwrap_or_default();
            return Err(match std::str::from_utf8(shown) {
                Ok(text) if text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace()) => {
                    SchemError::Text { beginning: text.to_owned() }
                }
                _ => SchemError::NotGzip { found: first.iter().take(4).copied().collect() },
            });
        }
        Ok(Self {
            gzip: GzDecoder::new(input),
            buffer: vec![0; BUFFER_BYTES].into(),
            from: 0,
            to: 0,
            at_bytes: 0,
            field: "Schematic",
            limits: *limits,
            elements_left: limits.nbt.elements,
            held_left: limits.held_bytes,
            skipped_left: limits.skipped_bytes,
        })
    }

    /// The number of decompressed bytes that were taken.
    pub(super) const fn at_bytes(&self) -> u64 {
        self.at_bytes
    }

    pub(super) const fn error(&self, problem: NbtProblem) -> SchemError {
        SchemError::Nbt { field: self.field, at_bytes: self.at_bytes, problem }
    }

    /// Returns the next bytes, at least one.
    pub(super) fn some(&mut self) -> Result<&[u8], SchemError> {
        if self.from == self.to && !self.fill()? {
            return Err(SchemError::CutOff { field: self.field, at_bytes: self.at_bytes });
        }
        Ok(self.buffer.get(self.from..self.to).unwrap_or_default())
    }

    /// Moves past bytes that [`some`](Self::some) returned.
    pub(super) fn take(&mut self, count: usize) {
        self.from += count;
        self.at_bytes += count as u64;
    }

    fn fill(&mut self) -> Result<bool, SchemError> {
        (self.from, self.to) = (0, 0);
        match self.gzip.read(&mut self.buffer) {
            Ok(count) => self.to = count,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(SchemError::CutOff { field: self.field, at_bytes: self.at_bytes });
            }
            Err(source)
                if matches!(source.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) =>
            {
                return Err(SchemError::Gzip { field: self.field, at_bytes: self.at_bytes, source });
            }
            Err(error) => return Err(SchemError::Io(error)),
        }
        Ok(self.to > 0)
    }

    /// Checks the end of the file: the checksum is right and nothing follows the tree.
    pub(super) fn end(mut self) -> Result<(), SchemError> {
        self.field = "the end";
        let at_bytes = self.at_bytes;
        if self.from < self.to || self.fill()? {
            return Err(SchemError::Trailing { what: "NBT", at_bytes });
        }
        let rest = self.gzip.into_inner().fill_buf().map_err(SchemError::Io)?.len();
        if rest > 0 { Err(SchemError::Trailing { what: "gzip", at_bytes }) } else { Ok(()) }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], SchemError> {
        let mut out = [0; N];
        let mut rest = out.as_mut_slice();
        while !rest.is_empty() {
            let bytes = self.some()?;
            let count = bytes.len().min(rest.len());
            let (now, later) = rest.split_at_mut(count);
            now.copy_from_slice(bytes.get(..count).unwrap_or_default());
            rest = later;
            self.take(count);
        }
        Ok(out)
    }

    pub(super) fn tag(&mut self) -> Result<Tag, SchemError> {
        let at_bytes = self.at_bytes;
        let [byte] = self.array()?;
        Tag::from_byte(byte).ok_or(SchemError::Nbt {
            field: self.field,
            at_bytes,
            problem: NbtProblem::UnknownTag(byte),
        })
    }

    /// Reads a field's name, not decoded. Spends an element.
    pub(super) fn name(&mut self) -> Result<Vec<u8>, SchemError> {
        self.spend(1)?;
        let len_bytes = u16::from_be_bytes(self.array()?);
        let mut name = Vec::with_capacity(len_bytes.into());
        while name.len() < len_bytes.into() {
            let missing = usize::from(len_bytes) - name.len();
            let bytes = self.some()?;
            let count = bytes.len().min(missing);
            name.extend_from_slice(bytes.get(..count).unwrap_or_default());
            self.take(count);
        }
        Ok(name)
    }

    /// Reads the count at the start of an array or list.
    pub(super) fn count(&mut self) -> Result<u64, SchemError> {
        let at_bytes = self.at_bytes;
        let found = i32::from_be_bytes(self.array()?);
        u64::try_from(found).map_err(|_| SchemError::Nbt {
            field: self.field,
            at_bytes,
            problem: NbtProblem::NegativeLength(found),
        })
    }

    /// Reads an integer of any width. Shorts are unsigned, as in the format.
    pub(super) fn whole_number(&mut self, tag: Tag) -> Result<Option<i64>, SchemError> {
        Ok(Some(match tag {
            Tag::Byte => i8::from_be_bytes(self.array()?).into(),
            Tag::Short => u16::from_be_bytes(self.array()?).into(),
            Tag::Int => i32::from_be_bytes(self.array()?).into(),
            Tag::Long => i64::from_be_bytes(self.array()?),
            _ => return Ok(None),
        }))
    }

    fn spend(&mut self, count: u64) -> Result<(), SchemError> {
        match self.elements_left.checked_sub(count) {
            Some(left) => self.elements_left = left,
            None => return Err(self.error(NbtProblem::TooManyElements(self.limits.nbt.elements))),
        }
        Ok(())
    }

    /// Skips bytes without a limit: for known arrays of indices.
    pub(super) fn pass(&mut self, mut count: u64) -> Result<(), SchemError> {
        while count > 0 {
            let now = (self.some()?.len() as u64).min(count);
            self.take(now as usize);
            count -= now;
        }
        Ok(())
    }

    fn walk_bytes(&mut self, mut count: u64, out: &mut Walked<'_>) -> Result<(), SchemError> {
        let (left, limit, what) = match out {
            Walked::Held(_) => (&mut self.held_left, self.limits.held_bytes, "bytes held in memory"),
            Walked::Skipped => (&mut self.skipped_left, self.limits.skipped_bytes, "bytes of unknown fields"),
        };
        let Some(rest) = left.checked_sub(count) else {
            let (field, at_bytes) = (self.field, self.at_bytes);
            return Err(SchemError::TooMuch { field, what, limit, at_bytes });
        };
        *left = rest;
        // The memory grows with the bytes that exist, not with the claimed length.
        while count > 0 {
            let bytes = self.some()?;
            let now = (bytes.len() as u64).min(count) as usize;
            if let Walked::Held(held) = out {
                held.extend_from_slice(bytes.get(..now).unwrap_or_default());
            }
            self.take(now);
            count -= now as u64;
        }
        Ok(())
    }

    fn walk_array<const N: usize>(&mut self, out: &mut Walked<'_>) -> Result<[u8; N], SchemError> {
        let bytes = self.array::<N>()?;
        if let Walked::Held(held) = out {
            held.extend_from_slice(&bytes);
            self.held_left = self.held_left.saturating_sub(N as u64);
        }
        Ok(bytes)
    }

    fn walk_count(&mut self, out: &mut Walked<'_>) -> Result<u64, SchemError> {
        let count = self.count()?;
        if let Walked::Held(held) = out {
            held.extend_from_slice(&(count as u32).to_be_bytes());
        }
        Ok(count)
    }

    /// Walks over one value. `depth` is the number of compounds and lists around it.
    pub(super) fn walk(&mut self, tag: Tag, depth: u16, out: &mut Walked<'_>) -> Result<(), SchemError> {
        match tag {
            Tag::End => Ok(()),
            Tag::Byte | Tag::Short | Tag::Int | Tag::Long | Tag::Float | Tag::Double => {
                self.walk_bytes(tag.min_bytes() as u64, out)
            }
            Tag::ByteArray | Tag::IntArray | Tag::LongArray => {
                let element_bytes = match tag {
                    Tag::ByteArray => 1,
                    Tag::IntArray => 4,
                    _ => 8,
                };
                let count = self.walk_count(out)?;
                self.walk_bytes(count * element_bytes, out)
            }
            Tag::String => {
                let len_bytes = u16::from_be_bytes(self.walk_array(out)?);
                self.walk_bytes(len_bytes.into(), out)
            }
            Tag::List | Tag::Compound if depth >= self.limits.nbt.depth => {
                Err(self.error(NbtProblem::TooDeep(self.limits.nbt.depth)))
            }
            Tag::List => self.walk_list(depth + 1, out),
            Tag::Compound => loop {
                let at_bytes = self.at_bytes;
                let [byte] = self.walk_array(out)?;
                let Some(tag) = Tag::from_byte(byte) else {
                    let problem = NbtProblem::UnknownTag(byte);
                    return Err(SchemError::Nbt { field: self.field, at_bytes, problem });
                };
                if tag == Tag::End {
                    return Ok(());
                }
                self.spend(1)?;
                self.walk(Tag::String, depth, out)?;
                self.walk(tag, depth + 1, out)?;
            },
        }
    }

    fn walk_list(&mut self, depth: u16, out: &mut Walked<'_>) -> Result<(), SchemError> {
        let at_bytes = self.at_bytes;
        let [byte] = self.walk_array(out)?;
        let problem = |problem| SchemError::Nbt { field: self.field, at_bytes, problem };
        let tag = Tag::from_byte(byte).ok_or_else(|| problem(NbtProblem::UnknownTag(byte)))?;
        let count = self.walk_count(out)?;
        if tag == Tag::End && count > 0 {
            let problem = NbtProblem::UntypedList(count as usize);
            return Err(SchemError::Nbt { field: self.field, at_bytes, problem });
        }
        self.spend(count)?;
        if matches!(tag, Tag::Byte | Tag::Short | Tag::Int | Tag::Long | Tag::Float | Tag::Double) {
            return self.walk_bytes(count * tag.min_bytes() as u64, out);
        }
        for _ in 0..count {
            self.walk(tag, depth, out)?;
        }
        Ok(())
    }
}
