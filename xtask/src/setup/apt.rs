//! Debian and Ubuntu packages: asks before root is used where a person is there.

use std::io::{Write as _, stderr, stdin};

use anyhow::{Context as _, Result, bail};

use super::say;
use crate::context::{Audience, Context};
use crate::process::{Tool, which};

/// Whether packages can be installed here without a password to type.
pub(super) fn can_install(context: &Context) -> bool {
    exists() && (is_root() || (which("sudo").is_some() && context.audience != Audience::Script))
}

/// Installs what `packages` names; it is asked again after the package lists were fetched, since
/// a fresh machine has none and the names may depend on them.
///
/// # Errors
/// No apt, no right to use it, the person said no, or apt failed. The message holds the command to run by hand.
pub(super) fn install(context: &Context, why: &str, packages: impl Fn() -> Vec<String>) -> Result<()> {
    install_with(context, why, &[], packages)
}

/// As [`install`], with options for `apt-get install` that a person who types the command can leave out.
///
/// # Errors
/// As [`install`].
pub(super) fn install_with(
    context: &Context,
    why: &str,
    options: &[String],
    packages: impl Fn() -> Vec<String>,
) -> Result<()> {
    if !can_install(context) {
        bail!("{why}. {}", advice(&packages()));
    }
    let unlisted = packages().iter().any(|name| !is_listed(name));
    let by_hand = by_hand(&packages());
    say(format!("{why}; to run: {by_hand}"));
    if context.audience == Audience::Person && !agreed()? {
        bail!("{why}, and you did not want it installed. To do it yourself:\n    {by_hand}");
    }
    if unlisted {
        update(context);
    } else if install_listed(context, options, &packages()).is_ok() {
        return Ok(());
    } else {
        say("apt did not succeed; fetching the package lists and trying again");
        update(context);
    }
    let packages = packages();
    if let Some(name) = packages.iter().find(|name| !is_listed(name)) {
        bail!("{why}, and no package source of this system has {name}");
    }
    install_listed(context, options, &packages).with_context(|| why.to_owned())
}

/// Advice to a person where this program may not install `packages`.
pub(super) fn advice(packages: &[String]) -> String {
    if !exists() {
        return format!("Install it with this system's package manager (on Debian: {})", packages.join(" "));
    }
    let hurdle = match which("sudo") {
        _ if is_root() => "Have this run",
        Some(_) => "Nobody is here to allow the use of root, so have this run",
        None => "This user is not root, and there is no sudo, so have this run",
    };
    format!("{hurdle}:\n    {}", by_hand(packages))
}

/// The command that installs `packages`, for a person to type.
fn by_hand(packages: &[String]) -> String {
    let sudo = if is_root() { "" } else { "sudo " };
    // apt takes a name that it does not know for a pattern: on a machine without package lists, `install g++` names
    // every installed package with a g in its name, and succeeds.
    let unlisted = packages.iter().any(|name| !is_listed(name));
    let update = if unlisted { format!("{sudo}apt-get update && ") } else { String::new() };
    format!("{update}{sudo}apt-get install -y --no-install-recommends {}", packages.join(" "))
}

fn exists() -> bool {
    which("apt-get").is_some()
}

/// Whether the package lists offer a package of exactly this name.
fn is_listed(name: &str) -> bool {
    let policy = Tool::new("apt-cache").args(["policy", name]).env("LC_ALL", "C").capture();
    has_candidate(&policy.unwrap_or_default(), name)
}

/// Whether `apt-cache policy` found a version of `name` to install, and not only packages that match it as a pattern.
fn has_candidate(policy: &str, name: &str) -> bool {
    let mut lines = policy.lines().skip_while(|line| line.strip_suffix(':') != Some(name)).skip(1);
    let candidate = lines.find_map(|line| line.trim().strip_prefix("Candidate:"));
    candidate.is_some_and(|version| version.trim() != "(none)")
}

/// Fetches the package lists. A source that cannot be reached is no reason to stop: another may have what is needed.
fn update(context: &Context) {
    if let Err(error) = as_root(context, &["update"], &[]) {
        say(format!("{error:#}; trying with the package lists that there are"));
    }
}

fn install_listed(context: &Context, options: &[String], packages: &[String]) -> Result<()> {
    let words: Vec<_> = options.iter().chain(packages).cloned().collect();
    as_root(context, &["install", "-y", "--no-install-recommends"], &words)
}

fn agreed() -> Result<bool> {
    eprint!("This uses root. Run it now? [Y/n] ");
    stderr().flush()?;
    let mut answer = String::new();
    let is_end = stdin().read_line(&mut answer)? == 0;
    Ok(!is_end && matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes"))
}

fn as_root(context: &Context, verb: &[&str], words: &[String]) -> Result<()> {
    let tool = match (is_root(), context.audience) {
        (true, _) => Tool::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive"),
        (false, Audience::Person) => Tool::new("sudo").arg("apt-get"),
        // sudo passes no variable on.
        (false, _) => Tool::new("sudo").args(["-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]),
    };
    tool.args(verb).args(words).run_aside()
}

fn is_root() -> bool {
    Tool::new("id").arg("-u").capture().is_ok_and(|id| id.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::has_candidate;

    #[test]
    fn a_package_is_listed_only_under_its_own_name() {
        // What apt 2.6 says of `g++` on a machine without package lists, in part.
        let pattern = "gpgv:\n  Installed: 2.2.40\n  Candidate: 2.2.40\n  Version table:\n *** 2.2.40 100\n";
        assert!(has_candidate(pattern, "gpgv"));
        assert!(!has_candidate(pattern, "g++"));
        let none = "g++:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n";
        assert!(!has_candidate(none, "g++"));
        let listed = "g++:\n  Installed: (none)\n  Candidate: 4:12.2.0-3\n  Version table:\n";
        assert!(has_candidate(listed, "g++"));
        assert!(!has_candidate(&format!("{none}{pattern}"), "g++"));
        assert!(!has_candidate("", "g++"));
    }
}
