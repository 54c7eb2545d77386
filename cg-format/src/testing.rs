//! Dumps and golden files for the tests of layouts.

use std::path::Path;
use std::string::String;
use std::{eprintln, fs};

use crate::wire::{Span, annotate};

/// The dump of a stored value. The fields must explain every byte once.
#[track_caller]
pub(crate) fn annotated(bytes: &[u8], spans: &[Span]) -> String {
    let mut next = 0;
    for span in spans {
        assert_eq!(span.offset_bytes, next, "fields follow each other: {span:?}");
        next += span.len_bytes;
    }
    assert_eq!(next, bytes.len() as u64, "every byte belongs to a field");
    annotate(spans, bytes)
}

/// Compares bytes and their description with `testdata/golden/draft/<name>.bin` and `.txt`.
///
/// With `UPDATE_GOLDEN=1` it writes the files instead.
#[track_caller]
pub(crate) fn golden(name: &str, bytes: &[u8], text: &str) {
    let stem = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/golden/draft").join(name);
    let (value, description) = (stem.with_extension("bin"), stem.with_extension("txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(value.parent().unwrap()).unwrap();
        fs::write(&value, bytes).unwrap();
        fs::write(&description, text).unwrap();
        eprintln!("wrote {}", value.display());
    }
    let read = |path: &Path| fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(read(&value) == bytes, "{} differs from what is encoded; see its snapshot", value.display());
    assert_eq!(String::from_utf8(read(&description)).unwrap(), text, "{}", description.display());
}
