//! `cg info`

use expect_test::expect;
use serde_json::json;

use super::Sample;

#[test]
fn a_script_reads_every_count() {
    let sample = Sample::new();
    let said = sample.cg("info", &["--json"]);
    let mut found = said.json();
    assert_eq!(said.code, 0, "{said:?}");
    let disk_bytes = found["disk_bytes"].take().as_u64().expect("a number");
    let on_disk: u64 = sample.files().iter().map(|(_, bytes)| bytes.len() as u64).sum();
    assert!(disk_bytes > 0 && disk_bytes <= on_disk, "{disk_bytes} of {on_disk}");
    let l0_bytes = found["tiers"]["l0"]["bytes"].take().as_u64().expect("a number");
    assert!(l0_bytes > 3 * (32 + 24), "{l0_bytes} cannot hold three rows");
    for id in ["uuid", "incarnation"] {
        assert_eq!(found[id].take().as_str().map(str::len), Some(36));
    }
    let cold = json!({ "keys": 0, "chunks": 0, "bytes": 0 });
    let expected = json!({
        "uuid": null,
        "incarnation": null,
        "chunks": 3,
        "dimensions": { "game:overworld": { "chunks": 2, "layout": "dimensions" }, "game:moon": { "chunks": 1, "layout": "dimensions" } },
        "registry": {
            "blocks": 6, "components": 1, "entities": 1, "structures": 0, "dimensions": 2, "sides": 3
        },
        "entities": 2,
        "detached": 1,
        "objects": 0,
        "records": 0,
        "tiers": { "l0": { "keys": 3, "chunks": 3, "bytes": null }, "l1": cold, "l2": cold },
        "disk_bytes": null,
        "damaged": 0,
    });
    assert_eq!(found, expected);
}

#[test]
fn a_person_reads_a_table() {
    let out = Sample::new().cg("info", &[]).good();
    let steady: String = out
        .lines()
        .filter(|line| !line.starts_with("world ") && !line.starts_with("on disk "))
        .map(|line| format!("{line}\n"))
        .collect();
    expect![[r#"
        chunks    3
        entities  2 (1 detached)
        objects   0
        records   0

        dimension             chunks        layout
        game:moon                  1    dimensions
        game:overworld             2    dimensions

        tier                  chunks          keys         bytes
        l0                         3             3       1.9 KiB
        l1                         0             0           0 B
        l2                         0             0           0 B

        registry               names
        blocks                     6
        components                 1
        entities                   1
        structures                 0
        dimensions                 2
        sides                      3
    "#]]
    .assert_eq(&steady);
}

#[test]
fn a_deleted_chunk_is_a_key_and_no_chunk() {
    let sample = Sample::new();
    let world = sample.open();
    world
        .transaction(|tx| {
            tx.delete(cg_format::ChunkAt::new(
                cg_format::Dimension::new(1),
                cg_format::ChunkPos::constant(-7, 0, 2),
            ));
            Ok::<_, cg_store::Error>(())
        })
        .expect("the chunk is there");
    // The lock is held as long as the handle is.
    world.close().expect("the disk takes it");
    drop(world);
    let found = sample.cg("info", &["--json"]).json();
    assert_eq!((&found["tiers"]["l0"]["keys"], &found["tiers"]["l0"]["chunks"]), (&json!(3), &json!(2)));
    assert_eq!(found["dimensions"]["game:moon"]["chunks"], 0);
}
