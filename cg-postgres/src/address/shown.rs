//! An address as text, without its password.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{Address, DEFAULT_PORT, Host, Replication, SslMode, name_of};

/// A text in which characters that have a meaning in the address are escaped.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    write!(f, "{}", char::from(byte))?;
                }
                _ => write!(f, "%{byte:02X}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgres://{}@", Escaped(&self.user))?;
        for (n, Host { name, port }) in self.hosts.iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            if name.contains(':') {
                write!(f, "{comma}[{name}]")?;
            } else {
                write!(f, "{comma}{}", Escaped(name))?;
            }
            if *port != DEFAULT_PORT {
                write!(f, ":{port}")?;
            }
        }
        write!(f, "/{}?world={}", Escaped(&self.database), Escaped(&self.world))?;
        let path = |f: &mut fmt::Formatter<'_>, name: &str, path: &Option<PathBuf>| match path {
            Some(path) => write!(f, "&{name}={}", Escaped(&Path::to_string_lossy(path))),
            None => Ok(()),
        };
        if let Some(mode) = self.tls.mode {
            write!(f, "&sslmode={}", name_of(&SslMode::ALL, mode))?;
        }
        path(f, "sslrootcert", &self.tls.root)?;
        path(f, "sslcert", &self.tls.certificate)?;
        path(f, "sslkey", &self.tls.key)?;
        if self.replication != Replication::default() {
            write!(f, "&replication={}", self.replication)?;
        }
        if self.takes { f.write_str("&take=yes") } else { Ok(()) }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}
