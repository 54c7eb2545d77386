//! The password file of libpq: a line `host:port:database:user:password` for each password.

use std::path::{Path, PathBuf};

use super::Host;

/// The password for a host, a database and a user, from the file that `PGPASSFILE` names, or from `~/.pgpass`.
pub(super) fn of_file(host: &Host, database: &str, user: &str) -> Option<String> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".pgpass"));
    let path = std::env::var_os("PGPASSFILE").map(PathBuf::from).or_else(home)?;
    let text = std::fs::read_to_string(&path).ok()?;
    if !is_private(&path) {
        tracing::warn!(path = %path.display(), "the password file is not used: other users may read it");
        return None;
    }
    let port = host.port.to_string();
    let host = if host.is_socket() { "localhost" } else { &host.name };
    find(&text, [host, &port, database, user])
}

/// Whether only its owner may read a file.
fn is_private(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata(path).is_ok_and(|file| file.mode().trailing_zeros() >= 6)
    }
    #[cfg(not(unix))]
    path.exists()
}

/// The password of the first line that fits.
fn find(text: &str, wanted: [&str; 4]) -> Option<String> {
    let fits = |line: &str| {
        let [fields @ .., password] = fields(line)?;
        let fits = fields.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
        fits.then_some(password)
    };
    text.lines().filter(|line| !line.starts_with('#')).find_map(fits)
}

/// The five fields of a line. A backslash escapes a colon and a backslash.
fn fields(line: &str) -> Option<[String; 5]> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields.last_mut()?.extend(chars.next()),
            _ => fields.last_mut()?.push(char),
        }
    }
    fields.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let text = "# db1:5432:d:u:no\ndb2:5432:d:u:other\ndb1:*:d:u\ndb1:*:d:u:a\\:b\\\\:c\n*:*:*:*:last";
        let find = |host| find(text, [host, "5432", "d", "u"]);
        assert_eq!(find("db1").as_deref(), Some("a:b\\:c"));
        assert_eq!(find("db2").as_deref(), Some("other"));
        assert_eq!(find("db3").as_deref(), Some("last"));
        assert_eq!(super::find("db1:5432:d:u:p", ["db1", "5433", "d", "u"]), None);
    }
}
