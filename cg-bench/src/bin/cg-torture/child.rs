//! A process that tells of every batch before it writes it, and is killed behind one of them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::failure::Failure;

/// Messages of a child process.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Of each batch, what it is.
    pub(crate) words: Vec<String>,
    /// The message that it ended with; `None` if it was killed.
    pub(crate) end: Option<String>,
}

/// Runs a role of this program in a directory, and kills it so long after it has told of a batch.
pub(crate) fn run(
    role: &str,
    dir: &Path,
    kill: Option<(usize, Duration)>,
    orders: &[&str],
) -> Result<Told, Failure> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(role)
        .arg("--dir")
        .arg(dir)
        .args(orders)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let out = child.stdout.take().ok_or("the process has no output")?;
    let mut told = Told::default();
    for line in BufReader::new(out).lines() {
        let line = line?;
        let Some((_, word)) = line.strip_prefix("batch ").and_then(|rest| rest.split_once(' ')) else {
            told.end = line.strip_prefix("end ").map(str::to_owned);
            continue;
        };
        told.words.push(word.to_owned());
        if let Some((_, delay)) = kill.filter(|(batch, _)| told.words.len() == batch + 1) {
            std::thread::sleep(delay);
            child.kill()?;
        }
    }
    let status = child.wait()?;
    if kill.is_none() && !status.success() {
        return Err(format!("the {role} ended with {status}").into());
    }
    Ok(told)
}

/// Copies a directory with everything in it, in place of what is there.
pub(crate) fn copy_dir(from: &Path, to: &Path) -> Result<(), Failure> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_dir(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
