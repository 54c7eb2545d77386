//! `cg opacity`

use cg_format::{ChunkAt, Dimension, Space, key};
use expect_test::expect;

use super::{GROUND, Sample};

#[test]
fn a_map_that_is_wrong_is_found_and_drawn_again() {
    let sample = Sample::new();
    let at = ChunkAt::new(Dimension::new(0), GROUND);
    let before = sample.cg("hash", &[]).good();
    // A sound patch that says: nothing here hides anything.
    sample.spoil(Space::OpacityPatch, &key::opacity_patch(at), b"\0");
    let said = sample.cg("verify", &[]);
    assert_eq!(said.code, 1);
    expect![[r#"
        opacityMap 000000000000000095555555555555555555555555555555: the opacity map is wrong in 256 columns of the tile, first at x 0, z -16 of dimension 0: it says opaque nowhere, and by the chunks it is at y 64 to 70; it is a cache and no chunk is at fault: run `cg opacity rebuild`
        checked 3 chunkl0, 3 chunks, 2 entity, 6 index, 2 opacity tiles, 2 opacityMap, 1 references, 14 worldMeta
        1 problem found
    "#]].assert_eq(&said.out);
    assert_eq!(sample.cg("verify", &["--quick"]).code, 0, "the rows are sound");

    assert_eq!(sample.cg("opacity rebuild", &[]).good(), "2 tiles replaced\n");
    assert_eq!(sample.cg("verify", &[]).code, 0);
    assert_eq!(sample.cg("opacity rebuild", &["--json"]).good(), "{\"replaced_tiles\":0}\n");
    assert_eq!(sample.cg("hash", &[]).good(), before);
}
