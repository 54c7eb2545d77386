//! `cg dump`

use cg_format::ClusterTier;
use cg_format::cluster::ClusterView;
use expect_test::expect;
use serde_json::json;

use super::{SHEEP, Sample};

/// The dump of a row without the number of the opening that wrote it, and the checksum over it: both are other ones each time.
fn without_opening(dump: &str) -> String {
    let hide = |line: &str| {
        let is_other = line.ends_with(" checksum") || line.ends_with(" lineage");
        let (place, name) = (line.get(..10).unwrap_or_default(), line.get(21..).unwrap_or_default());
        if is_other { format!("{place}.. .. .. ..{name}\n") } else { format!("{line}\n") }
    };
    dump.lines().map(hide).collect()
}

#[test]
fn a_chunk_is_explained_to_its_last_byte() {
    let out = Sample::new().cg("dump", &["--chunk", "0", "4", "-1"]).good();
    assert!(!out.contains("unexplained"), "{out}");
    expect![[r#"
        chunkl0 0000000000000000c492492492492492492492492492492492492492492492c9
        chunk 0 4 -1 of game:overworld, 187 bytes

        row, 187 bytes
        frame
          000000  01                                                frame version
          000001  01                                                kind
          000002  01                                                codec
          000003  00                                                reserved byte
          000004  .. .. .. ..                                       checksum
          000008  0a 00 00 00 00 00 00 00                           version
          000010  00 00 00 00                                       schema generation
          000014  .. .. .. ..                                       lineage
          000018  b3 06 00 00                                       raw length
          00001c  22 01 00 01 00 22 5a 06 08 00 13 6d 08 00 04 18   block
          00002c  00 03 0f 00 05 10 00 12 02 27 00 05 02 00 13 04
          00003c  0a 00 13 05 08 00 13 03 08 00 0f 02 00 11 61 49
                  … 6 lines of 16 bytes
          0000ac  28 00 00 00 0f 01 00 0e 60 0f 0f 0f 0f 0f 0f

        payload, decompressed, 1715 bytes
        chunk header
          000000  01 00 00 00 00 00 00 00                           format version
          000008  5a 06 00 00 00 00 00 00                           component offset
          000010  6d 06 00 00 00 00 00 00                           entity offset
          000018  01 00 00 00 00 00 00 00                           layered block count
          000020  06 00 00 00 00 00 00 00                           palette count
        block palette
          000028  01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00   palette ids
          000038  00 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00
          000048  05 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00
        layer 0
          000058  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00   block ids
          000068  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
          000078  00 00 00 00 49 92 24 49 92 24 92 24 49 92 24 49
                  … 92 lines of 16 bytes
          000648  49 92 24 49 92 24 49 92 24 49 92 24 49 92 24 49
        upper layers
          000658  79 59                                             layered blocks
        component section
          00065a  00 00 00 00 00 00 00 80                           component id
          000662  01                                                offset width
          000663  00 08                                             offsets
          000665  33 20 61 70 70 6c 65 73                           variable data
        entity section
          00066d  01 00 00 00 00 00 00 00                           entity count
          000675  00 00 00 00 00 00 00 00 00 00 00 00 00 00 5e e9   entities
        side data
          000685  02 00                                             side kind
          000687  28 00 00 00                                       side length
          00068b  0f 0f 0f 0f 0f 0f 0f 0f 0f 0f 0f 0f 0f 0f 0f 0f   side data
          00069b  0f 0f 0f 0f 0f 0f 0f 0f 0f 0f 0f 0f 0f 0f 0f 0f
          0006ab  0f 0f 0f 0f 0f 0f 0f 0f
    "#]]
    .assert_eq(&without_opening(&out));
}

#[test]
fn an_entity_is_explained_as_json() {
    let uuid = SHEEP.to_string();
    let found = Sample::new().cg("dump", &["--json", "--entity", &uuid]).json();
    assert_eq!(found["family"], "entity");
    assert_eq!(found["place"], json!(format!("entity {uuid}")));
    let fields = found["parts"][0]["fields"].as_array().expect("a list");
    let kind = fields.iter().find(|field| field["field"] == "entity type").expect("it is a field");
    assert_eq!(
        *kind,
        json!({
            "offset": 32, "len": 8, "section": "entity", "field": "entity type", "hex": "0000000000000000",
        })
    );
    let covered: u64 = fields.iter().map(|field| field["len"].as_u64().expect("a number")).sum();
    assert_eq!(json!(covered), found["bytes"]);
}

#[test]
fn a_damaged_row_is_shown_up_to_the_damage() {
    let sample = Sample::new();
    let key = sample.spoil_ground();
    let said = sample.cg("dump", &["--row", "chunkl0", &key]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    expect![[r#"
        chunkl0 0000000000000000c492492492492492492492492492492492492492492492c9
        chunk 0 4 -1 of game:overworld, 43 bytes

        row, 43 bytes
        frame
          000000  01                                                frame version
          000001  01                                                kind
          000002  00                                                codec
          000003  00                                                reserved byte
          000004  .. .. .. ..                                       checksum
          000008  0c 00 00 00 00 00 00 00                           version
          000010  00 00 00 00                                       schema generation
          000014  .. .. .. ..                                       lineage
        chunk header
          000018  01 00 00 00 00 00 00 00                           format version
          000020  6e 6f 74 20 61 20 63 68                           component offset
        unexplained
          000028  75 6e 6b                                          3 bytes
        ERROR: chunk header: entity offset needs 8 bytes and 3 are left (at byte 40)
    "#]]
    .assert_eq(&without_opening(&said.out));
}

#[test]
fn registry_rows_are_found_by_name_even_when_the_registry_is_damaged() {
    let sample = Sample::new();
    let out = sample.cg("dump", &["--row", "worldMeta", "dimensions"]).good();
    // The frame's version counts the store's own commits, which are not what this is about.
    let (frame, names) = out.split_at(out.find("name list").expect("a section"));
    assert!(frame.starts_with("worldMeta 64696d656e73696f6e73\nrow `dimensions`, 63 bytes\n"), "{frame}");
    expect![[r#"
        name list
          000018  02 00 00 00 00 00 00 00                           name count
          000020  0e 00 00 00                                       name length
          000024  67 61 6d 65 3a 6f 76 65 72 77 6f 72 6c 64         name
          000032  09 00 00 00                                       name length
          000036  67 61 6d 65 3a 6d 6f 6f 6e                        name
    "#]]
    .assert_eq(names);

    sample.spoil(cg_format::Space::WorldMeta, b"dimensions", b"\x02\0\0\0\0\0\0\0\x0e\0\0\0game");
    let said = sample.cg("dump", &["--row", "worldMeta", "dimensions"]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    assert!(said.out.contains("ERROR: "), "{}", said.out);
    let said = sample.cg("dump", &["--chunk", "0", "4", "-1"]);
    assert_eq!(said.code, 1);
    expect![[r#"
        cg: the world's registry cannot be read (row `dimensions`: name list: name needs 14 bytes and 4 are left (at byte 12)); name the row itself with --row
    "#]].assert_eq(&said.err);
}

#[test]
fn what_is_not_there_is_said_in_a_sentence() {
    let sample = Sample::new();
    let said = sample.cg("dump", &["--chunk", "1", "2", "3"]);
    assert_eq!((said.code, said.out.as_str()), (4, ""));
    expect![[r#"
        cg: chunk 1 2 3 of game:overworld is not stored in any tier
    "#]]
    .assert_eq(&said.err);
    let said = sample.cg("dump", &["--row", "chunkl7", "00"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    expect![[r#"
        cg: the world has no family `chunkl7`; it has worldMeta, worldProperties, chunkl0, chunkl1, chunkl2, entity, opacityMap, chunkDelta, object, record, snapshot, index
    "#]].assert_eq(&said.err);
    let said = sample.cg("dump", &["--entity", "00000000-0000-0000-0000-00000000ffff"]);
    assert_eq!((said.code, said.out.as_str()), (4, ""));
    expect![[r#"
        cg: entity has no row under the key 0000000000000000000000000000ffff
    "#]]
    .assert_eq(&said.err);
}

#[test]
fn a_cluster_is_written_in_the_plain_form() {
    let sample = Sample::new();
    let file = sample.beside("cluster.bin");
    let path = file.to_str().expect("is text");
    let chunk = ["--chunk", "0", "4", "-1", "--cluster-to", path];
    let said = sample.cg("dump", &chunk);
    assert_eq!(
        (said.code, said.err.as_str(), said.out.as_str()),
        (
            2,
            "cg: --cluster-to needs the row of a cluster, and this one is of chunkl0; a chunk is in a cluster when it is \
             warm or cold: `cg tiers demote` moves it there\n",
            ""
        )
    );
    assert!(!file.exists());
    for (tier, header_bytes) in [(ClusterTier::L1, 521), (ClusterTier::L2, 32_777)] {
        let sample = Sample::new();
        sample.cool_ground(tier);
        sample.cg("dump", &chunk).good();
        let bytes = std::fs::read(&file).expect("was written");
        assert_eq!((&bytes[..8], bytes[8]), (&1_u64.to_le_bytes()[..], tier.scale_level()));
        let cluster = ClusterView::new(&bytes).expect("is sound");
        let chunks: Vec<_> = cluster.chunks().collect();
        assert_eq!((chunks.len(), chunks[0].1.len()), (1, bytes.len() - header_bytes));
        assert_eq!(chunks[0].1.len(), 1715, "as the hot row has it");
    }
}
