//! Traces: the recorded requests to a world, for trying policies.
//!
//! A trace is a line of text, `cherrygrove trace 1`, and records, see the table in `record.rs` and
//! `docs/format/trace.md`. Most records take eight or nine bytes. Each event has one form, so equal histories give
//! equal bytes. An event without new information is not written, such as a player that does not move or a moment that
//! is not later.
//!
//! Reading accepts untrusted bytes: any input gives events or an error, and memory is proportional to its length. A
//! truncated trace gives the events before the cut, and then an error with its place.

mod record;
mod state;

use cg_format::wire::{Reader, Span, Trace};
use cg_format::{ChunkAt, ChunkBox, DecodeError, Dimension, EntityId, Problem, Section};

use self::record::Record;
use self::state::State;
use crate::{GameTick, Observers, PlayerAt};

/// The first line of a trace. Its last digit is the layout's version.
const SIGNATURE: &[u8; 20] = b"cherrygrove trace 1\n";
/// The newest layout that this release reads.
const TRACE_VERSION: u64 = 1;

/// An event in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// Time advanced. The following events happen at this moment; those before the first one at tick 0.
    Tick(GameTick),
    /// A player appeared or moved.
    Player(PlayerAt),
    /// A player left.
    Leave(EntityId),
    /// The host requested a chunk that was not in memory.
    Load {
        /// The chunk.
        chunk: ChunkAt,
        /// Bytes of its value before compression; 0 if there was none.
        len_bytes: u32,
    },
    /// A chunk was saved.
    Save {
        /// The chunk.
        chunk: ChunkAt,
        /// Bytes of its value before compression; 0 if it was deleted.
        len_bytes: u32,
    },
    /// The host unloaded a chunk.
    Unload(ChunkAt),
    /// The host began to keep a box of chunks loaded.
    Hold {
        /// The host's id for it.
        hold: u64,
        /// The dimension.
        dimension: Dimension,
        /// The chunks.
        place: ChunkBox,
    },
    /// The host released the box with this id.
    Release(u64),
    /// The host pinned a box of chunks.
    Pin {
        /// The host's id for it.
        pin: u64,
        /// The dimension.
        dimension: Dimension,
        /// The chunks.
        place: ChunkBox,
    },
    /// The host removed the pin with this id.
    Unpin(u64),
}

/// Encodes events as a trace.
///
/// ```
/// use cg_format::{ChunkAt, ChunkPos, Dimension};
/// use cg_tiering::GameTick;
/// use cg_tiering::trace::{Event, TraceReader, TraceWriter};
/// let mut bytes = Vec::new();
/// let mut writer = TraceWriter::new(&mut bytes);
/// let chunk = ChunkAt::new(Dimension::new(0), ChunkPos::constant(100, 4, -7));
/// let events = [Event::Tick(GameTick::new(5)), Event::Load { chunk, len_bytes: 1800 }];
/// for event in &events {
///     writer.write(event, &mut bytes);
/// }
/// let again: Result<Vec<_>, _> = TraceReader::new(&bytes)?.collect();
/// assert_eq!(again?, events);
/// # Ok::<(), cg_format::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TraceWriter {
    state: State,
}

impl TraceWriter {
    /// Begins a trace: appends its first line.
    pub fn new(out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(SIGNATURE);
        Self { state: State::default() }
    }

    /// Appends an event, unless it has no new information. Returns whether it was written. Costs at most one lookup in
    /// a hash map.
    ///
    /// The buffer may be moved to a file between any two events.
    pub fn write(&mut self, event: &Event, out: &mut Vec<u8>) -> bool {
        let Some(record) = self.state.record_of(event) else { return false };
        record.write(out);
        self.state.apply(event);
        true
    }

    /// Writes the boxes that are kept loaded and the pins. A trace that begins in the middle of a game must start with
    /// them.
    pub fn write_standing(&mut self, seen: &Observers, out: &mut Vec<u8>) {
        for (id, dimension, place) in seen.holds() {
            self.write(&Event::Hold { hold: id.get(), dimension, place }, out);
        }
        for (id, dimension, place) in seen.pins() {
            self.write(&Event::Pin { pin: id.get(), dimension, place }, out);
        }
    }

    /// Writes the time and the positions of all players. Players that were there before and are not listed have left.
    pub fn write_tick(&mut self, now: GameTick, players: &[PlayerAt], out: &mut Vec<u8>) {
        self.write(&Event::Tick(now), out);
        for id in self.state.missing(players) {
            self.write(&Event::Leave(id), out);
        }
        for player in players {
            self.write(&Event::Player(*player), out);
        }
    }
}

/// Reads a trace event by event. See [`TraceWriter`] for an example.
#[derive(Debug, Clone)]
pub struct TraceReader<'a> {
    reader: Reader<'a>,
    state: State,
    failed: bool,
}

impl<'a> TraceReader<'a> {
    /// Begins to read.
    ///
    /// # Errors
    /// [`DecodeError`] in [`Section::TierTrace`] if the bytes do not begin with the line of a trace.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::begin(Reader::new(bytes, Section::TierTrace))
    }

    fn begin(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let line: [u8; 20] = reader.array("signature")?;
        if line != *SIGNATURE {
            let newer = line.strip_prefix(b"cherrygrove trace ");
            let problem = if let Some([digit @ b'2'..=b'9', _]) = newer {
                let found = u64::from(digit - b'0');
                Problem::Newer { field: "signature", found, newest: TRACE_VERSION }
            } else {
                let found = u64::from(line[0]);
                let allowed = "the line `cherrygrove trace 1`";
                Problem::OutOfRange { field: "first byte of the signature", found, allowed }
            };
            return Err(start.error(problem));
        }
        Ok(Self { reader, state: State::default(), failed: false })
    }

    /// The end of the last complete event.
    pub const fn offset_bytes(&self) -> u64 {
        self.reader.offset_bytes()
    }

    fn read(&mut self) -> Result<Event, DecodeError> {
        let start = self.reader.clone();
        let record = Record::read(&mut self.reader).inspect_err(|_| self.reader = start.clone())?;
        let event = self.state.event_of(&record).map_err(|problem| start.error(problem))?;
        if self.state.record_of(&event) != Some(record) {
            let found = record.kind().into();
            let allowed = "the shortest form of what says something new";
            return Err(start.error(Problem::OutOfRange { field: "kind", found, allowed }));
        }
        self.state.apply(&event);
        Ok(event)
    }
}

impl Iterator for TraceReader<'_> {
    type Item = Result<Event, DecodeError>;

    /// The next event; after an error, nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.reader.left_bytes() == 0 {
            return None;
        }
        let event = self.read();
        self.failed = event.is_err();
        Some(event)
    }
}

/// Explains the bytes of a trace: the fields that a [`TraceReader`] reads, up to the first error.
pub fn explain(bytes: &[u8]) -> (Vec<Span>, Result<Vec<Event>, DecodeError>) {
    let trace = Trace::default();
    let reader = Reader::new(bytes, Section::TierTrace).traced(Some(&trace));
    let events = TraceReader::begin(reader).and_then(Iterator::collect);
    (trace.take(), events)
}

#[cfg(test)]
mod tests;
