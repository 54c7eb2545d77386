//! The tables in `docs/format/` against the decoders; those of the registry are checked by cg-registry, heat and traces
//! by cg-tiering.
//!
//! To add a layout: write the table, add its marker, add a line to [`layouts`].

use cg_format::archive;
use cg_format::cluster::{trace as trace_cluster, trace_group, trace_seed};
use cg_format::delta::Delta;
use cg_format::entity::Entity;
use cg_format::lineage::Lineage;
use cg_format::object::ObjectView;
use cg_format::opacity::{Patch, TileView, trace_stored};
use cg_format::overlay::{ArenaRow, OverlayRow};
use cg_format::record::RecordView;
use cg_format::staged::{Intent, StagedOps};
use cg_format::wire::Span;
use cg_format::{ClusterTier, DecodeError, EntityId, Limits, Section, Space, chunk as chunks, frame, key};

use crate::chunk::model::TestSchema;

pub(crate) mod tables;

use tables::{Layout, check, goldens, repository, tables};

/// The tables that cg-tiering checks.
const TIERING: [&str; 2] = ["heat", "trace"];

/// The tables that cg-snapshot checks begin with these.
const SNAPSHOT: [&str; 2] = ["snapshot-", "pack-"];

/// A table of keys, not of fields.
const KEYS: &str = "keys";

/// The fields of a stored value, and whether it could be read to its end.
type Traced = (Vec<Span>, Result<(), DecodeError>);

fn layouts() -> Vec<Layout> {
    let chunk = traces("chunk", "", |_, bytes| chunks::trace(bytes, &TestSchema));
    let of_chunk = |name, sections| Layout { name, sections, traces: chunk.clone() };
    let of = |name, sections, traces| Layout { name, sections, traces };
    let frames = traces("frame", "", |name, bytes| {
        let (space, key) = place("frame", name);
        without_value(frame::trace(space, &key, bytes))
    });
    let row = |tier| move |name: &str, bytes: &[u8]| trace_cluster(tier, &place("cluster", name).1, bytes);
    let rows =
        [traces("cluster", "l1_", row(ClusterTier::L1)), traces("cluster", "l2_", row(ClusterTier::L2))];
    let compact = ["compact_l2_", "halves_l2_"].map(|prefix| traces("cluster", prefix, row(ClusterTier::L2)));
    let short = traces("cluster", "short_l2_", row(ClusterTier::L2));
    let seeds = traces("cluster", "seed_", |_, bytes| trace_seed(bytes));
    let by_field = traces("cluster", "fields_", |_, bytes| trace_group(bytes));
    let deltas = traces("delta", "", |_, bytes| without_value(Delta::trace(bytes)));
    let entities = traces("entity", "", |_, bytes| without_value(Entity::trace(bytes)));
    let objects = traces("object", "", |_, bytes| ObjectView::trace(bytes));
    let records = traces("record", "", |_, bytes| RecordView::trace(bytes));
    let intents = traces("intent", "intent", |_, bytes| Intent::trace(bytes));
    let parts = traces("intent", "part", |_, bytes| StagedOps::trace(bytes));
    let overlays = traces("overlay", "row_", |_, bytes| OverlayRow::trace(bytes));
    let arenas = traces("overlay", "arena_", |_, bytes| ArenaRow::trace(bytes));
    let openings = traces("lineage", "row", |_, bytes| Lineage::trace_row(bytes));
    let archives = traces("archive", "", |name, bytes| {
        let (spans, answer) = archive::explain(bytes, Limits::default());
        (spans, answer.map(drop).map_err(|fault| panic!("{name}: {fault}")))
    });
    let segments = traces("archive-segments", "", |name, bytes| {
        let (spans, answer) = archive::SegmentsReader::explain(bytes, Limits::default());
        (spans, answer.map(drop).map_err(|fault| panic!("{name}: {fault}")))
    });
    let tiles = traces("opacity", "tile", |_, bytes| without_value(TileView::trace(bytes)));
    let packed = traces("opacity", "packed", |_, bytes| trace_stored(bytes));
    let patches = traces("opacity", "patch", |_, bytes| without_value(Patch::trace(bytes)));
    vec![
        of_chunk("chunk-header", &[Section::ChunkHeader]),
        of_chunk("chunk-blocks", &[Section::Palette, Section::Blocks, Section::Layers]),
        of_chunk("chunk-components", &[Section::Components]),
        of_chunk("chunk-entities", &[Section::Entities]),
        of_chunk("side-data", &[Section::SideData]),
        of("frame", &[Section::Frame], frames),
        of("cluster-header", &[Section::ClusterHeader], seeds),
        of("cluster-directory", &[Section::ClusterDirectory, Section::ClusterGroup], rows.concat()),
        of(
            "cluster-compact-directory",
            &[Section::ClusterDirectory, Section::ClusterGroup],
            compact.concat(),
        ),
        of("cluster-plane-directory", &[Section::ClusterDirectory, Section::ClusterGroup], short),
        of("cluster-fields", &[Section::ClusterFields], by_field),
        of("delta", &[Section::Delta], deltas),
        of("entity", &[Section::Entity, Section::Components], entities),
        of("object", &[Section::Object], objects),
        of("record", &[Section::SpatialRecord], records),
        of("intent", &[Section::Intent], intents),
        of("intent-part", &[Section::Intent], parts),
        of("opacity-tile", &[Section::OpacityTile], tiles),
        of("opacity-packed-tile", &[Section::OpacityTile], packed),
        of("opacity-patch", &[Section::OpacityPatch], patches),
        of("lineage", &[Section::Lineage], openings),
        of("archive-line", &[Section::ArchiveLine], archives.clone()),
        of("archive-part", &[Section::ArchivePart], archives.clone()),
        of("archive-head", &[Section::ArchiveHead], archives.clone()),
        of("archive-rows", &[Section::ArchiveRows], archives.clone()),
        of("archive-end", &[Section::ArchiveEnd], archives),
        of("archive-segment", &[Section::ArchiveSegment], segments.clone()),
        of("archive-segments-end", &[Section::ArchiveEnd], segments),
        of("overlay-row", &[Section::Overlay], overlays),
        of("overlay-arena", &[Section::Overlay], arenas),
    ]
}

/// Traces the golden files of a folder whose names have a prefix.
#[track_caller]
fn traces(folder: &str, prefix: &str, trace: impl Fn(&str, &[u8]) -> Traced) -> Vec<Vec<Span>> {
    let mut traces = Vec::new();
    for (name, bytes) in goldens(folder) {
        if name.starts_with(prefix) {
            let (spans, answer) = trace(&name, &bytes);
            assert_eq!(answer, Ok(()), "{folder}/{name}");
            traces.push(spans);
        }
    }
    traces
}

fn without_value<T>((spans, answer): (Vec<Span>, Result<T, DecodeError>)) -> Traced {
    (spans, answer.map(drop))
}

/// The space and the key of a golden row, which its text begins with.
fn place(folder: &str, name: &str) -> (Space, Vec<u8>) {
    let path = repository("testdata/golden/draft").join(folder).join(name).with_extension("txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let line = |start| text.lines().find_map(|line| line.strip_prefix(start)).unwrap();
    let (_, byte) = line("space ").trim_end_matches(')').split_once('(').unwrap();
    let key = line("key ").split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap());
    (Space::from_byte(byte.parse().unwrap()).unwrap(), key.collect())
}

#[test]
fn tables_say_what_decoders_read() {
    let mut tables = tables();
    let is_elsewhere = |name: &str| {
        name.starts_with("registry-")
            || SNAPSHOT.iter().any(|prefix| name.starts_with(prefix))
            || TIERING.contains(&name)
    };
    tables.retain(|name, _| name != KEYS && !is_elsewhere(name));
    let layouts = layouts();
    let mut names: Vec<&str> = layouts.iter().map(|layout| layout.name).collect();
    names.sort_unstable();
    assert_eq!(tables.keys().map(String::as_str).collect::<Vec<_>>(), names, "marked tables and layouts");
    for layout in &layouts {
        check(layout, &tables[layout.name]);
    }
}

/// The lengths that a space's keys can have, and `None` where there is no longest.
fn key_lengths(space: Space) -> (usize, Option<usize>) {
    let exactly = |len| (len, Some(len));
    match space {
        Space::ChunkL0 | Space::ClusterL1 | Space::ClusterL2 => exactly(key::CHUNK_LEN_BYTES),
        Space::Entity => exactly(EntityId::LEN_BYTES),
        Space::OpacityTile => exactly(key::OPACITY_TILE_LEN_BYTES),
        Space::OpacityPatch => exactly(key::OPACITY_PATCH_LEN_BYTES),
        Space::ChunkDelta => exactly(key::DELTA_LEN_BYTES),
        Space::Heat | Space::ColdHeat => exactly(key::HEAT_LEN_BYTES),
        Space::ChangeMark => exactly(key::CHANGE_MARK_LEN_BYTES),
        Space::Quarantine => (key::quarantine(Space::WorldMeta, &[0], 0).len(), None),
        Space::ChangeLog => (key::CHANGE_LOG_MIN_LEN_BYTES, None),
        Space::Intent => (key::INTENT_LEN_BYTES, Some(key::STAGED_LEN_BYTES)),
        Space::Object => (1, Some(key::OBJECT_MAX_LEN_BYTES)),
        Space::Record => {
            let [shortest, longest] = [1, key::RECORD_MAX_LEVELS].map(key::record_len_bytes);
            (shortest, Some(longest))
        }
        Space::RecordPlace => exactly(key::RECORD_PLACE_LEN_BYTES),
        Space::WorldMeta | Space::WorldProperty => (1, None),
        Space::Snapshot => (6, Some(key::SNAPSHOT_NAME_MAX_LEN_BYTES + 5)),
    }
}

#[test]
fn the_table_of_keys_lists_every_space() {
    let rows = tables().remove(KEYS).expect("a marked table of keys");
    assert_eq!(rows.len(), Space::ALL.len());
    for (space, row) in Space::ALL.into_iter().zip(rows) {
        let length = match key_lengths(space) {
            (shortest, Some(longest)) if shortest == longest => format!("{shortest}"),
            (shortest, Some(longest)) => format!("{shortest}…{longest}"),
            (shortest, None) => format!("{shortest}…"),
        };
        let family = space.family().name();
        let expected = [format!("{}", space.byte()), format!("`{space:?}`"), format!("`{family}`"), length];
        assert_eq!([&row[0], &row[1], &row[2], &row[4]], expected.each_ref());
        if let Some(tag) = space.index_tag() {
            assert!(row[3].starts_with(&format!("{tag} ‖ ")), "{space:?}: tag {tag} in {}", row[3]);
        }
    }
}
