//! `cg object`: versioned objects.

use std::fmt;
use std::path::PathBuf;

use cg_anvil::new_file;
use cg_store::objects::ObjectKey;

use serde::Serialize;

use super::content::{Content, ContentArg};
use crate::args::{WorldArg, WrittenWorldArg, YesArg};
use crate::output::{Failure, Outcome, Output, counted, hex, unhex};

/// List, read, write and delete versioned objects.
///
/// A key is text; one that is no printable text is written `hex:` and its bytes in hexadecimal, as `list` prints it.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    List(List),
    Get(Get),
    Put(Put),
    Delete(Delete),
}

/// List objects in the order of their keys: version, bytes and key.
///
/// JSON: `{"objects":[{"key","version","bytes"}],"next":KEY}`, where `next` is what `--after` takes to go on, or null.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    world: WorldArg,
    /// Only keys that begin so.
    #[arg(long, value_name = "KEY", default_value = "")]
    prefix: String,
    /// Only keys after this one.
    #[arg(long, value_name = "KEY")]
    after: Option<String>,
    /// The greatest number to list.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Show an object. Exit code 4 if there is none.
///
/// Content that is no printable text is shown in hexadecimal. JSON: `{"key","version","bytes","text":TEXT,"hex":HEX}`,
/// one of the last two null, both if `--to` is given.
#[derive(Debug, clap::Args)]
pub(crate) struct Get {
    #[command(flatten)]
    world: WorldArg,
    #[arg(value_name = "KEY")]
    key: String,
    /// Write the content to this file instead; one that is there is replaced as a whole.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// Write an object. Writes.
///
/// Its version is one more than before, or 0; content that is there already is no change. JSON: `{"key","version"}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Put {
    #[command(flatten)]
    world: WrittenWorldArg,
    #[arg(value_name = "KEY")]
    key: String,
    #[command(flatten)]
    content: ContentArg,
    /// The version that another store gave it. It may not be below the one that is there.
    #[arg(long, value_name = "VERSION", allow_negative_numbers = true)]
    version: Option<i64>,
}

/// Delete an object. Writes. Exit code 4 if there is none.
///
/// Its version is remembered, and it counts on if it is written again. JSON: `{"key","deleted":bool}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    world: WrittenWorldArg,
    #[arg(value_name = "KEY")]
    key: String,
    #[command(flatten)]
    yes: YesArg,
}

#[derive(Debug, Serialize)]
struct Listed {
    objects: Vec<Entry>,
    next: Option<String>,
}

#[derive(Debug, Serialize)]
struct Entry {
    key: String,
    version: i64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct Shown {
    key: String,
    version: i64,
    bytes: usize,
    #[serde(flatten)]
    content: Content,
}

#[derive(Debug, Serialize)]
struct Written {
    key: String,
    version: i64,
}

#[derive(Debug, Serialize)]
struct Deleted {
    key: String,
    deleted: bool,
}

pub(crate) fn run(command: &Command, out: &Output) -> Result<Outcome, Failure> {
    match command {
        Command::List(args) => list(args, out),
        Command::Get(args) => get(args, out),
        Command::Put(args) => put(args, out),
        Command::Delete(args) => delete(args, out),
    }
}

fn list(args: &List, out: &Output) -> Result<Outcome, Failure> {
    let after = args.after.as_deref().map(key).transpose()?;
    let prefix = key_bytes(&args.prefix)?;
    let page = args.world.open(out)?.objects().list(prefix, after.as_ref(), args.limit as usize)?;
    let entry = |entry: &cg_store::objects::ObjectEntry| Entry {
        key: key_text(&entry.key),
        version: entry.version,
        bytes: entry.len_bytes,
    };
    let objects = page.entries.iter().map(entry).collect();
    out.print(&Listed { objects, next: page.next.as_ref().map(key_text) })?;
    Ok(Outcome::Good)
}

fn get(args: &Get, out: &Output) -> Result<Outcome, Failure> {
    let key = key(&args.key)?;
    let Some(object) = args.world.open(out)?.objects().get(&key)? else {
        return Err(Failure::absent(format!("there is no object `{}`", key_text(&key))));
    };
    let content = match &args.to {
        Some(path) => {
            new_file::write(path, &object.bytes).map_err(|error| Failure::io("write", path, &error))?;
            Content::default()
        }
        None => Content::of(&object.bytes),
    };
    let (version, bytes) = (object.version, object.bytes.len());
    out.print(&Shown { key: key_text(&key), version, bytes, content })?;
    Ok(Outcome::Good)
}

fn put(args: &Put, out: &Output) -> Result<Outcome, Failure> {
    let key = key(&args.key)?;
    let content = args.content.read()?;
    let world = args.world.open_for_writing(out)?;
    let version = match args.version {
        Some(version) => {
            world.objects().put_at_version(&key, version, content)?;
            version
        }
        None => world.objects().put(&key, content)?,
    };
    world.close()?;
    out.print(&Written { key: key_text(&key), version })?;
    Ok(Outcome::Good)
}

fn delete(args: &Delete, out: &Output) -> Result<Outcome, Failure> {
    let key = key(&args.key)?;
    args.yes.confirm(&format!("object `{}` would be deleted", key_text(&key)))?;
    let world = args.world.open_for_writing(out)?;
    let deleted = world.objects().delete(&key)?;
    world.close()?;
    out.print(&Deleted { key: key_text(&key), deleted })?;
    Ok(Outcome::good_if_there(deleted))
}

/// Prefix of a key in hexadecimal: one that is no printable text.
const HEX: &str = "hex:";

/// A key as it is printed, so that it can be given back.
fn key_text(key: &ObjectKey) -> String {
    match str::from_utf8(key.as_bytes()) {
        Ok(text) if !text.starts_with(HEX) && !text.chars().any(char::is_control) => text.to_owned(),
        _ => format!("{HEX}{}", hex(key.as_bytes())),
    }
}

pub(super) fn key(text: &str) -> Result<ObjectKey, Failure> {
    ObjectKey::new(key_bytes(text)?).map_err(|error| Failure::usage(error.to_string()))
}

pub(super) fn key_bytes(text: &str) -> Result<Vec<u8>, Failure> {
    match text.strip_prefix(HEX) {
        Some(digits) => unhex(digits).ok_or_else(|| Failure::usage(format!("`{digits}` is no hexadecimal"))),
        None => Ok(text.as_bytes().to_vec()),
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Entry { key, version, bytes } in &self.objects {
            writeln!(f, "{version:>8}  {bytes:>12}  {key}")?;
        }
        match &self.next {
            Some(next) => writeln!(f, "and more: go on with --after '{next}'"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, version, bytes, content } = self;
        writeln!(f, "object `{key}`, version {version}, {}", counted(*bytes as u64, "byte"))?;
        write!(f, "{content}")
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "object `{}` is at version {}", self.key, self.version)
    }
}

impl fmt::Display for Deleted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = if self.deleted { "was deleted" } else { "is not there" };
        writeln!(f, "object `{}` {done}", self.key)
    }
}
