//! Debian and Ubuntu packages: asks before root is used where a person is there.

use std::io::{Write as _, stderr, stdin};

use anyhow::{Context as _, Result, bail};

use super::say;
use crate::context::{Audience, Context};
use crate::process::{Tool, which};

/// Whether packages can be installed here at all.
pub(super) fn exists() -> bool {
    which("apt-get").is_some()
}

/// Whether an installation can go ahead without a password that nobody is there to type.
pub(super) fn can_install(context: &Context) -> bool {
    exists() && (is_root() || (which("sudo").is_some() && context.audience != Audience::Script))
}

/// Installs what `packages` names; it is asked again after the package lists were fetched, since
/// a fresh machine has none and the names may depend on them.
///
/// # Errors
/// No apt, no right to use it, the person said no, or apt failed. The message holds the command to run by hand.
pub(super) fn install(context: &Context, why: &str, packages: impl Fn() -> Vec<String>) -> Result<()> {
    let by_hand = || {
        let sudo = if is_root() { "" } else { "sudo " };
        format!("{sudo}apt-get install -y --no-install-recommends {}", packages().join(" "))
    };
    if !exists() {
        bail!("{why}: install it with this system's package manager (on Debian: {})", packages().join(" "));
    }
    if !can_install(context) {
        bail!("{why}. Nobody is here to allow the use of root, so run this yourself:\n    {}", by_hand());
    }
    say(format!("{why}; to run: {}", by_hand()));
    if context.audience == Audience::Person && !agreed()? {
        bail!("not installed. To do it yourself:\n    {}", by_hand());
    }
    if as_root(context, &["install", "-y", "--no-install-recommends"], &packages()).is_ok() {
        return Ok(());
    }
    say("apt did not succeed; fetching the package lists and trying again");
    as_root(context, &["update"], &[])?;
    as_root(context, &["install", "-y", "--no-install-recommends"], &packages())
        .with_context(|| format!("run this yourself to see more:\n    apt-get update && {}", by_hand()))
}

fn agreed() -> Result<bool> {
    eprint!("This uses root. Run it now? [Y/n] ");
    stderr().flush()?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes"))
}

fn as_root(context: &Context, verb: &[&str], packages: &[String]) -> Result<()> {
    let tool = match (is_root(), context.audience) {
        (true, _) => Tool::new("apt-get"),
        (false, Audience::Person) => Tool::new("sudo").arg("apt-get"),
        (false, _) => Tool::new("sudo").args(["-n", "apt-get"]),
    };
    tool.args(verb).args(packages).env("DEBIAN_FRONTEND", "noninteractive").run_aside()
}

fn is_root() -> bool {
    Tool::new("id").arg("-u").capture().is_ok_and(|id| id.trim() == "0")
}
