//! The C++ compiler: it builds RocksDB once, and its runtime library is linked every time.

use std::env;
use std::fs;

use anyhow::{Context as _, Error, Result, bail};

use super::{apt, libclang, remedy, say};
use crate::context::Context;
use crate::process::Tool;

/// The vendor of a compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Gcc,
    Other,
}

/// A C++ compiler that was seen to compile and link.
#[derive(Debug)]
pub(super) struct Compiler {
    /// The first line of `--version`: part of the name of what it builds.
    pub(super) version: String,
    pub(super) family: Family,
}

/// Finds the compiler that cargo's build scripts will find, or installs `g++`.
///
/// # Errors
/// `CXX` names a program that is no such compiler, or none could be installed.
pub(super) fn ensure(context: &Context) -> Result<Compiler> {
    let fault = match probe(context)? {
        Ok(compiler) => return Ok(compiler),
        Err(fault) => fault,
    };
    if remedy::is_disk_full(&fault) {
        bail!("{fault}");
    }
    if env::var_os("CXX").is_some() {
        bail!("CXX is set; correct or unset it: {fault}");
    }
    let packages = || {
        // A user that cannot install it has to ask one that can, and should have to ask once.
        let rest = if apt::can_install(context) { Vec::new() } else { libclang::missing_packages() };
        ["g++".to_owned()].into_iter().chain(rest).collect()
    };
    apt::install(context, "there is no working C++20 compiler `c++`, and RocksDB needs one", packages)?;
    let compiler = probe(context)?.map_err(|fault| {
        Error::msg(format!(
            "g++ is installed, and yet C++20 does not compile; if it is older than version 11, install a newer one and \
             name it in CXX: {fault}"
        ))
    })?;
    say(format!("C++ compiler: {}", compiler.version));
    Ok(compiler)
}

/// The program that the crate `cc` takes for C++ on this system: `CXX` may hold arguments, as in `ccache g++`.
pub(super) fn program() -> Tool {
    let stated = env::var("CXX").unwrap_or_default();
    words(if stated.trim().is_empty() { "c++" } else { &stated })
}

/// The command in a variable as `cc` reads it: words, with no quotes.
pub(super) fn words(command: &str) -> Tool {
    let mut words = command.split_whitespace();
    Tool::new(words.next().unwrap_or_default()).args(words)
}

/// The compiler, or why it is none; an error is a fault of the cache folder.
fn probe(context: &Context) -> Result<Result<Compiler, String>> {
    let name = program().line();
    let text = match program().arg("--version").capture() {
        Ok(text) => text,
        Err(error) => return Ok(Err(format!("{error:#}"))),
    };
    let version = text.lines().next().unwrap_or_default().to_owned();
    let family = if text.contains("Free Software Foundation") { Family::Gcc } else { Family::Other };
    if version.is_empty() {
        return Ok(Err(format!("`{name} --version` prints nothing")));
    }
    // A probe costs a third of a second, so one that succeeded is remembered for that version.
    let dir = context.cache.join("probes");
    let proof = dir.join(super::fingerprint(&format!("{name}\n{version}")));
    if proof.is_file() {
        return Ok(Ok(Compiler { version, family }));
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let source = dir.join(format!("probe-{}.cc", std::process::id()));
    let binary = source.with_extension("out");
    let text = "#include <cstdint>\n#include <string>\nint main() { return std::string(\"\").size(); }\n";
    fs::write(&source, text).with_context(|| format!("cannot write {}", source.display()))?;
    let compiled = program().arg("-std=c++20").arg(&source).arg("-o").arg(&binary).capture();
    fs::remove_file(&source)?;
    if let Err(error) = compiled {
        return Ok(Err(format!("{error:#}")));
    }
    fs::remove_file(&binary)?;
    fs::write(&proof, &version)?;
    Ok(Ok(Compiler { version, family }))
}
