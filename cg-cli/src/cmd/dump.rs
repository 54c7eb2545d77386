//! `cg dump`: any stored value as annotated hexadecimal.

mod explain;
mod rows;

use std::fmt;
use std::path::{Path, PathBuf};

use cg_anvil::new_file;
use cg_format::cluster::StoredCluster;
use cg_format::wire::annotate;
use cg_format::{ChunkAt, ClusterTier, Limits, Space, key};
use serde::Serialize;
use uuid::Uuid;

use self::explain::{Part, explain};
use self::rows::Rows;
use super::quarantine::copy_named;
use crate::args::{DimensionArg, WorldArg, chunk_pos};
use crate::output::{Failure, Outcome, Output, hex};
use crate::shown::shown;

/// Memory for a cluster that is decompressed as a whole: 4,096 chunks of a hundred kilobytes, twice.
const MAX_CLUSTER_BYTES: u64 = 1 << 30;

/// Show the bytes of a stored value: offset, bytes and field, as the decoders read them.
///
/// A damaged row is shown up to the field that is wrong, then the error (exit code 1); exit code 4 if there is none. Rows are read from the engine
/// itself, so that a world whose registry is damaged can be looked at too. JSON: `{"family","key","place","bytes",
/// "parts":[{"what","bytes","fields":[{"offset","len","section","field","hex"}],"error"}]}`.
#[derive(Debug, clap::Args)]
#[group(id = "place", required = true, multiple = false, args = ["chunk", "row", "entity", "quarantined"])]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    #[command(flatten)]
    dimension: DimensionArg,
    /// The row that holds a chunk, in whatever tier, and the chunk in it. The position is in chunks.
    #[arg(long, num_args = 3, action = clap::ArgAction::Set, value_names = ["X", "Y", "Z"], allow_negative_numbers = true)]
    chunk: Option<Vec<i64>>,
    /// A row by its family and its key in hexadecimal, as `cg verify` prints them, or by its name (`worldMeta blocks`).
    #[arg(long, num_args = 2, action = clap::ArgAction::Set, value_names = ["FAMILY", "KEY"])]
    row: Option<Vec<String>>,
    /// An entity by its UUID.
    #[arg(long, value_name = "UUID")]
    entity: Option<Uuid>,
    /// A copy of a row that was quarantined, as `cg quarantine list` prints it.
    #[arg(long, num_args = 3, action = clap::ArgAction::Set, value_names = ["SPACE", "KEY", "COMMIT"])]
    quarantined: Option<Vec<String>>,
    /// Also writes the cluster of the row to a file, in the plain form: version, scale level, 64 or 4,096 offsets of
    /// eight bytes, then the chunks, neither compressed nor checked by a sum. For programs that read this form.
    #[arg(long, value_name = "FILE")]
    cluster_to: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report {
    family: &'static str,
    key: String,
    place: String,
    bytes: usize,
    parts: Vec<PartReport>,
}

#[derive(Debug, Serialize)]
struct PartReport {
    what: String,
    bytes: usize,
    fields: Vec<FieldReport>,
    error: Option<String>,
    #[serde(skip)]
    text: String,
}

#[derive(Debug, Serialize)]
struct FieldReport {
    offset: u64,
    len: u64,
    section: String,
    field: &'static str,
    hex: String,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let rows = Rows::open(&args.world, out)?;
    let (space, key, chunk) = match args {
        Args { chunk: Some(chunk), .. } => {
            let at = ChunkAt::new(args.dimension.find(rows.catalog()?)?, chunk_pos(chunk)?);
            let (space, key) = rows.holder_of(at)?;
            (space, key, Some(at))
        }
        Args { row: Some(row), .. } => {
            let [family, key] = &row[..] else { return Err(Failure::usage("--row takes two values")) };
            let (space, key) = rows.named(family, key)?;
            (space, key, None)
        }
        Args { entity: Some(uuid), .. } => {
            (Space::Entity, key::entity(cg_format::EntityId::new(*uuid)).to_vec(), None)
        }
        Args { quarantined: Some(copy), .. } => {
            let [space, row_key, commit] = &copy[..] else {
                return Err(Failure::usage("--quarantined takes three values"));
            };
            let (space, row_key, commit) = copy_named(space, row_key, commit)?;
            (Space::Quarantine, key::quarantine(space, &row_key, commit), None)
        }
        _ => return Err(Failure::usage("say which value: --chunk, --row, --entity or --quarantined")),
    };
    let Some(row) = rows.get(space, &key)? else {
        return Err(Failure::absent(format!(
            "{} has no row under the key {}",
            space.family().name(),
            hex(&key)
        )));
    };
    if let Some(path) = &args.cluster_to {
        write_cluster(path, space, &key, &row)?;
    }
    let parts = explain(rows.catalog().ok(), space, &key, &row, chunk);
    let good = parts.iter().all(|part| part.error.is_none());
    out.print(&Report {
        family: space.family().name(),
        key: hex(&key),
        place: rows.place(space, &key),
        bytes: row.len(),
        parts: parts.into_iter().map(PartReport::from).collect(),
    })?;
    Ok(Outcome::good_if(good))
}

/// Writes the cluster in a row to a file, in the plain form.
fn write_cluster(path: &Path, space: Space, key: &[u8], row: &[u8]) -> Result<(), Failure> {
    let tier = match space {
        Space::ClusterL1 => ClusterTier::L1,
        Space::ClusterL2 => ClusterTier::L2,
        _ => {
            let family = space.family().name();
            return Err(Failure::usage(format!(
                "--cluster-to needs the row of a cluster, and this one is of {family}; a chunk is in a cluster when it \
                 is warm or cold: `cg tiers demote` moves it there"
            )));
        }
    };
    let cluster = StoredCluster::open(tier, key, row).map_err(|error| Failure::damaged(error.to_string()))?;
    let bytes = cluster
        .to_seed_bytes(&mut Limits::new(MAX_CLUSTER_BYTES))
        .map_err(|error| Failure::damaged(error.to_string()))?;
    new_file::write(path, &bytes).map_err(|error| Failure::io("write", path, &error))
}

impl From<Part> for PartReport {
    fn from(part: Part) -> Self {
        let field = |span: &cg_format::wire::Span| {
            let (start, len) = (span.offset_bytes as usize, span.len_bytes as usize);
            let bytes = part.bytes.get(start..start + len).unwrap_or(&[]);
            FieldReport {
                offset: span.offset_bytes,
                len: span.len_bytes,
                section: span.section.to_string(),
                field: span.field,
                hex: hex(bytes),
            }
        };
        Self {
            bytes: part.bytes.len(),
            fields: part.spans.iter().map(field).collect(),
            text: annotate(&part.spans, &part.bytes),
            what: part.what,
            error: part.error,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.family, self.key)?;
        writeln!(f, "{}, {} bytes", shown(&self.place), self.bytes)?;
        for part in &self.parts {
            writeln!(f)?;
            writeln!(f, "{}, {} bytes", shown(&part.what), part.bytes)?;
            f.write_str(&part.text)?;
            if let Some(error) = &part.error {
                writeln!(f, "ERROR: {}", shown(error))?;
            }
        }
        Ok(())
    }
}
