//! The messages as `docs/format/sync.md` describes them.

use std::path::{Path, PathBuf};

use cg_sync::{MessageError, SYNC_VERSION, SyncLimits, SyncReply, SyncRequest};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page() -> String {
    std::fs::read_to_string(repository().join("docs/format/sync.md")).expect("readable")
}

/// The bytes of a dump: the offset, the bytes, and after two spaces what they are. Offsets are checked.
fn bytes_of(dump: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in dump.lines() {
        let (offset, rest) = line.split_once("  ").expect("an offset");
        assert_eq!(usize::from_str_radix(offset, 16), Ok(bytes.len()), "{line}");
        let (hex, _) = rest.split_once("  ").unwrap_or((rest, ""));
        bytes.extend(hex.split(' ').map(|byte| u8::from_str_radix(byte, 16).expect("two digits")));
    }
    bytes
}

#[test]
fn the_examples_of_the_page_are_committed_messages() {
    let page = page();
    let dumps: Vec<_> = page
        .split("```text\n")
        .skip(1)
        .filter_map(|block| block.split_once("\n```").map(|(block, _)| block))
        .filter(|block| block.starts_with("000000  "))
        .map(bytes_of)
        .collect();
    let committed = ["request_area", "reply_area"].map(|name| {
        std::fs::read(repository().join("fuzz/corpus/sync_decode").join(name)).expect("readable")
    });
    assert_eq!(dumps, committed);
    SyncRequest::decode(&committed[0], SyncLimits::default()).expect("is a request");
    SyncReply::decode(&committed[1], SyncLimits::default()).expect("is a reply");
    assert!(page.contains(&format!("| 0 | 1 | `version` | of the messages | {SYNC_VERSION};")));
}

#[test]
fn numbers_have_the_forms_of_the_page() {
    let decoded = |number: &[u8]| {
        let fields = [number, &[0; 7]].concat();
        let sum = crc32c::crc32c(&[&[SYNC_VERSION, 1], &fields[..]].concat()).to_le_bytes();
        let message = [&[SYNC_VERSION, 1], &sum[..], &fields].concat();
        let request = SyncRequest::decode(&message, SyncLimits::default())?;
        Ok::<_, MessageError>(request.encode()[6..].strip_suffix(&[0; 7]).expect("ends so").to_vec())
    };
    for shortest in [&[250][..], &[251, 251, 0], &[252, 0, 0, 1, 0], &[253, 0, 0, 0, 0, 1, 0, 0, 0]] {
        assert_eq!(decoded(shortest).as_deref(), Ok(shortest));
    }
    for longer in [&[251, 7, 0][..], &[252, 7, 0, 0, 0], &[253, 7, 0, 0, 0, 0, 0, 0, 0]] {
        assert_eq!(decoded(longer), Ok(vec![7]));
    }
    assert!(matches!(decoded(&[254, 7]), Err(MessageError::Fields { .. })));
}
