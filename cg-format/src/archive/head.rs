//! The first part: which world it is, and in which layouts its rows are.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

use crate::wire::{Reader, Trace, Writer};
use crate::{DecodeError, Problem, Section, frame};

/// The length of the first line of an archive.
pub const LINE_BYTES: usize = 22;
/// The first line. The digit before the line feed is the version of the layout.
pub(super) const SIGNATURE: &[u8; LINE_BYTES] = b"cherrygrove archive 1\n";
/// The first line of an archive of a segmented world.
pub(super) const OF_SEGMENTS: &[u8; LINE_BYTES] = b"cherrygrove archive 2\n";
/// The newest layout that this release reads.
const VERSION: u8 = 2;
/// The versions of the layouts of the rows, by field, as `world.cg` has them.
const LAYOUTS: [(&str, u8); 4] =
    [("chunk side blocks", 16), ("key version", 1), ("frame version", 1), ("draft", 1)];
/// The longest signature of an application.
const MAX_SIGNATURE_BYTES: usize = 256;
/// The most that a head takes: more than any has.
pub(super) const MAX_HEAD_BYTES: u64 = 4096;

/// The head of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The UUID of the world.
    pub uuid: [u8; 16],
    /// That of its incarnation.
    pub incarnation: [u8; 16],
    /// The signature of the application, if the world has one: 1 to 256 bytes.
    pub signature: Option<String>,
    /// The row of the newest commit, with its frame.
    pub commit_row: Vec<u8>,
}

impl Head {
    /// The bytes of the part.
    ///
    /// # Errors
    /// If [`decode`](Self::decode) would refuse them.
    pub(super) fn encode(&self) -> Result<Vec<u8>, DecodeError> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        for (_, version) in LAYOUTS {
            writer.u8(version);
        }
        writer.bytes(&self.uuid);
        writer.bytes(&self.incarnation);
        let signature = self.signature.as_deref().unwrap_or_default().as_bytes();
        writer.u16(signature.len().try_into().unwrap_or(u16::MAX));
        writer.bytes(signature);
        writer.bytes(&self.commit_row);
        Self::decode(&out, None)?;
        Ok(out)
    }

    pub(super) fn decode(raw: &[u8], trace: Option<&Trace>) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(raw, Section::ArchiveHead).traced(trace);
        for (field, ours) in LAYOUTS {
            let here = reader.clone();
            let found = reader.u8(field)?;
            if found > ours {
                return Err(here.error(Problem::Newer { field, found: found.into(), newest: ours.into() }));
            }
            if found < ours {
                return Err(here.error(Problem::Disagrees {
                    field,
                    found: found.into(),
                    expected: ours.into(),
                }));
            }
        }
        let (uuid, incarnation) = (reader.array("uuid")?, reader.array("incarnation")?);
        let here = reader.clone();
        let len_bytes = usize::from(reader.u16("signature len")?);
        if len_bytes > MAX_SIGNATURE_BYTES {
            let (field, found) = ("signature len", len_bytes as u64);
            return Err(here.error(Problem::OutOfRange { field, found, allowed: "0 to 256" }));
        }
        let here = reader.clone();
        let bytes = reader.take("signature", len_bytes)?;
        let text = core::str::from_utf8(bytes).map_err(|error| {
            let found = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
            here.error(Problem::NotUtf8 { field: "signature", found })
        })?;
        let signature = (!text.is_empty()).then(|| text.to_owned());
        let (here, left_bytes) = (reader.clone(), reader.left_bytes());
        if left_bytes < frame::LEN_BYTES {
            let (field, found) = ("commit row", left_bytes as u64);
            return Err(here.error(Problem::OutOfRange { field, found, allowed: "24 bytes and more" }));
        }
        let commit_row = reader.take("commit row", left_bytes)?.to_vec();
        Ok(Self { uuid, incarnation, signature, commit_row })
    }
}

/// The digits of the line, in words: for a reader of one world, and for one of segmented worlds.
const ONE_WORLD: &str = "1 for one world; 2 is a segmented world, and is restored as one";
const SEGMENTED: &str = "2 for a segmented world; 1 is one world, and is restored as one";

/// Whether bytes begin as an archive of a segmented world does. [`LINE_BYTES`] are enough.
pub fn is_of_segments(bytes: &[u8]) -> bool {
    bytes.starts_with(OF_SEGMENTS)
}

/// Reads the first line.
pub(super) fn read_line(
    line: &[u8],
    expected: &[u8; LINE_BYTES],
    trace: Option<&Trace>,
) -> Result<(), DecodeError> {
    let mut reader = Reader::new(line, Section::ArchiveLine).traced(trace);
    let found = reader.take("line", LINE_BYTES)?;
    let differs = found.iter().zip(expected).enumerate().find(|(_, (found, expected))| found != expected);
    let Some((at, (found, expected))) = differs else { return Ok(()) };
    let number = found.wrapping_sub(b'0');
    let problem = match number {
        _ if at + 2 == LINE_BYTES && (VERSION + 1..10).contains(&number) => {
            Problem::Newer { field: "line", found: number.into(), newest: VERSION.into() }
        }
        1 | 2 if at + 2 == LINE_BYTES => {
            let allowed = if number == 2 { ONE_WORLD } else { SEGMENTED };
            Problem::OutOfRange { field: "line", found: number.into(), allowed }
        }
        _ => Problem::Disagrees { field: "line", found: (*found).into(), expected: (*expected).into() },
    };
    Err(DecodeError::new(Section::ArchiveLine, at as u64, problem))
}
