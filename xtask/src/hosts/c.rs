//! C and C++: configured by `cmake`, run by `ctest`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::library::Library;
use crate::context::Context;
use crate::process::Tool;
use crate::report::Outcome;
use crate::setup::Environment;

/// Programs that are needed, with Debian's packages.
const NEEDED: [(&str, &str); 3] = [("cmake", "cmake"), ("cc", "gcc"), ("c++", "g++")];

/// Builds and tests.
pub(super) fn test(context: &Context, library: &Library, kills: u32) -> Result<Outcome> {
    if let Some(reason) = missing() {
        return Ok(Outcome::Missing(reason));
    }
    let build = configured(context, library, kills)?;
    Tool::new("cmake").arg("--build").arg(&build).args(["--parallel", "2"]).run()?;
    let tests = Tool::new("ctest").arg("--test-dir").arg(&build);
    tests.args(["--output-on-failure", "--parallel", "2"]).run()?;
    Ok(Outcome::Passed)
}

/// Prints what a column costs through C and in Rust, in alternating runs.
pub(super) fn bench(context: &Context, environment: &Environment, library: &Library) -> Result<Outcome> {
    const RUNS: usize = 3;
    if let Some(reason) = missing() {
        return Ok(Outcome::Missing(reason));
    }
    let build = configured(context, library, 0)?;
    Tool::new("cmake").arg("--build").arg(&build).args(["--target", "columns_bench"]).run()?;
    let example = ["--release", "--package", "cg-host", "--example", "columns"];
    environment.apply(context.cargo().arg("build").args(example)).run()?;
    let rust = context.root.join("target/release/examples/columns");
    let scratch = build.join("bench");
    if scratch.exists() {
        fs::remove_dir_all(&scratch).with_context(|| format!("cannot remove {}", scratch.display()))?;
    }
    fs::create_dir_all(&scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    for run in 0..RUNS {
        for (name, program) in [("rust", &rust), ("c", &build.join("columns_bench"))] {
            println!("\n{name}, run {}", run + 1);
            let world = scratch.join(format!("{name}-{run}"));
            Tool::new(program.as_path()).arg(&world).run()?;
            fs::remove_dir_all(&world).with_context(|| format!("cannot remove {}", world.display()))?;
        }
    }
    Ok(Outcome::Passed)
}

fn configured(context: &Context, library: &Library, kills: u32) -> Result<PathBuf> {
    let build = library.folder.join("c");
    let source = context.root.join("hosts/c");
    let folder = |name: &str, path: &Path| format!("-D{name}={}", path.display());
    Tool::new("cmake")
        .arg("-S")
        .arg(&source)
        .arg("-B")
        .arg(&build)
        .arg(folder("CHERRYGROVE_DIR", &library.folder))
        .arg(format!("-DCHERRYGROVE_KILLS={kills}"))
        .run()?;
    Ok(build)
}

fn missing() -> Option<String> {
    let is_missing = |(program, _): &&(&str, &str)| !Tool::new(*program).arg("--version").succeeds();
    let (program, package) = NEEDED.iter().find(is_missing)?;
    Some(format!("no {program} on the path; install Debian's package {package}"))
}
