//! What the machine needs for the bytes of one terrain column: copying, compressing, appending, syncing, reading.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::columns::{Column, Columns};
use crate::failure::Failure;

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
    let mut told = vec![("memcpy".to_owned(), each(&bytes, |column| Ok(black_box(column.clone()).len()))?)];
    let mut room = vec![
        0;
        bytes
            .iter()
            .map(|column| lz4_flex::block::get_maximum_output_size(column.len()))
            .max()
            .unwrap_or(0)
    ];
    let lz4: Result<Vec<_>, Failure> = bytes
        .iter()
        .map(|column| {
            let len = lz4_flex::block::compress_into(column, &mut room)?;
            Ok((room[..len].to_vec(), column.len()))
        })
        .collect();
    told.push((
        "LZ4, compress".to_owned(),
        each(&bytes, |column| Ok(lz4_flex::block::compress_into(column, &mut room)?))?,
    ));
    let mut out = vec![0; bytes.iter().map(Vec::len).max().unwrap_or(0)];
    let unpack =
        |(packed, len): &(Vec<u8>, usize)| Ok(lz4_flex::block::decompress_into(packed, &mut out[..*len])?);
    told.push(("LZ4, decompress".to_owned(), each(&lz4?, unpack)?));
    for level in LEVELS {
        let few = if level > 10 { &bytes[..FEW.min(bytes.len())] } else { &bytes[..] };
        let pack = |column: &Vec<u8>| Ok(zstd::bulk::compress(column, level)?.len());
        told.push((format!("Zstandard {level}, compress"), each(few, pack)?));
        let packed: Vec<_> = few
            .iter()
            .map(|column| Ok((zstd::bulk::compress(column, level)?, column.len())))
            .collect::<Result<_, Failure>>()?;
        let unpack = |(packed, len): &(Vec<u8>, usize)| Ok(zstd::bulk::decompress(packed, *len)?.len());
        told.push((format!("Zstandard {level}, decompress"), each(&packed, unpack)?));
    }
    files(&bytes, scratch, &mut told)?;
    println!("{}", serde_json::to_string(&told)?);
    Ok(())
}

fn bytes_of(column: &Column) -> Vec<u8> {
    column.0.iter().flat_map(|chunk| chunk.to_bytes()).collect()
}

/// What files cost: appended and synced one by one, appended and synced at the end, and read in one go.
fn files(bytes: &[Vec<u8>], scratch: &Path, told: &mut Vec<(String, f64)>) -> Result<(), Failure> {
    let path = scratch.join("file");
    let mut file = File::create(&path)?;
    let synced = each(&bytes[..FEW.min(bytes.len())], |column| {
        file.write_all(column)?;
        file.sync_data()?;
        Ok(column.len())
    })?;
    told.push(("append and fdatasync each".to_owned(), synced));
    fs::remove_file(&path)?;
    let mut file = File::create(&path)?;
    let begun = Instant::now();
    for column in bytes {
        file.write_all(column)?;
    }
    file.sync_data()?;
    told.push((
        "append, fdatasync at the end".to_owned(),
        begun.elapsed().as_nanos() as f64 / bytes.len() as f64,
    ));
    let mut all = Vec::with_capacity(bytes.iter().map(Vec::len).sum());
    let begun = Instant::now();
    File::open(&path)?.read_to_end(&mut all)?;
    told.push(("one sequential read".to_owned(), begun.elapsed().as_nanos() as f64 / bytes.len() as f64));
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
