//! The tables in `docs/format/` against the decoders; those of the registry are checked by cg-registry.
//!
//! To add a layout: write the table, add its marker, add a line to [`layouts`].

use cg_format::cluster::{trace as trace_cluster, trace_seed};
use cg_format::delta::Delta;
use cg_format::entity::Entity;
use cg_format::opacity::{Patch, TileView};
use cg_format::wire::Span;
use cg_format::{ClusterTier, EntityId, Section, Space, chunk as chunks, frame, key};

use crate::chunk::model::TestSchema;

pub(crate) mod tables;

use tables::{Layout, check, goldens, repository, tables};

/// A table of keys, not of fields.
const KEYS: &str = "keys";

fn layouts() -> Vec<Layout> {
    let traces = |folder, trace: &dyn Fn(&str, &[u8]) -> Option<Vec<Span>>| {
        goldens(folder).iter().filter_map(|(name, bytes)| trace(name, bytes)).collect::<Vec<_>>()
    };
    let chunk = traces("chunk", &|name, bytes| whole(name, chunks::trace(bytes, &TestSchema)));
    let of_chunk = |name, sections| Layout { name, sections, traces: chunk.clone() };
    let frames = traces("frame", &|name, bytes| {
        let (space, key) = place("frame", name);
        whole(name, frame::trace(space, &key, bytes))
    });
    let seeds = traces("cluster", &|name, bytes| {
        name.starts_with("seed_").then(|| whole(name, trace_seed(bytes))).flatten()
    });
    let rows = traces("cluster", &|name, bytes| {
        let tier = [("l1_", ClusterTier::L1), ("l2_", ClusterTier::L2)];
        let (_, tier) = tier.into_iter().find(|(prefix, _)| name.starts_with(prefix))?;
        whole(name, trace_cluster(tier, &place("cluster", name).1, bytes))
    });
    let tile = |name: &str, bytes: &[u8]| {
        name.starts_with("tile").then(|| whole(name, TileView::trace(bytes))).flatten()
    };
    let patch = |name: &str, bytes: &[u8]| {
        name.starts_with("patch").then(|| whole(name, Patch::trace(bytes))).flatten()
    };
    vec![
        of_chunk("chunk-header", &[Section::ChunkHeader]),
        of_chunk("chunk-blocks", &[Section::Palette, Section::Blocks, Section::Layers]),
        of_chunk("chunk-components", &[Section::Components]),
        of_chunk("chunk-entities", &[Section::Entities]),
        of_chunk("side-data", &[Section::SideData]),
        Layout { name: "frame", sections: &[Section::Frame], traces: frames },
        Layout { name: "cluster-header", sections: &[Section::ClusterHeader], traces: seeds },
        Layout {
            name: "cluster-directory",
            sections: &[Section::ClusterDirectory, Section::ClusterGroup],
            traces: rows,
        },
        Layout {
            name: "delta",
            sections: &[Section::Delta],
            traces: traces("delta", &|name, bytes| whole(name, Delta::trace(bytes))),
        },
        Layout {
            name: "entity",
            sections: &[Section::Entity, Section::Components],
            traces: traces("entity", &|name, bytes| whole(name, Entity::trace(bytes))),
        },
        Layout { name: "opacity-tile", sections: &[Section::OpacityTile], traces: traces("opacity", &tile) },
        Layout {
            name: "opacity-patch",
            sections: &[Section::OpacityPatch],
            traces: traces("opacity", &patch),
        },
    ]
}

/// The fields of a golden value, which must be readable to its end.
#[track_caller]
fn whole<T, E: std::fmt::Display>(
    name: &str,
    (spans, answer): (Vec<Span>, Result<T, E>),
) -> Option<Vec<Span>> {
    if let Err(error) = answer {
        panic!("{name}: {error}");
    }
    Some(spans)
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
    tables.retain(|name, _| name != KEYS && !name.starts_with("registry-"));
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
        Space::Heat => exactly(key::HEAT_LEN_BYTES),
        Space::ChangeMark => exactly(key::CHANGE_MARK_LEN_BYTES),
        Space::Quarantine => (key::quarantine(Space::WorldMeta, &[0]).len(), None),
        Space::Intent => exactly(key::INTENT_LEN_BYTES),
        Space::Object => (1, Some(key::OBJECT_MAX_LEN_BYTES)),
        Space::WorldMeta | Space::WorldProperty | Space::Record | Space::Snapshot => (1, None),
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
