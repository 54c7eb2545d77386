//! Tests that names which RocksDB reads as numbered files are known.

use super::*;

#[test]
fn names_are_read_as_rocksdb_reads_them() {
    let cases = [
        ("000012.log", Some((Numbered::Log, Some(12)))),
        ("7.sst", Some((Numbered::Table, Some(7)))),
        ("000007.ldb", Some((Numbered::Table, Some(7)))),
        ("000008.blob", Some((Numbered::Blob, Some(8)))),
        ("000009.dbtmp", Some((Numbered::Other, Some(9)))),
        ("MANIFEST-000010", Some((Numbered::Other, Some(10)))),
        ("OPTIONS-000011", Some((Numbered::Other, Some(11)))),
        ("18446744073709551615.log", Some((Numbered::Log, Some(u64::MAX)))),
        ("18446744073709551616.sst", Some((Numbered::Table, None))),
    ];
    for (name, expected) in cases {
        assert_eq!(numbered(name), expected, "{name}");
    }
    for none in
        ["notes.log", ".log", "12", "12.log.bak", "20260101.bak", "MANIFEST-", "MANIFEST-1x", "LOG.old.17"]
    {
        assert_eq!(numbered(none), None, "{none}");
    }
}

#[test]
fn a_file_is_opened_only_if_it_is_one() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("OWNER");
    let open =
        |path: &Path| open_own(OpenOptions::new().read(true).write(true).create(true).truncate(false), path);
    open(&path).expect("is made");
    open(&path).expect("is there");
    #[cfg(unix)]
    {
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("links");
        open(&link).expect_err("a link is not followed");
    }
    assert_eq!(fs::read(&path).expect("reads"), b"");
}
