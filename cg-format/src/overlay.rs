//! The rows of an overlay: a layer of changes over a world that is not modified.
//!
//! A row, after its frame:
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | 1 | `row version`: 2 |
//! | 1 | 1 | `row state`: 0 deleted, 1 here, 2 here as what the base has and a delta |
//! | 2 | 1 | `origin layer`: how many overlays stand between the world and what was there before |
//! | 3 | 8 | `origin version`: its version in that layer; 0 if nothing was there |
//! | 11 | 8 | `origin opening`: the number of the [opening](crate::lineage) that made that version; 0 if it is of an earlier draft |
//! | 19 | … | `value`: what a world stores of it; of state 2 the delta; nothing if deleted |
//!
//! Rows of version 1 have no `origin opening`.
//!
//! An arena, after its frame:
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | 1 | `arena version`: 1 |
//! | 1 | 1 | `arena state`: 0 free, 1 leased |
//! | 2 | 8 | `lease`: the number that its rows begin with |
//! | 10 | 8 | `since`: the tick at which it got that state |
//! | 18 | 2 | `holder length` |
//! | 20 | … | `holder`: who leased it, UTF-8 |

use alloc::string::String;
use alloc::vec::Vec;

use crate::wire::{Reader, Span, Trace, Writer};
use crate::{DecodeError, Problem, Section};

const ROW_VERSION: u8 = 2;
/// The newest row version without the opening.
const WITHOUT_OPENING: u8 = 1;
const ARENA_VERSION: u8 = 1;
const DELETED: u8 = 0;
const HERE: u8 = 1;
const CHANGED: u8 = 2;

/// The layer and version of a value in the base when an overlay first replaced it.
///
/// Two origins are equal exactly if the value did not change in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Origin {
    /// The number of overlays between the world and the layer with the value; 0 is the world.
    pub layer: u8,
    /// Its version in that layer; 0 if no layer had it.
    pub version: u64,
    /// The number of the [opening](crate::lineage) of that layer that made the version. A layer that is put back from a copy
    /// uses the numbers of versions again. 0 if it was made before openings were stored.
    pub opening: u64,
}

impl Origin {
    /// There was no value.
    pub const ABSENT: Self = Self { layer: 0, version: 0, opening: 0 };
}

/// One row of an overlay: its value, and the origin of the value that it replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverlayRow<'a> {
    /// The origin of the base's value when the row's lease first wrote the key.
    pub origin: Origin,
    /// The present value.
    pub value: OverlayValue<&'a [u8]>,
}

/// The value of a row of an overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverlayValue<T> {
    /// The value is deleted.
    Deleted,
    /// The value as stored in a world.
    Here(T),
    /// A [delta](crate::delta::Delta) on the base's value. Only for chunks.
    Changed(T),
}

impl<T> From<Option<T>> for OverlayValue<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Deleted, Self::Here)
    }
}

impl<'a> OverlayRow<'a> {
    /// Writes a row; the closure in the value appends its bytes.
    pub fn encode<F: FnOnce(&mut Vec<u8>)>(
        origin: Origin,
        value: impl Into<OverlayValue<F>>,
        out: &mut Vec<u8>,
    ) {
        let (state, write) = match value.into() {
            OverlayValue::Deleted => (DELETED, None),
            OverlayValue::Here(write) => (HERE, Some(write)),
            OverlayValue::Changed(write) => (CHANGED, Some(write)),
        };
        let mut writer = Writer::new(out);
        writer.u8(ROW_VERSION);
        writer.u8(state);
        writer.u8(origin.layer);
        writer.u64(origin.version);
        writer.u64(origin.opening);
        if let Some(write) = write {
            write(out);
        }
    }

    /// Decodes a row. Does not check its value.
    ///
    /// # Errors
    /// [`DecodeError`] in [`Section::Overlay`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read(Reader::new(bytes, Section::Overlay))
    }

    /// Explains the stored form: the fields that [`decode`](Self::decode) reads, up to the first error.
    pub fn trace(bytes: &[u8]) -> (Vec<Span>, Result<(), DecodeError>) {
        let trace = Trace::default();
        let result = OverlayRow::read(Reader::new(bytes, Section::Overlay).traced(Some(&trace))).map(drop);
        (trace.into_inner(), result)
    }

    fn read(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let row_version = reader.version_u8("row version", ROW_VERSION)?;
        let here = reader.clone();
        let state = reader.u8("row state")?;
        let (layer, version) = (reader.u8("origin layer")?, reader.u64("origin version")?);
        let opening = if row_version == WITHOUT_OPENING { 0 } else { reader.u64("origin opening")? };
        let origin = Origin { layer, version, opening };
        let value = match state {
            DELETED => {
                reader.end("bytes after a deletion")?;
                OverlayValue::Deleted
            }
            HERE => OverlayValue::Here(reader.take("value", reader.left_bytes())?),
            CHANGED => OverlayValue::Changed(reader.take("value", reader.left_bytes())?),
            found => return Err(out_of_range(&here, "row state", found.into(), "0 to 2")),
        };
        Ok(Self { origin, value })
    }
}

/// An arena: a place for one overlay after another, each with its own lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArenaRow {
    /// The lease whose rows are the arena's content.
    pub lease: u64,
    /// The holder; `None` if the arena is free.
    pub holder: Option<String>,
    /// The tick at which it was leased or released, as the host gave it.
    pub since: u64,
}

impl ArenaRow {
    /// The maximum length of a holder's name, in bytes.
    pub const MAX_HOLDER_LEN_BYTES: usize = u16::MAX as usize;

    /// Appends the stored form. A holder's name that is too long is truncated; the caller should refuse it first.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let holder = self.holder.as_deref().unwrap_or_default();
        let len_bytes = u16::try_from(holder.len()).unwrap_or(u16::MAX);
        let mut writer = Writer::new(out);
        writer.u8(ARENA_VERSION);
        writer.u8(self.holder.is_some().into());
        writer.u64(self.lease);
        writer.u64(self.since);
        writer.u16(len_bytes);
        writer.bytes(holder.as_bytes().get(..len_bytes.into()).unwrap_or_default());
    }

    /// Reads an arena.
    ///
    /// # Errors
    /// [`DecodeError`] in [`Section::Overlay`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(Reader::new(bytes, Section::Overlay))
    }

    /// Explains the stored form: the fields that [`decode`](Self::decode) reads, up to the first error.
    pub fn trace(bytes: &[u8]) -> (Vec<Span>, Result<(), DecodeError>) {
        let trace = Trace::default();
        let result = Self::read(Reader::new(bytes, Section::Overlay).traced(Some(&trace))).map(drop);
        (trace.into_inner(), result)
    }

    fn read(mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        reader.version_u8("arena version", ARENA_VERSION)?;
        let here = reader.clone();
        let state = reader.u8("arena state")?;
        let (lease, since) = (reader.u64("lease")?, reader.u64("since")?);
        let len_bytes = reader.u16("holder length")?;
        let named = reader.clone();
        let text = reader.take("holder", len_bytes.into())?;
        reader.end("bytes after the arena")?;
        let holder = match (state, core::str::from_utf8(text)) {
            (0, Ok("")) => None,
            (1, Ok(text)) => Some(text.into()),
            (1, Err(_)) => return Err(out_of_range(&named, "holder", len_bytes.into(), "UTF-8")),
            (0, _) => return Err(out_of_range(&named, "holder length", len_bytes.into(), "0 if it is free")),
            (found, _) => return Err(out_of_range(&here, "arena state", found.into(), "0 or 1")),
        };
        Ok(Self { lease, holder, since })
    }
}

fn out_of_range(here: &Reader<'_>, field: &'static str, found: u64, allowed: &'static str) -> DecodeError {
    here.error(Problem::OutOfRange { field, found, allowed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{annotated, golden};
    use alloc::format;
    use alloc::string::ToString as _;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    #[test]
    fn rows_are_pinned() {
        let changed = Some(&b"what a world stores"[..]);
        let rows = [
            ("row_changed", Origin { layer: 0, version: 258, opening: 772 }, changed),
            ("row_added", Origin::ABSENT, changed),
            ("row_deleted", Origin { layer: 2, version: u64::MAX, opening: 1 << 63 | 1 }, None),
        ];
        let rows = rows.map(|(name, origin, value)| (name, origin, OverlayValue::from(value)));
        let mut delta = Vec::new();
        let mut one_block = crate::delta::Delta::new();
        let place = crate::chunk::CellLayer::new(crate::LocalPos::new(1, 2, 3), 0);
        one_block.set_block(place, crate::BlockId::new(7));
        one_block.encode(&mut delta);
        let changed =
            ("row_delta", Origin { layer: 0, version: 258, opening: 0 }, OverlayValue::Changed(&delta[..]));
        for (name, origin, value) in rows.into_iter().chain([changed]) {
            let bytes = row(origin, value);
            let expected = OverlayRow { origin, value };
            golden(&format!("overlay/{name}"), &bytes, &format!("{expected:#?}\n"));
            let (fields, read) = OverlayRow::trace(&bytes);
            assert_eq!(read, Ok(()));
            assert_eq!(OverlayRow::decode(&bytes), Ok(expected));
            insta::assert_snapshot!(name, annotated(&bytes, &fields));
        }
    }

    #[test]
    fn rows_of_the_draft_before_have_no_opening() {
        let bytes = [&[1, 1, 0][..], &258_u64.to_le_bytes(), b"value"].concat();
        let origin = Origin { layer: 0, version: 258, opening: 0 };
        let expected = OverlayRow { origin, value: OverlayValue::Here(&b"value"[..]) };
        assert_eq!(OverlayRow::decode(&bytes), Ok(expected));
    }

    #[test]
    fn arenas_are_pinned() {
        let leased = ArenaRow { lease: 259, holder: Some("ada against grace".into()), since: 1000 };
        for (name, arena) in
            [("arena_leased", leased), ("arena_free", ArenaRow { lease: 1, holder: None, since: 0 })]
        {
            let mut bytes = Vec::new();
            arena.encode(&mut bytes);
            golden(&format!("overlay/{name}"), &bytes, &format!("{arena:#?}\n"));
            let (fields, read) = ArenaRow::trace(&bytes);
            assert_eq!(read, Ok(()));
            assert_eq!(ArenaRow::decode(&bytes), Ok(arena));
            insta::assert_snapshot!(name, annotated(&bytes, &fields));
        }
    }

    fn row(origin: Origin, value: OverlayValue<&[u8]>) -> Vec<u8> {
        let write = |value| move |out: &mut Vec<u8>| out.extend_from_slice(value);
        let value = match value {
            OverlayValue::Deleted => OverlayValue::Deleted,
            OverlayValue::Here(value) => OverlayValue::Here(write(value)),
            OverlayValue::Changed(value) => OverlayValue::Changed(write(value)),
        };
        let mut bytes = Vec::new();
        OverlayRow::encode(origin, value, &mut bytes);
        bytes
    }

    #[track_caller]
    fn check<T: core::fmt::Debug>(decoded: Result<T, DecodeError>, expected: Expect) {
        expected.assert_eq(&decoded.unwrap_err().to_string());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            layer: u8,
            version: u64,
            opening: u64,
            value in prop::option::of(prop::collection::vec(any::<u8>(), 0..40)),
            is_delta: bool,
        ) {
            let origin = Origin { layer, version, opening };
            let expected = match value.as_deref() {
                Some(value) if is_delta => OverlayValue::Changed(value),
                value => value.into(),
            };
            let bytes = row(origin, expected);
            prop_assert_eq!(OverlayRow::decode(&bytes), Ok(OverlayRow { origin, value: expected }));
            for len in 0..19 {
                prop_assert!(OverlayRow::decode(&bytes[..len]).is_err());
            }
        }

        #[test]
        fn an_arena_comes_back(lease: u64, since: u64, holder in prop::option::of(".{0,20}")) {
            let arena = ArenaRow { lease, holder, since };
            let mut bytes = Vec::new();
            arena.encode(&mut bytes);
            prop_assert_eq!(ArenaRow::decode(&bytes), Ok(arena));
            for len in 0..bytes.len() {
                prop_assert!(ArenaRow::decode(&bytes[..len]).is_err());
            }
        }

        #[test]
        fn any_bytes_give_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(arena) = ArenaRow::decode(&bytes) {
                let mut again = Vec::new();
                arena.encode(&mut again);
                prop_assert_eq!(again, bytes.clone());
            }
            if let Ok(read) = OverlayRow::decode(&bytes)
                && bytes.first() == Some(&ROW_VERSION)
            {
                prop_assert_eq!(row(read.origin, read.value), bytes);
            }
        }
    }

    #[test]
    fn each_refusal_says_what_it_found() {
        let good = row(Origin { layer: 1, version: 7, opening: 8 }, OverlayValue::Deleted);
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        check(
            OverlayRow::decode(&with(0, 9)),
            expect![
                "overlay row: row version is 9, and this release reads up to 2; use a newer release (at byte 0)"
            ],
        );
        check(
            OverlayRow::decode(&with(1, 3)),
            expect!["overlay row: row state is 3, allowed is 0 to 2 (at byte 1)"],
        );
        check(
            OverlayRow::decode(&[&good[..], &[1]].concat()),
            expect!["overlay row: bytes after a deletion must be zero or absent, found 1 (at byte 19)"],
        );
        let mut arena = Vec::new();
        ArenaRow { lease: 1, since: 2, holder: Some("duel".into()) }.encode(&mut arena);
        let with = |at: usize, byte: u8| {
            let mut bytes = arena.clone();
            bytes[at] = byte;
            bytes
        };
        check(
            ArenaRow::decode(&with(1, 3)),
            expect!["overlay row: arena state is 3, allowed is 0 or 1 (at byte 1)"],
        );
        check(
            ArenaRow::decode(&with(1, 0)),
            expect!["overlay row: holder length is 4, allowed is 0 if it is free (at byte 20)"],
        );
        check(
            ArenaRow::decode(&with(20, 0xff)),
            expect!["overlay row: holder is 4, allowed is UTF-8 (at byte 20)"],
        );
        check(
            ArenaRow::decode(&with(18, 9)),
            expect!["overlay row: holder needs 9 bytes and 4 are left (at byte 20)"],
        );
    }
}
