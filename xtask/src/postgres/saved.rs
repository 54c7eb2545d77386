//! What is known of a cluster from one command to the next.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

/// A cluster as the file beside it describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Saved {
    /// Whether it was made to its end.
    pub(super) is_made: bool,
    /// The folder of the servers, without symbolic links.
    pub(super) run: PathBuf,
    /// The folder of their sockets.
    pub(super) sockets: PathBuf,
    /// The folder of the programs.
    pub(super) bin: PathBuf,
    /// The version of the programs.
    pub(super) version: String,
    /// The password of the role of the tests.
    pub(super) password: String,
    /// The ports on loopback, of `n1` and so on.
    pub(super) ports: Vec<u16>,
}

impl Saved {
    /// Reads the file; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub(super) fn read(file: &Path) -> Result<Option<Self>> {
        match fs::read_to_string(file) {
            Ok(text) => match Self::of(&text) {
                Some(saved) => Ok(Some(saved)),
                None => bail!("{} is damaged", file.display()),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
        }
    }

    /// The text of the file.
    pub(super) fn text(&self) -> String {
        let value = json!({
            "is_made": self.is_made,
            "run": self.run.to_string_lossy(),
            "sockets": self.sockets.to_string_lossy(),
            "bin": self.bin.to_string_lossy(),
            "version": self.version,
            "password": self.password,
            "ports": self.ports,
        });
        format!("{value:#}\n")
    }

    fn of(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let word = |name: &str| value[name].as_str().map(str::to_owned);
        let port = |value: &Value| u16::try_from(value.as_u64()?).ok();
        let ports = value["ports"].as_array()?.iter().map(port).collect::<Option<Vec<_>>>()?;
        Some(Self {
            is_made: value["is_made"].as_bool()?,
            run: word("run")?.into(),
            sockets: word("sockets")?.into(),
            bin: word("bin")?.into(),
            version: word("version")?,
            password: word("password")?,
            ports: Some(ports).filter(|ports| !ports.is_empty())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Saved;

    #[test]
    fn a_cluster_is_read_as_it_was_written_and_a_damaged_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("cluster.json");
        assert_eq!(Saved::read(&file).expect("no file"), None);
        let saved = Saved {
            is_made: true,
            run: "/w/run".into(),
            sockets: "/w/run/s".into(),
            bin: "/usr/bin".into(),
            version: "15.18".to_owned(),
            password: "secret".to_owned(),
            ports: vec![5001, 5002],
        };
        fs::write(&file, saved.text()).expect("a file");
        assert_eq!(Saved::read(&file).expect("a file"), Some(saved.clone()));
        let no_ports = Saved { ports: Vec::new(), ..saved.clone() }.text();
        for text in [&saved.text()[..20], "{}", &no_ports, &saved.text().replace("5001", "65536")] {
            fs::write(&file, text).expect("a file");
            let error = Saved::read(&file).unwrap_err().to_string();
            assert_eq!(error, format!("{} is damaged", file.display()));
        }
    }
}
