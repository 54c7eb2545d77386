//! `cargo xtask foreign`: the pure crates compile for other machines, one with the other order of bytes.

use anyhow::Result;

use crate::context::Context;
use crate::pure::PURE;
use crate::report::Outcome;
use crate::toolchain::Needs;

/// Big-endian 64-bit Linux, and Windows.
const TARGETS: [&str; 2] = ["s390x-unknown-linux-gnu", "x86_64-pc-windows-gnu"];

/// Checks them for every target; nothing is linked, so no tools of the target are needed.
///
/// # Errors
/// One of them does not compile.
pub(crate) fn run(context: &Context) -> Result<Outcome> {
    if let Some(reason) = (Needs { targets: &TARGETS, ..Needs::default() }).missing(context)? {
        return Ok(Outcome::Optional(reason));
    }
    let targets = TARGETS.iter().flat_map(|target| ["--target", target]);
    let packages = PURE.iter().flat_map(|package| ["--package", package]);
    context.cargo().args(["check", "--no-default-features"]).args(packages).args(targets).run()?;
    Ok(Outcome::Passed)
}
