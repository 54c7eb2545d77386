//! Toolchains beside the one in use, and standard libraries of other targets, as rustup has them.

use anyhow::Result;

use crate::context::Context;
use crate::process::{Tool, which};

/// The parts of rustup that a step needs.
#[derive(Debug, Default)]
pub(crate) struct Needs<'a> {
    /// A toolchain; the one in use when left out.
    pub(crate) toolchain: Option<&'a str>,
    /// Components beyond the minimal profile.
    pub(crate) components: &'a [&'a str],
    /// Targets whose standard library is needed.
    pub(crate) targets: &'a [&'a str],
}

impl Needs<'_> {
    /// Installs in CI what is missing. The reason to skip the step, with its remedy, where something still is.
    ///
    /// # Errors
    /// Rustup cannot be started.
    pub(crate) fn missing(&self, context: &Context) -> Result<Option<String>> {
        if which("rustup").is_none() {
            return Ok(Some("it needs rustup: https://rustup.rs".to_owned()));
        }
        let list = Tool::new("rustup").args(["component", "list", "--installed"]).args(self.selection());
        let output = list.output()?;
        let installed = output.status.success().then(|| String::from_utf8_lossy(&output.stdout));
        let commands = self.commands(installed.as_deref());
        let remedy: Vec<_> = commands.iter().map(|args| format!("rustup {}", args.join(" "))).collect();
        let remedy = remedy.join(" && ");
        if remedy.is_empty() {
            return Ok(None);
        }
        if !context.is_ci() {
            return Ok(Some(format!("something is not installed; run: {remedy}")));
        }
        let failed = commands.into_iter().find_map(|args| Tool::new("rustup").args(args).run_aside().err());
        Ok(failed.map(|error| format!("{error:#}; try: {remedy}")))
    }

    /// The rustup commands that bring what `installed` lacks; `None` stands for a toolchain that is not there.
    fn commands(&self, installed: Option<&str>) -> Vec<Vec<String>> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut commands = Vec::new();
        if let (None, Some(toolchain)) = (installed, self.toolchain) {
            commands.push(words(&["toolchain", "install", toolchain, "--profile", "minimal"]));
        }
        let has = |wanted: &str| {
            let is = |line: &str| {
                line.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            };
            installed.is_some_and(|lines| lines.lines().any(is))
        };
        let components: Vec<_> = self.components.iter().copied().filter(|name| !has(name)).collect();
        let targets = self.targets.iter().copied().filter(|name| !has(&format!("rust-std-{name}")));
        for (kind, wanted) in [("component", components), ("target", targets.collect())] {
            if !wanted.is_empty() {
                commands.push([words(&[kind, "add"]), words(&wanted), words(&self.selection())].concat());
            }
        }
        commands
    }

    fn selection(&self) -> Vec<&str> {
        self.toolchain.map_or_else(Vec::new, |name| vec!["--toolchain", name])
    }
}

/// A `cargo` of another toolchain, in the workspace root.
pub(crate) fn cargo(context: &Context, toolchain: &str) -> Tool {
    Tool::new("rustup").args(["run", toolchain, "cargo"]).dir(&context.root)
}

#[cfg(test)]
mod tests {
    use super::Needs;

    const INSTALLED: &str = "cargo-x86_64-unknown-linux-gnu\nmiri-x86_64-unknown-linux-gnu\nrust-src\n\
        rust-std-s390x-unknown-linux-gnu\nrustc-x86_64-unknown-linux-gnu\n";

    #[track_caller]
    fn check(needs: &Needs<'_>, installed: Option<&str>, expected: &[&str]) {
        let commands = needs.commands(installed);
        assert_eq!(commands.iter().map(|args| args.join(" ")).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_there_is_not_installed_again() {
        let targets = &["s390x-unknown-linux-gnu"];
        let components = &["miri", "rust-src"];
        check(&Needs { toolchain: Some("nightly"), components, targets }, Some(INSTALLED), &[]);
    }

    #[test]
    fn what_is_missing_is_installed_into_the_toolchain_that_needs_it() {
        let needs = Needs { toolchain: Some("nightly"), components: &["miri", "rust"], targets: &["s390x"] };
        let expected = ["component add rust --toolchain nightly", "target add s390x --toolchain nightly"];
        check(&needs, Some(&INSTALLED.replace("rust-", "gone-")), &expected);
        check(&Needs { targets: &["a", "b"], ..Needs::default() }, Some(INSTALLED), &["target add a b"]);
    }

    #[test]
    fn a_toolchain_comes_before_its_parts() {
        let needs = Needs { toolchain: Some("1.89"), components: &["miri"], targets: &[] };
        let expected = ["toolchain install 1.89 --profile minimal", "component add miri --toolchain 1.89"];
        check(&needs, None, &expected);
    }
}
