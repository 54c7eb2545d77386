//! The bytes that the kernel and a file system of FUSE exchange: requests are taken apart, answers put together.
//!
//! Numbers are those of the machine, at fixed places. The interface is stable: a kernel speaks the older version that it is
//! answered with.
#![expect(clippy::host_endian_bytes, reason = "the kernel of this machine reads them")]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use rustix::io::Errno;

use super::tree::Node;

/// The version that is spoken.
const VERSION: (u32, u32) = (7, 31);
/// A write may be longer than a page.
const BIG_WRITES: u32 = 1 << 5;
/// The number of pages of a request is stated.
const MAX_PAGES: u32 = 1 << 22;
const PAGE_BYTES: usize = 4096;
const MAX_WRITE_BYTES: usize = 1 << 20;
/// Every read and every write arrives, none is answered by the kernel.
const DIRECT_IO: u32 = 1;
/// The length is among what is to be set.
const SETS_LEN: u32 = 1 << 3;
const HEADER_BYTES: usize = 40;
const BLOCK_BYTES: u32 = 4096;
/// What is free, always.
const FREE_BLOCKS: u64 = 1 << 24;

/// The length of a buffer into which every request fits.
pub(super) const REQUEST_BYTES: usize = MAX_WRITE_BYTES + PAGE_BYTES;

/// A request.
#[derive(Debug)]
pub(super) struct Request<'b> {
    /// Its number, which the answer repeats.
    pub(super) unique: u64,
    /// The file or directory that it is about.
    pub(super) node: Node,
    pub(super) call: Asked<'b>,
}

/// What is asked for.
#[derive(Debug)]
pub(super) enum Asked<'b> {
    Start,
    Find {
        name: &'b OsStr,
    },
    Attributes,
    Set {
        len: Option<u64>,
    },
    MakeDir {
        name: &'b OsStr,
    },
    MakeFile {
        name: &'b OsStr,
    },
    Remove {
        name: &'b OsStr,
    },
    Rename {
        name: &'b OsStr,
        to: Node,
        new_name: &'b OsStr,
        replaces: bool,
    },
    /// The node is the directory that gets the name.
    Link {
        linked: Node,
        name: &'b OsStr,
    },
    Open,
    Read {
        at: u64,
        len: usize,
    },
    Write {
        at: u64,
        bytes: &'b [u8],
    },
    Sync,
    OpenDir,
    List {
        from: u64,
        len: usize,
    },
    SyncDir,
    Space,
    /// Of no interest, and done.
    Done,
    /// Of no interest, and the kernel waits for no answer.
    Unanswered,
    /// What this file system does not have.
    Unknown,
}

impl<'b> Request<'b> {
    /// Takes a request apart; `None` if it ends too early.
    pub(super) fn read(bytes: &'b [u8]) -> Option<Self> {
        let (header, body) = bytes.split_at_checked(HEADER_BYTES)?;
        let name = |from: usize| Some(OsStr::from_bytes(body.get(from..)?.split(|byte| *byte == 0).next()?));
        let call = match u32_at(header, 4)? {
            1 => Asked::Find { name: name(0)? },
            2 | 42 => Asked::Unanswered,
            3 => Asked::Attributes,
            4 => {
                let sets_len = u32_at(body, 0)? & SETS_LEN != 0;
                Asked::Set { len: if sets_len { Some(u64_at(body, 16)?) } else { None } }
            }
            9 => Asked::MakeDir { name: name(8)? },
            10 | 11 => Asked::Remove { name: name(0)? },
            12 => rename(body, 8, 0)?,
            13 => Asked::Link { linked: u64_at(body, 0)?, name: name(8)? },
            14 => Asked::Open,
            15 => Asked::Read { at: u64_at(body, 8)?, len: u32_at(body, 16)? as usize },
            16 => {
                let (told, bytes) = body.split_at_checked(40)?;
                Asked::Write { at: u64_at(told, 8)?, bytes: bytes.get(..u32_at(told, 16)? as usize)? }
            }
            17 => Asked::Space,
            // A file or a directory is closed, once for each descriptor and once for all; or may be used.
            18 | 25 | 29 | 34 => Asked::Done,
            20 => Asked::Sync,
            26 => Asked::Start,
            27 => Asked::OpenDir,
            28 => Asked::List { from: u64_at(body, 8)?, len: u32_at(body, 16)? as usize },
            30 => Asked::SyncDir,
            35 => Asked::MakeFile { name: name(16)? },
            45 => rename(body, 16, u32_at(body, 8)?)?,
            _ => Asked::Unknown,
        };
        Some(Self { unique: u64_at(header, 8)?, node: u64_at(header, 16)?, call })
    }

    /// The answer with its header.
    pub(super) fn answer(&self, answer: Result<Answer, Errno>) -> Vec<u8> {
        let (error, body) = match answer {
            Ok(answer) => (0, answer.0),
            Err(error) => (-error.raw_os_error(), Vec::new()),
        };
        let mut all = Answer::default();
        all.u32(16 + body.len() as u32).u32(error.cast_unsigned()).u64(self.unique);
        all.0.extend(body);
        all.0
    }
}

fn rename(body: &[u8], names_at: usize, flags: u32) -> Option<Asked<'_>> {
    // Only that nothing is replaced, and no exchange.
    if flags > 1 {
        return Some(Asked::Unknown);
    }
    let mut names = body.get(names_at..)?.split(|byte| *byte == 0).map(OsStr::from_bytes);
    let (name, new_name) = (names.next()?, names.next()?);
    Some(Asked::Rename { name, to: u64_at(body, 0)?, new_name, replaces: flags == 0 })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The attributes of a file or a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attributes {
    pub(super) node: Node,
    /// The length of a file; `None` of a directory.
    pub(super) len: Option<u64>,
}

/// The body of an answer.
#[derive(Debug, Default)]
pub(super) struct Answer(Vec<u8>);

impl Answer {
    /// The answer to the first request.
    pub(super) fn started() -> Self {
        let mut answer = Self::default();
        answer.u32(VERSION.0).u32(VERSION.1);
        // Nothing is read ahead; the sizes of queues are the kernel's own.
        answer.u32(0).u32(BIG_WRITES | MAX_PAGES).u32(0).u32(MAX_WRITE_BYTES as u32);
        // Times are in nanoseconds.
        answer.u32(1).0.extend(((MAX_WRITE_BYTES / PAGE_BYTES) as u16).to_ne_bytes());
        answer.zeros(34);
        answer
    }

    /// A node under a name.
    pub(super) fn entry(attributes: Attributes) -> Self {
        let mut answer = Self::default();
        // The kernel keeps no attribute and no name.
        answer.u64(attributes.node).zeros(32).attributes(attributes);
        answer
    }

    pub(super) fn of_attributes(attributes: Attributes) -> Self {
        let mut answer = Self::default();
        answer.zeros(16).attributes(attributes);
        answer
    }

    pub(super) fn opened() -> Self {
        Self::default().and_opened()
    }

    /// This, and that the file is open.
    pub(super) fn and_opened(mut self) -> Self {
        self.u64(0).u32(DIRECT_IO).u32(0);
        self
    }

    pub(super) fn bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    pub(super) fn written(len: usize) -> Self {
        let mut answer = Self::default();
        answer.u32(len as u32).u32(0);
        answer
    }

    pub(super) fn space() -> Self {
        let mut answer = Self::default();
        for _ in 0..5 {
            answer.u64(FREE_BLOCKS);
        }
        answer.u32(BLOCK_BYTES).u32(255).u32(BLOCK_BYTES).zeros(28);
        answer
    }

    /// Adds a name of a list, and the number of the next, unless that makes it longer than `limit_bytes`.
    pub(super) fn list(
        &mut self,
        (name, node, is_dir): (&OsStr, Node, bool),
        next: u64,
        limit_bytes: usize,
    ) -> bool {
        let name = name.as_bytes();
        if self.0.len() + 24 + name.len().next_multiple_of(8) > limit_bytes {
            return false;
        }
        self.u64(node).u64(next).u32(name.len() as u32).u32(if is_dir { 4 } else { 8 });
        self.0.extend(name);
        let len = self.0.len().next_multiple_of(8);
        self.0.resize(len, 0);
        true
    }

    fn attributes(&mut self, Attributes { node, len }: Attributes) -> &mut Self {
        let (mode, links) = if len.is_some() { (0o100_644, 1) } else { (0o040_755, 2) };
        let len = len.unwrap_or(0);
        // The times are all that of the beginning.
        self.u64(node).u64(len).u64(len.div_ceil(512)).zeros(36).u32(mode).u32(links);
        self.u32(rustix::process::getuid().as_raw()).u32(rustix::process::getgid().as_raw());
        self.u32(0).u32(BLOCK_BYTES).u32(0)
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn zeros(&mut self, count: usize) -> &mut Self {
        self.0.resize(self.0.len() + count, 0);
        self
    }
}
