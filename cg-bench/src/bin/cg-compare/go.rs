//! Subjects that are written in Go: a program of ours that is built at run time, with modules from Go's proxy.
//!
//! Nothing of those modules is in the repository. Without Go, or without the modules, their subjects are left out, and the
//! run says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cg_format::{BlockId, LocalPos};

use crate::columns::Columns;
use crate::failure::Failure;
use crate::subject::About;

/// The subjects that the program has.
pub(crate) const SUBJECTS: [&str; 2] = ["BlazeDB", "dragonfly's LevelDB"];

/// The program's files; `version.go` and `go.mod` are written beside them.
const FILES: [(&str, &str); 5] = [
    ("main.go", include_str!("../../../go/main.go")),
    ("columns.go", include_str!("../../../go/columns.go")),
    ("meter.go", include_str!("../../../go/meter.go")),
    ("subjects.go", include_str!("../../../go/subjects.go")),
    ("workloads.go", include_str!("../../../go/workloads.go")),
];
/// The module of BlazeDB, and the commit whose interface the program uses.
const BLAZEDB: (&str, &str) = ("github.com/cqdetdev/blazedb", "d6788535497238357acf062c01342f7dfc1ca4be");
/// Begins the file of the columns.
const MAGIC: &[u8] = b"cg-compare neutral 1\n";

/// A program that was built.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// The columns as it reads them.
    pub(crate) columns: PathBuf,
    pub(crate) subjects: Vec<About>,
}

/// Builds the program in a folder. The inner error is why there is none.
///
/// # Errors
/// The folder cannot be written to.
pub(crate) fn build(dir: &Path, columns: &Columns) -> Result<Result<Program, String>, Failure> {
    let source = dir.join("go");
    fs::create_dir_all(&source)?;
    for (name, text) in FILES {
        fs::write(source.join(name), text)?;
    }
    let (module, commit) = BLAZEDB;
    fs::write(source.join("version.go"), format!("package main\n\nconst blazeVersion = \"{commit}\"\n"))?;
    fs::write(source.join("go.mod"), "module compare\n\ngo 1.24\n")?;
    let path = dir.join("go-subjects");
    let steps = [
        vec!["get".to_owned(), format!("{module}@{commit}")],
        vec!["mod".to_owned(), "tidy".to_owned()],
        vec!["build".to_owned(), "-o".to_owned(), path.display().to_string(), ".".to_owned()],
    ];
    for step in steps {
        if let Err(reason) = go(&source, &step) {
            return Ok(Err(reason));
        }
    }
    let output = Command::new(&path).arg("about").stdin(Stdio::null()).output()?;
    let subjects = serde_json::from_slice(&output.stdout)?;
    let file = dir.join("neutral");
    fs::write(&file, neutral(columns)?)?;
    Ok(Ok(Program { path, columns: file, subjects }))
}

/// Runs the tool of Go; the error is what it said last.
fn go(dir: &Path, arguments: &[String]) -> Result<(), String> {
    let ran = Command::new("go").args(arguments).current_dir(dir).stdin(Stdio::null()).output();
    let output = ran.map_err(|error| format!("Go is not installed ({error})"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<_> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Err(format!("`go {}` failed: {}", arguments.join(" "), said.join(" ")))
}

/// The columns with numbers for their blocks: how many properties each block has, and the cells of layer 0.
fn neutral(columns: &Columns) -> Result<Vec<u8>, Failure> {
    let mut numbers = BTreeMap::from([(columns.air, 0_u32)]);
    let mut blocks = vec![columns.air];
    let mut cells = Vec::new();
    for chunk in columns.terrain.iter().flat_map(|column| &column.0) {
        let kinds: BTreeMap<BlockId, u16> =
            chunk.kinds().into_iter().collect::<BTreeSet<_>>().into_iter().zip(0..).collect();
        cells.extend(u32::try_from(kinds.len())?.to_le_bytes());
        for kind in kinds.keys() {
            let next = u32::try_from(blocks.len())?;
            let number = *numbers.entry(*kind).or_insert_with(|| {
                blocks.push(*kind);
                next
            });
            cells.extend(number.to_le_bytes());
        }
        if kinds.len() > 1 {
            for (x, z, y) in (0..16).flat_map(|x| (0..16).flat_map(move |z| (0..16).map(move |y| (x, z, y))))
            {
                let block = chunk.block(LocalPos::new(x, y, z));
                let place = kinds.get(&block).ok_or("a block is not among the kinds of its chunk")?;
                cells.extend(place.to_le_bytes());
            }
        }
    }
    let mut out = MAGIC.to_vec();
    out.extend(u32::try_from(blocks.len())?.to_le_bytes());
    for block in blocks {
        let name = columns.catalog.block_name(block).ok_or("a block has no name")?;
        out.extend(u32::try_from(name.as_str().matches('=').count())?.to_le_bytes());
    }
    out.extend(u32::try_from(columns.terrain.len())?.to_le_bytes());
    out.extend(cells);
    out.extend(columns.len_bytes().to_le_bytes());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::from_seed;

    #[test]
    fn the_columns_for_go_begin_with_air_and_end_with_what_was_saved() {
        let columns = from_seed(1).expect("hills");
        let bytes = neutral(&columns).expect("a file");
        let rest = bytes.strip_prefix(MAGIC).expect("the magic");
        let number = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("four bytes"));
        let blocks = number(0) as usize;
        assert!(blocks > 3, "hills have more than {blocks} blocks");
        assert_eq!(number(4), 0, "air has no properties");
        assert_eq!(number(4 + blocks * 4), 1, "one column");
        let saved = columns.terrain[0].len_bytes().to_le_bytes();
        assert!(rest.ends_with(&saved));
    }

    #[test]
    fn what_go_cannot_do_is_told_with_its_words() {
        let dir = tempfile::tempdir().expect("a folder");
        let reason = go(dir.path(), &["no-such-command".to_owned()]).expect_err("no such command");
        let known =
            ["Go is not installed (", "`go no-such-command` failed: go no-such-command: unknown command"];
        assert!(known.iter().any(|begin| reason.starts_with(begin)), "{reason}");
    }
}
