//! Players of the world who are in the boxes, on their way into the files of a save.
//!
//! What a player has with them, such as the vehicle that they ride, is inside of their NBT. So a player is left out while the
//! save has such an entity elsewhere.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use cg_format::EntityId;
use cg_registry::Catalog;
use cg_store::World;
use uuid::Uuid;

use super::backup::Backup;
use super::disk::{self, Partial};
use super::error::IntoError;
use super::options::{IntoOptions, IntoProgress};
use super::plan::Plan;
use super::report::{IntoReport, LeftPlayer};
use super::search::{Found, MAX_PLAYER_BYTES, held_by, held_in};
use super::target::Target;
use crate::export::players::{InLevel, with_player};
use crate::export::slots::Part;
use crate::mapping::player::{Current, PlayerFile};
use crate::mapping::{Ids, place};
use crate::nbt::{self, Compound};
use crate::region::ColumnPos;
use crate::save::{LEVEL, Layout};

/// The column of a player, if they are in one, and their NBT.
type State = (Option<ColumnPos>, Vec<u8>);

/// The players who are put, each with the entities that they have with them.
#[derive(Debug)]
pub(super) struct Players<'a> {
    world: &'a World,
    catalog: &'a Catalog,
    ids: Ids,
    target: &'a Target,
    held: BTreeMap<Uuid, HashSet<Uuid>>,
}

impl<'a> Players<'a> {
    /// Those of the players whose column is put, and whose game is no newer than the save's.
    pub(super) fn find(
        (world, catalog): (&'a World, &'a Catalog),
        (all, plan): (BTreeSet<Uuid>, &Plan),
        (target, options): (&'a Target, &IntoOptions),
        report: &mut IntoReport,
    ) -> Result<Self, IntoError> {
        let mut found = Self { world, catalog, ids: Ids::find(catalog), target, held: BTreeMap::new() };
        if options.keep_players || all.is_empty() {
            return Ok(found);
        }
        let is_looked_at = !target.is_beside_overworld()?;
        for uuid in all {
            let Some((column, nbt)) = found.state(uuid)? else {
                *report.not_exported.entry("players without NBT of Java Edition".to_owned()).or_default() +=
                    1;
                continue;
            };
            let Ok(fields) = Compound::parse(&nbt, &nbt::Limits::default()) else { continue };
            let version = fields.int("DataVersion").unwrap_or(0);
            let why = if !is_looked_at {
                "a server looks for players in the save of the overworld alone"
            } else if target.is_older_than(version) && !options.allow_newer {
                "their game is newer than the save's"
            } else if !column.is_some_and(|column| plan.has(column, Part::Region)) {
                "their column is not put"
            } else {
                found.held.insert(uuid, held_by(fields).into_iter().collect());
                continue;
            };
            report.left_players.add(LeftPlayer { uuid, why: why.to_owned() });
        }
        Ok(found)
    }

    /// The entities that they have with them.
    pub(super) fn held(&self) -> impl Iterator<Item = Uuid> {
        self.held.values().flatten().copied()
    }

    /// Leaves out players who have an entity with them that the save has elsewhere, and that is not taken from there. What the
    /// files of the others have with them goes with these files.
    ///
    /// Gives all that is put, and leaves no other entity of slots among what was found: what a player has who is left out stays.
    pub(super) fn leave_out(
        &mut self,
        found: &mut Found,
        entities: HashSet<Uuid>,
        is_taken: bool,
        report: &mut IntoReport,
    ) -> HashSet<Uuid> {
        let target = self.target;
        let slots = found.slots.iter().filter(|_| !is_taken);
        let in_slots: BTreeMap<_, _> = slots
            .flat_map(|(path, (_, slots))| slots.values().flatten().map(move |entity| (*entity, path)))
            .collect();
        let is_own = |uuid: Uuid, path: &Path, here: &InLevel| {
            *path == file_of(target, uuid) || *path == target.root.join(LEVEL) && here.uuid == Some(uuid)
        };
        let level = InLevel::of(&read(&target.root.join(LEVEL)).unwrap_or_default().unwrap_or_default());
        let players = &found.players;
        self.held.retain(|&uuid, held| {
            let elsewhere = |entity: &Uuid| {
                let of_player = || {
                    let is_of = |(path, here): &(&PathBuf, &BTreeSet<Uuid>)| {
                        here.contains(entity) && !is_own(uuid, path, &level)
                    };
                    players.iter().find(is_of).map(|(path, _)| path)
                };
                let path = in_slots.get(entity).copied().or_else(of_player)?;
                let file = path.strip_prefix(&target.root).unwrap_or(path).display();
                Some(format!("the save has the entity {entity}, which is with them, in {file}"))
            };
            let why = held.iter().find_map(elsewhere);
            let is_put = why.is_none();
            if let Some(why) = why {
                report.left_players.add(LeftPlayer { uuid, why });
            }
            is_put
        });
        found.players.retain(|path, _| !self.held.keys().any(|uuid| is_own(*uuid, path, &level)));
        let put: HashSet<_> = entities.into_iter().chain(self.held()).collect();
        found.slots.retain(|_, (_, slots)| {
            slots.retain(|_, here| {
                here.retain(|uuid| put.contains(uuid));
                !here.is_empty()
            });
            !slots.is_empty()
        });
        put
    }

    /// Writes the files of the players that are not as in the world.
    pub(super) fn put(
        self,
        (options, put): (&IntoOptions, &HashSet<Uuid>),
        mut backup: Option<&mut Backup>,
        report: &mut IntoReport,
        watch: &mut dyn FnMut(IntoProgress<'_>),
    ) -> Result<(), IntoError> {
        for uuid in self.held.keys().copied() {
            let Some((_, nbt)) = self.state(uuid)? else { continue };
            let level_path = self.target.root.join(LEVEL);
            let failed = |source| IntoError::Io { path: level_path.clone(), source };
            // The game of one player reads them from there alone.
            let level_bytes = match self.target.looks {
                Layout::Old => read(&level_path).map_err(failed)?.unwrap_or_default(),
                Layout::Dimensions => Vec::new(),
            };
            let level = InLevel::of(&level_bytes);
            let in_level = level.uuid == Some(uuid);
            let path = file_of(self.target, uuid);
            let old = read(&path).map_err(|source| IntoError::Io { path: path.clone(), source })?;
            let (mut new, mut gone) = (Vec::new(), BTreeSet::new());
            if in_level && let Some(bytes) = level.with(&nbt) {
                gone.extend(held_in(&level_bytes));
                new.push((level_path, bytes));
            }
            let (is_new, is_file) = (old.is_none() && !in_level, old.is_some() || !in_level);
            if is_file && let Some(bytes) = with_player(old.as_deref().unwrap_or_default(), &nbt) {
                gone.extend(held_in(old.as_deref().unwrap_or_default()));
                new.push((path, bytes));
            }
            let counts = &mut report.players;
            let count = match (is_new, new.is_empty()) {
                (true, _) => &mut counts.new,
                (false, true) => &mut counts.equal,
                (false, false) => &mut counts.replaced,
            };
            *count += 1;
            report.removed_entities += gone.iter().filter(|entity| !put.contains(entity)).count() as u64;
            if options.dry_run {
                continue;
            }
            for (path, bytes) in new {
                write(&path, &bytes, backup.as_deref_mut(), watch)?;
            }
        }
        Ok(())
    }

    /// The column and the NBT of a player of the world as they are now.
    fn state(&self, uuid: Uuid) -> Result<Option<State>, IntoError> {
        let Some(entity) = self.world.entity(EntityId::new(uuid))? else { return Ok(None) };
        let column = place::column_of(entity.position.block().chunk());
        let current = Current::of(self.catalog, &self.ids, &entity);
        Ok(current.map(|current| (column, current.nbt.into_owned())))
    }
}

/// The file of a player where the game of the save looks.
fn file_of(target: &Target, uuid: Uuid) -> PathBuf {
    target.root.join(PlayerFile::path(uuid, target.looks))
}

/// A file of the save; `None` if it is not there.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => {
            file?.take(MAX_PLAYER_BYTES as u64).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        }
    }
}

/// Replaces a file whole, after the old one was kept.
fn write(
    path: &Path,
    bytes: &[u8],
    backup: Option<&mut Backup>,
    watch: &mut dyn FnMut(IntoProgress<'_>),
) -> Result<(), IntoError> {
    let failed = |source| IntoError::Io { path: path.to_owned(), source };
    // A link to a file stays one.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().expect("a file of the save is in a folder");
    disk::make_folder(folder).map_err(failed)?;
    watch(IntoProgress::Changes(&target));
    let partial = Partial::of(&target);
    let mut file = File::create(partial.path()).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
    disk::own_like(partial.path(), if target.is_file() { &target } else { folder });
    if let Some(backup) = backup.filter(|_| target.is_file()) {
        backup.keep_region(path, &[]).map_err(|source| backup.failed(source))?;
    }
    watch(IntoProgress::Changes(&target));
    partial.rename(&target).map_err(failed)
}
