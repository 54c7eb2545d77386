//! What we export, judged by a reader in another language: the same totals as the save that was imported.

use std::fs;
use std::io;

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::python;
use crate::report::Outcome;
use crate::setup::Environment;

/// Files that go into a world, out again and before the other reader: an old layout with entities, mods, structures.
const FILES: [&str; 3] = [
    "mca_old/1.14.4_prismarine_r.0.-1.mca",
    "mca/1.20.1_forge_modded_city_r.-1.0.mca",
    "mca/1.21.11_minestom_structures_r.-1.0.mca",
];

const SCRIPT: &str = "testdata/independent/check_export.py";

/// Imports and exports each file with the `cg` that the tests built, and compares the export with `TRUTH.json`.
///
/// # Errors
/// A total differs, or `cg` failed.
pub(crate) fn run(context: &Context, environment: &Environment) -> Result<Outcome> {
    let Some(worlds) = context.worlds()? else {
        return Ok(Outcome::Missing(
            "the independent reader needs the real worlds, which are not here".to_owned(),
        ));
    };
    let folder = context.root.join("target/independent");
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot clear {}", folder.display()));
        }
        _ => {}
    }
    for (index, file) in FILES.iter().enumerate() {
        let (world, save) = (folder.join(format!("{index}/world")), folder.join(format!("{index}/save")));
        fs::create_dir_all(&world).with_context(|| format!("cannot make {}", world.display()))?;
        let cg = || context.cargo().args(["run", "--quiet", "--package", "cg-cli", "--bin", "cg", "--"]);
        environment.apply(cg().arg("import").arg(worlds.join(file)).arg(&world)).run()?;
        environment.apply(cg().arg("export").arg(&world).arg("--mca").arg(&save)).run()?;
        let truth = worlds.join("TRUTH.json");
        let args = [save.as_os_str(), "--truth".as_ref(), truth.as_os_str(), "--key".as_ref(), file.as_ref()];
        match python::run(context, SCRIPT, args)? {
            Outcome::Passed => {}
            other => return Ok(other),
        }
    }
    Ok(Outcome::Passed)
}
