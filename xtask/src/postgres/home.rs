//! Where the files of a cluster are.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::account::Account;
use super::processes;
use crate::context::Context;
use crate::metadata;
use crate::setup::{Lock, Major, fingerprint};

/// The longest path of a folder of sockets: with the name of a socket it stays below the 107 bytes of the system.
const MAX_SOCKETS_BYTES: usize = 90;

/// The place of one lane's cluster.
#[derive(Debug, Clone)]
pub(super) struct Home {
    /// The folder below the target directory, of the user of this program.
    folder: PathBuf,
    major: Major,
}

impl Home {
    /// The place of a lane's cluster in this workspace. Creates nothing.
    pub(super) fn new(context: &Context, major: Major) -> Result<Self> {
        let metadata = metadata::stated(context)?;
        let target =
            Path::new(metadata["target_directory"].as_str().context("cargo names no target directory")?);
        Ok(Self { folder: target.join("postgres").join(major.name()), major })
    }

    /// The file that says what the cluster is.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.join("cluster.json")
    }

    /// A command of this program that is about this cluster, for messages.
    pub(super) fn command(&self, verb: &str) -> String {
        let major = match self.major {
            Major::Distribution => String::new(),
            Major::Eighteen => format!(" --major {}", self.major.name()),
        };
        format!("cargo xtask postgres {verb}{major}")
    }

    /// Waits until no other run changes the cluster.
    pub(super) fn lock(&self) -> Result<Lock> {
        Lock::take(&self.folder.with_extension("lock"), "or changing the test cluster")
    }

    /// Makes the folder of the servers and that of their sockets, both of the servers' user.
    ///
    /// # Errors
    /// That user can enter none of the folders that there are.
    pub(super) fn make(&self, account: &Account) -> Result<(PathBuf, PathBuf)> {
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot create {}", self.folder.display()))?;
        for folder in [Some(&*self.folder), self.folder.parent()].into_iter().flatten() {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        }
        let mut refused = Vec::new();
        for run in self.candidates() {
            if !make_for(account, &run)? {
                refused.push(run.display().to_string());
                continue;
            }
            let run = run.canonicalize()?;
            let places = [run.clone()].into_iter().chain(self.candidates());
            let mut short = places.map(|place| (place.join("s"), place));
            let short = short.find(|(sockets, _)| sockets.as_os_str().len() <= MAX_SOCKETS_BYTES);
            let Some((sockets, place)) = short else {
                bail!(
                    "every folder for sockets has a path that is too long: set TMPDIR to a folder with a short one"
                );
            };
            if (place == run || make_for(account, &place)?) && make_for(account, &sockets)? {
                return Ok((run, sockets));
            }
            refused.push(sockets.display().to_string());
        }
        bail!(
            "the servers run as {}, who cannot use {}: set TMPDIR to a folder that this user can enter and write, or \
             run this as another user than root",
            account.name,
            refused.join(" or ")
        );
    }

    /// Stops all servers of this cluster, also those of a cluster whose files are gone, and removes its folders.
    ///
    /// # Errors
    /// A process does not end, or a folder cannot be removed.
    pub(super) fn remove(&self, account: &Account, recorded: &[PathBuf]) -> Result<()> {
        let folders: Vec<_> = self.candidates().into_iter().chain(recorded.iter().cloned()).collect();
        for folder in &folders {
            let parent = folder.parent().and_then(|parent| parent.canonicalize().ok());
            let real = parent.zip(folder.file_name()).map(|(parent, name)| parent.join(name));
            processes::stop(account, real.as_ref().unwrap_or(folder))?;
        }
        for folder in folders.iter().filter(|folder| account.may_have_made(folder)) {
            remove(folder)?;
        }
        remove(&self.folder)
    }

    /// The folders that the servers may use, the best first; a folder outside the target directory is named after it.
    fn candidates(&self) -> Vec<PathBuf> {
        let name = fingerprint(&self.folder.to_string_lossy());
        let name = format!("cherrygrove-postgres-{name}-{}", self.major.name());
        let mut found = vec![self.folder.join("run")];
        for temporary in [env::temp_dir(), PathBuf::from("/tmp")] {
            let folder = temporary.join(&name);
            if !found.contains(&folder) {
                found.push(folder);
            }
        }
        found
    }
}

/// Makes a folder of the servers' user, and says whether that user can use it. One that it cannot use is removed.
fn make_for(account: &Account, folder: &Path) -> Result<bool> {
    if fs::create_dir(folder).is_err() {
        return Ok(false);
    }
    account.own(folder)?;
    let usable = account.can("cd \"$1\" && : > probe && rm probe", folder);
    if !usable {
        remove(folder)?;
    }
    Ok(usable)
}

/// Removes a folder that may not be there.
pub(super) fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

impl Account {
    /// Whether a folder is one of this user or of the user of this program, and no link.
    fn may_have_made(&self, folder: &Path) -> bool {
        let Ok(found) = fs::symlink_metadata(folder) else { return false };
        let own = fs::metadata("/proc/self").map(|own| own.uid());
        found.is_dir() && (own.is_ok_and(|own| own == found.uid()) || self.user() == Some(found.uid()))
    }
}
