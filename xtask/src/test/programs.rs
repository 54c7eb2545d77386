//! Test programs that one `cargo` command compiled for several packages, each of them run by itself.
//!
//! Cargo compiles a crate again for each set of features that the packages of a command ask for together. So packages whose
//! tests are run with different filters are compiled by one command, and their programs are started here.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::process::Tool;

/// A test program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// The folder of its package, in which cargo would run it.
    folder: PathBuf,
    /// The name of the target: `it`, or that of a library or program with tests.
    target: String,
    file: PathBuf,
}

impl Program {
    /// All that a `cargo test` command compiled.
    ///
    /// # Errors
    /// They do not compile.
    pub(super) fn compiled_by(tests: Tool) -> Result<Vec<Self>> {
        let tests = tests.arg("--no-run");
        // Shows what is compiled; the second call has nothing left to do.
        tests.clone().run()?;
        let programs = in_messages(&tests.args(["--message-format", "json"]).capture()?);
        ensure!(!programs.is_empty(), "cargo compiled no test program");
        Ok(programs)
    }

    /// Whether it is of a package, whose folder has the name of the package.
    pub(super) fn is_of(&self, package: &str) -> bool {
        self.folder.file_name().is_some_and(|folder| folder == package)
    }

    /// Whether it is the target of a name.
    pub(super) fn is(&self, target: &str) -> bool {
        self.target == target
    }

    /// Runs it, where cargo would.
    pub(super) fn tool(&self) -> Tool {
        Tool::new(&self.file).dir(&self.folder)
    }
}

fn in_messages(messages: &str) -> Vec<Program> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let tests = messages.filter(|message| message["profile"]["test"] == true);
    let program = |message: Value| {
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        let target = message["target"]["name"].as_str()?.to_owned();
        Some(Program { folder, target, file: message["executable"].as_str()?.into() })
    };
    tests.filter_map(program).collect()
}

/// The programs of a package.
///
/// # Errors
/// There is none.
pub(super) fn of<'p>(programs: &'p [Program], package: &str) -> Result<Vec<&'p Program>> {
    let found: Vec<_> = programs.iter().filter(|program| program.is_of(package)).collect();
    (!found.is_empty()).then_some(found).with_context(|| format!("no test program of {package} was compiled"))
}

#[cfg(test)]
mod tests {
    use super::{in_messages, of};

    #[test]
    fn programs_are_those_with_tests_each_in_the_folder_of_its_package() {
        let artifact = |manifest: &str, target: &str, test: bool, file: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/{manifest}/Cargo.toml","target":{{"name":"{target}"}},"profile":{{"test":{test}}},"executable":{file}}}"#
            )
        };
        let messages = [
            artifact("a", "a", false, "null"),
            artifact("a", "it", true, r#""/t/it-1""#),
            artifact("b", "b", false, r#""/t/b""#),
            artifact("b", "it", true, r#""/t/it-2""#),
            "what a build script prints".to_owned(),
        ];
        let programs = in_messages(&messages.join("\n"));
        let lines: Vec<_> = programs.iter().map(|program| program.tool().line()).collect();
        assert_eq!(lines, ["it-1", "it-2"]);
        assert!(programs.iter().all(|program| program.is("it") && !program.is("a")));
        let of_b = of(&programs, "b").expect("there is one");
        assert_eq!(of_b, [&programs[1]]);
        let none = of(&programs, "c").unwrap_err().to_string();
        assert_eq!(none, "no test program of c was compiled");
    }
}
