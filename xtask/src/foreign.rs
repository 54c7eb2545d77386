//! `cargo xtask foreign`: the pure crates compile for other machines: one with the other order of bytes, one of 32 bits,
//! one without a system.

use anyhow::Result;

use crate::context::Context;
use crate::pure::PURE;
use crate::report::Outcome;
use crate::toolchain::Needs;

/// Big-endian 64-bit Linux, 32-bit Linux, and Windows.
const SYSTEMS: [&str; 3] = ["s390x-unknown-linux-gnu", "i686-unknown-linux-gnu", "x86_64-pc-windows-gnu"];

/// WebAssembly, which has 32 bits and no system that gives random numbers, threads or files.
const WASM: &str = "wasm32-unknown-unknown";

/// The pure crates that ask nothing of a system.
const WITHOUT_SYSTEM: [&str; 5] = ["cg-format", "cg-registry", "cg-tiering", "cg-snapshot", "cg-minecraft"];

/// Checks them for every target; nothing is linked, so no tools of the target are needed.
///
/// # Errors
/// One of them does not compile.
pub(crate) fn run(context: &Context) -> Result<Outcome> {
    let targets = [&SYSTEMS[..], &[WASM]].concat();
    if let Some(reason) = (Needs { targets: &targets, ..Needs::default() }).missing(context)? {
        return Ok(Outcome::Optional(reason));
    }
    for (packages, targets) in [(&PURE[..], &SYSTEMS[..]), (&WITHOUT_SYSTEM, &[WASM])] {
        let targets = targets.iter().flat_map(|target| ["--target", target]);
        let packages = packages.iter().flat_map(|package| ["--package", package]);
        context.cargo().args(["check", "--no-default-features"]).args(packages).args(targets).run()?;
    }
    Ok(Outcome::Passed)
}
