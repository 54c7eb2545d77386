//! A copy of the settings in a text file beside `world.cg`, for launchers while a server has the world.
//!
//! The rows are what counts: the file is behind them for up to a second, and after a crash until the world is opened for
//! writing. It is replaced by rename, so a reader sees a whole one. It is not written where nothing changed.

use std::fmt::Write as _;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::commit::state::CommitState;
use crate::kinds::settings::WorldSettings;
use crate::rt::lock_order::{Mutex, rank};
use crate::storage::directory::{SETTINGS_NAME, read_file, replace};
use crate::storage::error::{Error, OpenError};

/// The first line of each such file.
const MAGIC: &str = "cherrygrove settings 1\n";

/// Whether the file is to be written again.
#[derive(Debug)]
pub(crate) struct SettingsFile {
    is_outdated: AtomicBool,
    /// Held while it is written: why it could not be written last.
    writing: Mutex<Option<String>, rank::SettingsFile>,
}

impl SettingsFile {
    /// Of a world that has just been opened: an earlier process may not have written it.
    pub(crate) fn new() -> Self {
        Self { is_outdated: AtomicBool::new(true), writing: Mutex::default() }
    }

    pub(crate) fn outdate(&self) {
        self.is_outdated.store(true, Ordering::Release);
    }
}

impl CommitState {
    /// Writes the file if the settings were changed. A failure is logged, and the next call tries again.
    pub(crate) fn keep_settings_file(&self) {
        let mut failed = self.settings_file.writing.lock();
        if !self.settings_file.is_outdated.swap(false, Ordering::AcqRel) {
            return;
        }
        let failure = self.write_settings_file().err().map(|error| error.to_string());
        if let Some(error) = &failure {
            self.settings_file.outdate();
            if failed.as_ref() != Some(error) {
                tracing::warn!(error, "the copy of the settings beside `world.cg` is not written");
            }
        }
        *failed = failure;
    }

    fn write_settings_file(&self) -> Result<(), Error> {
        let Some(dir) = self.shared.location.directory() else { return Ok(()) };
        if self.shared.engine()?.caps().read_only {
            return Ok(());
        }
        let settings = WorldSettings::decode(self.read.properties(&WorldSettings::properties()))?;
        let mut text = MAGIC.to_owned();
        for name in WorldSettings::NAMES {
            if let Some(value) = settings.text(name) {
                let _ = writeln!(text, "{name} = {value}");
            }
        }
        let path = dir.join(SETTINGS_NAME);
        match read_file(&path) {
            Ok(stored) if stored == text.as_bytes() => Ok(()),
            Ok(stored) if !stored.starts_with(MAGIC.as_bytes()) => {
                let foreign =
                    io::Error::other("it is a file of another program; move it away to have the copy");
                Err(OpenError::io("replace", &path, foreign).into())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && text == MAGIC => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(OpenError::io("read", &path, error).into())
            }
            _ => Ok(replace(dir, SETTINGS_NAME, text.as_bytes())?),
        }
    }
}
