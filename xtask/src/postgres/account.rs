//! The system user that runs the servers: PostgreSQL refuses to run as root.

use std::env;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::process::{Tool, UserId};

/// Users that are taken where this program runs as root: Debian's, then one that is made here.
const NAMES: [&str; 2] = ["postgres", "cherrygrove"];

/// The user of the servers.
#[derive(Debug, Clone)]
pub(super) struct Account {
    /// `None` for the user that runs this program.
    id: Option<UserId>,
    pub(super) name: String,
}

impl Account {
    /// The user that runs this program; where that is root, a system user, which is made where there is none.
    ///
    /// # Errors
    /// Root, and no system user could be made.
    pub(super) fn find() -> Result<Self> {
        let word = |args: &[&str]| Tool::new("id").args(args).capture().map(|said| said.trim().to_owned());
        if word(&["-u"])? != "0" {
            return Ok(Self { id: None, name: word(&["-un"]).unwrap_or_else(|_| "this user".to_owned()) });
        }
        let number = |option: &str, name: &str| word(&[option, name]).ok()?.parse::<u32>().ok();
        let of = |name: &str| {
            let id = UserId { user: number("-u", name)?, group: number("-g", name)? };
            Some(Self { id: Some(id), name: name.to_owned() })
        };
        if let Some(found) = NAMES.into_iter().find_map(of) {
            return Ok(found);
        }
        let [.., name] = NAMES;
        let advice = || {
            format!(
                "PostgreSQL refuses to run as root: make a system user {name}, or run this as another user"
            )
        };
        let add = Tool::new("useradd").args(["--system", "--no-create-home", "--shell", "/bin/false", name]);
        add.run_aside().with_context(advice)?;
        of(name).with_context(advice)
    }

    /// A program run by this user, without variables that PostgreSQL's programs read, in a folder that every user can enter.
    pub(super) fn tool(&self, program: &Path) -> Tool {
        let variables = env::vars_os().map(|(name, _)| name);
        let stray = variables.filter(|name| name.as_encoded_bytes().starts_with(b"PG"));
        let tool = stray.fold(Tool::new(program), Tool::env_remove);
        let tool = tool.env("LC_ALL", "C").env("HOME", "/").dir("/");
        match self.id {
            Some(id) => tool.user(id),
            None => tool,
        }
    }

    /// Whether a line of the shell succeeds for this user; `$1` in it is the path.
    pub(super) fn can(&self, line: &str, path: &Path) -> bool {
        self.tool(Path::new("sh")).args(["-c", line, "sh"]).arg(path).succeeds()
    }

    /// The number of the user, where it is another than that of this program.
    pub(super) fn user(&self) -> Option<u32> {
        self.id.map(|id| id.user)
    }

    /// Gives a file or folder to this user, which alone may read it then.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn own(&self, path: &Path) -> Result<()> {
        let cannot = || format!("cannot give {} to {}", path.display(), self.name);
        let mode = if path.is_dir() { 0o700 } else { 0o600 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).with_context(cannot)?;
        match self.id {
            Some(id) => chown(path, Some(id.user), Some(id.group)).with_context(cannot),
            None => Ok(()),
        }
    }

    /// Writes a file that only the user of this program may read.
    ///
    /// # Errors
    /// The disk.
    pub(super) fn own_file(path: &Path, text: &str) -> Result<()> {
        let write = || {
            fs::write(path, "")?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
            fs::write(path, text)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// Writes a file of this user.
    ///
    /// # Errors
    /// The disk.
    pub(super) fn write(&self, path: &Path, text: &str) -> Result<()> {
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        self.own(path)
    }
}
