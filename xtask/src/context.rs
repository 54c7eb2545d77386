//! Where a run happens: the workspace, the cache, and whether a person is there to be asked.

use std::env;
use std::io::{IsTerminal, stderr, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::process::Tool;

/// Whether a person can answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// `CI` is set: no person, and nothing that was expected may be missing.
    Ci,
    /// Standard input is a terminal: a person, asked before root is used.
    Person,
    /// Neither: a script. Nothing is asked, and `sudo` is not tried.
    Script,
}

/// The facts about this run that every command needs.
#[derive(Debug)]
pub(crate) struct Context {
    /// The workspace root, absolute.
    pub(crate) root: PathBuf,
    /// The folder of files that outlive `target/`: `$CG_CACHE_DIR`, else `$XDG_CACHE_HOME/cherrygrove`, else
    /// `~/.cache/cherrygrove`.
    pub(crate) cache: PathBuf,
    /// The target triple of the compiler, which is also what it compiles for.
    pub(crate) host: String,
    /// Whether a person is there.
    pub(crate) audience: Audience,
    /// A file to which every command adds the table of its steps: `$CG_STEP_TABLE`.
    pub(crate) step_table: Option<PathBuf>,
}

impl Context {
    /// Looks around. Creates nothing.
    pub(crate) fn new() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().context("the xtask crate lies in the workspace root")?.to_path_buf();
        let version = Tool::new("rustc").arg("-vV").capture()?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        Ok(Self {
            root,
            cache: cache_dir()?,
            host: host.context("`rustc -vV` names no host")?.to_owned(),
            audience: audience(),
            step_table: env::var_os("CG_STEP_TABLE").filter(|path| !path.is_empty()).map(PathBuf::from),
        })
    }

    /// Whether this is CI, where what is missing is a failure.
    pub(crate) fn is_ci(&self) -> bool {
        self.audience == Audience::Ci
    }

    /// Whether a line may be redrawn in place.
    pub(crate) fn redraws(&self) -> bool {
        !self.is_ci() && stderr().is_terminal()
    }

    /// A `cargo` command in the workspace root.
    pub(crate) fn cargo(&self) -> Tool {
        Tool::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).dir(&self.root)
    }

    /// The folder of real worlds: `$CG_WORLDS`, else `worlds` of the folder `shared` beside the workspace.
    /// `None` when neither is there.
    ///
    /// # Errors
    /// `$CG_WORLDS` is set and is not a folder.
    pub(crate) fn worlds(&self) -> Result<Option<PathBuf>> {
        if let Some(dir) = env::var_os("CG_WORLDS") {
            return match PathBuf::from(&dir).canonicalize() {
                Ok(dir) if dir.is_dir() => Ok(Some(dir)),
                _ => bail!("CG_WORLDS is {}, which is not a folder", dir.display()),
            };
        }
        let beside = self.root.join("../shared/worlds");
        Ok(beside.canonicalize().ok().filter(|dir| dir.is_dir()))
    }
}

fn audience() -> Audience {
    match env::var("CI").as_deref() {
        Ok(value) if !matches!(value, "" | "0" | "false") => Audience::Ci,
        _ if stdin().is_terminal() => Audience::Person,
        _ => Audience::Script,
    }
}

fn cache_dir() -> Result<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let dir = set("CG_CACHE_DIR")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("cherrygrove")))
        .or_else(|| Some(set("HOME")?.join(".cache/cherrygrove")))
        .context("no folder for the cache: set CG_CACHE_DIR or HOME")?;
    std::path::absolute(&dir).with_context(|| format!("cache folder {}", dir.display()))
}
