//! Programs from the registry of crates that a step needs.

use crate::context::Context;
use crate::process::Tool;

/// A program that `cargo install` brings.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Any version when left out.
    pub(crate) version: Option<&'static str>,
}

impl Program {
    /// Installs it in CI where it is missing. The reason to skip the step, with its remedy, where it still is.
    pub(crate) fn missing(&self, context: &Context) -> Option<String> {
        if self.is_there() {
            return None;
        }
        let version = self.version.into_iter().flat_map(|version| ["--version", version]);
        // Unoptimised: to compile it optimised takes minutes more, and a run starts it a few times.
        let install = ["install", self.name].into_iter().chain(version).chain(["--locked", "--debug"]);
        let install: Vec<_> = install.collect();
        let wanted = [Some(self.name), self.version].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let remedy = format!("two minutes: cargo {}", install.join(" "));
        if !context.is_ci() {
            return Some(format!("{wanted} is not installed ({remedy})"));
        }
        // One folder for all of them, so that they share crates; nothing of it is debugged.
        let tool = Tool::new("cargo").args(install).args(["--target-dir", "target/programs"]);
        match tool.dir(&context.root).env("CARGO_PROFILE_DEV_DEBUG", "0").run_aside() {
            Ok(()) if self.is_there() => None,
            Ok(()) => Some(format!("{wanted} was installed and is not in PATH")),
            Err(error) => Some(format!("{error:#}; try: {remedy}")),
        }
    }

    fn is_there(&self) -> bool {
        let output =
            Tool::new(self.name).arg("--version").output().ok().filter(|output| output.status.success());
        output.is_some_and(|output| {
            let said = output.stdout.trim_ascii();
            self.version.is_none_or(|version| said.ends_with(format!(" {version}").as_bytes()))
        })
    }
}
