//! The C library, as an installation lays it out: `lib`, `include` and `pkgconfig` of `target/hosts`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::context::Context;
use crate::process::Tool;
use crate::setup;

/// The library as programs are linked with it.
const SHARED: &str = "libcherrygrove.so";
/// The library as programs look for it when they start: its soname, which `cg-ffi/build.rs` sets.
const SONAME: &str = "libcherrygrove.so.0";
const STATIC: &str = "libcherrygrove.a";
/// Where the headers are, and what the pkg-config file is made of.
const HEADERS: &str = "hosts/c/include";
const TEMPLATE: &str = "hosts/c/cherrygrove.pc.in";

/// Builds it, and returns the folder.
///
/// The profile is `dev`, in which the tests compile the store too.
///
/// # Errors
/// It does not compile, or cannot be copied.
pub(super) fn build(context: &Context, release: bool) -> Result<PathBuf> {
    let environment = setup::prepare(context)?;
    let profile = if release { "release" } else { "dev" };
    let build = context.cargo().args(["build", "--package", "cg-ffi", "--lib", "--profile", profile]);
    let build = environment.apply(build);
    build.clone().run()?;
    let built = libraries_built_by(build)?;
    let dir = context.root.join("target/hosts");
    let [lib, include, pkgconfig] = ["lib", "include", "pkgconfig"].map(|name| dir.join(name));
    for folder in [&lib, &include, &pkgconfig] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    for (name, installed) in [(SHARED, SONAME), (STATIC, STATIC)] {
        let from = built.iter().find(|path| path.file_name().is_some_and(|found| found == name));
        let from = from.with_context(|| format!("cargo names no {name}"))?;
        replace(from, &lib.join(installed))?;
    }
    let link = lib.join(SHARED);
    remove(&link)?;
    symlink(SONAME, &link).with_context(|| format!("cannot make {}", link.display()))?;
    for entry in fs::read_dir(context.root.join(HEADERS)).context(HEADERS)? {
        let entry = entry.context(HEADERS)?;
        replace(&entry.path(), &include.join(entry.file_name()))?;
    }
    let template = context.root.join(TEMPLATE);
    let template = fs::read_to_string(&template).unwrap_or_else(|_| DEFAULT_TEMPLATE.to_owned());
    let text =
        template.replace("@PREFIX@", "${pcfiledir}/..").replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    let path = pkgconfig.join("cherrygrove.pc");
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(dir)
}

/// The pkg-config file where there is no template.
const DEFAULT_TEMPLATE: &str = "\
prefix=@PREFIX@
libdir=${prefix}/lib
includedir=${prefix}/include

Name: CherryGrove
Description: Voxel worlds that are stored without losing, doubling or corrupting anything
Version: @VERSION@
Libs: -L${libdir} -Wl,-rpath,${libdir} -lcherrygrove
Libs.private: -lstdc++ -lm -lpthread -ldl
Cflags: -I${includedir}
";

/// The files of the library that a `cargo` command made that ended well.
fn libraries_built_by(cargo: Tool) -> Result<Vec<PathBuf>> {
    let messages = cargo.args(["--message-format", "json"]).capture()?;
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_library = messages.filter(|message| message["target"]["name"] == "cherrygrove");
    let files = of_library.filter_map(|message| message["filenames"].as_array().cloned()).flatten();
    Ok(files.filter_map(|file| Some(file.as_str()?.into())).collect())
}

/// Copies a file beside the one that is there, whose readers keep it.
fn replace(from: &Path, to: &Path) -> Result<()> {
    remove(to)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
