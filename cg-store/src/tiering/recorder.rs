//! Recording what a world is asked, so that policies can be tried on it with `cg tiers simulate`.

use std::sync::atomic::{AtomicBool, Ordering};

use cg_format::ChunkAt;
use cg_format::chunk::Chunk;
use cg_tiering::trace::{Event, TraceWriter};
use cg_tiering::{GameTick, PlayerAt};
use parking_lot::Mutex;

use crate::engine::Engine;
use crate::world::World;

/// What is recorded, if anything is.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// So that a world which records nothing pays one look at this.
    is_on: AtomicBool,
    recording: Mutex<Option<Recording>>,
}

#[derive(Debug)]
struct Recording {
    writer: TraceWriter,
    bytes: Vec<u8>,
}

impl Recorder {
    /// Notes a chunk that memory did not have; `None` if it is not stored.
    pub(crate) fn loaded(&self, chunk: ChunkAt, content: Option<&Chunk>) {
        self.note(|recording| {
            let len_bytes = content.map_or(0, len_bytes);
            recording.writer.write(&Event::Load { chunk, len_bytes }, &mut recording.bytes);
        });
    }

    /// Notes a chunk that was saved; `None` if it was deleted.
    pub(crate) fn saved(&self, chunk: ChunkAt, content: Option<&Chunk>) {
        self.note(|recording| {
            let len_bytes = content.map_or(0, len_bytes);
            recording.writer.write(&Event::Save { chunk, len_bytes }, &mut recording.bytes);
        });
    }

    /// Notes a tick.
    pub(crate) fn ticked(&self, now: GameTick, players: &[PlayerAt]) {
        self.note(|recording| recording.writer.write_tick(now, players, &mut recording.bytes));
    }

    fn note(&self, write: impl FnOnce(&mut Recording)) {
        if self.is_on.load(Ordering::Relaxed)
            && let Some(recording) = &mut *self.recording.lock()
        {
            write(recording);
        }
    }
}

fn len_bytes(chunk: &Chunk) -> u32 {
    u32::try_from(chunk.to_bytes().len()).unwrap_or(u32::MAX)
}

impl<E: Engine> World<E> {
    /// Begins to record loads that memory cannot answer, saves, ticks and players; a recording under way is dropped.
    ///
    /// Eight or nine bytes for most events, kept in memory until [`take_trace`](Self::take_trace) hands them out. While
    /// it records, each such load and save also encodes its chunk once to know its length. What is held and pinned is not
    /// recorded.
    pub fn record_trace(&self) {
        let recorder = &self.inner().tiering.recorder;
        let mut bytes = Vec::new();
        let writer = TraceWriter::new(&mut bytes);
        *recorder.recording.lock() = Some(Recording { writer, bytes });
        recorder.is_on.store(true, Ordering::Relaxed);
    }

    /// What was recorded since the last call, to be appended to the same file. Recording goes on. Empty if nothing is
    /// recorded.
    pub fn take_trace(&self) -> Vec<u8> {
        let mut recording = self.inner().tiering.recorder.recording.lock();
        recording.as_mut().map(|recording| std::mem::take(&mut recording.bytes)).unwrap_or_default()
    }

    /// Stops recording and hands out the rest.
    pub fn end_trace(&self) -> Vec<u8> {
        let recorder = &self.inner().tiering.recorder;
        recorder.is_on.store(false, Ordering::Relaxed);
        recorder.recording.lock().take().map(|recording| recording.bytes).unwrap_or_default()
    }
}
