//! Writes trees.
#![expect(clippy::big_endian_bytes, reason = "NBT is big-endian by its own definition")]

use super::Tag;

/// Writes the fields of one compound.
///
/// Names are the game's own, so they are literals. Text from elsewhere is a string *value*, and its length is checked.
#[derive(Debug)]
pub struct CompoundWriter<'a> {
    out: &'a mut Vec<u8>,
}

/// A string is too long for its u16 length field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a string of {0} bytes is longer than the 65,535 that NBT can hold")]
pub struct TooLong(pub usize);

/// A whole tree with an empty root name, as in region files.
pub fn document<R>(fields: impl FnOnce(&mut CompoundWriter<'_>) -> R) -> Vec<u8> {
    let mut out = vec![Tag::Compound as u8, 0, 0];
    write_compound(&mut out, fields);
    out
}

/// A compound's fields and end tag, as [`super::Compound::raw`] returns them.
pub fn payload<R>(fields: impl FnOnce(&mut CompoundWriter<'_>) -> R) -> Vec<u8> {
    let mut out = Vec::new();
    write_compound(&mut out, fields);
    out
}

/// The start of a field that lists compounds: its tag, name, element kind and count.
pub fn compounds_header(out: &mut Vec<u8>, name: &'static str, count: usize) {
    CompoundWriter { out }.list_header(name, count);
}

impl CompoundWriter<'_> {
    /// An i8.
    pub fn byte(&mut self, name: &'static str, value: i8) {
        self.header(Tag::Byte, name);
        self.out.extend(value.to_be_bytes());
    }

    /// An i16.
    pub fn short(&mut self, name: &'static str, value: i16) {
        self.header(Tag::Short, name);
        self.out.extend(value.to_be_bytes());
    }

    /// An i32.
    pub fn int(&mut self, name: &'static str, value: i32) {
        self.header(Tag::Int, name);
        self.out.extend(value.to_be_bytes());
    }

    /// An i64.
    pub fn long(&mut self, name: &'static str, value: i64) {
        self.header(Tag::Long, name);
        self.out.extend(value.to_be_bytes());
    }

    /// A string.
    ///
    /// # Errors
    /// [`TooLong`]; then nothing is written.
    pub fn string(&mut self, name: &'static str, value: &str) -> Result<(), TooLong> {
        self.named_string(name, value)
    }

    /// A string under a name that is not the game's own, such as a block state's property.
    ///
    /// # Errors
    /// [`TooLong`] for the name or the value; then nothing is written.
    pub fn named_string(&mut self, name: &str, value: &str) -> Result<(), TooLong> {
        let (name, value) = (simd_cesu8::mutf8::encode(name), simd_cesu8::mutf8::encode(value));
        let name_len = u16::try_from(name.len()).map_err(|_| TooLong(name.len()))?;
        let value_len = u16::try_from(value.len()).map_err(|_| TooLong(value.len()))?;
        self.out.push(Tag::String as u8);
        self.out.extend(name_len.to_be_bytes());
        self.out.extend(&*name);
        self.out.extend(value_len.to_be_bytes());
        self.out.extend(&*value);
        Ok(())
    }

    /// An i32 under a name that is not the game's own, such as a block state in a palette.
    ///
    /// # Errors
    /// [`TooLong`] for the name; then nothing is written.
    pub fn named_int(&mut self, name: &str, value: i32) -> Result<(), TooLong> {
        let name = simd_cesu8::mutf8::encode(name);
        let name_len = u16::try_from(name.len()).map_err(|_| TooLong(name.len()))?;
        self.out.push(Tag::Int as u8);
        self.out.extend(name_len.to_be_bytes());
        self.out.extend(&*name);
        self.out.extend(value.to_be_bytes());
        Ok(())
    }

    /// An array of bytes.
    pub fn byte_array(&mut self, name: &'static str, values: &[u8]) {
        self.header(Tag::ByteArray, name);
        self.count(values.len());
        self.out.extend(values);
    }

    /// An array of i32.
    pub fn int_array(&mut self, name: &'static str, values: &[i32]) {
        self.header(Tag::IntArray, name);
        self.count(values.len());
        self.out.extend(values.iter().flat_map(|value| value.to_be_bytes()));
    }

    /// An array of i64.
    pub fn long_array(&mut self, name: &'static str, values: &[i64]) {
        self.header(Tag::LongArray, name);
        self.count(values.len());
        self.out.extend(values.iter().flat_map(|value| value.to_be_bytes()));
    }

    /// A list of doubles.
    pub fn doubles(&mut self, name: &'static str, values: &[f64]) {
        self.header(Tag::List, name);
        self.out.push(Tag::Double as u8);
        self.count(values.len());
        self.out.extend(values.iter().flat_map(|value| value.to_be_bytes()));
    }

    /// A list of strings.
    ///
    /// # Errors
    /// [`TooLong`] for the first string that is too long; then the tree is unusable.
    pub fn strings<'b>(
        &mut self,
        name: &'static str,
        values: impl ExactSizeIterator<Item = &'b str>,
    ) -> Result<(), TooLong> {
        self.header(Tag::List, name);
        self.out.push(if values.len() == 0 { Tag::End } else { Tag::String } as u8);
        self.count(values.len());
        for value in values {
            let value = simd_cesu8::mutf8::encode(value);
            let len = u16::try_from(value.len()).map_err(|_| TooLong(value.len()))?;
            self.out.extend(len.to_be_bytes());
            self.out.extend(&*value);
        }
        Ok(())
    }

    /// A compound that the closure writes. Returns the closure's result.
    pub fn compound<R>(
        &mut self,
        name: &'static str,
        fields: impl FnOnce(&mut CompoundWriter<'_>) -> R,
    ) -> R {
        self.header(Tag::Compound, name);
        write_compound(self.out, fields)
    }

    /// A list of compounds, each written by the closure.
    ///
    /// # Errors
    /// The first error of the closure; then the tree is unusable.
    pub fn compounds<T, E>(
        &mut self,
        name: &'static str,
        items: impl ExactSizeIterator<Item = T>,
        mut fields: impl FnMut(&mut CompoundWriter<'_>, T) -> Result<(), E>,
    ) -> Result<(), E> {
        self.list_header(name, items.len());
        for item in items {
            write_compound(self.out, |compound| fields(compound, item))?;
        }
        Ok(())
    }

    /// A compound from its bytes: fields and end tag.
    pub fn raw_compound(&mut self, name: &'static str, raw: &[u8]) {
        self.header(Tag::Compound, name);
        self.out.extend(raw);
    }

    /// A list of compounds from their bytes: fields and end tag each.
    pub fn raw_compounds<'b>(&mut self, name: &'static str, items: impl ExactSizeIterator<Item = &'b [u8]>) {
        self.list_header(name, items.len());
        for raw in items {
            self.out.extend(raw);
        }
    }

    /// An empty list of this kind.
    pub fn empty_list(&mut self, name: &'static str, kind: Tag) {
        self.header(Tag::List, name);
        self.out.push(kind as u8);
        self.count(0);
    }

    /// Fields from their bytes: tag, name and value each, no end tag.
    pub fn raw_fields(&mut self, raw: &[u8]) {
        self.out.extend(raw);
    }

    fn list_header(&mut self, name: &'static str, count: usize) {
        self.header(Tag::List, name);
        // The game writes an empty list without an element kind.
        self.out.push(if count == 0 { Tag::End } else { Tag::Compound } as u8);
        self.count(count);
    }

    fn header(&mut self, tag: Tag, name: &'static str) {
        let len = u16::try_from(name.len()).expect("a literal name is short");
        self.out.push(tag as u8);
        self.out.extend(len.to_be_bytes());
        self.out.extend(name.as_bytes());
    }

    fn count(&mut self, count: usize) {
        let count =
            i32::try_from(count).expect("what is in memory for one column has fewer than 2^31 elements");
        self.out.extend(count.to_be_bytes());
    }
}

fn write_compound<R>(out: &mut Vec<u8>, fields: impl FnOnce(&mut CompoundWriter<'_>) -> R) -> R {
    let result = fields(&mut CompoundWriter { out });
    out.push(Tag::End as u8);
    result
}
