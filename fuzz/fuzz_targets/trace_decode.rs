//! Any bytes are a trace or an error; what is read is written to the same bytes, and a dump explains every byte of it.
#![no_main]

use cg_tiering::trace::{TraceReader, TraceWriter, explain};
use cg_tiering::Heat;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (spans, explained) = explain(bytes);
    let read = TraceReader::new(bytes).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    assert_eq!(read, explained);
    if let Ok(events) = read {
        let mut again = Vec::new();
        let mut writer = TraceWriter::new(&mut again);
        for event in &events {
            assert!(writer.write(event, &mut again));
        }
        assert_eq!(again, bytes);
        let len_bytes: u64 = spans.iter().map(|span| span.len_bytes).sum();
        assert_eq!(len_bytes, bytes.len() as u64);
    }
    if let Ok(heat) = Heat::decode(bytes) {
        let mut again = Vec::new();
        heat.encode(&mut again);
        assert_eq!(again, bytes);
    }
});
