//! What `cg hash` leaves out unless it is asked for: snapshots and quarantined rows.
//!
//! A snapshot is hashed as it is by names: its ids are those of a catalog in which its names were registered in their
//! order. The time of the capture is not in it, as no version is in the content hash. A quarantined row cannot be
//! decoded; it is hashed as the bytes and the key that it has, without the commit that quarantined it.

use cg_format::entity::Entity;
use cg_registry::{Catalog, ListKind};
use cg_snapshot::{Place, Snapshot, Unverifiable};
use cg_store::World;
use cg_store::verify::ContentHash;
use sha2::{Digest as _, Sha256};

use crate::cmd::snapshot::read_kept;
use crate::output::{Failure, Output};

/// The snapshots and the quarantined rows of a world, or of all worlds of a segmented one.
#[derive(Default)]
pub(super) struct Apart {
    /// The digests of snapshots, with their names.
    snapshots: Vec<(String, [u8; 32])>,
    /// The digests of quarantined rows.
    rows: Vec<[u8; 32]>,
}

impl Apart {
    /// Adds those of one world. Holds one snapshot in memory, twice.
    pub(super) fn add(&mut self, world: &World, out: &Output) -> Result<(), Failure> {
        let listed = world.snapshots().list()?;
        let progress = out.progress_of("snapshots hashed", listed.len() as u64);
        for saved in listed {
            let saved = saved.map_err(Failure::failed)?;
            let (snapshot, _) = read_kept(world, &saved.name, Unverifiable::Fail)?;
            let digest = of_snapshot(&saved.name, snapshot)?;
            self.snapshots.push((saved.name, digest));
            progress.inc(1);
        }
        progress.finish_and_clear();
        for row in world.quarantine().list()? {
            let mut fields = Fields::begun("quarantined row");
            fields.bytes(&[row.space.byte()]);
            fields.bytes(&row.key);
            fields.bytes(&row.bytes);
            self.rows.push(fields.end());
        }
        Ok(())
    }

    /// The hash of the content and of what was added.
    pub(super) fn hash(mut self, content: ContentHash) -> ContentHash {
        let mut all = Fields::begun("cherrygrove everything 1");
        all.bytes(&content.0);
        self.snapshots.sort_unstable();
        all.number(self.snapshots.len() as u64);
        for (_, digest) in &self.snapshots {
            all.bytes(digest);
        }
        // Two copies of one row are listed in the order of commits.
        self.rows.sort_unstable();
        all.number(self.rows.len() as u64);
        for row in &self.rows {
            all.bytes(row);
        }
        ContentHash(all.end())
    }
}

fn of_snapshot(name: &str, snapshot: Snapshot) -> Result<[u8; 32], Failure> {
    let catalog = in_order_of_names(&snapshot)?;
    let (snapshot, report) = snapshot.arrive(&catalog).map_err(Failure::failed)?;
    if let Some(component) = report.components_left.keys().next() {
        return Err(Failure::failed(format!(
            "snapshot `{name}` cannot be hashed: it has data of `{component}` where its own names allow none"
        )));
    }
    let info = snapshot.info();
    let mut fields = Fields::begun("snapshot");
    fields.bytes(name.as_bytes());
    fields.bytes(info.dimension.as_str().as_bytes());
    let area = info.region.area();
    for corner in [area.min(), area.max()] {
        for c in [corner.x, corner.y, corner.z] {
            fields.bytes(&c.to_le_bytes());
        }
    }
    let contents = info.contents;
    fields.bytes(&[contents.components, contents.sides, contents.entities].map(u8::from));
    for list in [ListKind::Blocks, ListKind::Components, ListKind::Entities, ListKind::Sides] {
        let names = catalog.list(list).names();
        fields.number(names.len() as u64);
        for name in names {
            fields.bytes(name.as_str().as_bytes());
        }
    }
    for (_, place) in snapshot.sections() {
        match place {
            Place::Absent => fields.number(0),
            Place::Lost => return Err(Failure::damaged(format!("snapshot `{name}` has lost a section"))),
            Place::Kept(kept) => {
                fields.number(1);
                fields.bytes(kept.bytes());
            }
        }
    }
    fields.number(snapshot.entities().len() as u64);
    for (id, entity) in snapshot.entities() {
        fields.bytes(&id.to_bytes());
        fields.bytes(&encoded(entity));
    }
    Ok(fields.end())
}

/// A catalog with the names of a snapshot, each list in the order of its names.
fn in_order_of_names(snapshot: &Snapshot) -> Result<Catalog, Failure> {
    let mut catalog = Catalog::new();
    let mut names = snapshot.registration(&catalog);
    names.components.sort_by(|a, b| a.name.cmp(&b.name));
    names.blocks.sort_by(|a, b| a.name.cmp(&b.name));
    for block in &mut names.blocks {
        block.components.sort();
    }
    names.entities.sort();
    names.sides.sort();
    catalog.register(&names).map_err(Failure::failed)?;
    Ok(catalog)
}

fn encoded(entity: &Entity) -> Vec<u8> {
    let mut bytes = Vec::new();
    entity.encode(&mut bytes);
    bytes
}

/// Fields that are hashed, each after its length, so that different lists of fields have different bytes.
struct Fields(Sha256);

impl Fields {
    fn begun(kind: &str) -> Self {
        let mut fields = Self(Sha256::new());
        fields.bytes(kind.as_bytes());
        fields
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    fn end(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}
