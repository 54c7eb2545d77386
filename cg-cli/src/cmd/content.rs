//! Content that a host keeps and the tool knows nothing about: in from a file or the command line, out as text.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::output::{Failure, hex};

/// Where content comes from.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ContentArg {
    /// The content of this file.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// This text.
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

impl ContentArg {
    pub(crate) fn read(&self) -> Result<Vec<u8>, Failure> {
        match (&self.from, &self.text) {
            (Some(path), _) => std::fs::read(path).map_err(|error| Failure::io("read", path, &error)),
            (None, text) => Ok(text.as_deref().unwrap_or_default().as_bytes().to_vec()),
        }
    }
}

/// Content as it is shown: as text if it is printable, else in hexadecimal.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Content {
    text: Option<String>,
    hex: Option<String>,
}

impl Content {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let is_printable = |text: &&str| !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
        match str::from_utf8(bytes).ok().filter(is_printable) {
            Some(text) => Self { text: Some(text.to_owned()), hex: None },
            None => Self { text: None, hex: Some(hex(bytes)) },
        }
    }

    /// On one line.
    pub(crate) fn line(&self) -> String {
        match (&self.text, &self.hex) {
            (Some(text), _) => text.escape_debug().to_string(),
            (None, hex) => hex.clone().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(content) = self.text.as_ref().or(self.hex.as_ref()).filter(|content| !content.is_empty())
        else {
            return Ok(());
        };
        f.write_str(content)?;
        if content.ends_with('\n') { Ok(()) } else { writeln!(f) }
    }
}
