//! The beginning of an import: whether it may go into the world, and what of the world's save it replaces.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use cg_format::EntityId;
use cg_minecraft::content::{GAME, JAVA};
use cg_registry::Name;
use cg_store::prelude::Property;
use cg_store::view::Area;
use cg_store::{Error, World};
use uuid::Uuid;

use super::ReplacedLevel;
use super::choices::{Merge, MergeFiles};
use super::error::ImportError;
use super::options::ImportOptions;
use super::progress::{self, Head, RULES};
use super::source::{self, Source};
use crate::Level;
use crate::mapping::key;
use crate::mapping::player::{PlayerFile, PlayerMark};
use crate::mapping::unless_damaged;
use crate::save::{self, Layout};

/// The path of the file that makes a folder a save.
pub(super) const LEVEL: &str = "level.dat";

/// Finds an import to continue, or begins one.
pub(super) fn begin(
    world: &World,
    source: &mut Source,
    options: &ImportOptions,
) -> Result<Head, ImportError> {
    options.check()?;
    let choices = options.choices();
    // Where the system does not tell, the save counts as closed.
    let in_use = save::is_in_use(&source.save.path).unwrap_or(false);
    if let Some(mut head) = progress::head(world)? {
        if head.rules != RULES {
            return Err(ImportError::OtherRules);
        }
        if head.choices != choices {
            return Err(ImportError::OtherChoices { begun: Box::new(head.choices) });
        }
        // A server changes its save all the time; a save that was moved is known by its files.
        if head.path != source.path && head.save != source.identity {
            return Err(ImportError::OtherImport);
        }
        if let Some(only) = &head.only {
            source.only(only)?;
        }
        if in_use && !head.in_use {
            head.in_use = true;
            put(world, &head, (&[], &BTreeSet::new()))?;
        }
        return Ok(head);
    }
    if options.merge.is_none() && !is_empty(world)? {
        return Err(ImportError::NotEmpty);
    }
    check_game(world)?;
    let stored = stored_level(world)?;
    let only = source.save.only_nether_or_end().filter(|_| stored.is_some());
    if let Some(only) = &only {
        source.only(only)?;
    }
    let replaces = options.merge == Some(Merge::Replace);
    let replaced_level = if replaces { replaced_level(source, stored.as_deref()) } else { None };
    let is_replacing_files = replaces && options.merge_files == MergeFiles::Replace;
    let deleted = if is_replacing_files { files_of_before(world, source)? } else { Vec::new() };
    let mut deleted_files = BTreeMap::<String, u64>::new();
    for name in &deleted {
        let folder = name.rsplit_once('/').map_or(".", |(folder, _)| folder);
        *deleted_files.entry(folder.to_owned()).or_default() += 1;
    }
    let players = players_of(world, &deleted, source.layout())?;
    let (save, began_after) = (source.identity.clone(), world.last_commit().get());
    let path = source.path.clone();
    let head =
        Head { rules: RULES, save, path, choices, began_after, only, replaced_level, deleted_files, in_use };
    put(world, &head, (&deleted, &players))?;
    Ok(head)
}

/// The players who go with files: those who have none left where the game of the save looks.
fn players_of(world: &World, deleted: &[String], looks: Layout) -> Result<BTreeSet<Uuid>, Error> {
    let mut players = BTreeSet::new();
    for PlayerFile { uuid, is_backup, .. } in deleted.iter().filter_map(|name| PlayerFile::of(name)) {
        if is_backup || PlayerMark::read(world, uuid)?.is_none() {
            continue;
        }
        let path = PlayerFile::path(uuid, looks);
        let has_own = !deleted.contains(&path)
            && unless_damaged(world.objects().version(key::file_key(&path)?))?
                .is_none_or(|file| file.is_some());
        if !has_own {
            players.insert(uuid);
        }
    }
    Ok(players)
}

/// Stores the head, and deletes files and players with it, so that a kill neither deletes without telling nor deletes what
/// the import brings.
fn put(world: &World, head: &Head, (deleted, players): (&[String], &BTreeSet<Uuid>)) -> Result<(), Error> {
    world.transaction(|tx| {
        for name in deleted {
            tx.delete_object(key::file_key(name)?)?;
        }
        for uuid in players {
            tx.delete_object(PlayerMark::key(*uuid))?;
            tx.delete_entity(EntityId::new(*uuid));
        }
        tx.set_property(game(), Some(JAVA.as_bytes().to_vec()));
        progress::put_head(tx, head);
        progress::Stored::Ok(())
    })?;
    Ok(())
}

/// The property that names the game of a world.
fn game() -> Property {
    Property::Named(Name::new(GAME).expect("a literal name"))
}

/// Refuses a world of another game.
fn check_game(world: &World) -> Result<(), ImportError> {
    match world.property(&game())? {
        Some(found) if found != JAVA.as_bytes() => {
            Err(ImportError::OtherGame { game: String::from_utf8_lossy(&found).into_owned() })
        }
        _ => Ok(()),
    }
}

/// The bytes of the `level.dat` that a world holds.
pub(super) fn stored_level(world: &World) -> Result<Option<Vec<u8>>, Error> {
    let level = world.objects().get(key::file_key(LEVEL)?)?;
    Ok(level.map(|level| level.bytes.to_vec()))
}

/// The files of a world's save that the imported save does not have; none unless that is a whole save.
pub(super) fn files_of_before(world: &World, source: &Source) -> Result<Vec<String>, Error> {
    let names: BTreeSet<&str> = source.others.files.iter().map(|(name, _)| name.as_str()).collect();
    if !names.contains(LEVEL) {
        return Ok(Vec::new());
    }
    let not_entered: BTreeSet<&str> = source.others.not_entered.iter().map(String::as_str).collect();
    // It may be at a link that is not followed, or below one.
    let is_there = |name: &str| {
        let mut around = std::iter::successors(Some(name), |name| Some(name.rsplit_once('/')?.0));
        names.contains(name) || around.any(|place| not_entered.contains(place))
    };
    let mut gone = Vec::new();
    world.objects().for_each(key::FILE_PREFIX, |object| {
        // What is damaged has no name here and stays.
        if let Ok((key, ..)) = object
            && let Some(name) = key.strip_prefix(key::FILE_PREFIX.as_bytes())
            && let Ok(name) = std::str::from_utf8(name)
            && !is_there(name)
        {
            gone.push(name.to_owned());
        }
        ControlFlow::<()>::Continue(())
    })?;
    Ok(gone)
}

/// Contents of both `level.dat`, where the save has another one than the world.
fn replaced_level(new: &Source, stored: Option<&[u8]>) -> Option<ReplacedLevel> {
    let (_, path) = new.others.files.iter().find(|(name, _)| name == LEVEL)?;
    let stored = stored?;
    // What is longer is another.
    if matches!(source::read(path, stored.len() as u64), Ok(Ok((bytes, _))) if bytes == stored) {
        return None;
    }
    Some(ReplacedLevel { was: Level::read(stored), is: new.save.level.clone() })
}

fn is_empty(world: &World) -> Result<bool, Error> {
    let chunk = world.read_view(|view| view.for_each_place(Area::World, |_| ControlFlow::Break(())))?;
    let entity = world.read_view(|view| view.for_each_entity(|_| ControlFlow::Break(())))?;
    let object = world.objects().for_each(key::PREFIX, |_| ControlFlow::Break(()))?;
    Ok(chunk.is_none() && entity.is_none() && object.is_none())
}
