//! The arrays of indices. They are counted once, then read as often as needed.

use std::io::Read;

use super::input::Input;
use super::varint::Varint;
use super::{SchemError, SchemLimits};

/// Bytes that are compared at once. If all are equal, they are handled as one run.
const RUN_BYTES: usize = 4096;

/// The content of an array of indices, from the first pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Where the indices begin.
    pub(super) at_bytes: u64,
    pub(super) len_bytes: u64,
    pub(super) cells: u64,
    /// By index: the number of its cells, and the first of them.
    pub(super) kinds: Vec<(u64, u64)>,
}

impl Counted {
    fn add(&mut self, index: u16, count: u64) {
        let kind = usize::from(index);
        if kind >= self.kinds.len() {
            self.kinds.resize(kind + 1, (0, 0));
        }
        if let Some((seen, first)) = self.kinds.get_mut(kind) {
            if *seen == 0 {
                *first = self.cells;
            }
            *seen += count;
        }
        self.cells += count;
    }

    /// Counts the indices of the array that comes next.
    pub(super) fn read<R: Read>(input: &mut Input<R>, limits: &SchemLimits) -> Result<Self, SchemError> {
        let len_bytes = input.count()?;
        let mut found = Self { at_bytes: input.at_bytes(), len_bytes, ..Self::default() };
        let mut varint = Varint::default();
        let mut left = len_bytes;
        let (field, limit) = (input.field, limits.cells);
        while left > 0 {
            let at_bytes = input.at_bytes();
            let bytes = input.some()?;
            let count = (bytes.len() as u64).min(left) as usize;
            let bytes = bytes.get(..count).unwrap_or_default();
            for (part, from) in bytes.chunks(RUN_BYTES).zip((at_bytes..).step_by(RUN_BYTES)) {
                let first = part.first().copied().unwrap_or_default();
                if first < 0x80 && varint.is_idle() && part.get(1..) == part.get(..part.len() - 1) {
                    found.add(first.into(), part.len() as u64);
                    continue;
                }
                for (byte, at_bytes) in part.iter().zip(from..) {
                    match varint.push(*byte) {
                        Ok(None) => {}
                        Ok(Some(index)) => found.add(index, 1),
                        Err(problem) => {
                            return Err(SchemError::Varint { field, cell: found.cells, at_bytes, problem });
                        }
                    }
                }
            }
            if found.cells > limit {
                return Err(SchemError::TooMuch { field, what: "entries", limit, at_bytes });
            }
            input.take(count);
            left -= count as u64;
        }
        if varint.is_idle() {
            return Ok(found);
        }
        let problem = super::VarintProblem::CutOff;
        Err(SchemError::Varint { field, cell: found.cells, at_bytes: input.at_bytes(), problem })
    }
}

/// Indices in the order of the file: x first, then z, then y. Only a buffer of them is in memory.
pub struct Cells<R: Read> {
    input: Input<R>,
    left_bytes: u64,
    remaining: u64,
    varint: Varint,
    field: &'static str,
    /// Indices that the first pass found.
    known: Vec<bool>,
}

impl<R: Read> std::fmt::Debug for Cells<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cells").field("remaining", &self.remaining).finish_non_exhaustive()
    }
}

impl<R: Read> Cells<R> {
    pub(super) fn open(
        input: R,
        counted: &Counted,
        field: &'static str,
        limits: &SchemLimits,
    ) -> Result<Self, SchemError> {
        let mut input = Input::new(input, limits)?;
        input.field = field;
        input.pass(counted.at_bytes)?;
        Ok(Self {
            input,
            left_bytes: counted.len_bytes,
            remaining: counted.cells,
            varint: Varint::default(),
            field,
            known: counted.kinds.iter().map(|(count, _)| *count > 0).collect(),
        })
    }

    /// Cells that were not read yet.
    pub const fn left(&self) -> u64 {
        self.remaining
    }

    /// Reads the next indices and returns their number. It is less than requested only at the end.
    ///
    /// # Errors
    /// [`SchemError::Changed`] if the file changed after the first read, or an I/O error.
    pub fn read(&mut self, out: &mut [u16]) -> Result<usize, SchemError> {
        let wanted = (out.len() as u64).min(self.remaining) as usize;
        let mut done = 0;
        while done < wanted {
            if self.left_bytes == 0 {
                return Err(SchemError::Changed(self.field));
            }
            let bytes = self.input.some()?;
            let available = (bytes.len() as u64).min(self.left_bytes) as usize;
            let bytes = bytes.get(..available).unwrap_or_default();
            // Most palettes have fewer than 128 states. Then a byte is an index, and runs are found by comparing
            // memory.
            let run = bytes.get(..bytes.len().min(wanted - done).min(RUN_BYTES)).unwrap_or_default();
            let first = run.first().copied().unwrap_or_default();
            let used = if self.varint.is_idle() && first < 0x80 && run.get(1..) == run.get(..run.len() - 1) {
                let index = u16::from(first);
                check(&self.known, index, self.field)?;
                out.get_mut(done..done + run.len()).unwrap_or_default().fill(index);
                done += run.len();
                run.len()
            } else {
                let mut used = 0;
                for byte in run {
                    used += 1;
                    let index = self.varint.push(*byte).map_err(|_| SchemError::Changed(self.field))?;
                    let Some(index) = index else { continue };
                    check(&self.known, index, self.field)?;
                    if let Some(cell) = out.get_mut(done) {
                        *cell = index;
                    }
                    done += 1;
                }
                used
            };
            self.input.take(used);
            self.left_bytes -= used as u64;
        }
        self.remaining -= wanted as u64;
        Ok(wanted)
    }
}

/// Refuses an index that the first pass did not find.
fn check(known: &[bool], index: u16, field: &'static str) -> Result<(), SchemError> {
    let is_known = known.get(usize::from(index)).copied().unwrap_or(false);
    if is_known { Ok(()) } else { Err(SchemError::Changed(field)) }
}
