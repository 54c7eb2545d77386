//! The end of an import: in which layout each dimension was met, for the export.

use cg_store::Error;
use cg_store::objects::ObjectKey;
use cg_store::prelude::Durability;

use super::apply::Importer;
use super::begin::{files_of_before, stored_level};
use super::choices::Merge;
use super::error::ImportError;
use super::progress::{self, Stored};
use super::report::ImportReport;
use super::report::Stray;
use crate::mapping::layout::{MetLayout, digest_of_level, layout_key};
use crate::mapping::unless_damaged;
use crate::save::{is_moved, stray_of};

impl Importer<'_> {
    /// Stores the layouts and forgets the progress, in one transaction; adds to the report what is of the whole save.
    pub(super) fn end(&mut self, report: &mut ImportReport) -> Result<(), ImportError> {
        let layouts = self.layouts()?;
        let save = &self.source.save;
        report.layout.clone_from(&save.layouts);
        report.strays = save
            .strays
            .iter()
            .map(|strays| Stray {
                dimension: strays.dimension.clone(),
                side: strays.side.clone(),
                live: strays.live.clone(),
            })
            .collect();
        // Of the files that are imported, the import itself says it.
        let mut unread = ImportReport::default();
        for (path, reason) in save.strays.iter().flat_map(|strays| &strays.unread) {
            unread.note_unreadable(&self.source.name(path), None, reason.clone());
        }
        report.add(unread);
        for (dimension, files) in &save.left_out {
            report.note_not_carried(&format!("dimension {dimension}: {files} region files"));
        }
        report.left_files = self.source.others.left_out;
        report.replaced_level.clone_from(&self.head.replaced_level);
        report.deleted_files.clone_from(&self.head.deleted_files);
        report.in_use = self.head.in_use;
        if self.head.choices.merge == Some(Merge::Replace) {
            report.remaining_files = files_of_before(self.world, self.source)?.len() as u64;
        }
        let progress = progress::all(self.world)?;
        self.world.transaction_at(Durability::Process, |tx| {
            for (key, layout) in layouts {
                tx.put_object(key, layout.encode())?;
            }
            progress::clear(tx, progress);
            Stored::Ok(())
        })?;
        self.world.flush()?;
        Ok(())
    }

    /// The layouts that are to be stored: not those of dimensions that are known beside the `level.dat` that the world has.
    fn layouts(&self) -> Result<Vec<(ObjectKey, MetLayout)>, Error> {
        // A damaged one is none that the game could read.
        let kept = unless_damaged(stored_level(self.world))?.flatten();
        let kept = kept.as_deref().map(digest_of_level);
        let is_kept = kept == self.level && self.head.choices.merge != Some(Merge::Keep);
        let mut layouts = Vec::new();
        for (dimension, layout) in &self.source.save.layouts {
            let is_stray = self.head.choices.take_strays && stray_of(dimension).is_some();
            if !is_stray && !is_moved(dimension) {
                continue;
            }
            // A name that is too long for a key has one folder.
            let Ok(key) = layout_key(dimension) else { continue };
            let stored = self.world.objects().get(&key);
            // What is damaged cannot be written over.
            let Some(stored) = unless_damaged(stored)? else { continue };
            let met = stored.and_then(|stored| MetLayout::decode(&stored.bytes));
            if is_kept || met.is_none_or(|met| met.level != kept) {
                layouts.push((key, MetLayout { layout: *layout, level: self.level, is_stray }));
            }
        }
        Ok(layouts)
    }
}
