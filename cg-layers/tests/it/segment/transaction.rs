//! A segment's transaction offers for chunks and entities what a world's does.

use cg_format::entity::{Owner, Reason};
use cg_format::{BlockBox, BlockPos, CellOrder};
use cg_layers::SegmentError;
use cg_store::Error;

use super::{block, filled, in_memory, put, save, segment, uuid};

#[test]
fn chunks_side_data_boxes_and_owners_are_changed_in_a_segment() {
    let (world, ids) = in_memory();
    let (here, above) = (ids.at(0, 0, 0), ids.at(0, 1, 0));
    save(&world, here, filled(world.root(), ids.stone));
    put(&world, 1, ids.cow_in(here));
    let side = world.root().registry().register_side("game:light").expect("registers");
    let area = BlockBox::new(BlockPos::new(0, 16, 0), BlockPos::new(15, 31, 15));
    let values = vec![(); 16 * 16 * 16];
    let changed = world.transaction(here, |tx| {
        tx.set_side(here, side, Some(vec![7]))?;
        let nowhere = Reason::new("cargo").expect("is short");
        assert!(tx.move_entity(uuid(1), Owner::Detached(nowhere))?);
        tx.write_box(here.dimension, area, CellOrder::Xyz, &values, ids.stone, |()| Some(ids.glass))?;
        let [stored, written] = tx.load_many(&[here, above]).try_into().expect("one for each");
        let written = written?.expect("was just written").block(area.min().local());
        Ok::<_, Error>((stored?.is_some(), written == ids.glass))
    });
    assert_eq!(changed.expect("commits"), (true, true));
    let chunk = world.load(here).expect("reads").expect("is stored");
    assert_eq!(chunk.side(side), Some(&[7][..]));
    assert!(chunk.entities().is_empty(), "its owner is no chunk any more");
    assert_eq!(block(&world, above), Some(ids.glass));
    let cow = world.entity(uuid(1)).expect("reads").expect("is stored");
    assert!(matches!(&cow.owner, Owner::Detached(reason) if reason.as_str() == "cargo"), "{cow:?}");
}

#[test]
fn many_chunks_are_loaded_but_for_those_of_another_segment() {
    let (world, ids) = in_memory();
    let (here, there) = (ids.at(0, 0, 0), ids.at(16, 0, 0));
    save(&world, here, filled(world.root(), ids.stone));
    let loaded = world.transaction(here, |tx| Ok::<_, Error>(tx.load_many(&[there, here])));
    let [refused, stored] = loaded.expect("commits nothing").try_into().expect("one for each");
    let first = segment(&ids, 0);
    let second = segment(&ids, 1);
    assert!(
        matches!(refused.as_ref().err().and_then(Error::layer::<SegmentError>), Some(found) if *found == SegmentError::TwoSegments { first, second }),
        "{refused:?}"
    );
    assert!(stored.expect("reads").is_some());
}
