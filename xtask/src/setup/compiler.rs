//! The C++ compiler: it builds RocksDB once, and its runtime library is linked every time.

use std::env;
use std::fs;

use anyhow::{Context as _, Error, Result, bail};

use super::{apt, libclang, say};
use crate::context::Context;
use crate::process::Tool;

/// A C++ compiler that was seen to compile and link.
#[derive(Debug)]
pub(super) struct Compiler {
    /// The first line of `--version`: part of the name of what it builds.
    pub(super) version: String,
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
    if env::var_os("CXX").is_some() {
        bail!("CXX is set; correct or unset it: {fault}");
    }
    let packages = || {
        // Who cannot install it has to ask somebody who can, and should have to ask once.
        let rest = if apt::can_install(context) { Vec::new() } else { libclang::missing_packages() };
        ["g++".to_owned()].into_iter().chain(rest).collect()
    };
    apt::install(context, "there is no working C++20 compiler `c++`, and RocksDB needs one", packages)?;
    let compiler =
        probe(context)?.map_err(|fault| Error::msg(format!("g++ is installed, and yet {fault}")))?;
    say(format!("C++ compiler: {}", compiler.version));
    Ok(compiler)
}

/// The program that the crate `cc` takes for C++ on this system: `CXX` may hold arguments, as in `ccache g++`.
fn program() -> Tool {
    let stated = env::var("CXX").unwrap_or_default();
    let mut words = stated.split_whitespace();
    Tool::new(words.next().unwrap_or("c++")).args(words)
}

/// The compiler, or why it is none; an error is a fault of the cache folder.
fn probe(context: &Context) -> Result<Result<Compiler, String>> {
    let name = program().line();
    let version = match program().arg("--version").capture() {
        Ok(text) => text.lines().next().unwrap_or_default().to_owned(),
        Err(error) => return Ok(Err(format!("{error:#}"))),
    };
    if version.is_empty() {
        return Ok(Err(format!("`{name} --version` prints nothing")));
    }
    // A probe costs a third of a second, so one that succeeded is remembered for that version.
    let dir = context.cache.join("probes");
    let proof = dir.join(super::fingerprint(&format!("{name}\n{version}")));
    if proof.is_file() {
        return Ok(Ok(Compiler { version }));
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
    Ok(Ok(Compiler { version }))
}
