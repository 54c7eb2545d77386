//! Saves before and after `cg`, compared by a judge in another language, path by path and chunk by chunk.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::cg::Cg;
use crate::context::Context;
use crate::python;
use crate::report::Outcome;

/// Saves that go into a world and out again: a server's in the folders of 26.1, and a map that every version opened,
/// with chunks of before 1.13.
const SAVES: [&str; 2] = ["java26/26.1.1_paper_server", "java26/26.2_upgraded_map"];

/// The one of them that is also tried in the folders of before 26.1.
const NEW_FOLDERS: &str = SAVES[0];

/// Region files without a save: indices over words, mods, entities only.
const REGIONS: [&str; 3] = [
    "mca_old/1.14.4_prismarine_r.0.-1.mca",
    "mca/1.20.1_forge_modded_city_r.-1.0.mca",
    "mca/entities_1.18_r.0.1.mca",
];

const JUDGE: &str = "testdata/independent/compare_saves.py";
const MAKER: &str = "testdata/independent/make_old_save.py";

/// Tries the judge itself, then imports and exports each save with `cg` into `folder` and has them compared.
///
/// # Errors
/// The judge missed a difference that it must see, or a save came back with differences; all of them are tried first.
pub(crate) fn run(context: &Context, cg: &Cg, worlds: &Path, folder: &Path) -> Result<Outcome> {
    match python::run(context, JUDGE, ["--self-test"])? {
        Outcome::Passed => {}
        other => return Ok(other),
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let made = folder.join("made_old_save");
    python::run(context, MAKER, [worlds.join(NEW_FOLDERS), made.clone()])?;
    let saves = SAVES.map(|save| worlds.join(save)).into_iter().chain([made]);
    let regions = REGIONS.map(|file| worlds.join(file));
    let cases = saves.map(|save| (save, Compared::Saves));
    let cases = cases.chain(regions.map(|file| (file, Compared::Regions)));
    let mut differing = Vec::new();
    for (source, compared) in cases {
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let [world, out] = ["world", "out"].map(|part| folder.join(format!("{name}.{part}")));
        if let Err(error) = round_trip(context, cg, &source, compared, [&world, &out]) {
            println!("{name}: {error:#}");
            differing.push(name);
        }
    }
    ensure!(differing.is_empty(), "not the same after import and export: {}", differing.join(", "));
    Ok(Outcome::Passed)
}

/// The files that the judge is to compare.
#[derive(Debug, Clone, Copy)]
enum Compared {
    /// Whole folders.
    Saves,
    /// Chunks only, of region files that are in no save.
    Regions,
}

fn round_trip(
    context: &Context,
    cg: &Cg,
    source: &Path,
    compared: Compared,
    [world, out]: [&Path; 2],
) -> Result<()> {
    cg.tool("import").arg(source).arg(world).run()?;
    cg.tool("export").arg(world).arg("--mca").arg(out).run()?;
    let option = match compared {
        Compared::Saves => None,
        Compared::Regions => Some("--regions".as_ref()),
    };
    let args = option.into_iter().chain([source.as_os_str(), out.as_os_str()]);
    python::run(context, JUDGE, args)?;
    Ok(())
}
