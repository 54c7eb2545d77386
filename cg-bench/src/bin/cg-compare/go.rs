//! Subjects that are written in Go: a program of ours for each, which is built at run time with modules of others.
//!
//! Nothing of those modules is in the repository. Each program has its own modules, so a subject whose modules are not to
//! be had takes no other away; the run says which are left out, and why.

mod checkout;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use cg_format::{BlockId, LocalPos};

use crate::columns::{Column, Columns};
use crate::failure::Failure;
use crate::subject::About;
use checkout::Checkout;

/// A file of a program: its name, and what it holds.
type File = (&'static str, &'static str);

/// The files that every program has.
const SHARED: [File; 5] = [
    ("main.go", include_str!("../../../go/main.go")),
    ("columns.go", include_str!("../../../go/columns.go")),
    ("meter.go", include_str!("../../../go/meter.go")),
    ("subjects.go", include_str!("../../../go/subjects.go")),
    ("workloads.go", include_str!("../../../go/workloads.go")),
];
/// Begins the file of the columns.
const MAGIC: &[u8] = b"cg-compare neutral 1\n";
/// The file of a program that was built.
const PROGRAM: &str = "subject";
/// The variable that names the checkout of BlazeDB.
const BLAZEDB: &str = "CG_BLAZEDB";

/// A subject that is written in Go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// From a local checkout: Go's module proxy does not serve it.
    BlazeDb,
    /// From Go's module proxy.
    LevelDb,
}

impl Source {
    const ALL: [Self; 2] = [Self::BlazeDb, Self::LevelDb];

    /// The name in tables.
    const fn name(self) -> &'static str {
        match self {
            Self::BlazeDb => "BlazeDB",
            Self::LevelDb => "dragonfly's LevelDB",
        }
    }

    /// The name of its folder.
    const fn folder(self) -> &'static str {
        match self {
            Self::BlazeDb => "blaze",
            Self::LevelDb => "level",
        }
    }

    /// Writes what it needs beside the shared files. The inner error is why that cannot be had.
    fn write(self, dir: &Path) -> Result<Result<(), String>, Failure> {
        match self {
            Self::BlazeDb => {
                let checkout = match Checkout::named(std::env::var_os(BLAZEDB)) {
                    Ok(checkout) => checkout,
                    Err(reason) => return Ok(Err(reason)),
                };
                fs::write(dir.join("blaze.go"), include_str!("../../../go/blaze/blaze.go"))?;
                checkout.write(dir)
            }
            Self::LevelDb => {
                let files = [
                    ("level.go", include_str!("../../../go/level/level.go")),
                    ("go.mod", include_str!("../../../go/level/go.mod")),
                    ("go.sum", include_str!("../../../go/level/go.sum")),
                ];
                write_all(dir, &files)?;
                Ok(Ok(()))
            }
        }
    }

    /// Builds its program in a folder of its own below `home`. The inner error is why there is none.
    fn build(self, home: &Path) -> Result<Result<(PathBuf, About), String>, Failure> {
        let dir = home.join("go").join(self.folder());
        fs::create_dir_all(&dir)?;
        write_all(&dir, &SHARED)?;
        if let Err(reason) = self.write(&dir)? {
            return Ok(Err(reason));
        }
        // Nothing but what `go.sum` knows is built.
        if let Err(reason) = go(&dir, &["build", "-mod=readonly", "-o", PROGRAM, "."]) {
            return Ok(Err(reason));
        }
        let path = dir.join(PROGRAM);
        let output = Command::new(&path).arg("about").stdin(Stdio::null()).output()?;
        let Ok(about) = serde_json::from_slice(&output.stdout) else {
            return Ok(Err(format!("its program ended with {}, and says nothing of itself", output.status)));
        };
        Ok(Ok((path, about)))
    }
}

/// A program that was built.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// The columns as it reads them.
    pub(crate) columns: PathBuf,
    pub(crate) about: About,
}

/// The programs of all subjects that are wanted and can be built, and why others are left out.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    pub(crate) built: Vec<Program>,
    /// A sentence for each subject that is left out.
    pub(crate) skipped: Vec<String>,
}

impl Programs {
    /// Builds them in a folder.
    ///
    /// # Errors
    /// The folder cannot be written to, or a program that was built cannot be started.
    pub(crate) fn build(
        home: &Path,
        columns: &Columns,
        wants: impl Fn(&str) -> bool,
    ) -> Result<Self, Failure> {
        let mut programs = Self::default();
        for source in Source::ALL.into_iter().filter(|source| wants(source.name())) {
            let begun = Instant::now();
            match source.build(home)? {
                Ok((path, about)) => {
                    eprintln!("built {} in {:.1?}", source.name(), begun.elapsed());
                    let file = home.join("neutral");
                    if programs.built.is_empty() {
                        fs::write(&file, neutral(columns)?)?;
                    }
                    programs.built.push(Program { path, columns: file, about });
                }
                Err(reason) => programs.skipped.push(format!("!!! SKIPPED: {}: {reason}", source.name())),
            }
        }
        Ok(programs)
    }

    /// The program of a subject.
    pub(crate) fn of(&self, subject: &About) -> Option<&Program> {
        self.built.iter().find(|program| program.about == *subject)
    }
}

fn write_all(dir: &Path, files: &[File]) -> Result<(), Failure> {
    for (name, text) in files {
        fs::write(dir.join(name), text)?;
    }
    Ok(())
}

/// Runs the tool of Go; the error is what it said last.
fn go(dir: &Path, arguments: &[&str]) -> Result<(), String> {
    // A workspace of a folder above would decide on other modules.
    let ran = Command::new("go")
        .args(arguments)
        .current_dir(dir)
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .output();
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
    for chunk in columns.terrain.iter().flat_map(Column::chunks) {
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
        let reason = go(dir.path(), &["no-such-command"]).expect_err("no such command");
        let known =
            ["Go is not installed (", "`go no-such-command` failed: go no-such-command: unknown command"];
        assert!(known.iter().any(|begin| reason.starts_with(begin)), "{reason}");
    }
}
