//! Reads NBT's fields from bytes. No other module does.

use super::{Limits, NbtError, NbtProblem, Tag};

/// A position in bytes that only moves forward.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    at_bytes: usize,
}

/// The elements that a walk may still visit.
#[derive(Debug)]
pub(super) struct Budget {
    elements_left: u64,
    limits: Limits,
}

impl Budget {
    pub(super) const fn new(limits: Limits) -> Self {
        Self { elements_left: limits.elements, limits }
    }

    /// No limit: for bytes that were checked before.
    pub(super) const fn checked_before() -> Self {
        Self::new(Limits { depth: u16::MAX, elements: u64::MAX })
    }

    fn spend(&mut self, count: usize, at_bytes: usize) -> Result<(), NbtError> {
        match self.elements_left.checked_sub(count as u64) {
            Some(left) => {
                self.elements_left = left;
                Ok(())
            }
            None => Err(NbtError { at_bytes, problem: NbtProblem::TooManyElements(self.limits.elements) }),
        }
    }
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, at_bytes: 0 }
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) const fn at_bytes(&self) -> usize {
        self.at_bytes
    }

    pub(super) const fn error(&self, problem: NbtProblem) -> NbtError {
        NbtError { at_bytes: self.at_bytes, problem }
    }

    pub(super) fn take(&mut self, needed: usize) -> Result<&'a [u8], NbtError> {
        let Some((taken, rest)) = self.rest.split_at_checked(needed) else {
            return Err(self.error(NbtProblem::Ended { needed, left: self.rest.len() }));
        };
        self.rest = rest;
        self.at_bytes += needed;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], NbtError> {
        let Some((taken, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.error(NbtProblem::Ended { needed: N, left: self.rest.len() }));
        };
        self.rest = rest;
        self.at_bytes += N;
        Ok(*taken)
    }

    pub(super) fn i8(&mut self) -> Result<i8, NbtError> {
        self.array().map(i8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, NbtError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn i16(&mut self) -> Result<i16, NbtError> {
        self.array().map(i16::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, NbtError> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, NbtError> {
        self.array().map(i64::from_be_bytes)
    }

    pub(super) fn f32(&mut self) -> Result<f32, NbtError> {
        self.array().map(f32::from_be_bytes)
    }

    pub(super) fn f64(&mut self) -> Result<f64, NbtError> {
        self.array().map(f64::from_be_bytes)
    }

    pub(super) fn tag(&mut self) -> Result<Tag, NbtError> {
        let before = self.at_bytes;
        let [byte] = self.array()?;
        Tag::from_byte(byte).ok_or(NbtError { at_bytes: before, problem: NbtProblem::UnknownTag(byte) })
    }

    /// Reads the bytes of a name or string: modified UTF-8, not decoded.
    pub(super) fn text(&mut self) -> Result<&'a [u8], NbtError> {
        let len_bytes = self.u16()?;
        self.take(usize::from(len_bytes))
    }

    /// Reads a count of elements of this size, and checks it against the remaining bytes.
    pub(super) fn count(&mut self, element_bytes: usize) -> Result<usize, NbtError> {
        let at_bytes = self.at_bytes;
        let found = self.i32()?;
        let Ok(count) = usize::try_from(found) else {
            return Err(NbtError { at_bytes, problem: NbtProblem::NegativeLength(found) });
        };
        let left = self.rest.len();
        if count.checked_mul(element_bytes).is_none_or(|needed| needed > left) {
            return Err(NbtError {
                at_bytes,
                problem: NbtProblem::LengthPastEnd { count, element_bytes, left },
            });
        }
        Ok(count)
    }

    /// Reads the element kind and count of a list.
    pub(super) fn list_header(&mut self) -> Result<(Tag, usize), NbtError> {
        let at_bytes = self.at_bytes;
        let tag = self.tag()?;
        let count = self.count(tag.min_bytes())?;
        if tag == Tag::End && count > 0 {
            return Err(NbtError { at_bytes, problem: NbtProblem::UntypedList(count) });
        }
        Ok((tag, count))
    }

    /// Skips a value of this kind. `depth` is the number of compounds and lists around it.
    pub(super) fn skip(&mut self, tag: Tag, depth: u16, budget: &mut Budget) -> Result<(), NbtError> {
        match tag {
            Tag::End => {}
            Tag::Byte | Tag::Short | Tag::Int | Tag::Long | Tag::Float | Tag::Double => {
                self.take(tag.min_bytes())?;
            }
            Tag::ByteArray => self.skip_array(1)?,
            Tag::IntArray => self.skip_array(4)?,
            Tag::LongArray => self.skip_array(8)?,
            Tag::String => {
                self.text()?;
            }
            Tag::List | Tag::Compound => {
                if depth >= budget.limits.depth {
                    return Err(self.error(NbtProblem::TooDeep(budget.limits.depth)));
                }
                if tag == Tag::List {
                    self.skip_list(depth + 1, budget)?;
                } else {
                    self.skip_compound(depth + 1, budget)?;
                }
            }
        }
        Ok(())
    }

    fn skip_array(&mut self, element_bytes: usize) -> Result<(), NbtError> {
        let count = self.count(element_bytes)?;
        self.take(count * element_bytes)?;
        Ok(())
    }

    fn skip_list(&mut self, depth: u16, budget: &mut Budget) -> Result<(), NbtError> {
        let at_bytes = self.at_bytes;
        let (tag, count) = self.list_header()?;
        budget.spend(count, at_bytes)?;
        match tag {
            Tag::End => {}
            Tag::Byte | Tag::Short | Tag::Int | Tag::Long | Tag::Float | Tag::Double => {
                self.take(count * tag.min_bytes())?;
            }
            _ => {
                for _ in 0..count {
                    self.skip(tag, depth, budget)?;
                }
            }
        }
        Ok(())
    }

    fn skip_compound(&mut self, depth: u16, budget: &mut Budget) -> Result<(), NbtError> {
        loop {
            let tag = self.tag()?;
            if tag == Tag::End {
                return Ok(());
            }
            budget.spend(1, self.at_bytes)?;
            self.text()?;
            self.skip(tag, depth, budget)?;
        }
    }
}
