//! The proof that the pure crates compile where no C or C++ compiler can run.
//!
//! Two halves: no package in their dependency trees could call a compiler, and a check from nothing succeeds while
//! every compiler name leads to a program that fails. A check starts every build script, and a compiler is called by
//! those alone. `cc` is let through when it only links, since the Rust compiler links build scripts with it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use crate::context::Context;
use crate::counted::passed_by;
use crate::process::{Tool, which};
use crate::report::Outcome;
use crate::setup::Environment;

/// The crates that promise it; those from `cg-engine` up, without the engine on disk.
pub(crate) const PURE: [&str; 9] = [
    "cg-format",
    "cg-registry",
    "cg-tiering",
    "cg-snapshot",
    "cg-minecraft",
    "cg-engine",
    "cg-store",
    "cg-layers",
    "cg-sync",
];

/// Packages that call a C compiler, or look for a C library.
const NATIVE_HELPERS: [&str; 5] = ["cc", "cmake", "bindgen", "pkg-config", "vcpkg"];

/// Packages whose name ends in `-sys` although they hold only Rust declarations of the system's calls.
const PURE_SYS: [&str; 3] = ["linux-raw-sys", "windows-sys", "js-sys"];

/// Where the crates are compiled without a compiler: apart from builds whose build scripts had one.
const TARGET: &str = "target/no-compiler";

/// Parts of the names of the tests of the tool without PostgreSQL, one each.
const WITHOUT_POSTGRESQL: [&str; 2] = ["without_the_feature", "without_postgresql"];

/// Checks the trees, then the crates without a compiler.
///
/// # Errors
/// A package could call a compiler, or does, or does not compile.
pub(crate) fn prove(context: &Context, environment: &Environment) -> Result<Outcome> {
    for package in PURE {
        let args =
            ["tree", "--no-default-features", "--edges", "normal,build,dev", "--prefix", "none", "--package"];
        let tree = context.cargo().args(args).arg(package).capture()?;
        let native = native_packages(&tree);
        ensure!(native.is_empty(), "{package} (--no-default-features) depends on {}", native.join(", "));
        println!("{package}: nothing in its tree of {} lines calls a compiler", tree.lines().count());
    }
    Stubs::make(context)?.cargo(context, environment, "check", &PURE).run()?;
    Ok(Outcome::Passed)
}

/// Runs the tests with the features that the tests of the workspace do not have: the pure crates without a compiler,
/// cg-format with the C library for Zstandard, and the tool without PostgreSQL.
///
/// # Errors
/// One of them failed, or clippy has a warning.
pub(crate) fn variants(context: &Context, environment: &Environment) -> Result<Outcome> {
    let stubs = Stubs::make(context)?;
    let without = |verb, packages: &[&str]| stubs.cargo(context, environment, verb, packages);
    without("test", &PURE).args(["--lib", "--tests", "--examples"]).run()?;
    // The other crates' doc tests have no features to leave out.
    without("test", &["cg-store"]).arg("--doc").run()?;
    // The other steps with clippy see no tests without the default features.
    without("clippy", &["cg-engine", "cg-store"]).args(["--all-targets", "--", "-D", "warnings"]).run()?;
    let with_library = context.cargo().args(["test", "--package", "cg-format", "--features", "zstd"]);
    environment.apply(with_library.args(["--lib", "--tests"])).run()?;
    // Of the whole workspace, so that only the tool is compiled again.
    let tool = context.cargo().args(["test", "--profile", "dev", "--workspace", "--bin", "cg"]);
    let count = passed_by(&environment.apply(tool.args(["--"]).args(WITHOUT_POSTGRESQL)))?;
    let names = WITHOUT_POSTGRESQL.join(", ");
    ensure!(
        count == WITHOUT_POSTGRESQL.len(),
        "{count} tests of the tool without PostgreSQL ran, not {names}"
    );
    Ok(Outcome::Passed)
}

/// Programs that fail, in the place of the compilers.
#[derive(Debug)]
struct Stubs {
    dir: PathBuf,
    /// The value of `PATH` with them.
    path: OsString,
}

impl Stubs {
    fn make(context: &Context) -> Result<Self> {
        let dir = context.root.join("target/xtask/no-compiler");
        let path = make_stubs(&dir)?;
        Ok(Self { dir, path })
    }

    /// A `cargo` command over packages without default features, which finds no compiler.
    fn cargo(&self, context: &Context, environment: &Environment, verb: &str, packages: &[&str]) -> Tool {
        let packages = packages.iter().flat_map(|package| ["--package", package]);
        let tool = context.cargo().arg(verb).args(["--no-default-features", "--target-dir", TARGET]);
        let tool = environment.apply(tool.args(packages)).env("PATH", &self.path);
        ["CC", "CXX", "HOST_CC", "HOST_CXX", "TARGET_CC", "TARGET_CXX"]
            .iter()
            .fold(tool, |tool, name| tool.env(name, self.dir.join("c++")))
    }
}

/// The packages in the output of `cargo tree` that could call a compiler.
fn native_packages(tree: &str) -> Vec<&str> {
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    let is_native =
        |name: &&str| NATIVE_HELPERS.contains(name) || (name.ends_with("-sys") && !PURE_SYS.contains(name));
    let mut native: Vec<_> = names.filter(is_native).collect();
    native.sort_unstable();
    native.dedup();
    native
}

/// Writes the failing programs and returns a `PATH` that begins with them.
fn make_stubs(dir: &Path) -> Result<OsString> {
    let linker = which("cc").context("no `cc`, with which Rust links")?;
    fs::create_dir_all(dir)?;
    for name in ["c++", "g++", "gcc", "clang", "clang++", "cpp"] {
        write_program(&dir.join(name), "echo \"$0: a C or C++ compiler was called\" >&2; exit 1\n")?;
    }
    let only_link = format!(
        "for arg; do case \"$arg\" in -c|-E|-S|*.c|*.cc|*.cpp|*.cxx|*.h) \
         echo \"$0: a C compiler was called: $*\" >&2; exit 1;; esac; done\nexec {} \"$@\"\n",
        linker.display()
    );
    write_program(&dir.join("cc"), &only_link)?;
    let source = dir.join("probe.c");
    fs::write(&source, "int main(void) { return 0; }\n")?;
    for name in ["cc", "c++"] {
        // The proof is worth something only if these do fail.
        let tool = Tool::new(dir.join(name)).arg("-c").arg(&source).arg("-o").arg(dir.join("probe.o"));
        if tool.succeeds() {
            bail!("{} compiled a file, so it would prove nothing", dir.join(name).display());
        }
    }
    let rest = env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = std::iter::once(dir.to_owned()).chain(env::split_paths(&rest)).collect();
    Ok(env::join_paths(dirs)?)
}

fn write_program(path: &Path, body: &str) -> Result<()> {
    fs::write(path, format!("#!/bin/sh\n{body}"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::native_packages;

    #[test]
    fn a_tree_with_a_compiler_in_it_is_noticed() {
        let tree = "cg-store v0.1.0 (/x)\nzstd v0.14.3\nzstd-sys v2.0.1 (*)\ncc v1.2.0\nlinux-raw-sys v0.9.4\nzstd-sys v2.0.1\n";
        assert_eq!(native_packages(tree), ["cc", "zstd-sys"]);
        assert!(
            native_packages("cg-format v0.1.0\nbitvec v1.1.1\nrustix v1.1.0\nlinux-raw-sys v0.9.4\n")
                .is_empty()
        );
    }
}
