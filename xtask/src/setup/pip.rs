//! Python environments in the cache, one per list of pinned packages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::{Lock, apt, fingerprint, say};
use crate::context::Context;
use crate::process::Tool;

/// Finds a `python3` that can make environments, or installs it.
///
/// # Errors
/// As for every package: see `apt::install`.
pub(crate) fn ensure_python(context: &Context, purpose: &str) -> Result<()> {
    if can_make_environments() {
        return Ok(());
    }
    let why = format!("no python3 with the modules venv and ensurepip, {purpose}");
    apt::install(context, &why, || vec!["python3-venv".to_owned()])
}

/// Debian's `python3` has `venv` without `ensurepip`, which it needs, until `python3-venv` is installed.
fn can_make_environments() -> bool {
    Tool::new("python3").args(["-c", "import venv, ensurepip"]).succeeds()
}

/// A virtual environment that holds exactly the packages it was asked for.
#[derive(Debug)]
pub(crate) struct Venv {
    dir: PathBuf,
}

impl Venv {
    /// Finds the environment for `requirements` (the text of a requirements file), or makes it.
    ///
    /// # Errors
    /// No `python3`, no `venv` module, or pip could not get a package.
    pub(crate) fn ensure(context: &Context, requirements: &str) -> Result<Self> {
        let python = Tool::new("python3").arg("--version").capture();
        let python = python.context("python3 is not installed (Debian: apt-get install python3-venv)")?;
        let key = format!("{}\n{requirements}", python.trim());
        let name = format!("python-{}", fingerprint(&key));
        let dir = context.cache.join(&name);
        let venv = Self { dir };
        let _lock = Lock::take(&context.cache.join(format!("{name}.lock")), "a Python environment")?;
        let mark = venv.dir.join("complete.txt");
        if fs::read_to_string(&mark).is_ok_and(|found| found == key) {
            return Ok(venv);
        }
        if venv.dir.exists() {
            fs::remove_dir_all(&venv.dir)?;
        }
        say(format!("making a Python environment in {}", venv.dir.display()));
        if !can_make_environments() {
            bail!("python3 lacks the module venv or ensurepip (Debian: apt-get install python3-venv)");
        }
        Tool::new("python3").args(["-m", "venv"]).arg(&venv.dir).capture()?;
        let list = venv.dir.join("requirements.txt");
        fs::write(&list, requirements)?;
        venv.python().args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&list).run_aside()?;
        fs::write(&mark, &key)?;
        Ok(venv)
    }

    /// The environment's interpreter.
    pub(crate) fn python(&self) -> Tool {
        Tool::new(self.dir.join("bin/python"))
    }

    /// Where its packages lie.
    pub(super) fn site_packages(&self) -> Result<PathBuf> {
        let code = "import sysconfig; print(sysconfig.get_paths()['purelib'])";
        let dir = self.python().args(["-c", code]).capture()?;
        let dir = Path::new(dir.trim());
        if !dir.is_dir() {
            bail!("{} is no folder", dir.display());
        }
        Ok(dir.to_owned())
    }
}
