//! Properties whose names are too long for a segment: the root names the place of each by a name that is longer.

use cg_layers::SegmentTransaction;
use cg_store::error::ConflictKey;

use super::values::{property, within};
use super::*;

/// The longest name of a property in a segment.
const LONGEST: usize = 65_525;

/// A name of so many bytes, with a character of two of them where errors cut it.
fn long(len_bytes: usize) -> Property {
    let begin = format!("game:{}é", "a".repeat(58));
    property(&format!("{begin}{}", "b".repeat(len_bytes - begin.len())))
}

fn set(
    property: &Property,
    value: Option<u8>,
) -> impl FnOnce(&mut SegmentTransaction<'_, '_>) -> Result<(), Error> {
    move |tx| {
        tx.set_property(property.clone(), value.map(|value| vec![value]));
        Ok(())
    }
}

/// The refusal of a name of so many bytes.
fn refusal(len_bytes: usize) -> String {
    format!(
        "the name of property `game:{}… ({} bytes more)` has {len_bytes} bytes, and a property in a segment has a name of at most 65525; shorten it, or put the property into the root",
        "a".repeat(58),
        len_bytes - 63,
    )
}

#[test]
fn the_refusal_has_the_name_its_length_and_the_longest() {
    let (world, ids) = in_memory();
    let [at, other] = [ids.at(0, 0, 0), ids.at(16, 0, 0)];
    for len_bytes in [LONGEST + 1, 65_535] {
        let long = long(len_bytes);
        let refused = within(&world, at, set(&long, Some(1))).expect_err("is too long");
        let name = long.to_string();
        assert_eq!(name.len(), len_bytes);
        assert_eq!(refused.layer(), Some(&SegmentError::LongPropertyName { name: name.clone() }));
        assert_eq!(refused.to_string(), refusal(len_bytes));
        let mut batch = WriteBatch::new();
        batch.set_property(long.clone(), Some(vec![1]));
        let ticket = world.submit(at, batch).expect("is queued");
        let refused = ticket.wait().expect_err("is too long");
        assert_eq!(refused.to_string(), refusal(len_bytes));
        // It is in no segment, and there is nothing to delete.
        assert_eq!(world.property(&long).expect("reads"), None);
        within(&world, at, set(&long, None)).expect("deletes nothing");
        // The root has no place of it to name.
        let written = world.root().transaction(|tx| {
            tx.set_property(long.clone(), Some(vec![2]));
            Ok::<_, Error>(())
        });
        written.expect("the root takes it");
        assert_eq!(world.property(&long).expect("reads"), Some(vec![2]));
        let refused = within(&world, at, set(&long, Some(3))).expect_err("the root has it");
        let key = ConflictKey::Property(name);
        assert_eq!(refused.layer(), Some(&SegmentError::Elsewhere { key, home: None }));
    }

    let longest = long(LONGEST);
    within(&world, at, set(&longest, Some(1))).expect("fits");
    assert_eq!(world.property(&longest).expect("reads"), Some(vec![1]));
    let refused = within(&world, other, set(&longest, Some(2))).expect_err("another segment has it");
    let key = ConflictKey::Property(longest.to_string());
    assert_eq!(refused.layer(), Some(&SegmentError::Elsewhere { key, home: Some(segment(&ids, 0)) }));
    within(&world, at, set(&longest, None)).expect("deletes");
    assert_eq!(world.property(&longest).expect("reads"), None);
    within(&world, other, set(&longest, Some(2))).expect("is free");
    assert_eq!(world.property(&longest).expect("reads"), Some(vec![2]));
}

/// What no segment has goes to the root.
#[test]
fn an_overlay_merges_such_a_property_into_the_root() {
    let (world, ids) = in_memory();
    let at = ids.at(0, 0, 0);
    within(&world, at, set(&property("game:a"), Some(1))).expect("puts");
    let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
    let all = [property("game:a"), long(LONGEST + 1), long(65_535)];
    let written = overlay.transaction(|tx| {
        for property in &all {
            tx.set_property(property.clone(), Some(vec![2]));
        }
        Ok::<_, Error>(())
    });
    written.expect("writes");
    overlay.merge_into(&world).expect("merges");
    let in_root = all.each_ref().map(|property| world.root().property(property).expect("reads"));
    assert_eq!(in_root, [None, Some(vec![2]), Some(vec![2])]);
    for property in &all {
        assert_eq!(world.property(property).expect("reads"), Some(vec![2]));
    }
}
