//! RocksDB's C++, compiled once per machine and version and then linked by every build.
//!
//! The cache holds `rocksdb-<hash>/librocksdb.a` beside `key.txt`, which says what the hash stands for: version, cargo
//! features, target, flags and compiler. `CG_ROCKSDB_ARCHIVE=<file>` fills the entry with an archive that was built
//! elsewhere (for CI images); `ROCKSDB_LIB_DIR`, if set by the caller, is used as it is.

use std::env;
use std::fs::{self, File};
use std::io::{Read as _, Write as _, stderr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::compiler::Compiler;
use super::{Environment, Lock, fingerprint, say};
use crate::context::Context;
use crate::metadata;

const ARCHIVE: &str = "librocksdb.a";
const PACKAGE: &str = "librocksdb-sys";

/// -O2 compiles 15 % faster than the default -O3, and the time lies in RocksDB's headers, I/O and locks anyway.
const OPTIMISATION: &str = "-O2";

/// How often a build without a terminal says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Finds the archive or builds it, and points the build script of `librocksdb-sys` to it.
pub(super) fn ensure(context: &Context, compiler: &Compiler, environment: &mut Environment) -> Result<()> {
    let dir = match env::var_os("ROCKSDB_LIB_DIR").map(PathBuf::from) {
        Some(dir) => {
            check_archive(&dir.join(ARCHIVE)).context("ROCKSDB_LIB_DIR is set; correct or unset it")?;
            dir
        }
        None => entry(context, compiler)?,
    };
    environment.set("ROCKSDB_LIB_DIR", dir.to_string_lossy());
    environment.set("ROCKSDB_STATIC", "1");
    Ok(())
}

/// What an archive depends on, as the text that names it.
#[derive(Debug)]
struct Recipe {
    key: String,
    /// The crate's folder, which lists its source files.
    source: PathBuf,
    cxxflags: String,
}

impl Recipe {
    fn new(context: &Context, compiler: &Compiler) -> Result<Self> {
        let metadata = metadata::resolved(context)?;
        let package = metadata::package(&metadata, PACKAGE)?;
        let id = package["id"].as_str().context("a package has an id")?;
        let node =
            metadata["resolve"]["nodes"].as_array().into_iter().flatten().find(|node| node["id"] == id);
        let node = node.with_context(|| format!("{PACKAGE} is not resolved"))?;
        let features = strings(&node["features"]);
        let cxxflags = match env::var("CXXFLAGS") {
            Ok(flags) => format!("{OPTIMISATION} {flags}"),
            Err(_) => OPTIMISATION.to_owned(),
        };
        let version = |name: &str| match metadata::package(&metadata, name) {
            Ok(package) => package["version"].as_str().unwrap_or_default().to_owned(),
            Err(_) => "none".to_owned(),
        };
        let key = [
            format!("{PACKAGE} {}", version(PACKAGE)),
            format!("lz4-sys {}", version("lz4-sys")),
            format!("zstd-sys {}", version("zstd-sys")),
            format!("features {}", features.join(" ")),
            format!("target {}", context.host),
            format!("rustflags {}", rustflags(context)?),
            format!("cxxflags {cxxflags}"),
            format!("standard {}", env::var("ROCKSDB_CXX_STD").unwrap_or_default()),
            format!("compiler {}", compiler.version),
        ];
        let manifest = package["manifest_path"].as_str().map(Path::new).and_then(Path::parent);
        let source = manifest.context("a package has a manifest")?.to_owned();
        Ok(Self { key: key.join("\n") + "\n", source, cxxflags })
    }

    /// How many object files the build makes, so that it can say how far it is.
    fn file_count(&self) -> usize {
        fs::read_to_string(self.source.join("rocksdb_lib_sources.txt")).map_or(0, |list| list.lines().count())
    }
}

/// The Rust flags in force: they choose the processor features that the C++ is compiled for.
fn rustflags(context: &Context) -> Result<String> {
    let config = fs::read_to_string(context.root.join(".cargo/config.toml"))?;
    let stated = config.lines().filter(|line| line.trim_start().starts_with("rustflags"));
    let stated = stated.map(str::trim).collect::<Vec<_>>().join(" ");
    let given = |name| env::var(name).unwrap_or_default().replace('\x1f', " ");
    Ok(format!("{stated} {} {}", given("RUSTFLAGS"), given("CARGO_ENCODED_RUSTFLAGS")).trim().to_owned())
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The folder of the archive for this workspace, this machine and this compiler.
fn entry(context: &Context, compiler: &Compiler) -> Result<PathBuf> {
    let recipe = Recipe::new(context, compiler)?;
    let name = format!("rocksdb-{}", fingerprint(&recipe.key));
    let dir = context.cache.join(&name);
    if is_complete(&dir, &recipe) {
        return Ok(dir);
    }
    let _lock = Lock::take(&context.cache.join(format!("{name}.lock")), "the RocksDB archive")?;
    if is_complete(&dir, &recipe) {
        return Ok(dir);
    }
    if let Some(seed) = env::var_os("CG_ROCKSDB_ARCHIVE").map(PathBuf::from) {
        check_archive(&seed).context("CG_ROCKSDB_ARCHIVE")?;
        say(format!("taking RocksDB from {} (CG_ROCKSDB_ARCHIVE)", seed.display()));
        install(&seed, &dir, &recipe)?;
    } else {
        let work = context.cache.join(format!("{name}.build"));
        let built = build(context, &recipe, &work)?;
        install(&built, &dir, &recipe)?;
        fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
    }
    Ok(dir)
}

fn is_complete(dir: &Path, recipe: &Recipe) -> bool {
    fs::read_to_string(dir.join("key.txt")).is_ok_and(|key| key == recipe.key)
        && check_archive(&dir.join(ARCHIVE)).is_ok()
}

/// # Errors
/// The file is missing, or is no static library.
fn check_archive(path: &Path) -> Result<()> {
    let mut magic = [0; 8];
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    file.read_exact(&mut magic).with_context(|| format!("cannot read {}", path.display()))?;
    if magic != *b"!<arch>\n" {
        bail!("{} is not a static library: it begins with {magic:?}", path.display());
    }
    Ok(())
}

/// Puts the archive into the cache: whole or not at all, also when the process dies here.
fn install(archive: &Path, dir: &Path, recipe: &Recipe) -> Result<()> {
    let staged = dir.with_extension(format!("new-{}", std::process::id()));
    fs::create_dir_all(&staged)?;
    fs::copy(archive, staged.join(ARCHIVE)).with_context(|| format!("cannot copy {}", archive.display()))?;
    File::open(staged.join(ARCHIVE))?.sync_all()?;
    fs::write(staged.join("key.txt"), &recipe.key)?;
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    fs::rename(&staged, dir).with_context(|| format!("cannot rename {}", staged.display()))?;
    say(format!("RocksDB is ready in {}", dir.display()));
    Ok(())
}

/// Compiles the C++ through its own crate, in a target directory that nothing else uses.
fn build(context: &Context, recipe: &Recipe, work: &Path) -> Result<PathBuf> {
    say("compiling RocksDB's C++, once for this machine and version (8 to 25 minutes on two cores)");
    say(format!("why: {} has no archive for\n{}", context.cache.display(), recipe.key.trim_end()));
    if work.exists() {
        fs::remove_dir_all(work)?;
    }
    fs::create_dir_all(work)?;
    let log = work.join("build.log");
    let sink = File::create(&log)?;
    let tool = context.cargo().args(["build", "--release", "--package", PACKAGE, "--target-dir"]).arg(work);
    let tool =
        tool.env("CXXFLAGS", &recipe.cxxflags).env_remove("ROCKSDB_LIB_DIR").env_remove("ROCKSDB_STATIC");
    let mut command = tool.command();
    command.stdin(Stdio::null()).stdout(sink.try_clone()?).stderr(sink);
    let mut child = command.spawn().with_context(|| format!("cannot run `{}`", tool.line()))?;
    let start = Instant::now();
    let mut spoken = start;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(Duration::from_millis(500));
        if context.redraws() {
            eprint!("\r  {}", progress(recipe, work, start.elapsed()));
            stderr().flush()?;
        } else if spoken.elapsed() >= HEARTBEAT {
            spoken = Instant::now();
            say(progress(recipe, work, start.elapsed()));
        }
    };
    if context.redraws() {
        eprintln!();
    }
    if !status.success() {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let tail: Vec<_> = text.lines().rev().take(40).collect();
        let tail: Vec<_> = tail.into_iter().rev().collect();
        bail!("RocksDB did not compile ({status}); the end of {}:\n{}", log.display(), tail.join("\n"));
    }
    say(format!("compiled in {}", minutes(start.elapsed())));
    find(work, &|path| path.file_name().is_some_and(|name| name == ARCHIVE))
        .pop()
        .with_context(|| format!("the build made no {ARCHIVE} in {}", work.display()))
}

fn progress(recipe: &Recipe, work: &Path, elapsed: Duration) -> String {
    let is_object = |path: &Path| {
        path.extension().is_some_and(|extension| extension == "o")
            && path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("librocksdb-sys-"))
    };
    let done = find(&work.join("release/build"), &is_object).len();
    format!("{} elapsed, {done} of {} files compiled", minutes(elapsed), recipe.file_count())
}

fn minutes(elapsed: Duration) -> String {
    format!("{}:{:02} min", elapsed.as_secs() / 60, elapsed.as_secs() % 60)
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
