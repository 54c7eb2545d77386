//! libclang: RocksDB's bindings are generated with it in every new target directory.
//!
//! Three ways, the lightest first: what the system has; the distribution's library and headers (two packages, no
//! compiler); the Python wheel, which has no headers of its own and borrows those of gcc.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::{Environment, Venv, apt, say};
use crate::context::Context;
use crate::process::{Tool, which};

/// The wheel of the third way. It is no dependency of ours, only a copy of the library.
const WHEEL: &str = "libclang==18.1.1";

/// Finds or installs libclang, and sets the variables that the binding generator needs to find it.
pub(super) fn ensure(context: &Context, environment: &mut Environment) -> Result<()> {
    if let Some(dir) = env::var_os("LIBCLANG_PATH") {
        // The person decided; the generator reads the variable itself.
        return if library_in(Path::new(&dir)) || Path::new(&dir).is_file() {
            Ok(())
        } else {
            bail!("LIBCLANG_PATH is {}, where no libclang.so lies: correct or unset it", dir.display())
        };
    }
    if on_system() {
        return with_headers(environment);
    }
    let why = "no libclang found, and RocksDB's bindings are generated with it";
    if apt::can_install(context) {
        let installed = apt::install(context, why, packages);
        match installed {
            Ok(()) if on_system() => return with_headers(environment),
            Ok(()) => say("libclang is installed and yet not found; trying the Python wheel"),
            Err(error) => say(format!("{error:#}; trying the Python wheel")),
        }
    }
    say(format!("{why}; getting the Python wheel {WHEEL} into the cache (62 MB)"));
    let venv = match Venv::ensure(context, WHEEL) {
        Ok(venv) => venv,
        Err(error) => {
            bail!("{why}, and the Python wheel could not be had ({error:#}). {}", apt::advice(&packages()))
        }
    };
    environment.set("LIBCLANG_PATH", venv.site_packages()?.join("clang/native").to_string_lossy());
    with_headers(environment)
}

/// The packages that an administrator would have to install for [`ensure`] to find the library.
pub(super) fn missing_packages() -> Vec<String> {
    if env::var_os("LIBCLANG_PATH").is_some() || on_system() { Vec::new() } else { packages() }
}

/// The two packages of this distribution's default LLVM version, or the one that stands for both.
fn packages() -> Vec<String> {
    let depends = Tool::new("apt-cache").args(["depends", "libclang-dev"]).capture().unwrap_or_default();
    match llvm_version(&depends) {
        Some(version) => vec![format!("libclang1-{version}"), format!("libclang-common-{version}-dev")],
        None => vec!["libclang-dev".to_owned()],
    }
}

/// The LLVM version in what `apt-cache depends libclang-dev` prints.
fn llvm_version(depends: &str) -> Option<u32> {
    let mut names = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: libclang-"));
    names.find_map(|name| name.strip_suffix("-dev")?.parse().ok())
}

/// Whether the library lies where the binding generator looks.
fn on_system() -> bool {
    let from_env = env::var_os("LD_LIBRARY_PATH");
    let from_env = from_env.iter().flat_map(env::split_paths);
    let config = which("llvm-config").and_then(|tool| Tool::new(tool).arg("--libdir").capture().ok());
    let config = config.map(|dir| PathBuf::from(dir.trim()));
    let multiarch = children(Path::new("/usr/lib")).filter(|dir| is_library_dir(dir));
    let llvm = children(Path::new("/usr/lib")).map(|dir| dir.join("lib"));
    let fixed = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"].map(PathBuf::from);
    from_env.chain(config).chain(multiarch).chain(llvm).chain(fixed).any(|dir| library_in(&dir))
}

fn is_library_dir(dir: &Path) -> bool {
    dir.file_name().and_then(OsStr::to_str).is_some_and(|name| name.contains("-linux-"))
}

fn library_in(dir: &Path) -> bool {
    children(dir).any(|file| file.file_name().and_then(OsStr::to_str).is_some_and(is_library))
}

/// `libclang.so`, `libclang.so.1`, `libclang-14.so.1`; not the C++ interface `libclang-cpp.so.14`.
fn is_library(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("libclang") else { return false };
    let rest = match rest.strip_prefix('-') {
        Some(version) => {
            version.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').strip_prefix("so")
        }
        None => rest.strip_prefix(".so"),
    };
    rest.is_some_and(|tail| tail.is_empty() || tail.starts_with('.'))
}

/// libclang needs the compiler's own headers (`stdbool.h`); where clang's are missing, gcc's do.
fn with_headers(environment: &mut Environment) -> Result<()> {
    let llvm = children(Path::new("/usr/lib")).map(|dir| dir.join("lib/clang"));
    let clang = llvm.chain([PathBuf::from("/usr/lib/clang"), PathBuf::from("/usr/lib64/clang")]);
    let mut versions = clang.flat_map(|dir| children(&dir).collect::<Vec<_>>());
    let wheel = environment.vars.iter().any(|(name, _)| name == "LIBCLANG_PATH");
    if env::var_os("BINDGEN_EXTRA_CLANG_ARGS").is_some()
        || (!wheel && versions.any(|dir| dir.join("include/stdbool.h").is_file()))
    {
        return Ok(());
    }
    let include = Tool::new("cc").arg("-print-file-name=include").capture()?;
    let include = Path::new(include.trim());
    if !include.join("stdbool.h").is_file() {
        bail!("libclang is there without clang's headers, and {} has no stdbool.h", include.display());
    }
    say(format!("libclang has no headers of its own here; lending it those in {}", include.display()));
    environment.set("BINDGEN_EXTRA_CLANG_ARGS", format!("-I{}", include.display()));
    Ok(())
}

fn children(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::{is_library, llvm_version};

    #[test]
    fn library_names_are_told_from_the_cpp_interface() {
        for name in
            ["libclang.so", "libclang.so.1", "libclang-14.so.1", "libclang-14.so.14.0.6", "libclang-19.so"]
        {
            assert!(is_library(name), "{name}");
        }
        for name in ["libclang-cpp.so.14", "libclang.a", "libclangAST.so", "libclang-14.a", "clang.so"] {
            assert!(!is_library(name), "{name}");
        }
    }

    #[test]
    fn the_llvm_version_is_the_one_the_distribution_depends_on() {
        let depends = "libclang-dev\n  Depends: libclang-14-dev\n  Suggests: libclang-15-dev\n";
        assert_eq!(llvm_version(depends), Some(14));
        assert_eq!(llvm_version("libclang-dev\n"), None);
    }
}
