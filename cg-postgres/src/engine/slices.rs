//! Reads of many rows, or of parts of them, by one statement.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;

use cg_engine::{RowSlice, Space, Value};
use cg_format::key;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::read::{At, Found, SEGMENT, Source};
use super::snapshot::Kept;
use crate::error::{Failed, ReadError};
use crate::fold::number;
use crate::pool::Purpose;
use crate::records::is_record;

impl Source {
    pub(crate) fn get_many(&self, at: Option<&At>, keys: &[(Space, &[u8])]) -> Vec<Found> {
        let whole = keys.iter().map(|(space, key)| RowSlice { space: *space, key, bytes: 0..usize::MAX });
        self.get_slices(at, &whole.collect::<Vec<_>>())
    }

    pub(crate) fn get_slices(&self, at: Option<&At>, slices: &[RowSlice<'_>]) -> Vec<Found> {
        if slices.is_empty() {
            return Vec::new();
        }
        let asked = Arc::new(Asked::of(slices));
        let places = Arc::clone(&asked);
        let rows = self.ask(at, move |pool, session| {
            let asked = Arc::clone(&asked);
            async move {
                let statements = session.reading(&pool.sql).await?;
                let Asked { groups, records } = &*asked;
                let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![
                    &SEGMENT,
                    &groups.families,
                    &groups.from,
                    &groups.to,
                    &groups.masks,
                    &groups.starts,
                    &groups.lens,
                ];
                if records.keys.is_empty() {
                    return Ok(session.client.query(&statements.slices, &parameters).await?);
                }
                let of_records: [&(dyn ToSql + Sync); 3] = [&records.keys, &records.starts, &records.lens];
                parameters.extend(of_records);
                Ok(session.client.query(&statements.slices_mixed, &parameters).await?)
            }
        });
        let is_damaged = |failed: &Failed| matches!(failed, Failed::Refused(error) if error.is_of_damage());
        let all = |error: &ReadError| slices.iter().map(|_| Err(error.engine_error())).collect();
        match rows {
            Ok(rows) => places.each(&rows, slices.len()).unwrap_or_else(|failed| all(&failed.into())),
            // A damaged page fails the statement, and shall fail only its own rows. All are of one state then too.
            Err(ReadError::Failed(failed)) if slices.len() > 1 && is_damaged(&failed) => match at {
                Some(at) => slices.chunks(1).flat_map(|slice| self.get_slices(Some(at), slice)).collect(),
                None => match Kept::with(self, Purpose::Scan, |_, _| ready(Ok(()))) {
                    Ok((kept, ())) => self.get_slices(Some(&kept.at), slices),
                    Err(_) => all(&ReadError::Failed(failed)),
                },
            },
            Err(error) => all(&error),
        }
    }
}

/// Slices in groups. All of a group are of the same bytes of rows of one family. A group has one key, or those of chunks that
/// are near each other, which differ in their last byte alone. An area has some tens of groups.
#[derive(Debug, Default)]
struct Groups {
    families: Vec<i16>,
    /// The first key of each.
    from: Vec<Vec<u8>>,
    /// The last key of each.
    to: Vec<Vec<u8>>,
    /// A bit for each last byte that is asked for.
    masks: Vec<Vec<u8>>,
    starts: Vec<i32>,
    lens: Vec<i32>,
    /// The last byte of each key, which ascend, and its place in the call. A key without bytes has 0.
    members: Vec<Vec<(u8, usize)>>,
}

/// Slices of records.
#[derive(Debug, Default)]
struct Records {
    keys: Vec<Vec<u8>>,
    starts: Vec<i32>,
    lens: Vec<i32>,
    /// The place of each in the call.
    places: Vec<usize>,
}

/// The slices of a call: those of rows that may be in a table of records apart from the others.
#[derive(Debug, Default)]
struct Asked {
    groups: Groups,
    records: Records,
}

impl Asked {
    fn of(slices: &[RowSlice<'_>]) -> Self {
        let mut asked = Self::default();
        let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (place, slice) in slices.iter().enumerate() {
            let (start, len) = bytes_of(slice);
            if is_record(slice.space.family(), slice.key) {
                asked.records.keys.push(slice.key.to_vec());
                asked.records.starts.push(start);
                asked.records.lens.push(len);
                asked.records.places.push(place);
            } else {
                let (last, rest) = slice.key.split_last().unzip();
                // The rows of a family of other keys that lie between two that are asked for may be many.
                let alone = if is_of_chunks(slice) { None } else { last };
                let group = (number(slice.space.family()), rest, alone, start, len);
                groups.entry(group).or_default().push((last.copied().unwrap_or_default(), place));
            }
        }
        for ((family, rest, _, start, len), mut members) in groups {
            members.sort_unstable();
            let key = |member: Option<&(u8, usize)>| {
                let last = member.map(|(last, _)| *last);
                rest.into_iter().flatten().copied().chain(last.filter(|_| rest.is_some())).collect()
            };
            let mut mask = vec![0; 32];
            for (last, _) in &members {
                mask[usize::from(last / 8)] |= 1 << (last % 8);
            }
            asked.groups.families.push(family);
            asked.groups.from.push(key(members.first()));
            asked.groups.to.push(key(members.last()));
            asked.groups.masks.push(mask);
            asked.groups.starts.push(start);
            asked.groups.lens.push(len);
            asked.groups.members.push(members);
        }
        asked
    }

    /// The places of the slices of a row that was found, by the number of its group and its last byte. The number of a row
    /// without a byte is that of a record.
    fn places(&self, number: i64, last: Option<i32>) -> impl Iterator<Item = usize> {
        let index = (number as usize).wrapping_sub(1);
        let record = if last.is_none() { self.records.places.get(index).copied() } else { None };
        let members = last.zip(self.groups.members.get(index)).map(|(last, members)| {
            let from = members.partition_point(|(member, _)| i32::from(*member) < last);
            members[from..].iter().take_while(move |(member, _)| i32::from(*member) == last)
        });
        record.into_iter().chain(members.into_iter().flatten().map(|(_, place)| *place))
    }

    /// One result for each of the slices, in the order of the call.
    fn each(&self, rows: &[Row], count: usize) -> Result<Vec<Found>, Failed> {
        let mut found: Vec<Found> = (0..count).map(|_| Ok(None)).collect();
        for row in rows {
            let Some(value) = row.try_get::<_, Option<&[u8]>>(2)? else { continue };
            for place in self.places(row.try_get(0)?, row.try_get(1)?) {
                found[place] = Ok(Some(Value::from(value.to_vec())));
            }
        }
        Ok(found)
    }
}

/// Whether the family of a row has keys of one length, so that few rows have keys that differ in their last byte alone.
fn is_of_chunks(slice: &RowSlice<'_>) -> bool {
    let is_of_chunks = matches!(slice.space, Space::ChunkL0 | Space::ClusterL1 | Space::ClusterL2);
    is_of_chunks && slice.key.len() == key::CHUNK_LEN_BYTES
}

/// The first byte of a slice, counted from 1, and its length. No row has 1 GiB, and the server adds both numbers.
fn bytes_of(slice: &RowSlice<'_>) -> (i32, i32) {
    let at_most = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX).min(1 << 30);
    let (start, end) = (slice.bytes.start, slice.bytes.end);
    (at_most(start) + 1, at_most(end.saturating_sub(start)))
}
