//! Golden frames, and the helper that compares golden files.

use std::fmt::Write;
use std::path::PathBuf;

use cg_format::frame::{self, Codec, Draft, FrameView};
use cg_format::wire::Span;
use cg_format::{BlockPos, ChunkAt, Dimension, Limits, Space, key};

/// Compares `testdata/golden/draft/<name>.bin` with what is written today, and its `.txt` with what is read from it.
///
/// Zstandard has two encoders that write different bytes, so such a file is read but not written again:
/// `bytes` is then only used to make it. With `UPDATE_EXPECT=1` both files are made anew.
#[track_caller]
pub(crate) fn check_golden(name: &str, bytes: &[u8], codec: Codec, describe: impl Fn(&[u8]) -> String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/golden/draft").join(name);
    let path = |extension| path.with_extension(extension);
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    if update {
        std::fs::write(path("bin"), bytes).unwrap();
    }
    let golden = std::fs::read(path("bin")).unwrap();
    if codec != Codec::Zstd {
        assert!(golden == bytes, "{name}.bin is not what is written today");
    }
    expect_test::expect_file![path("txt")].assert_eq(&describe(&golden));
}

/// The place of a row, then one line per field: offset, length, name and bytes, long fields shortened.
pub(crate) fn annotated(space: Space, key: &[u8], bytes: &[u8], spans: &[Span]) -> String {
    let mut out = format!("space {space:?} ({})\nkey {}\n", space.byte(), hex(key));
    fields(bytes, spans, &mut out);
    out
}

pub(crate) fn fields(bytes: &[u8], spans: &[Span], out: &mut String) {
    let mut section = None;
    for span in spans {
        if section.replace(span.section) != Some(span.section) {
            writeln!(out, "-- {}", span.section).unwrap();
        }
        let field = &bytes[span.offset_bytes as usize..][..span.len_bytes as usize];
        let (shown, more) = field.split_at_checked(24).map_or((field, ""), |(shown, _)| (shown, " ..."));
        let (at, len, name) = (span.offset_bytes, span.len_bytes, span.field);
        writeln!(out, "{at:5} {len:4}  {name:24} {}{more}", hex(shown)).unwrap();
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

fn check(name: &str, space: Space, key: &[u8], draft: Draft) {
    let codec = draft.codec();
    check_golden(&format!("frame/{name}"), &draft.seal(space, key, 42), codec, |bytes| {
        let (spans, answer) = frame::trace(space, key, bytes);
        let header = answer.unwrap();
        let frame = FrameView::open(space, key, bytes).unwrap();
        assert_eq!(frame.header(), header);
        let payload = frame.raw_payload(&mut Limits::default()).unwrap();
        annotated(space, key, bytes, &spans)
            + &format!(
                "-- value\n{header:#?}\n{} bytes: {:?}\n",
                payload.len(),
                payload.escape_ascii().to_string()
            )
    });
}

#[test]
fn golden_frames_are_read_and_written() {
    let at = ChunkAt::new(Dimension::new(1), BlockPos::new(-1, 64, 1000).chunk());
    let rain = |out: &mut Vec<u8>| out.extend("rain ".repeat(40).bytes());
    check(
        "plain",
        Space::WorldProperty,
        b"demo:weather",
        Draft::plain(Codec::None, 3, |out| out.extend(b"rain")),
    );
    check("plain_lz4", Space::Object, b"diary", Draft::plain(Codec::Lz4, 3, rain));
    check("plain_zstd", Space::Object, b"diary", Draft::plain(Codec::Zstd, 3, rain));
    check("tombstone", Space::ChunkL0, &key::chunk(at), Draft::tombstone(3));
    check(
        "deltas",
        Space::ChunkDelta,
        &key::delta(at, 42),
        Draft::deltas(Codec::None, 3, |out| out.extend([1; 9])),
    );
}
