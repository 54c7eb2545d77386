//! The options in force, as RocksDB itself records them.

use super::*;

/// Section by section, the options as RocksDB wrote them at the last open.
fn recorded(dir: &Dir) -> BTreeMap<String, BTreeMap<String, String>> {
    let newest = dir.names("OPTIONS-").pop().expect("RocksDB writes one");
    let text = fs::read_to_string(dir.db().join(newest)).expect("is text");
    let mut sections: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else if let Some((name, value)) = line.split_once('=') {
            sections.entry(section.clone()).or_default().insert(name.to_owned(), value.to_owned());
        }
    }
    sections
}

#[track_caller]
fn check(found: &BTreeMap<String, String>, expected: &[(&str, &str)]) {
    let found: Vec<_> =
        expected.iter().map(|(name, _)| (*name, found.get(*name).map_or("absent", String::as_str))).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_survives_is_decided_by_us() {
    let dir = Dir::new();
    create(&dir.db()).close().expect("closes");
    drop(open(&dir.db()));
    let sections = recorded(&dir);
    check(
        &sections["DBOptions"],
        &[
            ("wal_recovery_mode", "kTolerateCorruptedTailRecords"),
            ("paranoid_checks", "true"),
            ("track_and_verify_wals_in_manifest", "true"),
            ("recycle_log_file_num", "0"),
            ("atomic_flush", "false"),
            ("manual_wal_flush", "false"),
            ("max_total_wal_size", "268435456"),
            ("unordered_write", "false"),
            ("enable_pipelined_write", "false"),
            ("two_write_queues", "false"),
            ("use_fsync", "false"),
            ("max_open_files", "-1"),
        ],
    );
}

#[test]
fn no_file_of_messages_is_written() {
    let dir = Dir::new();
    create(&dir.db()).close().expect("closes");
    drop(open(&dir.db()));
    assert_eq!(dir.names("LOG"), [""; 0]);
}

#[test]
fn every_family_is_tuned() {
    let dir = Dir::new();
    // Enough memory that no buffer is made smaller than it is meant to be.
    let roomy = RocksOptions::new(Budget::new(1 << 30, 2));
    drop(RocksEngine::create(&dir.db(), &roomy).expect("is made"));
    let sections = recorded(&dir);
    let mut found = String::new();
    for family in Family::ALL {
        let options = &sections[&format!("CFOptions \"{}\"", family.name())];
        let table = &sections[&format!("TableOptions/BlockBasedTable \"{}\"", family.name())];
        let blobs = match options["enable_blob_files"].as_str() {
            "true" => format!(
                "{} from {}, gc {} {} {}",
                options["blob_compression_type"],
                options["min_blob_size"],
                options["enable_blob_garbage_collection"],
                options["blob_garbage_collection_age_cutoff"],
                options["blob_garbage_collection_force_threshold"],
            ),
            _ => "none".to_owned(),
        };
        let last_level = match options["bottommost_compression"].as_str() {
            "kDisableCompressionOption" => "the same".to_owned(),
            compression => {
                let fields = &options["bottommost_compression_opts"];
                let level =
                    fields.split(';').find_map(|field| field.trim_matches('{').strip_prefix("level="));
                format!("{compression} {}", level.unwrap_or("absent"))
            }
        };
        // RocksDB records no list where there is none.
        let levels = options.get("compression_per_level").filter(|levels| !levels.is_empty());
        let flushed = levels.map_or_else(String::new, |levels| format!("by level {levels}, "));
        let line = format!(
            "{}: buffer {} x {}, block {} {}, {flushed}last level {last_level}, {}, blobs {blobs}\n",
            family.name(),
            options["write_buffer_size"],
            options["max_write_buffer_number"],
            table["block_size"],
            options["compression"],
            table["filter_policy"],
        );
        found.push_str(&line);
        check(
            options,
            &[
                ("optimize_filters_for_hits", "false"),
                ("level_compaction_dynamic_level_bytes", "true"),
                ("num_levels", "7"),
            ],
        );
        // In memory is what is asked for, inside the one budget.
        check(
            table,
            &[
                ("cache_index_and_filter_blocks", "true"),
                ("index_type", "kTwoLevelIndexSearch"),
                ("partition_filters", "true"),
                ("metadata_block_size", "4096"),
                ("pin_top_level_index_and_filter", "true"),
            ],
        );
    }
    expect![[r"
        worldMeta: buffer 4194304 x 2, block 4096 kLZ4Compression, last level kZSTD 19, bloomfilter, blobs none
        worldProperties: buffer 4194304 x 2, block 4096 kLZ4Compression, last level kZSTD 19, bloomfilter, blobs none
        chunkl0: buffer 67108864 x 3, block 8192 kLZ4Compression, by level kNoCompression:kLZ4Compression, last level the same, bloomfilter, blobs kLZ4Compression from 65536, gc true 0.250000 0.500000
        chunkl1: buffer 67108864 x 2, block 16384 kNoCompression, last level the same, bloomfilter, blobs kNoCompression from 16384, gc true 0.250000 0.500000
        chunkl2: buffer 67108864 x 2, block 16384 kNoCompression, last level kZSTD 19, bloomfilter, blobs kNoCompression from 16384, gc true 0.500000 0.500000
        entity: buffer 33554432 x 2, block 4096 kLZ4Compression, last level kZSTD 6, bloomfilter, blobs kLZ4Compression from 65536, gc true 0.250000 0.500000
        opacityMap: buffer 16777216 x 2, block 8192 kLZ4Compression, last level kZSTD 6, bloomfilter, blobs none
        chunkDelta: buffer 16777216 x 2, block 8192 kLZ4Compression, last level kZSTD 6, bloomfilter, blobs none
        object: buffer 16777216 x 2, block 262144 kLZ4Compression, last level kZSTD 19, bloomfilter, blobs kZSTD from 65536, gc true 0.250000 0.500000
        record: buffer 16777216 x 2, block 8192 kLZ4Compression, last level kZSTD 6, bloomfilter, blobs kLZ4Compression from 65536, gc true 0.250000 0.500000
        snapshot: buffer 16777216 x 2, block 8192 kLZ4Compression, last level kZSTD 6, bloomfilter, blobs kLZ4Compression from 65536, gc true 0.250000 0.500000
        index: buffer 16777216 x 2, block 8192 kLZ4Compression, last level kZSTD 6, bloomfilter, blobs none
    "]]
    .assert_eq(&found);
}

#[test]
fn families_are_ours_and_no_others() {
    let add = |dir: &Dir, name: &str| {
        let names = rocksdb::DB::list_cf(&rocksdb::Options::default(), dir.db()).expect("lists");
        let db = rocksdb::DB::open_cf(&rocksdb::Options::default(), dir.db(), names).expect("opens");
        db.create_cf(name, &rocksdb::Options::default()).expect("adds");
    };
    let dir = Dir::new();
    drop(create(&dir.db()));
    add(&dir, "chunkl3");
    dir.refused(
        &options(),
        expect![[r#"DIR/db has the unknown family "chunkl3"; use the release that made it"#]],
    );

    let dir = Dir::new();
    drop(rocksdb::DB::open_default(dir.db()).expect("is made"));
    let before = dir.files();
    dir.refused(&options(), expect!["DIR/db has no family worldMeta: not a complete world"]);
    assert!(dir.files() == before, "a refused open changed the directory");
    for family in Family::ALL.into_iter().filter(|family| *family != Family::Record) {
        add(&dir, family.name());
    }
    dir.refused(&options(), expect!["DIR/db has no family record: not a complete world"]);
}

#[test]
fn directories_without_an_engine_are_told_apart() {
    let dir = Dir::new();
    dir.refused(&options(), expect!["DIR/db holds no world data: there is no file CURRENT"]);
    fs::create_dir(dir.db()).expect("is made");
    dir.refused(&options(), expect!["DIR/db holds no world data: there is no file CURRENT"]);
    drop(create(&dir.db()));
    for content in ["", "MANIFEST-\n", "MANIFEST-000001", "../../etc/passwd\n", "MANIFEST-00x\n"] {
        fs::write(dir.db().join("CURRENT"), content).expect("writes");
        dir.refused(
            &options(),
            expect![[
                "file CURRENT at byte 0 is damaged: it does not name a manifest; MANIFEST-000005 is there, and it is the only manifest: write its name and a line feed into CURRENT; all else may be sound"
            ]],
        );
    }
    fs::write(dir.db().join("CURRENT"), "MANIFEST-999999\n").expect("writes");
    dir.refused(
        &options(),
        expect![[
            "file MANIFEST-999999 at byte 0 is damaged: the file is missing; only it says which tables belong to the world: bring it back from a copy of this directory that was made since the world was last opened, or restore a checkpoint; 0 tables, 0 blob files and 1 logs are there"
        ]],
    );
    fs::remove_file(dir.db().join("CURRENT")).expect("removes");
    dir.refused(
        &options(),
        expect![[
            "file CURRENT at byte 0 is damaged: the file is missing; MANIFEST-000005 is there, and it is the only manifest: write its name and a line feed into CURRENT; all else may be sound"
        ]],
    );
}
