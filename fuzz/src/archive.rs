//! Laws for any bytes that are taken for an archive: what is read is written so that it is read again, the fields explain
//! every byte that a reader reads, and what is restored is whole or no world.

use cg_format::Limits;
use cg_format::archive::{
    ArchiveReader, ArchiveWriter, Fault, Head, Piece, SegmentAt, SegmentsReader, SegmentsWriter, explain,
    is_of_segments,
};
use cg_format::codec::Codec;
use cg_format::key::Family;
use cg_store::engine::MemEngine;
use cg_store::{World, error::ArchiveError};

type Rows = Vec<(Family, Vec<u8>, Vec<u8>)>;

/// Reads bytes as an archive and says whether they are one. Those with wrong checksums are none, and what they would say with right
/// ones keeps the same laws.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let is_one = check_sealed(bytes);
    if let Some(sealed) = super::parts::sealed_archive(bytes) {
        check_sealed(&sealed);
    }
    is_one
}

fn check_sealed(bytes: &[u8]) -> bool {
    if is_of_segments(bytes) {
        return check_segments(bytes);
    }
    let (_, explained) = explain(bytes, limits());
    let read_again = read(bytes);
    restore(bytes, read_again.is_ok());
    let Ok((head, rows)) = read_again else {
        assert!(explained.is_err());
        return false;
    };
    let totals = explained.expect("the same reader");
    assert_eq!((totals.len_bytes, totals.row_count), (bytes.len() as u64, rows.len() as u64));
    let mut again = Vec::new();
    let mut archive = ArchiveWriter::new(Codec::Lz4, &head, &mut again).expect("it was read");
    for (family, key, row) in &rows {
        archive.row(*family, key, row, &mut again).expect("it was read");
    }
    let written = archive.finish(&mut again).expect("it was read");
    assert_eq!((written.row_count, written.row_bytes), (totals.row_count, totals.row_bytes));
    assert_eq!(read(&again).expect("just written"), (head, rows));
    true
}

/// What is restored opens, or an error says why it does not.
fn restore(bytes: &[u8], is_archive: bool) {
    // The bytes of a part are charged to the limits of a whole world there, so only what is small is restored.
    if !is_archive {
        return;
    }
    let engine = MemEngine::new();
    match World::builder().restore_over(bytes, &engine, |_| {}) {
        Ok(_) => drop(World::builder().open_read_only_over(engine)),
        Err(ArchiveError::Fault(fault)) => panic!("it was read: {fault}"),
        Err(_) => assert!(World::builder().open_read_only_over(engine).is_err(), "it is half a world"),
    }
}

type Worlds = Vec<(Option<SegmentAt>, Vec<u8>)>;

/// Whether bytes are an archive of a segmented world. What is in it for each of its worlds keeps the laws of archives.
fn check_segments(bytes: &[u8]) -> bool {
    let (_, explained) = SegmentsReader::explain(bytes, limits());
    let Ok(worlds) = read_worlds(bytes) else {
        assert!(explained.is_err());
        return false;
    };
    assert_eq!(explained.expect("the same reader"), worlds.len() as u64);
    let mut again = Vec::new();
    let mut archive = SegmentsWriter::new(&mut again).expect("it begins");
    for (segment, bytes) in &worlds {
        if let Some(segment) = segment {
            archive.segment(*segment, &mut again).expect("it was read");
        }
        archive.bytes(bytes, &mut again).expect("it was read");
    }
    assert_eq!(archive.finish(&mut again).expect("it was read"), again.len() as u64);
    assert_eq!(read_worlds(&again).expect("just written"), worlds);
    for (_, bytes) in &worlds {
        // Those in it are not read as archives of segmented worlds.
        if !is_of_segments(bytes) {
            check(bytes);
        }
    }
    true
}

fn read_worlds(bytes: &[u8]) -> Result<Worlds, Fault> {
    let mut archive = SegmentsReader::open(bytes, limits())?;
    let mut worlds = Worlds::new();
    while let Some(piece) = archive.next_piece()? {
        match piece {
            Piece::Root => worlds.push((None, Vec::new())),
            Piece::Segment(segment) => worlds.push((Some(segment), Vec::new())),
            Piece::Bytes(bytes) => worlds.last_mut().expect("one has begun").1.extend(bytes),
        }
    }
    Ok(worlds)
}

fn limits() -> Limits {
    Limits::new(8 << 20)
}

fn read(bytes: &[u8]) -> Result<(Head, Rows), Fault> {
    let mut archive = ArchiveReader::open(bytes, limits())?;
    let mut rows = Rows::new();
    while let Some(page) = archive.next_page()? {
        rows.extend(page.iter().map(|(family, key, row)| (family, key.to_vec(), row.to_vec())));
    }
    Ok((archive.head().clone(), rows))
}
