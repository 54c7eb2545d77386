//! Every subject that is compiled has what it was given, and a subject that has not is caught.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use cg_format::{BlockId, LocalPos};

use super::{About, Kind, Memory, Role, Setting, Subject, Until, all};
use crate::check::check;
use crate::columns::{Column, Columns};
use crate::failure::Failure;
use crate::gather::from_seed;
use crate::place::{HEIGHT, Place, square};
use crate::work::{self, Bench, prepare};
use crate::workload::Workload;

/// The limit, but it forgets one column, or one block of it, when it saves or when it was opened again.
#[derive(Clone, Copy)]
enum Loses {
    Nothing,
    Column(Place),
    Block(Place),
    Reopened(Place),
}

struct Forgetful(Loses);

impl Forgetful {
    fn over(&self, store: Box<dyn Subject>, setting: &Setting<'_>) -> Box<dyn Subject> {
        Box::new(Forgets { store, loses: self.0, air: BlockId::new(0), schema: setting.schema.clone() })
    }
}

impl Kind for Forgetful {
    fn about(&self) -> About {
        let [version, durability, options] = ["", "", ""].map(str::to_owned);
        About { name: "forgetful".to_owned(), role: Role::Rival, version, durability, options }
    }

    fn create(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        Ok(self.over(super::append::Append.create(setting)?, setting))
    }

    fn open(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        Ok(self.over(super::append::Append.open(setting)?, setting))
    }
}

struct Forgets {
    store: Box<dyn Subject>,
    loses: Loses,
    air: BlockId,
    schema: cg_registry::Schema,
}

impl Subject for Forgets {
    fn save(&mut self, at: Place, column: &Column, until: Until) -> Result<(), Failure> {
        match self.loses {
            Loses::Column(lost) if lost == at => Ok(()),
            Loses::Block(lost) if lost == at => {
                let mut column = column.clone();
                let cell = LocalPos::new(1, 2, 3);
                let other = BlockId::new(self.air.get() ^ 1);
                let block = if column.chunks()[3].block(cell) == self.air { other } else { self.air };
                column.set_block(3, cell, block, &self.schema)?;
                self.store.save(at, &column, until)
            }
            _ => self.store.save(at, column, until),
        }
    }

    fn load(&mut self, at: Place) -> Result<Option<super::Loaded>, Failure> {
        match self.loses {
            Loses::Reopened(lost) if lost == at => Ok(None),
            _ => self.store.load(at),
        }
    }

    fn set_block(
        &mut self,
        at: Place,
        index: usize,
        cell: LocalPos,
        block: BlockId,
        until: Until,
    ) -> Result<(), Failure> {
        self.store.set_block(at, index, cell, block, until)
    }

    fn sync(&mut self) -> Result<(), Failure> {
        self.store.sync()
    }

    fn scan(&mut self) -> Result<u64, Failure> {
        self.store.scan()
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.store.close()
    }
}

fn few() -> Columns {
    from_seed(9).expect("hills")
}

fn setting<'a>(columns: &'a Columns, dir: &'a Path, memory: Memory) -> Setting<'a> {
    let Columns { catalog, schema, dimension, .. } = columns;
    Setting { dir, catalog, schema, dimension: *dimension, memory }
}

/// A short measurement of `count` columns.
fn bench<'a>(kind: &'a dyn Kind, columns: &'a Columns, count: usize, dirs: [&'a Path; 2]) -> Bench<'a> {
    let [prepared, scratch] = dirs;
    Bench { kind, columns, prepared, scratch, count, enough: Duration::from_millis(1), seed: 7 }
}

/// Runs a workload of new columns on a kind.
fn run(kind: &dyn Kind) -> Result<u64, String> {
    let (columns, dir) = (few(), tempfile::tempdir().expect("a folder"));
    let bench = bench(kind, &columns, 9, [dir.path(); 2]);
    let ran = work::run(Workload::NewTerrain, &bench).map_err(|error| error.to_string())?;
    Ok(ran.compared_columns)
}

#[test]
fn a_store_that_loses_a_column_or_a_block_does_not_win() {
    assert_eq!(run(&Forgetful(Loses::Nothing)), Ok(9));
    let lost = run(&Forgetful(Loses::Column(Place::new(1, 2))));
    assert_eq!(lost, Err("the column at 1, 2 is lost".to_owned()));
    let changed = run(&Forgetful(Loses::Block(Place::new(2, 0))));
    assert_eq!(changed, Err("chunk 3 of the column at 2, 0 is not what was saved".to_owned()));
}

#[test]
fn a_prepared_store_that_has_lost_a_column_is_not_measured() {
    let (columns, dir) = (few(), tempfile::tempdir().expect("a folder"));
    let kind = Forgetful(Loses::Column(Place::new(0, 1)));
    let error =
        prepare(&bench(&kind, &columns, 9, [dir.path(); 2])).expect_err("a column is lost").to_string();
    assert_eq!(error, "the column at 0, 1 is lost");
}

/// The middle of 11×11 columns: every workload that reads has it.
const COLUMNS: usize = 121;
const MIDDLE: Place = Place::new(5, 5);

#[test]
fn every_workload_compares_content() {
    let (columns, dir) = (few(), tempfile::tempdir().expect("a folder"));
    let prepared = dir.path().join("prepared");
    let [sound, forgetful] = [Loses::Nothing, Loses::Reopened(MIDDLE)].map(Forgetful);
    prepare(&bench(&sound, &columns, COLUMNS, [&prepared, dir.path()])).expect("it loses nothing");
    let terrain = square(COLUMNS).into_iter().map(|at| columns.terrain_at(at).len_bytes());
    let held_bytes = terrain.sum::<u64>();
    let taken = Workload::all().filter(|workload| workload.is_quick() && !workload.needs_threads());
    for workload in taken {
        let name = workload.facts().name;
        let run = |kind: &dyn Kind| {
            let scratch = tempfile::tempdir_in(dir.path()).expect("a folder");
            let bench = bench(kind, &columns, COLUMNS, [&prepared, scratch.path()]);
            if workload.has_own_store() {
                work::fill(workload, &bench)?;
            }
            work::run(workload, &bench)
        };
        let ran = run(&sound).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(ran.compared_columns > 0, "{name} compares nothing");
        match workload {
            Workload::Disk | Workload::ColumnTerrain | Workload::NewTerrain => {
                assert_eq!(ran.held_bytes, Some(held_bytes), "{name}");
            }
            Workload::Explorer => assert_eq!(ran.held_bytes, Some(ran.saved_bytes), "{name}"),
            _ => {}
        }
        // What writes new land or a few columns need not come to the middle.
        if !workload.writes() {
            let error = run(&forgetful).expect_err(name).to_string();
            assert_eq!(error, "the column at 5, 5 is lost", "{name}");
        }
    }
}

/// Compares all columns that are expected of an open store.
fn check_all(store: &mut dyn Subject, expected: &BTreeMap<Place, Column>) -> Result<u64, Failure> {
    check(store, expected.iter().map(|(at, column)| (*at, column)))
}

/// The states that a save waits for, in turns.
const UNTILS: [Until; 4] = [Until::Submitted, Until::Accepted, Until::Process, Until::Synced];

/// Saves nine columns at negative places too; one is of air.
fn fill(store: &mut dyn Subject, columns: &Columns) -> Result<BTreeMap<Place, Column>, Failure> {
    let mut expected = BTreeMap::new();
    for (index, at) in square(9).into_iter().enumerate() {
        let at = Place::new(at.x - 1, at.z - 1);
        let column = if index == 4 { columns.empty.clone() } else { columns.terrain_at(at).clone() };
        store.save(at, &column, UNTILS[index % 4])?;
        expected.insert(at, column);
    }
    Ok(expected)
}

/// Changes single blocks, and a whole column.
fn edit(
    store: &mut dyn Subject,
    columns: &Columns,
    expected: &mut BTreeMap<Place, Column>,
) -> Result<(), Failure> {
    for (turn, at) in [Place::new(-1, 0), Place::new(1, 1), Place::new(-1, 0)].into_iter().enumerate() {
        let column = expected.get_mut(&at).ok_or("it was saved")?;
        let (cell, block) = columns.change_of(&column.chunks()[turn], turn as u64)?;
        store.set_block(at, turn, cell, block, UNTILS[turn])?;
        column.set_block(turn, cell, block, &columns.schema)?;
    }
    let changed = columns.changed_at(Place::new(0, 0), 3)?;
    store.save(Place::new(0, 0), &changed, Until::Submitted)?;
    expected.insert(Place::new(0, 0), changed);
    store.sync()
}

/// Checks the content that a store of every kind must have after it was closed and opened again, twice.
fn round_trip(kind: &dyn Kind, columns: &Columns) -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("store");
    let setting = |memory| setting(columns, &path, memory);
    let mut store = kind.create(&setting(Memory::SERVER))?;
    let mut expected = fill(store.as_mut(), columns)?;
    store.close()?;
    kind.compact(&setting(Memory::SERVER))?;

    let mut store = kind.open(&setting(Memory::TINY))?;
    check_all(store.as_mut(), &expected)?;
    assert_eq!(store.scan()?, 9 * HEIGHT as u64, "chunks of a scan");
    assert!(store.load(Place::new(70, -70))?.is_none(), "nothing was saved there");
    edit(store.as_mut(), columns, &mut expected)?;
    let places: Vec<_> = expected.keys().copied().chain([Place::new(9, 9)]).collect();
    let area = store.load_area(&places)?;
    assert_eq!(area.iter().filter(|column| column.is_some()).count(), 9, "columns of an area");
    assert!(area[9].is_none(), "the last was never saved");
    store.close()?;

    let mut store = kind.open(&setting(Memory::SERVER))?;
    check_all(store.as_mut(), &expected)?;
    store.close()
}

#[test]
fn every_subject_has_what_it_was_given() {
    let columns = few();
    for kind in all() {
        let name = kind.about().name;
        round_trip(kind.as_ref(), &columns).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn no_two_subjects_have_a_name_and_each_tells_what_it_is() {
    let mut names = Vec::new();
    for kind in all() {
        let about = kind.about();
        let facts = [&about.version, &about.durability, &about.options];
        assert!(facts.iter().all(|text| !text.is_empty()), "{about:?}");
        assert!(!names.contains(&about.name), "{} is there twice", about.name);
        names.push(about.name);
    }
    for name in ["ours, L0", "RocksDB", "region files", "region streams", "limit: LZ4 and append"] {
        assert!(names.iter().any(|known| known == name), "{name} is missing in {names:?}");
    }
}

#[test]
fn columns_are_the_same_after_they_were_written_and_read() {
    let (columns, dir) = (few(), tempfile::tempdir().expect("a folder"));
    let path = dir.path().join("columns");
    columns.write(&path).expect("written");
    let read = Columns::read(&path).expect("read");
    assert!(read.terrain == columns.terrain && read.catalog == columns.catalog);
    let whole = std::fs::read(&path).expect("read");
    std::fs::write(&path, &whole[..whole.len() - 1]).expect("written");
    let error = Columns::read(&path).expect_err("it ends too early").to_string();
    assert!(error.starts_with(&format!("{} ends too early: ", path.display())), "{error}");
}
