//! Any bytes are a delta or an error; what decodes encodes to the same, and a dump explains every byte of it.
#![no_main]

use cg_format::delta::Delta;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (spans, traced) = Delta::trace(bytes);
    let decoded = Delta::decode(bytes);
    assert_eq!(decoded, traced);
    if let Ok(delta) = decoded {
        let mut again = Vec::new();
        delta.encode(&mut again);
        assert_eq!(again, bytes);
        let explained: u64 = spans.iter().map(|span| span.len_bytes).sum();
        assert_eq!(explained, bytes.len() as u64);
    }
});
