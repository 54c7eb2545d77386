//! What a world has of a key that may be in a segment or in the root.

use std::ops::ControlFlow;

use cg_store::error::ConflictKey;
use cg_store::layer::Base as _;
use cg_store::layer::kind::{Kind as _, Objects};
use cg_store::objects::{ObjectKey, StoredObject};
use cg_store::{Error, Property, Transaction, World};

use super::rows::is_of_the_world;

/// What a world has of a key.
#[derive(Debug)]
pub(super) enum Held {
    /// It has the value.
    Live,
    /// It has the version of an object that was deleted.
    Deleted(StoredObject),
    /// It has nothing.
    Absent,
}

impl Held {
    /// What a world has. One key read, two for a record.
    pub(super) fn of(world: &World, key: &ConflictKey) -> Result<Self, Error> {
        let is_live = match key {
            ConflictKey::Entity(id) => world.entity(*id)?.is_some(),
            ConflictKey::Record(id) => world.find_record(*id)?.here().is_some(),
            ConflictKey::Property(name) => match Property::of_key(name.as_bytes()) {
                Some(property) => world.property(&property)?.is_some(),
                None => false,
            },
            ConflictKey::Object(key) => {
                return Ok(match world.find_object(key)?.here() {
                    Some((object, _)) if Objects::is_live(&object) => Self::Live,
                    Some((object, _)) => Self::Deleted(object),
                    None => Self::Absent,
                });
            }
            _ => false,
        };
        Ok(if is_live { Self::Live } else { Self::Absent })
    }

    pub(super) const fn is_live(&self) -> bool {
        matches!(self, Self::Live)
    }

    pub(super) const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// Visits what a segment's world has and another could have: entities, properties of hosts, objects and records. What is
/// damaged is visited as an error.
pub(super) fn for_each_key<B>(
    world: &World,
    mut visit: impl FnMut(Result<ConflictKey, Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    let ended = world.read_view(|view| {
        let ended = view.for_each_entity(|met| visit(met.map(|(id, _)| ConflictKey::Entity(id))))?;
        if ended.is_some() {
            return Ok(ended);
        }
        view.for_each_property("", |met| match met {
            Ok((name, _)) => {
                let property = Property::of_key(name.as_bytes());
                if property.is_none_or(|property| property.is_engines() || is_of_the_world(&property)) {
                    return ControlFlow::Continue(());
                }
                visit(Ok(ConflictKey::Property(name.to_owned())))
            }
            Err(error) => visit(Err(error)),
        })
    })?;
    if ended.is_some() {
        return Ok(ended);
    }
    let ended = world
        .objects()
        .for_each("", |met| visit(met.and_then(|(key, ..)| Ok(ConflictKey::Object(ObjectKey::new(key)?)))))?;
    if ended.is_some() {
        return Ok(ended);
    }
    world.records().for_each(|met| visit(met.map(|(id, _)| ConflictKey::Record(id))))
}

/// Deletes what a world has of a key.
pub(super) fn delete(tx: &mut Transaction<'_>, key: &ConflictKey) -> Result<(), Error> {
    match key {
        ConflictKey::Entity(id) => tx.delete_entity(*id),
        ConflictKey::Record(id) => tx.delete_record(*id),
        ConflictKey::Object(key) => tx.delete_object(key)?,
        ConflictKey::Property(name) => {
            if let Some(property) = Property::of_key(name.as_bytes()) {
                tx.set_property(property, None);
            }
        }
        _ => {}
    }
    Ok(())
}
