//! A row's bytes explained by the decoders that read them: frame, payload, and what lies compressed inside.

use cg_format::cluster::{self, Slot, StoredCluster, trace_group};
use cg_format::delta::Delta;
use cg_format::entity::Entity;
use cg_format::frame::{self, FrameView, LEN_BYTES};
use cg_format::object::ObjectView;
use cg_format::opacity::{Patch, trace_stored};
use cg_format::record::RecordView;
use cg_format::wire::Span;
use cg_format::{ChunkAt, ClusterTier, DecodeError, Limits, Space, chunk, key};
use cg_registry::codec::is_registry_row;
use cg_registry::{Catalog, RegistryError};

/// Bytes that belong together, with the fields that a decoder found in them.
pub(super) struct Part {
    pub(super) what: String,
    pub(super) bytes: Vec<u8>,
    pub(super) spans: Vec<Span>,
    /// Why the fields end where they do.
    pub(super) error: Option<String>,
}

/// Fields, and why there are no more.
type Explained = (Vec<Span>, Option<Problem>);

/// Problem with a value.
enum Problem {
    /// Its bytes, at an offset from its first one.
    Bytes(DecodeError),
    /// Something else, in words.
    Words(String),
}

impl Problem {
    /// The problem in words, with offsets that count from somewhere in front of the value.
    fn text(self, offset_bytes: u64) -> String {
        match self {
            Self::Bytes(error) => {
                DecodeError { offset_bytes: error.offset_bytes + offset_bytes, ..error }.to_string()
            }
            Self::Words(text) => text,
        }
    }
}

/// Explains a row, and one chunk of it if it is a cluster.
pub(super) fn explain(
    catalog: Option<&Catalog>,
    space: Space,
    key: &[u8],
    row: &[u8],
    chunk: Option<ChunkAt>,
) -> Vec<Part> {
    match space {
        Space::ClusterL1 => explain_cluster(catalog, ClusterTier::L1, key, row, chunk),
        Space::ClusterL2 => explain_cluster(catalog, ClusterTier::L2, key, row, chunk),
        _ => explain_plain(catalog, space, key, row),
    }
}

/// A row that holds one value: the fields of the value take the place of the payload as one field.
fn explain_plain(catalog: Option<&Catalog>, space: Space, key: &[u8], row: &[u8]) -> Vec<Part> {
    let (mut spans, answer) = frame::trace(space, key, row);
    let mut error = answer.err().map(|error| error.to_string());
    let mut parts = Vec::new();
    let payload = spans.pop_if(|span| span.field == "payload").and_then(|_| row.get(LEN_BYTES..));
    if let Some(payload) = payload {
        let (inner, problem) = explain_value(catalog, space, key, payload, generation(row));
        spans.extend(inner.into_iter().map(|span| shifted(span, LEN_BYTES as u64)));
        error = error.or(problem.map(|problem| problem.text(LEN_BYTES as u64)));
        if space == Space::Quarantine
            && let Ok((space, key, _)) = key::decode_quarantine(key)
        {
            parts = explain(catalog, space, key, payload, None);
            for part in &mut parts {
                part.what = format!("quarantined: {}", part.what);
            }
        }
    } else if let Ok(frame) = FrameView::open(space, key, row)
        && frame.header().codec != frame::Codec::None
    {
        match frame.raw_payload(&mut Limits::default()) {
            Ok(raw) => {
                let (spans, problem) = explain_value(catalog, space, key, &raw, generation(row));
                let error = problem.map(|problem| problem.text(0));
                parts.push(Part {
                    what: "payload, decompressed".into(),
                    bytes: raw.into_owned(),
                    spans,
                    error,
                });
            }
            Err(problem) => error = error.or(Some(problem.to_string())),
        }
    }
    parts.insert(0, Part { what: "row".into(), bytes: row.to_vec(), spans, error });
    parts
}

/// A cluster's row, then either one chunk of it or the header of every group.
fn explain_cluster(
    catalog: Option<&Catalog>,
    tier: ClusterTier,
    key: &[u8],
    row: &[u8],
    chunk: Option<ChunkAt>,
) -> Vec<Part> {
    let (spans, answer) = cluster::trace(tier, key, row);
    let error = answer.err().map(|error| error.to_string());
    let mut parts = vec![Part { what: "row".into(), bytes: row.to_vec(), spans, error }];
    let Ok(cluster) = StoredCluster::open(tier, key, row) else { return parts };
    if let Some((bytes, spans)) = cluster::trace_entries(tier, key, row) {
        parts.push(Part { what: "entries of the directory, decompressed".into(), bytes, spans, error: None });
    }
    let wanted = chunk.map(|at| Slot::of(at.pos, tier));
    for index in cluster.groups().filter(|group| wanted.is_none_or(|slot| cluster.group_of(slot) == *group)) {
        let what = format!("group {index}, decompressed");
        match cluster.group(index, &mut Limits::default()) {
            Ok(Some(group)) => {
                let value = wanted.and_then(|slot| Some((slot, group.chunk(slot)?)));
                let Some((slot, value)) = value else {
                    parts.push(explain_group(what, &group));
                    continue;
                };
                let info = cluster.chunk_info(slot);
                let generation = info.map(|info| info.schema_generation);
                let (spans, problem) = explain_value(catalog, Space::ChunkL0, key, &value, generation);
                let error = problem.map(|problem| problem.text(0));
                parts.push(Part {
                    what: format!("chunk in slot {}, decompressed", slot.index()),
                    bytes: value.into_owned(),
                    spans,
                    error,
                });
            }
            Ok(None) => {}
            Err(error) => {
                parts.push(Part {
                    what,
                    bytes: Vec::new(),
                    spans: Vec::new(),
                    error: Some(error.to_string()),
                });
            }
        }
    }
    parts
}

fn explain_group(what: String, group: &cluster::GroupBytes<'_>) -> Part {
    let bytes = group.bytes().to_vec();
    let (spans, answer) = trace_group(&bytes);
    Part { what, spans, error: answer.err().map(|error| error.to_string()), bytes }
}

/// The fields of a value, counted from its first byte.
fn explain_value(
    catalog: Option<&Catalog>,
    space: Space,
    key: &[u8],
    value: &[u8],
    generation: Option<u32>,
) -> Explained {
    let explained = |spans, error: Option<DecodeError>| (spans, error.map(Problem::Bytes));
    match space {
        Space::ChunkL0 => {
            let schema = generation.and_then(|generation| catalog?.schema(generation));
            let Some(schema) = schema else {
                let generation = generation.map_or_else(|| "?".into(), |generation| generation.to_string());
                let why =
                    format!("the registry has no schema generation {generation} to read the chunk with");
                return (Vec::new(), Some(Problem::Words(why)));
            };
            let (spans, answer) = chunk::trace(value, &schema);
            explained(spans, answer.err())
        }
        Space::Entity => {
            let (spans, answer) = Entity::trace(value);
            explained(spans, answer.err())
        }
        Space::Object => {
            let (spans, answer) = ObjectView::trace(value);
            explained(spans, answer.err())
        }
        Space::Record => {
            let (spans, answer) = RecordView::trace(value);
            explained(spans, answer.err())
        }
        Space::OpacityTile => {
            let (spans, answer) = trace_stored(value);
            explained(spans, answer.err())
        }
        Space::OpacityPatch => {
            let (spans, answer) = Patch::trace(value);
            explained(spans, answer.err())
        }
        Space::ChunkDelta => {
            let (spans, answer) = Delta::trace(value);
            explained(spans, answer.err())
        }
        Space::WorldMeta => match str::from_utf8(key).ok().filter(|name| is_registry_row(name)) {
            Some(name) => {
                let (spans, answer) = cg_registry::codec::trace(name, value);
                let problem = answer.err().map(|error| match error {
                    RegistryError::Bytes { error, .. } => Problem::Bytes(error),
                    error => Problem::Words(error.to_string()),
                });
                (spans, problem)
            }
            None => explained(whole(value), None),
        },
        _ => explained(whole(value), None),
    }
}

/// A value whose layout is the host's: one field.
fn whole(value: &[u8]) -> Vec<Span> {
    let section = cg_format::Section::Frame;
    vec![Span { section, field: "payload", offset_bytes: 0, len_bytes: value.len() as u64 }]
}

const fn shifted(span: Span, by_bytes: u64) -> Span {
    Span { offset_bytes: span.offset_bytes + by_bytes, ..span }
}

/// The schema generation in a frame whose checksum may be wrong.
fn generation(row: &[u8]) -> Option<u32> {
    row.get(16..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}
