//! A change of settings that was asked for: all of it is done, or nothing.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use cg_registry::{Catalog, ListKind};
use cg_store::settings::WorldSettings;
use cg_store::{Error, Property};

use super::found::all;
use crate::args::find_dimension;
use crate::output::{Failure, grouped};

/// Settings to set and to remove. Their names are right, and each is there once.
#[derive(Debug)]
pub(super) struct Change<'a> {
    texts: Vec<(&'static str, &'a str)>,
    thumbnail: Option<(&'a Path, Vec<u8>)>,
    removed: Vec<&'static str>,
}

impl<'a> Change<'a> {
    /// Reads what the arguments say; `None` if that is nothing.
    pub(super) fn read(
        assignments: &'a [String],
        removed: &[String],
        thumbnail: Option<&'a Path>,
    ) -> Result<Option<Self>, Failure> {
        let texts = assignments.iter().map(|text| assignment(text)).collect::<Result<Vec<_>, _>>()?;
        let removed = removed.iter().map(|name| known(name)).collect::<Result<Vec<_>, _>>()?;
        if texts.is_empty() && removed.is_empty() && thumbnail.is_none() {
            return Ok(None);
        }
        for name in WorldSettings::NAMES {
            let named = texts.iter().map(|(name, _)| name).chain(&removed);
            let named = named.chain(thumbnail.map(|_| &"thumbnail")).filter(|other| *other == name).count();
            if named > 1 {
                let message = format!("setting `{name}` is named {named} times; name it once, {UNCHANGED}");
                return Err(Failure::usage(message));
            }
        }
        let thumbnail = thumbnail.map(|path| Ok::<_, Failure>((path, picture(path)?))).transpose()?;
        Ok(Some(Self { texts, thumbnail, removed }))
    }

    /// The settings to set.
    pub(super) fn settings(&self, catalog: &Catalog) -> Result<WorldSettings, Failure> {
        let mut settings = WorldSettings::default();
        for (name, text) in &self.texts {
            let place = if *name == "spawn" { with_whole_name(text, catalog)? } else { None };
            let text = place.as_deref().unwrap_or(text);
            settings.set_text(name, text).map_err(|error| self.refused(error))?;
        }
        settings.thumbnail = self.thumbnail.as_ref().map(|(_, bytes)| bytes.clone());
        Ok(settings)
    }

    /// The settings to remove, with the properties that hold them.
    pub(super) fn removed(&self) -> impl Iterator<Item = (&'static str, Property)> {
        all().filter(|(name, _)| self.removed.contains(name))
    }

    /// The failure of values that settings cannot have.
    pub(super) fn refused(&self, error: Error) -> Failure {
        match (error, &self.thumbnail) {
            (Error::Setting { name, found, .. }, Some((path, _))) if name == "thumbnail" => {
                let path = path.display();
                Failure::refused(format!("{path} is no PNG file, it has {found}; {UNCHANGED}"))
            }
            (Error::Setting { name, .. }, None) if name == "thumbnail" => Failure::usage(format!(
                "setting `thumbnail` is a picture: set it with --thumbnail FILE; {UNCHANGED}"
            )),
            (error @ Error::Setting { .. }, _) => Failure::usage(format!("{error}; {UNCHANGED}")),
            (Error::TooLarge { what, len_bytes, limit_bytes }, _) => Failure::usage(format!(
                "{what} has {} bytes, and at most {} are allowed; {UNCHANGED}",
                grouped(len_bytes),
                grouped(limit_bytes)
            )),
            (error, _) => error.into(),
        }
    }
}

/// The end of each message of a refusal.
const UNCHANGED: &str = "nothing was changed";

fn assignment(text: &str) -> Result<(&'static str, &str), Failure> {
    match text.split_once('=') {
        Some((name, value)) => Ok((known(name)?, value)),
        None => Err(Failure::usage(format!(
            "`{text}` has no value: write it as NAME=VALUE, or remove a setting with --unset NAME; {UNCHANGED}"
        ))),
    }
}

/// The name of a setting.
fn known(name: &str) -> Result<&'static str, Failure> {
    WorldSettings::NAMES.iter().copied().find(|known| *known == name).ok_or_else(|| {
        let names = WorldSettings::NAMES.join(", ");
        Failure::usage(format!("there is no setting `{name}`; there are {names}; {UNCHANGED}"))
    })
}

/// The refusal to remove a setting that a world does not have.
pub(super) fn absent(name: &str) -> Failure {
    Failure::absent(format!("the world has no setting `{name}` that could be removed; {UNCHANGED}"))
}

/// A place whose dimension has its whole name; `None` if it is no place.
fn with_whole_name(place: &str, catalog: &Catalog) -> Result<Option<String>, Failure> {
    // A name may have spaces.
    let [z, y, x, dimension] = place.rsplitn(4, ' ').collect::<Vec<_>>()[..] else { return Ok(None) };
    let dimension = find_dimension(catalog, dimension)?;
    let name = catalog.list(ListKind::Dimensions).name(dimension.get());
    Ok(name.map(|name| format!("{name} {x} {y} {z}")))
}

/// The bytes of a file. At most one more than a thumbnail may have is read.
fn picture(path: &Path) -> Result<Vec<u8>, Failure> {
    let limit = WorldSettings::MAX_THUMBNAIL_BYTES;
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(limit as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| Failure::io("read", path, &error))?;
    if bytes.len() > limit {
        let (path, limit) = (path.display(), grouped(limit as u64));
        return Err(Failure::refused(format!(
            "{path} has more than {limit} bytes, which no thumbnail may have; choose a smaller picture, {UNCHANGED}"
        )));
    }
    Ok(bytes)
}
