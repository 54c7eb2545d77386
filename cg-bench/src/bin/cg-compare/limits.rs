//! Times that the machine needs for the bytes of one terrain column: copying, compressing, appending, syncing, reading.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use cg_format::codec::{Codec, Effort, compress, decompress};

use crate::columns::{Column, Columns};
use crate::failure::Failure;

/// Nanoseconds for each column, by the name of the work.
type Times = Vec<(String, f64)>;

/// How long each kind of work is repeated, at least once.
const ENOUGH: Duration = Duration::from_millis(100);
/// The levels of Zstandard that are stated.
const LEVELS: [i32; 3] = [1, 6, 19];
/// The highest of them takes too long for every column.
const FEW: usize = 16;

/// Measures, and prints names with nanoseconds for each column as JSON.
///
/// # Errors
/// The columns cannot be read, or the folder cannot be written to.
pub(crate) fn run(columns: &Path, scratch: &Path) -> Result<(), Failure> {
    let columns = Columns::read(columns)?;
    let bytes: Vec<Vec<u8>> = columns.terrain.iter().map(bytes_of).collect();
    let mut times = vec![("memcpy".to_owned(), each(&bytes, |column| Ok(black_box(column.clone()).len()))?)];
    lz4(&bytes, &mut times)?;
    for level in LEVELS {
        let few = if level > 10 { &bytes[..FEW.min(bytes.len())] } else { &bytes[..] };
        zstandard(few, level, &mut times)?;
    }
    files(&bytes, scratch, &mut times)?;
    println!("{}", serde_json::to_string(&times)?);
    Ok(())
}

/// Each column as one LZ4 block, and back.
fn lz4(bytes: &[Vec<u8>], times: &mut Times) -> Result<(), Failure> {
    let mut packed = Vec::new();
    for column in bytes {
        let mut block = Vec::new();
        compress(Codec::Lz4, Effort::Fast, column, &mut block);
        packed.push((block, column.len()));
    }
    let mut out = Vec::new();
    let pack = |column: &Vec<u8>| {
        out.clear();
        compress(Codec::Lz4, Effort::Fast, column, &mut out);
        Ok(out.len())
    };
    times.push(("LZ4, compress".to_owned(), each(bytes, pack)?));
    let mut out = Vec::new();
    let unpack = |(block, len_bytes): &(Vec<u8>, usize)| {
        out.clear();
        decompress(Codec::Lz4, block, *len_bytes, &mut out).map_err(|problem| problem.to_string())?;
        Ok(out.len())
    };
    times.push(("LZ4, decompress".to_owned(), each(&packed, unpack)?));
    Ok(())
}

/// Each column as one Zstandard frame, and back.
fn zstandard(bytes: &[Vec<u8>], level: i32, times: &mut Times) -> Result<(), Failure> {
    let pack = |column: &Vec<u8>| Ok(zstd::bulk::compress(column, level)?.len());
    times.push((format!("Zstandard {level}, compress"), each(bytes, pack)?));
    let packed = bytes.iter().map(|column| Ok((zstd::bulk::compress(column, level)?, column.len())));
    let packed: Vec<_> = packed.collect::<Result<_, Failure>>()?;
    let unpack = |(frame, len_bytes): &(Vec<u8>, usize)| Ok(zstd::bulk::decompress(frame, *len_bytes)?.len());
    times.push((format!("Zstandard {level}, decompress"), each(&packed, unpack)?));
    Ok(())
}

fn bytes_of(column: &Column) -> Vec<u8> {
    column.chunks().iter().flat_map(|chunk| chunk.to_bytes()).collect()
}

/// Measures the cost of files: appended and synced one by one, appended and synced at the end, and read in one go.
fn files(bytes: &[Vec<u8>], scratch: &Path, times: &mut Times) -> Result<(), Failure> {
    let path = scratch.join("file");
    let mut file = File::create(&path)?;
    let synced = each(&bytes[..FEW.min(bytes.len())], |column| {
        file.write_all(column)?;
        file.sync_data()?;
        Ok(column.len())
    })?;
    times.push(("append and fdatasync each".to_owned(), synced));
    fs::remove_file(&path)?;
    let mut file = File::create(&path)?;
    let begun = Instant::now();
    for column in bytes {
        file.write_all(column)?;
    }
    file.sync_data()?;
    times.push((
        "append, fdatasync at the end".to_owned(),
        begun.elapsed().as_nanos() as f64 / bytes.len() as f64,
    ));
    let mut all = Vec::with_capacity(bytes.iter().map(Vec::len).sum());
    let begun = Instant::now();
    File::open(&path)?.read_to_end(&mut all)?;
    times.push(("one sequential read".to_owned(), begun.elapsed().as_nanos() as f64 / bytes.len() as f64));
    if all.len() != bytes.iter().map(Vec::len).sum::<usize>() {
        return Err("the file does not have what was written".into());
    }
    Ok(())
}

/// Nanoseconds for one of these, on average; all of them at least once, after one that is not timed.
fn each<T>(all: &[T], mut work: impl FnMut(&T) -> Result<usize, Failure>) -> Result<f64, Failure> {
    let first = all.first().ok_or("there are no columns")?;
    black_box(work(first)?);
    let (mut spent, mut count) = (Duration::ZERO, 0_u64);
    while spent < ENOUGH {
        let begun = Instant::now();
        for one in all {
            black_box(work(one)?);
        }
        spent += begun.elapsed();
        count += all.len() as u64;
    }
    Ok(spent.as_nanos() as f64 / count as f64)
}
