//! A connection to a server through its socket, as its superuser: enough of the protocol for simple queries.
//!
//! No `psql`: its answers would have to be told from its errors, and one transaction lasts over several of our calls.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// The superuser, who can come through the socket alone: it has no password.
pub(super) const SUPERUSER: &str = "postgres";

/// Version 3.0 of the protocol.
const PROTOCOL: u32 = 3 << 16;

/// The longest message that is accepted from a server.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// A row of an answer, as text; `None` is NULL.
pub(super) type Row = Vec<Option<String>>;

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection<S = UnixStream> {
    stream: S,
}

impl Connection {
    /// Connects to the server on `port` whose socket is in `sockets`. Each answer is waited for at most `patience`.
    ///
    /// # Errors
    /// No server listens, it refuses, or does not answer in time.
    pub(super) fn open(sockets: &Path, port: u16, database: &str, patience: Duration) -> Result<Self> {
        let path = sockets.join(format!(".s.PGSQL.{port}"));
        let stream =
            UnixStream::connect(&path).with_context(|| format!("no server at {}", path.display()))?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Self::over(stream, database)
    }
}

impl<S: Read + Write> Connection<S> {
    fn over(stream: S, database: &str) -> Result<Self> {
        let mut connection = Self { stream };
        let words = ["user", SUPERUSER, "database", database, "application_name", "xtask", ""];
        let words: Vec<u8> = words.iter().flat_map(|word| word.bytes().chain([0])).collect();
        connection.send(None, &[&bytes_of(PROTOCOL)[..], &words].concat())?;
        connection.answer().context("the server refuses the connection")?;
        Ok(connection)
    }

    /// Runs one or more statements and returns all their rows.
    ///
    /// # Errors
    /// The server reports one, or does not answer in time. The message holds the statement.
    pub(super) fn query(&mut self, sql: &str) -> Result<Vec<Row>> {
        self.send(Some(b'Q'), &[sql.as_bytes(), &[0]].concat())?;
        self.answer().with_context(|| format!("`{sql}`"))
    }

    /// The one value that a query has to return.
    ///
    /// # Errors
    /// As [`Connection::query`], and it returned something else.
    pub(super) fn value(&mut self, sql: &str) -> Result<String> {
        let mut rows = self.query(sql)?;
        match &mut rows[..] {
            [row] if row.len() == 1 => row.remove(0).with_context(|| format!("`{sql}` returned NULL")),
            _ => bail!("`{sql}` did not return one row of one value"),
        }
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) -> Result<()> {
        let len = u32::try_from(body.len() + 4).context("the message is too long")?;
        let message = [kind.as_slice(), &bytes_of(len), body].concat();
        self.stream.write_all(&message).context("cannot send to the server")
    }

    /// Everything until the server is ready for the next query.
    fn answer(&mut self) -> Result<Vec<Row>> {
        let (mut rows, mut failure) = (Vec::new(), None);
        loop {
            let (kind, body) = self.receive()?;
            match kind {
                b'Z' => match failure {
                    Some(message) => bail!("{message}"),
                    None => return Ok(rows),
                },
                b'D' => rows.push(row_in(&body).context("the server sent a row that is cut")?),
                b'R' if body != [0; 4] => {
                    bail!("the server asks for a password: its pg_hba.conf was changed")
                }
                // An error before the connection is ready is the last message.
                b'E' if !is_ready_later(&body) => bail!("{}", error_in(&body)),
                b'E' => failure = Some(error_in(&body)),
                _ => {}
            }
        }
    }

    fn receive(&mut self) -> Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        let unanswered = "the server does not answer";
        self.stream.read_exact(&mut head).context(unanswered)?;
        let [kind, len @ ..] = head;
        let len = number_in(len) as usize;
        let Some(len) = len.checked_sub(4).filter(|len| *len <= MAX_MESSAGE_BYTES) else {
            bail!("the server sent a message of {len} bytes");
        };
        let mut body = vec![0; len];
        self.stream.read_exact(&mut body).context(unanswered)?;
        Ok((kind, body))
    }
}

/// Whether an error leaves the connection open: severities `FATAL` and `PANIC` end it.
fn is_ready_later(body: &[u8]) -> bool {
    field(body, b'V').is_none_or(|severity| severity == "ERROR")
}

/// The message of an error with its code, and its hint.
fn error_in(body: &[u8]) -> String {
    let text = |code| field(body, code).unwrap_or_default();
    let hint = field(body, b'H').map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{} {}{hint}", text(b'C'), text(b'M'))
}

/// A field of an error: each is a byte that names it, and a text that ends with zero.
fn field(body: &[u8], code: u8) -> Option<String> {
    let mut fields = body.split(|byte| *byte == 0);
    let found = fields.find_map(|field| field.strip_prefix(&[code]))?;
    Some(String::from_utf8_lossy(found).into_owned())
}

/// The values of a row; `None` if it is cut.
fn row_in(body: &[u8]) -> Option<Row> {
    let (_count, mut rest) = body.split_first_chunk::<2>()?;
    let mut row = Row::new();
    while let Some((len, tail)) = rest.split_first_chunk::<4>() {
        rest = tail;
        let len = number_in(*len);
        // NULL has the length -1.
        row.push(if len == u32::MAX {
            None
        } else {
            let (value, tail) = rest.split_at_checked(len as usize)?;
            rest = tail;
            Some(String::from_utf8_lossy(value).into_owned())
        });
    }
    rest.is_empty().then_some(row)
}

#[expect(clippy::big_endian_bytes, reason = "the protocol's order of bytes")]
fn bytes_of(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

#[expect(clippy::big_endian_bytes, reason = "the protocol's order of bytes")]
fn number_in(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor, Read, Write};

    use super::Connection;

    /// A server whose answers are known beforehand.
    #[derive(Debug)]
    struct Script {
        answers: Cursor<Vec<u8>>,
        asked: Vec<u8>,
    }

    impl Read for Script {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.answers.read(buffer)
        }
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.asked.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0S\0\0\0\x08a\0b\0Z\0\0\0\x05I";
    const READY: &[u8] = b"Z\0\0\0\x05I";

    fn server(answers: &[&[u8]]) -> anyhow::Result<Connection<Script>> {
        let answers = Cursor::new(answers.concat());
        Connection::over(Script { answers, asked: Vec::new() }, "db")
    }

    #[test]
    fn a_query_is_sent_as_text_and_its_rows_are_read() {
        let row = b"D\0\0\0\x11\0\x02\0\0\0\x03abc\xff\xff\xff\xff";
        let mut connection = server(&[WELCOME, b"T\0\0\0\x06\0\x02", row, row, READY]).expect("a welcome");
        let expected = vec![Some("abc".to_owned()), None];
        assert_eq!(connection.query("SELECT 1").expect("rows"), [expected.clone(), expected]);
        let startup =
            b"\0\0\0\x3a\0\x03\0\0user\0postgres\0database\0db\0application_name\0xtask\0\0".to_vec();
        assert_eq!(connection.stream.asked, [&startup[..], b"Q\0\0\0\x0dSELECT 1\0"].concat());
    }

    #[test]
    fn an_error_ends_its_query_and_not_the_connection() {
        let error = b"E\0\0\0\x22VERROR\0C42P01\0Mno such table\0\0";
        let mut connection =
            server(&[WELCOME, &error[..], READY, b"D\0\0\0\x0b\0\x01\0\0\0\x011", READY]).expect("a welcome");
        let failed = connection.query("SELECT 1 FROM t").unwrap_err();
        assert_eq!(format!("{failed:#}"), "`SELECT 1 FROM t`: 42P01 no such table");
        assert_eq!(connection.value("SELECT 1").expect("a value"), "1");
    }

    #[test]
    fn a_server_that_refuses_or_is_cut_off_is_an_error() {
        let refused = |answers: &[&[u8]]| format!("{:#}", server(answers).unwrap_err());
        let fatal = b"E\0\0\0\x26VFATAL\0C57P03\0Mstarting up\0Hwait\0\0";
        assert_eq!(refused(&[fatal]), "the server refuses the connection: 57P03 starting up (wait)");
        let password =
            "the server refuses the connection: the server asks for a password: its pg_hba.conf was changed";
        assert_eq!(refused(&[b"R\0\0\0\x08\0\0\0\x03"]), password);
        let large = "the server refuses the connection: the server sent a message of 4294967295 bytes";
        assert_eq!(refused(&[b"Z\xff\xff\xff\xff"]), large);
        // Its value has nine bytes and one of them is there; after its value a byte is too many.
        for row in [&b"D\0\0\0\x0b\0\x01\0\0\0\x091"[..], b"D\0\0\0\x0c\0\x01\0\0\0\x0111"] {
            let mut connection = server(&[WELCOME, row, READY]).expect("a welcome");
            let cut = format!("{:#}", connection.query("SELECT 1").unwrap_err());
            assert_eq!(cut, "`SELECT 1`: the server sent a row that is cut");
        }
    }
}
