//! A checkout of BlazeDB, which the generated module takes in place of the module of that name.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{BLAZEDB, go};
use crate::failure::Failure;

/// The module, which is its repository too, and the commit whose interface the program uses.
const MODULE: &str = "github.com/cqdetdev/blazedb";
const COMMIT: &str = "d6788535497238357acf062c01342f7dfc1ca4be";
/// The checksums of all modules that a build of this commit uses.
const SUMS: &str = include_str!("../../../../go/blaze/go.sum");

/// A folder with BlazeDB's sources.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Checkout {
    dir: PathBuf,
    /// Its name as `go.mod` has it.
    name: String,
    modules: String,
}

impl Checkout {
    /// The checkout that the variable names. The error says how to get one.
    pub(super) fn named(dir: Option<OsString>) -> Result<Self, String> {
        let how = format!(
            "`git clone https://{MODULE} DIR`, then `git -C DIR checkout {COMMIT}`, then set {BLAZEDB}=DIR"
        );
        let Some(dir) = dir.filter(|dir| !dir.is_empty()) else {
            return Err(format!(
                "{BLAZEDB} names no checkout of it, and Go's proxy does not serve it: {how}"
            ));
        };
        let refused =
            |why: &dyn std::fmt::Display| format!("{BLAZEDB} is {}: {why}: {how}", Path::new(&dir).display());
        let found = fs::canonicalize(&dir).map_err(|error| refused(&error))?;
        let modules = fs::read_to_string(found.join("go.mod"))
            .map_err(|error| refused(&format!("its go.mod cannot be read: {error}")))?;
        let name = found.to_str().map(quoted).ok_or_else(|| refused(&"the path is no Unicode"))?;
        Ok(Self { dir: found, name, modules })
    }

    /// Writes `go.mod`, `go.sum` and the version into the folder of the program. The inner error is what Go says.
    pub(super) fn write(&self, program: &Path) -> Result<Result<(), String>, Failure> {
        let Self { name, modules, .. } = self;
        // The checkout's own requirements are those that it was tested with, whatever commit it is of.
        fs::write(program.join("go.mod"), format!("{modules}\nreplace {MODULE} => {name}\n"))?;
        let require = format!("-require={MODULE}@v0.0.0");
        if let Err(reason) = go(program, &["mod", "edit", "-module=compare", &require]) {
            return Ok(Err(reason));
        }
        let theirs = fs::read_to_string(self.dir.join("go.sum")).unwrap_or_default();
        fs::write(program.join("go.sum"), sums(SUMS, &theirs))?;
        let version = quoted(&self.version());
        fs::write(program.join("version.go"), format!("package main\n\nconst checkout = {version}\n"))?;
        Ok(Ok(()))
    }

    /// The commit, and whether files differ from it.
    fn version(&self) -> String {
        // A folder without a repository of its own may be inside another repository.
        if !self.dir.join(".git").exists() {
            return "from a folder without a commit".to_owned();
        }
        let git = |arguments: &[&str]| {
            let output =
                Command::new("git").arg("-C").arg(&self.dir).args(arguments).stdin(Stdio::null()).output();
            let output = output.ok().filter(|output| output.status.success())?;
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        match (git(&["rev-parse", "HEAD"]), git(&["status", "--porcelain"])) {
            (Some(commit), Some(changes)) if changes.is_empty() => commit,
            (Some(commit), _) => format!("{commit} with changes"),
            (None, _) => "of a commit that git does not tell".to_owned(),
        }
    }
}

/// A string as Go's sources and `go.mod` have it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The pinned checksums, and those of the checkout for what is not pinned: another commit may need other modules.
fn sums(pinned: &str, theirs: &str) -> String {
    let of = |line: &str| line.rsplit_once(' ').map(|(module, _)| module.to_owned());
    let known: HashSet<_> = pinned.lines().filter_map(of).collect();
    let more = theirs.lines().filter(|line| of(line).is_some_and(|module| !known.contains(&module)));
    pinned.lines().chain(more).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOW: &str = "`git clone https://github.com/cqdetdev/blazedb DIR`, then `git -C DIR checkout \
                       d6788535497238357acf062c01342f7dfc1ca4be`, then set CG_BLAZEDB=DIR";

    #[test]
    fn without_a_checkout_the_reason_says_how_to_get_one() {
        let expected = format!("CG_BLAZEDB names no checkout of it, and Go's proxy does not serve it: {HOW}");
        for dir in [None, Some(OsString::new())] {
            assert_eq!(Checkout::named(dir), Err(expected.clone()));
        }
    }

    #[test]
    fn a_folder_that_is_none_is_refused_by_its_name() {
        let dir = tempfile::tempdir().expect("a folder");
        let [absent, empty] = [dir.path().join("absent"), dir.path().to_owned()];
        let refused = |dir: &Path| Checkout::named(Some(dir.into())).expect_err("no checkout");
        let missing = "No such file or directory (os error 2)";
        assert_eq!(refused(&absent), format!("CG_BLAZEDB is {}: {missing}: {HOW}", absent.display()));
        let expected =
            format!("CG_BLAZEDB is {}: its go.mod cannot be read: {missing}: {HOW}", empty.display());
        assert_eq!(refused(&empty), expected);
    }

    #[test]
    fn pinned_checksums_go_before_those_of_the_checkout() {
        let pinned = "a v1 h1:pinned=\na v1/go.mod h1:pinned=\n";
        let theirs = "a v1 h1:other=\na v1/go.mod h1:other=\na v2 h1:new=\n\nbroken\n";
        assert_eq!(sums(pinned, theirs), format!("{pinned}a v2 h1:new=\n"));
    }

    #[test]
    fn the_version_is_the_commit_and_says_whether_files_differ() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("go.mod");
        fs::write(&path, "module github.com/cqdetdev/blazedb\n").expect("written");
        let version = || Checkout::named(Some(dir.path().into())).expect("a checkout").version();
        assert_eq!(version(), "from a folder without a commit");
        let git = |arguments: &[&str]| {
            let output =
                Command::new("git").arg("-C").arg(dir.path()).args(arguments).output().expect("git runs");
            assert!(output.status.success(), "{output:?}");
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        git(&["init", "--quiet"]);
        assert_eq!(version(), "of a commit that git does not tell");
        git(&["add", "go.mod"]);
        git(&[
            "-c",
            "user.name=n",
            "-c",
            "user.email=e",
            "-c",
            "commit.gpgsign=false",
            "commit",
            "--quiet",
            "--message",
            "one",
        ]);
        let commit = git(&["rev-parse", "HEAD"]);
        assert_eq!(version(), commit);
        fs::write(&path, "module other\n").expect("written");
        assert_eq!(version(), format!("{commit} with changes"));
    }

    #[test]
    fn paths_are_written_as_strings_of_go() {
        assert_eq!(quoted(r#"/a b/"c"\d"#), r#""/a b/\"c\"\\d""#);
    }
}
