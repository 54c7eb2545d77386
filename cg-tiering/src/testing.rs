//! Golden files for the tests of layouts.

use std::fs;
use std::path::Path;

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
    assert!(read(&value) == bytes, "{} differs from what is encoded", value.display());
    assert_eq!(String::from_utf8(read(&description)).unwrap(), text, "{}", description.display());
}
