//! One record of a trace: an event in the shortest form that the earlier records allow.
//!
//! | kind | fields after it | what it says |
//! |---|---|---|
//! | 1 | `advance` u32 | time goes on by this many ticks |
//! | 129 | `tick` u64 | time goes on, by 2^32 ticks or more, to this one |
//! | 2 | `uuid`, `dimension`, `block x`, `block y`, `block z` | a player appears for the first time |
//! | 3 | `player` u32, `step x`, `step y`, `step z` i16 | a player moves |
//! | 131 | `player`, `dimension`, `block x`, `block y`, `block z` | a player comes back, or moves farther than a step |
//! | 4 | `player` | a player leaves |
//! | 5, 133 | place, `len` u32 | a chunk is loaded |
//! | 6, 134 | place, `len` | a chunk is saved |
//! | 7, 135 | place | a chunk is unloaded |
//! | 8 | `hold` u64, `dimension`, `least x` … `greatest z` | a box of chunks is kept loaded |
//! | 9 | `hold` | it is released |
//! | 10 | `pin` u64, `dimension`, `least x` … `greatest z` | a box of chunks is pinned |
//! | 11 | `pin` | the pin is removed |
//!
//! In kinds below 128 a place is `chunk step x`, `chunk step y`, `chunk step z` (i8, from the chunk of the last record
//! with one). In kinds above it is `dimension`, `chunk x`, `chunk y`, `chunk z`.

use cg_format::wire::{Reader, Writer};
use cg_format::{BlockPos, ChunkAt, ChunkBox, ChunkPos, DecodeError, Dimension, EntityId, Problem};

/// The bit of a kind that marks the full form.
const IN_FULL: u8 = 128;
const ADVANCE: u8 = 1;
const APPEAR: u8 = 2;
const MOVE: u8 = 3;
const LEAVE: u8 = 4;
const LOAD: u8 = 5;
const SAVE: u8 = 6;
const UNLOAD: u8 = 7;
const HOLD: u8 = 8;
const RELEASE: u8 = 9;
const PIN: u8 = 10;
const UNPIN: u8 = 11;

/// The decoded content of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    Advance(u32),
    Tick(u64),
    Appear { id: EntityId, dimension: Dimension, block: BlockPos },
    Step { player: u32, step: [i16; 3] },
    Place { player: u32, dimension: Dimension, block: BlockPos },
    Leave { player: u32 },
    Chunk { what: What, place: Place },
    Hold { hold: u64, dimension: Dimension, place: ChunkBox },
    Release { hold: u64 },
    Pin { pin: u64, dimension: Dimension, place: ChunkBox },
    Unpin { pin: u64 },
}

/// The event of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Load { len_bytes: u32 },
    Save { len_bytes: u32 },
    Unload,
}

/// The position of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The distance from the chunk of the last record with one.
    Near([i8; 3]),
    At(ChunkAt),
}

impl Record {
    pub(super) fn kind(&self) -> u8 {
        match self {
            Self::Advance(_) => ADVANCE,
            Self::Tick(_) => ADVANCE | IN_FULL,
            Self::Appear { .. } => APPEAR,
            Self::Step { .. } => MOVE,
            Self::Place { .. } => MOVE | IN_FULL,
            Self::Leave { .. } => LEAVE,
            Self::Chunk { what, place } => {
                let kind = match what {
                    What::Load { .. } => LOAD,
                    What::Save { .. } => SAVE,
                    What::Unload => UNLOAD,
                };
                if matches!(place, Place::At(_)) { kind | IN_FULL } else { kind }
            }
            Self::Hold { .. } => HOLD,
            Self::Release { .. } => RELEASE,
            Self::Pin { .. } => PIN,
            Self::Unpin { .. } => UNPIN,
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u8(self.kind());
        match *self {
            Self::Advance(ticks) => writer.u32(ticks),
            Self::Tick(tick) => writer.u64(tick),
            Self::Appear { id, dimension, block } => {
                writer.bytes(&id.to_bytes());
                write_block(&mut writer, dimension, block);
            }
            Self::Step { player, step } => {
                writer.u32(player);
                for step in step {
                    writer.bytes(&step.to_le_bytes());
                }
            }
            Self::Place { player, dimension, block } => {
                writer.u32(player);
                write_block(&mut writer, dimension, block);
            }
            Self::Leave { player } => writer.u32(player),
            Self::Chunk { what, place } => {
                match place {
                    Place::Near(step) => {
                        for step in step {
                            writer.bytes(&step.to_le_bytes());
                        }
                    }
                    Place::At(chunk) => {
                        writer.u64(chunk.dimension.get());
                        write_chunk(&mut writer, chunk.pos);
                    }
                }
                if let What::Load { len_bytes } | What::Save { len_bytes } = what {
                    writer.u32(len_bytes);
                }
            }
            Self::Hold { hold: name, dimension, place } | Self::Pin { pin: name, dimension, place } => {
                writer.u64(name);
                writer.u64(dimension.get());
                write_chunk(&mut writer, place.min());
                write_chunk(&mut writer, place.max());
            }
            Self::Release { hold: name } | Self::Unpin { pin: name } => writer.u64(name),
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let kind = reader.u8("kind")?;
        Ok(match kind {
            ADVANCE => Self::Advance(reader.u32("advance")?),
            0x81 => Self::Tick(reader.u64("tick")?),
            APPEAR => {
                let id = EntityId::from_bytes(reader.array("uuid")?);
                let (dimension, block) = read_block(reader)?;
                Self::Appear { id, dimension, block }
            }
            MOVE => {
                let player = reader.u32("player")?;
                let mut step = |field| reader.array(field).map(i16::from_le_bytes);
                Self::Step { player, step: [step("step x")?, step("step y")?, step("step z")?] }
            }
            0x83 => {
                let player = reader.u32("player")?;
                let (dimension, block) = read_block(reader)?;
                Self::Place { player, dimension, block }
            }
            LEAVE => Self::Leave { player: reader.u32("player")? },
            LOAD | SAVE | UNLOAD | 0x85 | 0x86 | 0x87 => {
                let place = if kind & IN_FULL == 0 {
                    let mut step = |field| reader.array(field).map(i8::from_le_bytes);
                    Place::Near([step("chunk step x")?, step("chunk step y")?, step("chunk step z")?])
                } else {
                    let dimension = Dimension::new(reader.u64("dimension")?);
                    Place::At(ChunkAt::new(dimension, read_chunk(reader, ["chunk x", "chunk y", "chunk z"])?))
                };
                let what = match kind & !IN_FULL {
                    LOAD => What::Load { len_bytes: reader.u32("len")? },
                    SAVE => What::Save { len_bytes: reader.u32("len")? },
                    _ => What::Unload,
                };
                Self::Chunk { what, place }
            }
            HOLD => {
                let hold = reader.u64("hold")?;
                let (dimension, place) = read_box(reader)?;
                Self::Hold { hold, dimension, place }
            }
            RELEASE => Self::Release { hold: reader.u64("hold")? },
            PIN => {
                let pin = reader.u64("pin")?;
                let (dimension, place) = read_box(reader)?;
                Self::Pin { pin, dimension, place }
            }
            UNPIN => Self::Unpin { pin: reader.u64("pin")? },
            found => {
                let allowed = "1 to 11, 129, 131, 133 to 135";
                return Err(start.error(Problem::OutOfRange { field: "kind", found: found.into(), allowed }));
            }
        })
    }
}

fn write_block(writer: &mut Writer<'_>, dimension: Dimension, block: BlockPos) {
    writer.u64(dimension.get());
    writer.i64(block.x);
    writer.i64(block.y);
    writer.i64(block.z);
}

fn read_block(reader: &mut Reader<'_>) -> Result<(Dimension, BlockPos), DecodeError> {
    let dimension = Dimension::new(reader.u64("dimension")?);
    let (x, y, z) = (reader.i64("block x")?, reader.i64("block y")?, reader.i64("block z")?);
    Ok((dimension, BlockPos::new(x, y, z)))
}

fn write_chunk(writer: &mut Writer<'_>, pos: ChunkPos) {
    writer.i64(pos.x());
    writer.i64(pos.y());
    writer.i64(pos.z());
}

fn read_box(reader: &mut Reader<'_>) -> Result<(Dimension, ChunkBox), DecodeError> {
    let dimension = Dimension::new(reader.u64("dimension")?);
    let least = read_chunk(reader, ["least x", "least y", "least z"])?;
    let before = reader.clone();
    let greatest = read_chunk(reader, ["greatest x", "greatest y", "greatest z"])?;
    let place = ChunkBox::new(least, greatest);
    if place.max() != greatest {
        let allowed = "a corner that is nowhere less than the least";
        let found = greatest.x() as u64;
        return Err(before.error(Problem::OutOfRange { field: "greatest x", found, allowed }));
    }
    Ok((dimension, place))
}

fn read_chunk(reader: &mut Reader<'_>, fields: [&'static str; 3]) -> Result<ChunkPos, DecodeError> {
    let start = reader.clone();
    let (x, y, z) = (reader.i64(fields[0])?, reader.i64(fields[1])?, reader.i64(fields[2])?);
    ChunkPos::new(x, y, z).map_err(|error| {
        let field = fields[usize::from(error.axis as u8 - b'x')];
        start.error(Problem::OutsideWorld { field, found: error.found, min: error.min, max: error.max })
    })
}
