//! Values other than chunks in a cache: what is asked, what is remembered, and what is forgotten.

use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::{ChunkAt, ChunkBox, Dimension};
use cg_registry::Catalog;
use cg_registry::portable::IdRemap;
use cg_store::Transaction;
use cg_store::layer::Base;
use cg_store::layer::values::list_values;
use cg_store::objects::ObjectKey;

use super::{PAGE, SyncClient, number_of};
use crate::applying::SyncOutcome;
use crate::applying::values::{Incoming, absent, check, delete};
use crate::error::{MessageError, SyncError};
use crate::messages::{
    AskedBox, AskedValues, NamesOfValues, SyncReply, SyncRequest, count_in, decode_row, encode_row,
    kind_byte, kind_of, name,
};
use crate::place::{area_of, chunk_at, dimension_of, meets, wrong};
use crate::state::{AREAS, CUBES, CubeKey, VALUES, ValuesRow, area_of_key};
use crate::value_set::ValueSet;

impl SyncClient {
    /// Asks about sets of values other than chunks: what changed since the cache asked last, or all of them if it never did.
    ///
    /// The cache keeps what a set has, and how far it knows it. Objects have the server's versions, entities have no owner.
    /// What the cache has in a set and the server does not is deleted. A reply brings at most what the server's limit
    /// allows; [`SyncOutcome::has_more_values`] says that the next request gets more. Until there is no more, the cache is
    /// of no single moment of the server.
    ///
    /// ```
    /// use cg_store::prelude::*;
    /// use cg_sync::{SyncClient, SyncServer, SyncServerLimits, ValueKind, ValueSet};
    /// let world = World::builder().in_memory()?;
    /// world.objects().put("bricks/1", *b"red")?;
    /// let server = SyncServer::new(world.clone(), SyncServerLimits::default());
    /// server.keep_log()?;
    ///
    /// let cache = SyncClient::open(World::builder().in_memory()?)?;
    /// let bricks = [ValueSet::of(ValueKind::Objects).with_prefix("bricks/")];
    /// let catch_up = || loop {
    ///     let request = cache.request_values(&bricks)?;
    ///     let applied = cache.apply(&request, &server.answer(&request)?)?;
    ///     if !applied.has_more_values {
    ///         break Ok::<_, cg_sync::SyncError>(());
    ///     }
    /// };
    /// catch_up()?;
    /// world.objects().put("bricks/1", *b"blue")?;
    /// catch_up()?;
    /// let brick = cache.world().objects().get("bricks/1")?.expect("came");
    /// assert_eq!((brick.version, &brick.bytes[..]), (1, &b"blue"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn request_values(&self, sets: &[ValueSet]) -> Result<SyncRequest, SyncError> {
        let (mut request, life) = self.begin();
        let (catalog, rows) = (self.world.catalog(), self.value_rows()?);
        for set in sets {
            let mut areas = Vec::with_capacity(set.areas.len());
            for (dimension, area) in &set.areas {
                let (min, max) = (area.min(), area.max());
                areas.push(AskedBox {
                    dimension: number_of(&mut request.dimensions, &catalog, *dimension)?,
                    min: [min.x(), min.y(), min.z()],
                    max: [max.x(), max.y(), max.z()],
                });
            }
            let stored = set.stored();
            let row = rows.iter().find(|row| row.set == stored && Some(row.life) == life);
            request.values.push(AskedValues {
                kind: kind_byte(set.kind),
                prefix: set.prefix.clone(),
                areas,
                without: set.without.iter().map(|name| name.as_str().into()).collect(),
                known: row.map(|row| row.known.clone()),
            });
        }
        Ok(request)
    }

    /// Deletes the cached values of a set, except those of other sets that were asked about, and forgets what is known of
    /// it. The next request for the set gets all of it. Returns the number of values.
    ///
    /// # Errors
    /// [`SyncError::World`].
    pub fn forget_values(&self, set: &ValueSet) -> Result<u64, SyncError> {
        let _state = self.state.lock();
        let stored = set.stored();
        let mut rows = self.value_rows()?;
        rows.retain(|row| row.set != stored);
        let others: Vec<_> = rows.iter().filter_map(|row| row.set.set()).collect();
        let mut keys = Vec::new();
        self.world.read_view(|view| {
            list_values(view, set.kind, &set.prefix, None, |key, value| {
                let is_left = value.is_ok_and(|(_, bytes)| {
                    let of_another = |other: &ValueSet| other.kind == set.kind && other.has(key, &bytes);
                    set.has(key, &bytes) && !others.iter().any(of_another)
                });
                keys.extend(is_left.then(|| key.to_vec()));
                ControlFlow::<()>::Continue(())
            })
        })?;
        let forgotten = self.world.transaction(|tx| {
            let mut applied = SyncOutcome::default();
            for key in &keys {
                delete(tx, set.kind, key, &mut applied)?;
            }
            tx.put_object(VALUES, encode_row(&rows))?;
            Ok::<_, SyncError>(applied.values_gone)
        })?;
        Ok(forgotten.value)
    }

    /// Deletes the cached chunks of a box, and forgets what is known of every area that meets it. The next request for such
    /// an area lists it whole. Returns the number of chunks.
    ///
    /// # Errors
    /// [`SyncError::World`].
    pub fn forget_area(&self, dimension: Dimension, area: ChunkBox) -> Result<u64, SyncError> {
        let state = self.state.lock();
        let Some(head) = state.head else { return Ok(0) };
        let is_met = |key: &[u8]| {
            area_of_key(key).is_some_and(|(at, known)| at == dimension && known.intersects(&area))
        };
        let areas = self.own_keys(AREAS, is_met)?;
        let is_in = |key: &[u8]| {
            CubeKey::from_object(CUBES, key)
                .is_some_and(|(_, at, cube)| at == dimension && meets(&area, cube))
        };
        let cubes = self.own_keys(CUBES, is_in)?;
        let forgotten = self.world.transaction(|tx| {
            let mut count = 0;
            for key in &areas {
                tx.delete_object(key)?;
            }
            for key in &cubes {
                let Some((key, _, cube)) = CubeKey::from_object(CUBES, key.as_bytes()) else { continue };
                let Some(mut row) = self.row(key, head.life)? else { continue };
                for place in row.chunks.keys().copied().collect::<Vec<_>>() {
                    let at = ChunkAt { dimension, pos: chunk_at(cube, place)? };
                    if area.contains(at.pos) {
                        row.chunks.remove(&place);
                        tx.delete(at);
                        count += 1;
                    }
                }
                row.write(tx, key)?;
            }
            Ok::<_, SyncError>(count)
        })?;
        drop(state);
        Ok(forgotten.value)
    }

    /// The keys of its own objects with a prefix that a function selects.
    fn own_keys(&self, prefix: &[u8], select: impl Fn(&[u8]) -> bool) -> Result<Vec<ObjectKey>, SyncError> {
        let (mut keys, mut position) = (Vec::new(), None);
        loop {
            let page = self.world.objects().list(prefix, position.as_ref(), PAGE)?;
            keys.extend(page.entries.into_iter().map(|entry| entry.key).filter(|key| select(key.as_bytes())));
            position = page.next;
            if position.is_none() {
                return Ok(keys);
            }
        }
    }

    fn value_rows(&self) -> Result<Vec<ValuesRow>, SyncError> {
        let rows = self.world.objects().get(VALUES)?.map(|row| decode_row(&row.bytes)).transpose()?;
        Ok(rows.unwrap_or_default())
    }

    /// Registers the names of values that are absent. Returns the catalog with all of them.
    pub(super) fn registered_of_values(
        &self,
        catalog: Arc<Catalog>,
        named: &NamesOfValues,
        told: usize,
    ) -> Result<Arc<Catalog>, SyncError> {
        self.check_names(told)?;
        let (registration, missing) = named.missing_in(&catalog);
        if missing == 0 {
            return Ok(catalog);
        }
        self.check_names(count_in(&catalog) + missing)?;
        Ok(self.world.registry().register(&registration)?)
    }

    /// What a reply says of values, to be applied in the transaction that applies the rest.
    pub(super) fn told<'r>(
        &self,
        request: &SyncRequest,
        reply: &'r SyncReply,
        catalog: &'r Catalog,
        named: &'r NamesOfValues,
    ) -> Result<ToldValues<'r>, SyncError> {
        let upgrades = Base::upgrades(&self.world);
        let remap = IdRemap::with_functions(&named.names, catalog, upgrades)
            .map_err(|_| MessageError::NamesMissing)?;
        let mut sets = Vec::with_capacity(request.values.len());
        for (asked, reply) in request.values.iter().zip(&reply.values) {
            let set = set_of(request, catalog, asked)?;
            check(&set, reply)?;
            let absent = match reply.listed {
                Some(_) => self.world.read_view(|view| absent(view, &set, reply))?,
                None => Vec::new(),
            };
            sets.push((set, absent));
        }
        Ok(ToldValues { reply, catalog, named, remap, sets })
    }
}

/// What a reply says of values.
pub(super) struct ToldValues<'r> {
    reply: &'r SyncReply,
    catalog: &'r Catalog,
    named: &'r NamesOfValues,
    remap: IdRemap,
    /// The sets that were asked about, and what the cache has too much of each.
    sets: Vec<(ValueSet, Vec<Vec<u8>>)>,
}

impl ToldValues<'_> {
    /// Applies them. Of a set whose position is another one than the request said, nothing: a reply to another request was
    /// applied since.
    pub(super) fn apply(
        &self,
        tx: &mut Transaction<'_>,
        request: &SyncRequest,
        is_late: bool,
        applied: &mut SyncOutcome,
    ) -> Result<(), SyncError> {
        if self.sets.is_empty() {
            return Ok(());
        }
        let stored = tx.object(VALUES)?;
        let mut rows: Vec<ValuesRow> =
            stored.map(|row| decode_row(&row.bytes)).transpose()?.unwrap_or_default();
        let before = rows.clone();
        let incoming = Incoming { catalog: self.catalog, named: self.named, remap: &self.remap };
        let asked_in = request.known.map(|known| known.life);
        let of_request = || self.sets.iter().zip(request.values.iter().zip(&self.reply.values));
        let is_current = |set: &ValueSet, asked: &AskedValues| {
            let stored = set.stored();
            let row = before.iter().find(|row| row.set == stored);
            let known = row.filter(|row| Some(row.life) == asked_in || row.life == self.reply.life);
            !is_late && known.map(|row| &row.known) == asked.known.as_ref()
        };
        // Of all sets first: what left one of them may have entered another.
        for ((set, absent), _) in of_request().filter(|((set, _), (asked, _))| is_current(set, asked)) {
            for key in absent {
                delete(tx, set.kind, key, applied)?;
            }
        }
        for ((set, _), (asked, told)) in of_request() {
            if !is_current(set, asked) {
                applied.outdated_values += 1;
                applied.has_more_values = true;
                continue;
            }
            let stored = set.stored();
            for (key, told) in &told.values {
                incoming.apply(tx, set, (key, told), applied)?;
            }
            applied.has_more_values |= told.has_more;
            let next = told.next.clone();
            let next = next.map(|known| ValuesRow { set: stored.clone(), life: self.reply.life, known });
            match (rows.iter_mut().find(|row| row.set == stored), next) {
                (Some(row), Some(next)) => *row = next,
                (None, Some(next)) => rows.push(next),
                (_, None) => rows.retain(|row| row.set != stored),
            }
        }
        if rows != before {
            tx.put_object(VALUES, encode_row(&rows))?;
        }
        Ok(())
    }
}

/// The set of a request, in the ids of the cache.
fn set_of(request: &SyncRequest, catalog: &Catalog, asked: &AskedValues) -> Result<ValueSet, SyncError> {
    let kind = kind_of(asked.kind).ok_or_else(|| wrong("a kind of values is 1 to 4"))?;
    let mut areas = Vec::with_capacity(asked.areas.len());
    for AskedBox { dimension, min, max } in &asked.areas {
        areas.push((dimension_of(request, catalog, *dimension)?, area_of([*min, *max])?));
    }
    let without = asked.without.iter().map(|text| name(text)).collect::<Result<_, _>>()?;
    Ok(ValueSet { kind, prefix: asked.prefix.clone(), areas, without })
}
