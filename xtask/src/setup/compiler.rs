//! The C++ compiler: it builds RocksDB once, and its runtime library is linked every time.

use std::env;
use std::ffi::OsString;
use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::{apt, say};
use crate::context::Context;
use crate::process::Tool;

/// A C++ compiler that was seen to compile and link.
#[derive(Debug)]
pub(super) struct Compiler {
    /// The first line of `--version`: part of the name of what it builds.
    pub(super) version: String,
}

/// Finds the compiler that cargo's build scripts will find, or installs `g++`.
pub(super) fn ensure(context: &Context) -> Result<Compiler> {
    if let Some(compiler) = probe(context)? {
        return Ok(compiler);
    }
    let why = format!("`{}` cannot compile and link C++20, which RocksDB is written in", program().display());
    apt::install(context, &why, || vec!["g++".to_owned()])?;
    let compiler = probe(context)?;
    let compiler = compiler.with_context(|| format!("`{}` still does not work", program().display()))?;
    say(format!("C++ compiler: {}", compiler.version));
    Ok(compiler)
}

/// The program that the crate `cc` takes for C++ on this system.
fn program() -> OsString {
    env::var_os("CXX").unwrap_or_else(|| "c++".into())
}

fn probe(context: &Context) -> Result<Option<Compiler>> {
    let Ok(version) = Tool::new(program()).arg("--version").capture() else { return Ok(None) };
    let version = version.lines().next().unwrap_or_default().to_owned();
    ensure!(!version.is_empty(), "`{} --version` prints nothing", program().display());
    // A probe costs a third of a second, so one that succeeded is remembered for that version.
    let dir = context.cache.join("probes");
    let proof = dir.join(super::fingerprint(&format!("{}\n{version}", program().display())));
    if proof.is_file() {
        return Ok(Some(Compiler { version }));
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let source = dir.join(format!("probe-{}.cc", std::process::id()));
    let binary = source.with_extension("out");
    fs::write(
        &source,
        "#include <cstdint>\n#include <string>\nint main() { return std::string(\"\").size(); }\n",
    )?;
    let works = Tool::new(program()).arg("-std=c++20").arg(&source).arg("-o").arg(&binary).succeeds();
    fs::remove_file(&source)?;
    if !works {
        return Ok(None);
    }
    fs::remove_file(&binary)?;
    fs::write(&proof, &version)?;
    Ok(Some(Compiler { version }))
}
