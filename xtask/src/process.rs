//! Running other programs: what is run is printed, and a failure names the command.

use std::ffi::{OsStr, OsString};
use std::io::stderr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail};

/// One command that is about to be run.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, Option<OsString>)>,
    dir: Option<PathBuf>,
    user: Option<UserId>,
}

/// The numbers of a system user and of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UserId {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

impl Tool {
    /// A command without arguments, in the current folder.
    pub(crate) fn new(program: impl Into<OsString>) -> Self {
        Self { program: program.into(), args: Vec::new(), env: Vec::new(), dir: None, user: None }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn args<I: IntoIterator<Item: AsRef<OsStr>>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    pub(crate) fn envs<K: AsRef<OsStr>, V: AsRef<OsStr>>(mut self, vars: &[(K, V)]) -> Self {
        self.env.extend(
            vars.iter().map(|(name, value)| (name.as_ref().to_owned(), Some(value.as_ref().to_owned()))),
        );
        self
    }

    pub(crate) fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), None));
        self
    }

    pub(crate) fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.dir = Some(dir.as_ref().to_owned());
        self
    }

    /// Runs it as another user, which only root may do.
    pub(crate) fn user(mut self, user: UserId) -> Self {
        self.user = Some(user);
        self
    }

    /// Prints the command, runs it on this terminal and waits.
    ///
    /// # Errors
    /// It cannot be started, or ends with anything but success.
    pub(crate) fn run(self) -> Result<()> {
        self.run_as(self.command())
    }

    /// As [`Tool::run`], with its standard output sent to standard error: for set-up, whose own output may be read
    /// by a shell.
    pub(crate) fn run_aside(self) -> Result<()> {
        let mut command = self.command();
        command.stdout(stderr());
        self.run_as(command)
    }

    /// Runs it silently and returns its standard output.
    ///
    /// # Errors
    /// As [`Tool::run`]; the message ends with what it wrote to standard error.
    pub(crate) fn capture(self) -> Result<String> {
        let output = self.output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("`{}` failed: {}\n{}", self.line(), output.status, errors.trim_end());
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{}` wrote no UTF-8", self.line()))
    }

    /// Runs it silently; success or not is in the output.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn output(&self) -> Result<Output> {
        self.command().stdin(Stdio::null()).output().with_context(|| self.cannot_run())
    }

    /// Runs it silently and says whether it could be started and succeeded.
    pub(crate) fn succeeds(&self) -> bool {
        self.output().is_ok_and(|output| output.status.success())
    }

    /// The standard-library command, for what the methods here do not cover.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        if let Some(UserId { user, group }) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    /// The program and its arguments.
    pub(crate) fn words(&self) -> impl Iterator<Item = std::borrow::Cow<'_, str>> {
        [&self.program].into_iter().chain(&self.args).map(|word| word.to_string_lossy())
    }

    /// The command as a person would type it, without its environment.
    pub(crate) fn line(&self) -> String {
        let program = Path::new(&self.program).file_name().unwrap_or(&self.program);
        let mut line = program.to_string_lossy().into_owned();
        for arg in &self.args {
            line.push(' ');
            line.push_str(&arg.to_string_lossy());
        }
        line
    }

    fn run_as(&self, mut command: Command) -> Result<()> {
        eprintln!("$ {}", self.line());
        let status = command.status().with_context(|| self.cannot_run())?;
        if !status.success() {
            bail!("`{}` failed: {status}", self.line());
        }
        Ok(())
    }

    fn cannot_run(&self) -> String {
        format!("cannot run `{}`", self.line())
    }
}

/// The first file of this name in `PATH`.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}
