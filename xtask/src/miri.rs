//! `cargo xtask miri`: tests of the decoders in an interpreter that finds undefined behaviour.
//!
//! The two crates forbid unsafe code. What Miri can find is in their dependencies: checksums and codecs. Miri is a
//! thousand times slower than the processor, so the step runs only the tests that give decoders random bytes, and each
//! property once unless it says otherwise.
//!
//! Tree borrows check the aliasing. Stacked borrows, the older and stricter model, report `bitvec` 1.1.1, which tests
//! use.

use anyhow::Result;

use crate::context::Context;
use crate::report::Outcome;
use crate::toolchain::{self, Needs};

const TOOLCHAIN: &str = "nightly";

/// Isolation is off because proptest reads the environment and looks for a folder.
const FLAGS: &str = "-Zmiri-tree-borrows -Zmiri-disable-isolation";

const PACKAGES: [&str; 2] = ["cg-format", "cg-registry"];

/// The names of the tests that run contain this.
const SELECTED: &str = "any_bytes";

/// Runs the tests of the selection.
///
/// # Errors
/// Miri found something, or a test failed.
pub(crate) fn run(context: &Context) -> Result<Outcome> {
    let needs = Needs { toolchain: Some(TOOLCHAIN), components: &["miri", "rust-src"], targets: &[] };
    if let Some(reason) = needs.missing(context)? {
        return Ok(Outcome::Optional(reason));
    }
    toolchain::cargo(context, TOOLCHAIN).args(["miri", "setup"]).run()?;
    let packages = PACKAGES.iter().flat_map(|package| ["--package", package]);
    let tool = toolchain::cargo(context, TOOLCHAIN).args(["miri", "test", "--lib"]).args(packages);
    tool.args(["--", SELECTED]).env("MIRIFLAGS", FLAGS).env("PROPTEST_CASES", "1").run()?;
    Ok(Outcome::Passed)
}
