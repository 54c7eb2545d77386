//! Settings of the workspace's manifest for the checks in compiled programs.

use std::fs;
use std::path::Path;

#[test]
fn no_profile_turns_checks_off_or_on() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let manifest = fs::read_to_string(manifest).expect("the workspace has one");
    // Without a word, `dev` and what inherits from it has both: `cg` in the tests of the command line, and all tests.
    for setting in ["debug-assertions", "overflow-checks"] {
        assert!(!manifest.contains(setting), "the manifest sets {setting}");
    }
    let inherits: Vec<_> = manifest.lines().filter_map(|line| line.strip_prefix("inherits = ")).collect();
    assert_eq!(inherits, [r#""dev""#], "every profile of our own has the checks of `dev`");
}
