//! The build of the crate `librocksdb-sys` by cargo: it compiles the C++ file by file, or only shows how.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::PACKAGE;
use super::archive::ARCHIVE;
use super::progress::Progress;
use super::recipe::Recipe;
use crate::context::Context;
use crate::process::Tool;
use crate::setup::remedy;

/// Has the crate compile the archive.
pub(super) fn archive(
    context: &Context,
    recipe: &Recipe,
    work: &Path,
    progress: &mut Progress,
) -> Result<PathBuf> {
    let target = work.join("crate");
    fs::create_dir_all(&target)?;
    let is_object = |path: &Path| {
        path.extension().is_some_and(|extension| extension == "o")
            && path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("librocksdb-sys-"))
    };
    let done = || find(&target.join("release/build"), &is_object).len();
    run(cargo(context, "build", recipe, &target), &work.join("build.log"), progress, &done)?;
    find(&target, &|path| path.file_name().is_some_and(|name| name == ARCHIVE))
        .pop()
        .with_context(|| format!("the build made no {ARCHIVE} in {}", target.display()))
}

/// A command of cargo for the crate alone, in a target directory that nothing else uses.
pub(super) fn cargo(context: &Context, verb: &str, recipe: &Recipe, target: &Path) -> Tool {
    let tool = context.cargo().args([verb, "--release", "--package", PACKAGE, "--target-dir"]).arg(target);
    tool.env("CXXFLAGS", &recipe.cxxflags).env_remove("ROCKSDB_LIB_DIR").env_remove("ROCKSDB_STATIC")
}

/// Runs it into `log`, and shows how far it is.
///
/// # Errors
/// It fails; the message has the end of the log.
pub(super) fn run(tool: Tool, log: &Path, progress: &mut Progress, done: &dyn Fn() -> usize) -> Result<()> {
    let sink = File::create(log)?;
    let mut command = tool.command();
    command.stdin(Stdio::null()).stdout(sink.try_clone()?).stderr(sink);
    let mut child = command.spawn().with_context(|| format!("cannot run `{}`", tool.line()))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(Duration::from_millis(500));
        progress.show(done)?;
    };
    if !status.success() {
        progress.pause();
        let text = fs::read(log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        bail!("RocksDB did not compile ({status}); the end of {}:\n{}", log.display(), remedy::tail(&text));
    }
    Ok(())
}

/// Every file below `dir` that `wanted` accepts.
fn find(dir: &Path, wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(find(&path, wanted));
        } else if wanted(&path) {
            found.push(path);
        }
    }
    found
}
