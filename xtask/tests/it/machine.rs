//! A machine of scripts: a folder that is the whole `PATH`, and a log of what its `apt-get` and `sudo` were asked.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The user that runs the commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    /// With a `sudo` that asks nothing.
    Sudoer,
    Plain,
}

/// The state of its package lists, which decides what `apt-get` can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lists {
    /// The package lists are there.
    Fetched,
    /// They have to be fetched first.
    Missing,
    /// They can be fetched, and hold nothing that is wanted.
    Useless,
}

/// A Debian machine without any compiler.
#[derive(Debug)]
pub(crate) struct Machine {
    dir: PathBuf,
}

impl Machine {
    /// `name` is that of the test: its folder is made anew.
    pub(crate) fn new(name: &str, user: User, lists: Lists) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        if dir.exists() {
            fs::remove_dir_all(&dir).unwrap();
        }
        fs::create_dir_all(dir.join("bin")).unwrap();
        let machine = Self { dir };
        for tool in ["cp", "env", "flock", "touch"] {
            symlink(real(tool), machine.dir.join("bin").join(tool)).unwrap();
        }
        machine.program("id", if user == User::Root { "echo 0" } else { "echo 1000" });
        machine.program("rustc", "echo 'host: x86_64-unknown-linux-gnu'");
        if user == User::Sudoer {
            machine.program("sudo", r#"echo "sudo $*" >>"$LOG"; [ "$1" != -n ] || shift; exec "$@""#);
        }
        if lists == Lists::Fetched {
            fs::write(machine.dir.join("lists"), "").unwrap();
        }
        // An unknown name is a pattern for apt: it answers with packages that match, and installs them with success.
        let offered = match lists {
            Lists::Useless => "",
            Lists::Fetched | Lists::Missing => "lists",
        };
        machine.program(
            "apt-cache",
            &format!(
                "if [ -n \"{offered}\" ] && [ -f \"$ROOT/lists\" ]; then\n\
                 printf '%s:\\n  Installed: (none)\\n  Candidate: 4:12.2.0-3\\n' \"$2\"\n\
                 else\nprintf 'gpgv:\\n  Installed: 2.2.40\\n  Candidate: 2.2.40\\n'\nfi"
            ),
        );
        machine.program(
            "apt-get",
            "echo \"apt-get $*\" >>\"$LOG\"\n\
             case \"$1\" in\n\
             update) touch \"$ROOT/lists\" ;;\n\
             install) [ ! -f \"$ROOT/lists\" ] || \"$ROOT/install\" ;;\n\
             esac",
        );
        machine.installs("");
        machine
    }

    /// A program of this machine.
    pub(crate) fn program(&self, name: &str, body: &str) {
        write_program(&self.dir.join("bin").join(name), body);
    }

    /// Sets what `apt-get install` does when the package lists are there.
    pub(crate) fn installs(&self, body: &str) {
        write_program(&self.dir.join("install"), body);
    }

    /// The folder of the whole machine, `$ROOT` for its programs.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A command on this machine, with no terminal and nothing else of this process's environment.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(real("setsid"));
        command.arg("--wait").arg(program).env_clear();
        command.env("PATH", self.dir.join("bin")).env("HOME", &self.dir).env("ROOT", &self.dir);
        command.env("LOG", self.log_file()).stdin(std::process::Stdio::null());
        command
    }

    /// The requests to `apt-get` and `sudo`, a line each.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.dir.join("log")
    }
}

/// A program of the machine that runs the tests.
fn real(tool: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|dir| dir.join(tool)).find(|file| file.is_file()).unwrap()
}

/// Another process writes the file: while this one held it open, a thread that starts a program would hand it on, and
/// running it would fail with "text file busy".
fn write_program(path: &Path, body: &str) {
    let script = "printf '#!/bin/sh\\n%s\\n' \"$2\" >\"$1\" && chmod 755 \"$1\"";
    let status = Command::new("/bin/sh").args(["-c", script, "sh"]).arg(path).arg(body).status();
    assert!(status.unwrap().success(), "{}", path.display());
}

/// Standard error as text.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
