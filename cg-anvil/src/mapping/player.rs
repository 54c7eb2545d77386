//! Players of a save as entities of a world.
//!
//! The entity has the NBT of the player's file, or of `Data.Player` in `level.dat`, and no
//! [origin](super::Origin): it is in no list of a column. The file stays an object. The object
//! `minecraft/player/<uuid>` says that the entity stands for it: a compound of the byte `format_version`, the byte array
//! `nbt`, a digest of the NBT as it came, missing if the world had an entity of its own, and the byte `level`, 1 if the
//! player is that of `level.dat`.

use std::borrow::Cow;

use cg_format::entity::{Entity, EntityPos, Owner, Reason};
use cg_minecraft::name;
use cg_registry::{Catalog, ListKind};
use cg_store::objects::ObjectKey;
use cg_store::{Error, World};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::leftovers::{begin, parse};
use super::{Ids, unless_damaged};
use crate::EntityRecord;
use crate::nbt::{self, Compound, Document, Field, NbtError, Value};
use crate::save::{Layout, OVERWORLD};

/// The kind of entity that a player is.
pub(crate) const KIND: &str = "minecraft:player";
/// How the keys of all these objects begin.
pub(crate) const PLAYER_PREFIX: &str = "minecraft/player/";
/// Why a player belongs to no chunk.
const OFFLINE: &str = "offline player";

const DIMENSION: &str = "Dimension";
/// The dimensions that have a number in saves of before 1.16.
const NUMBERED: [(i64, &str); 3] = [(0, OVERWORLD), (-1, "minecraft:the_nether"), (1, "minecraft:the_end")];
/// The first version in which a player's dimension has a name: 20w21a, a snapshot of 1.16.
const FIRST_NAMED: i32 = 2554;

/// The folders of players in each layout.
const FOLDERS: [(Layout, &str); 2] = [(Layout::Old, "playerdata/"), (Layout::Dimensions, "players/data/")];

/// A file of a player, by its name in a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlayerFile {
    pub(crate) uuid: Uuid,
    /// The layout whose game looks for it there.
    pub(crate) layout: Layout,
    /// Whether it is the game's copy of an earlier state.
    pub(crate) is_backup: bool,
}

impl PlayerFile {
    /// The player whose file has this path in a save; `None` if it is that of none.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let (layout, file) =
            FOLDERS.iter().find_map(|(layout, folder)| Some((*layout, path.strip_prefix(folder)?)))?;
        let (stem, is_backup) = match file.strip_suffix(".dat") {
            Some(stem) => (stem, false),
            None => (file.strip_suffix(".dat_old")?, true),
        };
        let uuid = Uuid::parse_str(stem).ok().filter(|uuid| uuid.to_string() == stem)?;
        Some(Self { uuid, layout, is_backup })
    }

    /// The path of a player's file in a layout.
    pub(crate) fn path(uuid: Uuid, layout: Layout) -> String {
        let folder = FOLDERS.iter().find(|(other, _)| *other == layout).map_or("", |(_, folder)| folder);
        format!("{folder}{uuid}.dat")
    }
}

/// Where a player is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Place {
    /// The dimension's name in the save.
    pub(crate) dimension: String,
    pub(crate) pos: [f64; 3],
}

impl Place {
    /// Reads it from a player's NBT; `None` without a position, or where the dimension is neither a name nor a number.
    pub(crate) fn of(player: Compound<'_>) -> Option<Self> {
        let pos: Option<Vec<f64>> = player.list("Pos")?.values().map(Value::as_double).collect();
        let dimension = match player.get(DIMENSION) {
            // As the game takes it.
            None => OVERWORLD.to_owned(),
            Some(Value::String(text)) => match text.decode()? {
                name if name.contains(':') => name.into_owned(),
                name => format!("minecraft:{name}"),
            },
            Some(value) => dimension_of_number(value.as_long()?),
        };
        Some(Self { dimension, pos: pos?.try_into().ok()? })
    }

    /// The place in a world; `None` if the world has no such dimension, or no such place.
    fn in_world(&self, catalog: &Catalog) -> Option<EntityPos> {
        let dimension = catalog.dimension(name::of(&self.dimension).ok()?.as_str())?;
        EntityPos::from_f64(dimension, self.pos).ok()
    }
}

fn dimension_of_number(number: i64) -> String {
    let known = NUMBERED.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("dim:{number}"), |(_, name)| (*name).to_owned())
}

fn number_of_dimension(name: &str) -> Option<i32> {
    let known = NUMBERED.iter().find(|(_, known)| *known == name).map(|(number, _)| *number);
    known.map_or_else(|| name.strip_prefix("dim:")?.parse().ok(), |number| i32::try_from(number).ok())
}

/// The player in the tree of a `level.dat`, and where its fields begin in the bytes of that.
pub(crate) fn of_level<'a>(level: &Document<'a>) -> Option<(Compound<'a>, Field<'a>, usize)> {
    let payload = |field: &Field<'_>| field.offset_bytes + 3 + field.name.0.len();
    let data = level.root.field("Data")?;
    let player = data.value.as_compound()?.field("Player")?;
    // Tag and length of the root's name come before it.
    let at = 3 + level.name.0.len() + payload(&data);
    Some((player.value.as_compound()?, player, at))
}

/// Whether an entity is a player by itself, and not one that stood in a list of a column.
pub(crate) fn is_player(catalog: &Catalog, ids: &Ids, entity: &Entity) -> bool {
    catalog.entity_type(KIND) == Some(entity.kind)
        && ids.entity_origin.and_then(|origin| entity.component(origin)).is_none()
}

/// The entity of a player, of a kind that is registered.
pub(crate) fn made(world: &World, ids: &Ids, position: EntityPos, nbt: Vec<u8>) -> Result<Entity, Error> {
    let kind = world.registry().register_entity(KIND)?;
    let owner = Owner::Detached(Reason::new(OFFLINE).expect("a short text"));
    let mut entity = Entity::new(kind, owner, position);
    entity.set_component(ids.entity_nbt.expect("registered when the import began"), nbt)?;
    Ok(entity)
}

/// A player of a world on its way into a save.
#[derive(Debug)]
pub(crate) struct Current<'a> {
    /// The NBT with the place where the world has it.
    pub(crate) nbt: Cow<'a, [u8]>,
    /// Whether the NBT said so already.
    pub(crate) is_in_place: bool,
}

impl<'a> Current<'a> {
    /// The NBT of a player as it is now; `None` if it has none that can be read.
    pub(crate) fn of(catalog: &Catalog, ids: &Ids, entity: &'a Entity) -> Option<Self> {
        let nbt = entity.component(ids.entity_nbt?)?;
        let player = Compound::parse(nbt, &nbt::Limits::default()).ok()?;
        let said = Place::of(player);
        if said.as_ref().and_then(|said| said.in_world(catalog)) == Some(entity.position) {
            return Some(Self { nbt: Cow::Borrowed(nbt), is_in_place: true });
        }
        let dimension = catalog.list(ListKind::Dimensions).name(entity.position.dimension().get())?;
        let dimension = name::text(dimension.as_str());
        let is_in_dimension = said.is_some_and(|said| said.dimension == dimension);
        let moved = moved(nbt, entity.position, (!is_in_dimension).then_some(dimension.as_str())).ok()?;
        Some(Self { nbt: Cow::Owned(moved), is_in_place: false })
    }
}

/// A player's NBT with another position and, if one is given, another dimension.
fn moved(nbt: &[u8], position: EntityPos, dimension: Option<&str>) -> Result<Vec<u8>, NbtError> {
    let limits = nbt::Limits::default();
    let (uuid, kind, riders) = (None, String::new(), None);
    let mut record = EntityRecord::<usize> { uuid, kind, pos: None, nbt: nbt.to_vec(), riders };
    record.move_to(position.to_f64(), &limits)?;
    let mut moved = record.nbt;
    let Some(dimension) = dimension else { return Ok(moved) };
    let player = Compound::parse(&moved, &limits)?;
    let field = player.field(DIMENSION);
    let is_numbered = match field {
        Some(field) => field.value.as_long().is_some(),
        None => player.int("DataVersion").is_some_and(|version| version < FIRST_NAMED),
    };
    let mut written = nbt::payload(|out| match number_of_dimension(dimension).filter(|_| is_numbered) {
        Some(number) => out.int(DIMENSION, number),
        // A name of the world is far shorter than a text can be.
        None => out.string(DIMENSION, dimension).unwrap_or_default(),
    });
    // Only the field, without the end of the compound around it.
    written.pop();
    let end = moved.len() - 1;
    let range = field.map_or(end..end, |field| field.offset_bytes..field.offset_bytes + field.raw.len());
    moved.splice(range, written);
    Ok(moved)
}

/// Says that an entity stands for a player's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PlayerMark {
    /// Digest of the NBT that an import brought; `None` if the world keeps an entity of its own.
    pub(crate) nbt: Option<[u8; 16]>,
    /// Whether it is the player of `level.dat`.
    pub(crate) is_of_level: bool,
}

impl PlayerMark {
    /// The object of a player.
    pub(crate) fn key(uuid: Uuid) -> ObjectKey {
        ObjectKey::new(format!("{PLAYER_PREFIX}{uuid}")).expect("a short key")
    }

    /// The mark of a player whose NBT came so.
    pub(crate) fn new(nbt: &[u8], is_of_level: bool) -> Self {
        Self { nbt: Some(digest(nbt)), is_of_level }
    }

    /// Whether the import brought this NBT.
    pub(crate) fn is_of(&self, nbt: &[u8]) -> bool {
        self.nbt == Some(digest(nbt))
    }

    /// The object's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        nbt::payload(|out| {
            begin(out);
            if let Some(nbt) = &self.nbt {
                out.byte_array("nbt", nbt);
            }
            if self.is_of_level {
                out.byte("level", 1);
            }
        })
    }

    /// Reads an object; `None` when it is none of this format.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let root = parse(bytes)?;
        let nbt = match root.get("nbt") {
            None => None,
            Some(Value::ByteArray(nbt)) => Some(nbt.try_into().ok()?),
            Some(_) => return None,
        };
        Some(Self { nbt, is_of_level: root.long("level") == Some(1) })
    }

    /// The mark that a world has of a player; `None` also of a damaged one.
    pub(crate) fn read(world: &World, uuid: Uuid) -> Result<Option<Self>, Error> {
        let object = unless_damaged(world.objects().get(Self::key(uuid)))?.flatten();
        Ok(object.and_then(|object| Self::decode(&object.bytes)))
    }
}

fn digest(nbt: &[u8]) -> [u8; 16] {
    let whole: [u8; 32] = Sha256::digest(nbt).into();
    std::array::from_fn(|at| whole[at])
}

#[cfg(test)]
mod tests;
