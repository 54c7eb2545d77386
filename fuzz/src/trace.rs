//! Laws for any bytes that are taken for a trace or for the heat of a cube: what is read is written to the same bytes,
//! and a dump explains every byte of a trace.

use cg_tiering::Heat;
use cg_tiering::trace::{TraceReader, TraceWriter, explain};

/// Reads bytes as both and says whether they are one.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let (spans, explained) = explain(bytes);
    let read = TraceReader::new(bytes).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    assert_eq!(read, explained);
    if let Ok(events) = &read {
        let mut again = Vec::new();
        let mut writer = TraceWriter::new(&mut again);
        for event in events {
            assert!(writer.write(event, &mut again));
        }
        assert_eq!(again, bytes);
        let len_bytes: u64 = spans.iter().map(|span| span.len_bytes).sum();
        assert_eq!(len_bytes, bytes.len() as u64);
    }
    let heat = Heat::decode(bytes);
    if let Ok(heat) = &heat {
        let mut again = Vec::new();
        heat.encode(&mut again);
        assert_eq!(again, bytes);
    }
    read.is_ok() || heat.is_ok()
}
