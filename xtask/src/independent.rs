//! Exports, judged by readers in another language: the same totals as the file that was imported, the same
//! content as the schematic, the same save.

use std::fs;
use std::io;

use anyhow::{Context as _, Result};

use crate::cg::Cg;
use crate::context::Context;
use crate::report::Outcome;
use crate::{judge, python};

/// Files that go into a world, out again and before the other reader: an old layout with entities, mods, structures.
const FILES: [&str; 3] = [
    "mca_old/1.14.4_prismarine_r.0.-1.mca",
    "mca/1.20.1_forge_modded_city_r.-1.0.mca",
    "mca/1.21.11_minestom_structures_r.-1.0.mca",
];

const SCRIPT: &str = "testdata/independent/check_export.py";

/// Schematics that go into a world and out again, with their sizes: both versions, biomes, mods, entities.
const SCHEMATICS: [(&str, [i64; 3]); 4] = [
    ("schem/v3_rootwars_the_depot.schem", [146, 67, 134]),
    ("schem/v2_arkitektonika_biomes.schem", [31, 1, 31]),
    ("schem/v2_modded_city.schem", [83, 51, 97]),
    ("schem/v2_nucleation_evaluator_entities.schem", [25, 27, 37]),
];

/// Where their lowest corner is put: at no chunk's border.
const CORNER: [i64; 3] = [-7, -61, 100];

const SCHEM_SCRIPT: &str = "testdata/independent/check_schem.py";

/// Imports and exports each file, and compares the export with `TRUTH.json`, a schematic also with the file that was
/// imported, and a save with itself.
///
/// # Errors
/// A total or a save differs, or `cg` failed.
pub(crate) fn run(context: &Context, cg: &Cg) -> Result<Outcome> {
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
        cg.tool("import").arg(worlds.join(file)).arg(&world).run()?;
        cg.tool("export").arg(&world).arg("--mca").arg(&save).run()?;
        let truth = worlds.join("TRUTH.json");
        let args = [save.as_os_str(), "--truth".as_ref(), truth.as_os_str(), "--key".as_ref(), file.as_ref()];
        match python::run(context, SCRIPT, args)? {
            Outcome::Passed => {}
            other => return Ok(other),
        }
    }
    for (file, size) in SCHEMATICS {
        let (source, name) = (worlds.join(file), file.replace('/', "_"));
        let (world, out) = (folder.join(format!("{name}.world")), folder.join(&name));
        let corners: [[String; 3]; 2] = [
            CORNER.map(|number| number.to_string()),
            std::array::from_fn(|axis| (CORNER[axis] + size[axis] - 1).to_string()),
        ];
        let schem = || cg.tool("schem");
        schem().arg("import").arg(&source).arg(&world).arg("--at").args(&corners[0]).run()?;
        schem().arg("export").arg(&world).arg(&out).arg("--box").args(corners.as_flattened()).run()?;
        let truth = worlds.join("TRUTH.json");
        let [truth_option, key_option, same_option] = ["--truth", "--key", "--same"].map(AsRef::as_ref);
        let args = [
            out.as_os_str(),
            truth_option,
            truth.as_os_str(),
            key_option,
            file.as_ref(),
            same_option,
            source.as_os_str(),
        ];
        match python::run(context, SCHEM_SCRIPT, args)? {
            Outcome::Passed => {}
            other => return Ok(other),
        }
    }
    judge::run(context, cg, &worlds, &folder.join("saves"))
}
