//! Players of saves: entities of a world, and files that come back byte for byte.

#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "the game spells them so")]

mod changed;
mod into;
mod merge;
mod real;
mod refused;
mod two_states;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cg_anvil::export::{ExportOptions, ExportReport, export};
use cg_anvil::import::{ImportError, ImportOptions, ImportReport, Merge, MergeFiles, import};
use cg_anvil::nbt::{self, CompoundWriter, Document, Limits};
use cg_anvil::region::{Compression, compress_as, decompress};
use cg_anvil::write;
use cg_format::ComponentId;
use cg_store::prelude::*;
use tempfile::TempDir;
use uuid::Uuid;

use crate::maker::{self, patterned};

/// Who owns the save of one player.
const OWNER: Uuid = Uuid::from_u128(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
const IN_COLUMN: Uuid = Uuid::from_u128(1 << 127 | 2);
const FAR: Uuid = Uuid::from_u128(3);
const IN_NETHER: Uuid = Uuid::from_u128(4);

/// The files of a save by their paths.
type Files = BTreeMap<String, Vec<u8>>;

/// How a version of the game writes players.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    data_version: i32,
    folder: &'static str,
}

/// With numbers of dimensions and UUIDs in two longs.
const V1_13: Version = Version { data_version: 1519, folder: "playerdata" };
const V1_20: Version = Version { data_version: 3465, folder: "playerdata" };
const V26_2: Version = Version { data_version: 4903, folder: "players/data" };

impl Version {
    fn path(self, uuid: Uuid) -> String {
        format!("{}/{uuid}.dat", self.folder)
    }

    /// The fields of a player.
    fn player(self, out: &mut CompoundWriter<'_>, uuid: Uuid, pos: [f64; 3], dimension: i32, health: i32) {
        out.int("DataVersion", self.data_version);
        out.int("Health", health);
        out.doubles("Pos", &pos);
        let (high, low) = uuid.as_u64_pair();
        if self.data_version < 2554 {
            out.long("UUIDMost", high.cast_signed());
            out.int("Dimension", dimension);
            out.long("UUIDLeast", low.cast_signed());
        } else {
            let name = ["minecraft:the_nether", "minecraft:overworld"][usize::from(dimension == 0)];
            out.string("Dimension", name).expect("short");
            let words = [high >> 32, high, low >> 32, low].map(|word| (word as u32).cast_signed());
            out.int_array("UUID", &words);
        }
        out.raw_compounds("ender_pearls", [&pearl(uuid)[..]].into_iter());
        out.compound("RootVehicle", |out| out.raw_compound("Entity", &pearl(uuid)));
    }

    fn file(self, uuid: Uuid, pos: [f64; 3], dimension: i32, health: i32) -> Vec<u8> {
        gzip(|out| self.player(out, uuid, pos, dimension, health))
    }

    fn level(self, player: impl FnOnce(&mut CompoundWriter<'_>)) -> Vec<u8> {
        gzip(|root| {
            root.compound("Data", |data| {
                data.string("LevelName", "made").expect("short");
                player(data);
                data.int("DataVersion", self.data_version);
            });
        })
    }

    /// A save of a column, and players in it, beside it and in another dimension.
    fn save(self) -> Files {
        Files::from([
            ("level.dat".to_owned(), self.level(|_| ())),
            (self.path(IN_COLUMN), self.file(IN_COLUMN, [5.25, 64.0, 6.5], 0, 20)),
            (self.path(FAR), self.file(FAR, [-1000.5, 70.0, 0.0], 0, 7)),
            (self.path(IN_NETHER), self.file(IN_NETHER, [1.0, 30.0, 2.0], -1, 9)),
            (format!("{}/{FAR}.dat_old", self.folder), b"an earlier state".to_vec()),
            ("notes.txt".to_owned(), b"n".to_vec()),
        ])
    }
}

/// An entity that a player has with them.
fn pearl(of: Uuid) -> Vec<u8> {
    maker::entity("minecraft:ender_pearl", [7, 7, 7, of.as_u128() as i32], [5.0, 64.0, 5.0], &[])
}

/// As the game compresses, which is not as this code does.
fn gzip(fields: impl FnOnce(&mut CompoundWriter<'_>)) -> Vec<u8> {
    let mut bytes = compress_as(Compression::Gzip, &nbt::document(fields));
    // The operating system, which Java leaves at zero.
    bytes[9] = 0;
    bytes
}

fn tree(bytes: &[u8]) -> Vec<u8> {
    let mut raw = Vec::new();
    decompress(Compression::Gzip, bytes, 1 << 20, &mut raw).expect("is gzip");
    raw
}

/// The fields of a file by name.
fn fields(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let raw = tree(bytes);
    let document = Document::parse(&raw, &Limits::default()).expect("NBT");
    document.root.fields().map(|field| (field.name.lossy().into_owned(), field.raw.to_vec())).collect()
}

/// A world in memory, and the folders of saves beside it.
struct Made {
    dir: TempDir,
    world: World,
    version: Version,
    files: Files,
}

impl Made {
    fn new(version: Version, files: Files) -> Self {
        let world = World::builder().in_memory().expect("memory");
        Self { dir: tempfile::tempdir().expect("a folder"), world, version, files }
    }

    /// A save that is imported.
    fn imported(version: Version) -> Self {
        let made = Self::new(version, version.save());
        assert!(made.import("save", &ImportOptions::default()).is_whole());
        made
    }

    /// Writes the save into a folder, with a column at (0, 0).
    fn write(&self, name: &str) {
        let save = self.dir.path().join(name);
        let region = match self.version {
            V26_2 => "dimensions/minecraft/overworld/region",
            _ => "region",
        };
        fs::create_dir_all(save.join(region)).expect("a folder");
        let column = write::column(&maker::column(0, 0, [patterned(4, 3)])).expect("a column");
        maker::region(&save.join(region).join("r.0.0.mca"), &[maker::zlib((0, 0), &column)]);
        for (name, bytes) in &self.files {
            let path = save.join(name);
            fs::create_dir_all(path.parent().expect("below the save")).expect("a folder");
            fs::write(path, bytes).expect("written");
        }
    }

    fn import(&self, name: &str, options: &ImportOptions) -> ImportReport {
        self.write(name);
        import(&self.dir.path().join(name), &self.world, options, |_| {}).expect("an import")
    }

    /// An export, and the files in it that are no regions.
    fn export(&self, name: &str) -> (ExportReport, Files) {
        let out = self.dir.path().join(name);
        let report = export(&self.world, &out, &ExportOptions::default(), |_| {}).expect("an export");
        let mut files = Files::new();
        walk(&out, &out, &mut files);
        files.retain(|name, _| !name.ends_with(".mca"));
        (report, files)
    }

    fn player(&self, uuid: Uuid) -> Option<cg_format::entity::Entity> {
        let found = self.world.entity(EntityId::new(uuid)).expect("no damage");
        let kind = self.world.catalog().entity_type("minecraft:player");
        found.inspect(|found| assert_eq!(Some(found.kind), kind))
    }

    fn nbt(&self) -> ComponentId {
        self.world.catalog().component_id("minecraft:entity_nbt").expect("registered")
    }

    /// Gives a player the health that is written after this.
    fn set_health(&self, uuid: Uuid, health: i32) {
        let mut player = self.player(uuid).expect("there");
        let bytes = player.component(self.nbt()).expect("NBT").to_vec();
        let parsed = nbt::Compound::parse(&bytes, &Limits::default()).expect("NBT");
        let at = parsed.field("Health").expect("has it");
        let end = at.offset_bytes + at.raw.len();
        let mut changed = bytes.clone();
        let written = nbt::payload(|out| out.int("Health", health));
        // Without the end of the compound.
        changed[at.offset_bytes..end].copy_from_slice(&written[..written.len() - 1]);
        player.set_component(self.nbt(), changed).expect("fits");
        self.put(uuid, player);
    }

    fn put(&self, uuid: Uuid, player: cg_format::entity::Entity) {
        let done = self.world.transaction(|tx| {
            tx.put_entity(EntityId::new(uuid), player);
            Ok::<_, Error>(())
        });
        done.expect("committed");
    }

    fn delete(&self, uuid: Uuid) {
        let done = self.world.transaction(|tx| {
            tx.delete_entity(EntityId::new(uuid));
            Ok::<_, Error>(())
        });
        done.expect("committed");
    }

    fn hash(&self) -> String {
        self.world.content_hash(cg_store::view::Area::World).expect("no damage").to_string()
    }

    fn path(&self, uuid: Uuid) -> String {
        self.version.path(uuid)
    }
}

/// The files, those of NBT by what is in them.
fn trees(files: &Files) -> Files {
    let is_nbt = |name: &str| name.ends_with(".dat");
    let tree = |(name, bytes): (&String, &Vec<u8>)| {
        (name.clone(), if is_nbt(name) { tree(bytes) } else { bytes.clone() })
    };
    files.iter().map(tree).collect()
}

fn walk(root: &Path, dir: &Path, files: &mut Files) {
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            walk(root, &path, files);
        } else {
            let name = path.strip_prefix(root).expect("below it").display().to_string();
            files.insert(name, fs::read(&path).expect("readable"));
        }
    }
}

#[test]
fn players_are_entities_and_their_files_come_back_byte_for_byte() {
    for version in [V1_13, V1_20, V26_2] {
        let made = Made::new(version, version.save());
        let report = made.import("save", &ImportOptions::default());
        assert!(report.is_whole(), "{report:?}");
        assert_eq!((report.players, report.entities, report.players_as_files.len()), (3, 0, 0));
        let catalog = made.world.catalog();
        let places = [
            (IN_COLUMN, "minecraft:overworld", [5.25, 64.0, 6.5]),
            (FAR, "minecraft:overworld", [-1000.5, 70.0, 0.0]),
            (IN_NETHER, "minecraft:the_nether", [1.0, 30.0, 2.0]),
        ];
        for (uuid, dimension, pos) in places {
            let player = made.player(uuid).expect("is an entity");
            assert_eq!(Some(player.position.dimension()), catalog.dimension(dimension));
            assert_eq!(player.position.to_f64().map(f64::to_bits), pos.map(f64::to_bits));
            let cg_format::entity::Owner::Detached(reason) = &player.owner else { panic!("{player:?}") };
            assert_eq!(reason.as_str(), "offline player");
            let nbt = player.component(made.nbt()).expect("NBT");
            assert_eq!(nbt, &tree(&made.files[&made.path(uuid)])[3..]);
        }
        // What they have with them stays inside.
        assert_eq!(
            made.world.entity(EntityId::new(Uuid::from_u128(7 << 96 | 7 << 64 | 7 << 32 | 3))).unwrap(),
            None
        );
        let (report, files) = made.export("out");
        assert_eq!((report.players, report.changed_players, report.deleted_players), (3, 0, 0));
        assert_eq!((report.not_exported, files), (BTreeMap::new(), made.files.clone()));
        assert!(!made.dir.path().join("out/entities").exists());
    }
}

#[test]
fn a_player_comes_with_the_column_around_them() {
    let made = Made::imported(V1_20);
    let overworld = made.world.catalog().dimension("minecraft:overworld").expect("registered");
    let chunk = ChunkAt::new(overworld, ChunkPos::new(0, 4, 0).expect("inside"));
    let loaded = made.world.load_versioned(chunk).expect("no damage");
    let version = loaded.map(|(_, version)| version);
    let of = |uuid| made.world.entity_version(EntityId::new(uuid)).expect("no damage");
    assert!(version.is_some());
    assert_eq!(of(IN_COLUMN), version);
    assert!(of(FAR) > version && of(IN_NETHER) == of(FAR));
}

#[test]
fn a_killed_import_goes_on_with_its_players() {
    let whole = Made::imported(V1_20);
    let report = import(
        &whole.dir.path().join("save"),
        &whole.world,
        &ImportOptions { merge: Some(Merge::Replace), ..ImportOptions::default() },
        |_| {},
    )
    .expect("an import");
    assert_eq!((report.players, report.unchanged_chunks), (3, 1));
    let made = Made::new(V1_20, V1_20.save());
    made.write("save");
    let mut stops = 0;
    let report = loop {
        let options = ImportOptions { stop_after_transactions: Some(1), ..ImportOptions::default() };
        match import(&made.dir.path().join("save"), &made.world, &options, |_| {}) {
            Err(ImportError::Stopped(1)) => stops += 1,
            done => break done.expect("an import"),
        }
    };
    assert!(stops >= 2, "{stops}");
    assert_eq!((report.players, report.is_whole()), (3, true));
    assert_eq!(made.hash(), whole.hash());
    assert_eq!(made.export("out").1, made.files);
}
