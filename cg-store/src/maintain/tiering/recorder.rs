//! Recording of a trace of a world, to try policies on it with `cg tiers simulate`.
//!
//! **Invariant**: a trace is complete up to its end. When its memory is full, the recording ends there. It never
//! continues after a gap, because a replay would treat the events around the gap as complete.
//!
//! Holds and pins are recorded under the lock of the observers, so they are in the order in which the observers got
//! them.

use std::sync::atomic::{AtomicBool, Ordering};

use cg_format::ChunkAt;
use cg_format::chunk::Chunk;
use cg_tiering::trace::{Event, TraceWriter};
use cg_tiering::{GameTick, PlayerAt};

use super::Tiering;
use crate::rt::lock_order::{Mutex, rank};

/// The current recording, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// Makes a world without a recording pay only one load of this flag.
    is_on: AtomicBool,
    recording: Mutex<Option<Recording>, rank::Recording>,
}

#[derive(Debug)]
struct Recording {
    writer: TraceWriter,
    bytes: Vec<u8>,
    max_bytes: usize,
    lost_events: u64,
}

/// A part of a trace, to be appended to the parts before it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use = "what was handed out is recorded nowhere else"]
pub struct TracePart {
    /// The bytes. Together with those of the parts before, they are a trace.
    pub bytes: Vec<u8>,
    /// 0 while the recording continues. Otherwise the memory for it was full, or the clock was
    /// [set](crate::tiers::Tiers::set_clock): the trace ends there. The value counts the loads, saves, ticks, holds and pins
    /// after its end.
    pub lost_events: u64,
}

impl Recorder {
    /// Records a load of a chunk that was not in memory; `None` if it is not stored.
    pub(crate) fn loaded(&self, chunk: ChunkAt, content: Option<&Chunk>) {
        self.note(|writer, bytes| {
            let len_bytes = content.map_or(0, len_bytes);
            writer.write(&Event::Load { chunk, len_bytes }, bytes);
        });
    }

    /// Records a save of a chunk; `None` if it was deleted.
    pub(crate) fn saved(&self, chunk: ChunkAt, content: Option<&Chunk>) {
        self.note(|writer, bytes| {
            let len_bytes = content.map_or(0, len_bytes);
            writer.write(&Event::Save { chunk, len_bytes }, bytes);
        });
    }

    /// Notes a tick.
    pub(crate) fn ticked(&self, now: GameTick, players: &[PlayerAt]) {
        self.note(|writer, bytes| writer.write_tick(now, players, bytes));
    }

    /// Ends the recording, as if its memory were full.
    pub(crate) fn ends(&self) {
        if let Some(recording) = &mut *self.recording.lock() {
            recording.lost_events += 1;
        }
    }

    /// Records a hold or a pin.
    pub(crate) fn note_event(&self, event: &Event) {
        self.note(|writer, bytes| {
            writer.write(event, bytes);
        });
    }

    fn note(&self, write: impl FnOnce(&mut TraceWriter, &mut Vec<u8>)) {
        if self.is_on.load(Ordering::Relaxed)
            && let Some(recording) = &mut *self.recording.lock()
        {
            recording.note(write);
        }
    }
}

impl Recording {
    fn note(&mut self, write: impl FnOnce(&mut TraceWriter, &mut Vec<u8>)) {
        if self.lost_events > 0 {
            self.lost_events += 1;
            return;
        }
        let before = self.bytes.len();
        write(&mut self.writer, &mut self.bytes);
        if self.bytes.len() > self.max_bytes {
            self.bytes.truncate(before);
            self.lost_events = 1;
            tracing::warn!(max_bytes = self.max_bytes, "the memory for the trace is full; recording ends");
        }
    }

    fn take(&mut self) -> TracePart {
        TracePart { bytes: std::mem::take(&mut self.bytes), lost_events: self.lost_events }
    }
}

fn len_bytes(chunk: &Chunk) -> u32 {
    u32::try_from(chunk.to_bytes().len()).unwrap_or(u32::MAX)
}

impl Tiering {
    /// See [`Tiers::record_trace`](crate::tiers::Tiers::record_trace).
    pub(crate) fn record_trace(&self, max_bytes: usize) {
        self.observers(|seen| {
            let mut bytes = Vec::new();
            let writer = TraceWriter::new(&mut bytes);
            let mut recording = Recording { writer, bytes, max_bytes, lost_events: 0 };
            let now = self.now();
            recording.note(|writer, bytes| {
                writer.write(&Event::Tick(now), bytes);
                writer.write_standing(seen, bytes);
            });
            *self.recorder.recording.lock() = Some(recording);
        });
        self.recorder.is_on.store(true, Ordering::Relaxed);
    }

    /// See [`Tiers::take_trace`](crate::tiers::Tiers::take_trace).
    pub(crate) fn take_trace(&self) -> TracePart {
        let mut recording = self.recorder.recording.lock();
        recording.as_mut().map(Recording::take).unwrap_or_default()
    }

    /// See [`Tiers::end_trace`](crate::tiers::Tiers::end_trace).
    pub(crate) fn end_trace(&self) -> TracePart {
        let recorder = &self.recorder;
        recorder.is_on.store(false, Ordering::Relaxed);
        recorder.recording.lock().take().map(|mut recording| recording.take()).unwrap_or_default()
    }
}
