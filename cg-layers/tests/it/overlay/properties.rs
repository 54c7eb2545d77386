//! Properties in overlays: read through, set on top, given back and merged.

use cg_layers::{InMemory, OverlayError, SegmentError, SegmentedWorld};
use cg_store::StoreLimits;
use cg_store::error::ConflictKey;

use super::*;
use crate::fixture::name;

fn named(text: &str) -> Property {
    Property::Named(name(text))
}

fn set<S: Base>(overlay: &Overlay<S>, property: &Property, bytes: Option<&[u8]>) {
    let set = overlay.transaction(|tx| {
        tx.set_property(property.clone(), bytes.map(<[u8]>::to_vec));
        Ok::<_, Error>(())
    });
    set.expect("sets");
}

fn set_below(world: &World, property: &Property, bytes: Option<&[u8]>) {
    let set = world.transaction(|tx| {
        tx.set_property(property.clone(), bytes.map(<[u8]>::to_vec));
        Ok::<_, Error>(())
    });
    set.expect("sets");
}

/// The template at noon of its third day, in rain.
fn dated() -> (World, Ids) {
    let (base, ids) = template();
    for (property, bytes) in
        [(Property::Time, "noon"), (named("game:day"), "3"), (named("game:weather"), "rain")]
    {
        set_below(&base, &property, Some(bytes.as_bytes()));
    }
    (base, ids)
}

fn shown<S: Base>(overlay: &Overlay<S>, prefix: &str) -> Vec<(String, String)> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let all = overlay.properties(prefix).expect("reads").into_iter();
    all.map(|(name, bytes)| (name.as_str().to_owned(), text(bytes))).collect()
}

fn properties_lie_on_top(overlay: &Overlay<World>) {
    let base = overlay.base().clone();
    let (day, weather, score) = (named("game:day"), named("game:weather"), named("duel:score"));
    let read = |property: &Property| overlay.property(property).expect("reads");
    assert_eq!((read(&Property::Time), read(&score)), (Some(b"noon".to_vec()), None), "the base's");
    let changed = overlay.transaction(|tx| {
        assert_eq!(tx.property(&day)?, Some(b"3".to_vec()));
        tx.set_property(day.clone(), Some(b"4".to_vec()));
        assert_eq!(tx.property(&day)?, Some(b"4".to_vec()), "its own");
        tx.set_property(weather.clone(), None);
        tx.set_property(score.clone(), Some(b"2:1".to_vec()));
        tx.set_property(Property::Time, Some(b"night".to_vec()));
        tx.set_property(Property::Seed, None);
        Ok::<_, Error>(())
    });
    changed.expect("sets");
    assert_eq!(read(&Property::Time), Some(b"night".to_vec()));
    assert_eq!((read(&weather), read(&Property::Seed)), (None, None));
    let pairs = |all: &[(&str, &str)]| -> Vec<(String, String)> {
        all.iter().map(|(name, bytes)| ((*name).to_owned(), (*bytes).to_owned())).collect()
    };
    assert_eq!(shown(overlay, ""), pairs(&[("duel:score", "2:1"), ("game:day", "4")]));
    assert_eq!(shown(overlay, "game:"), pairs(&[("game:day", "4")]));
    assert_eq!(base.property(&Property::Time).expect("reads"), Some(b"noon".to_vec()), "is as it was");
    let diff = overlay.diff().expect("compares");
    let [added, changed, deleted] = [Difference::Added, Difference::Changed, Difference::Deleted];
    let expected = [(score, added), (day.clone(), changed), (weather, deleted), (Property::Time, changed)];
    assert_eq!(diff.properties, expected);
    // What is as it is shown is not written.
    let rows = overlay.stats().rows_written;
    set(overlay, &day, Some(b"4"));
    set(overlay, &Property::Seed, None);
    assert_eq!(overlay.stats().rows_written, rows);
    overlay.reset().expect("resets");
    assert!(overlay.diff().expect("compares").is_empty());
    assert_eq!(shown(overlay, "game:"), pairs(&[("game:day", "3"), ("game:weather", "rain")]));
    assert_eq!(overlay.arenas().sweep(100).expect("sweeps"), 4);
}

#[test]
fn properties_lie_on_top_in_memory() {
    properties_lie_on_top(&over(&dated().0));
}

#[test]
fn properties_lie_on_top_on_disk() {
    let disk = Disk::new();
    properties_lie_on_top(&on_disk(&disk, &dated().0));
}

#[test]
fn properties_are_merged_through_layers_and_survive_reopening() {
    let (base, _) = dated();
    let disk = Disk::new();
    let lower = on_disk(&disk, &base);
    set(&lower, &named("game:day"), Some(b"4"));
    drop(lower);
    let lower = Overlay::open(disk.root().join("arena"), base.clone(), &options()).expect("opens");
    assert_eq!(lower.property(&named("game:day")).expect("reads"), Some(b"4".to_vec()));
    let upper = over(&lower);
    set(&upper, &named("game:weather"), None);
    set(&upper, &Property::Time, Some(b"night"));
    assert_eq!(shown(&upper, "game:"), [("game:day".to_owned(), "4".to_owned())]);
    assert_eq!(upper.merge_into(&lower).expect("merges").changes, 2);
    assert_eq!(lower.merge_into(&base).expect("merges").changes, 3);
    assert!(lower.diff().expect("compares").is_empty());
    let below = |property| base.property(&property).expect("reads");
    assert_eq!(below(Property::Time), Some(b"night".to_vec()));
    assert_eq!((below(named("game:day")), below(named("game:weather"))), (Some(b"4".to_vec()), None));
}

#[test]
fn a_property_that_the_base_changed_since_is_not_undone() {
    let (base, _) = dated();
    let day = named("game:day");
    let overlay = over(&base);
    // Read at one value, set from that, while the base goes on.
    let counted = overlay.transaction(|tx| {
        tx.property(&day)?;
        set_below(&base, &day, Some(b"9"));
        tx.set_property(day.clone(), Some(b"4".to_vec()));
        tx.set_property(named("duel:score"), Some(b"2:1".to_vec()));
        Ok::<_, Error>(())
    });
    counted.expect("sets");
    let refused = overlay.merge_into(&base);
    assert!(
        matches!(refused.as_ref().err().and_then(Error::layer), Some(OverlayError::BaseChanged { key, .. })
            if *key == ConflictKey::Property("game:day".into())),
        "{refused:?}"
    );
    assert_eq!(base.property(&day).expect("reads"), Some(b"9".to_vec()));
    assert_eq!(base.property(&named("duel:score")).expect("reads"), None, "nothing was merged");
    // Once it is the same, it is no conflict.
    set(&overlay, &day, Some(b"9"));
    assert_eq!(overlay.merge_into(&base).expect("merges").changes, 1);
}

#[test]
fn a_property_that_is_too_long_is_refused_when_it_is_set() {
    let limits = StoreLimits { property_bytes: 8, ..StoreLimits::default() };
    let small = WorldOptions { limits, ..options() };
    let overlay = Overlay::in_memory(dated().0, &small).expect("a base");
    let long = overlay.transaction(|tx| {
        tx.set_property(named("game:day"), Some(vec![b'9'; 9]));
        Ok::<_, Error>(())
    });
    assert!(
        matches!(&long, Err(Error::TooLarge { what, len_bytes: 9, limit_bytes: 8 }) if what == "game:day")
    );
    assert!(overlay.diff().expect("compares").is_empty());
}

/// Properties of a segmented world are its root's, beside those by which it knows its segments.
#[test]
fn properties_are_merged_into_the_root_of_segments() {
    let (world, ids): (SegmentedWorld<InMemory>, Ids) = crate::segment::in_memory();
    for x in [0, 16] {
        crate::segment::save(&world, ids.at(x, 0, 0), filled(world.root(), ids.stone));
    }
    let overlay = over(&world);
    let changed = overlay.transaction(|tx| {
        tx.set_property(named("game:day"), Some(b"4".to_vec()));
        for x in [0, 256] {
            tx.set_block(ids.overworld, BlockPos::new(x, 0, 0), ids.glass)?;
        }
        Ok::<_, Error>(())
    });
    changed.expect("changes");
    assert_eq!(shown(&overlay, "").len(), 1, "not those of the root itself");
    assert_eq!(overlay.merge_into(&world).expect("merges").changes, 3);
    assert_eq!(world.root().property(&named("game:day")).expect("reads"), Some(b"4".to_vec()));
    assert_eq!(crate::segment::block(&world, ids.at(16, 0, 0)), Some(ids.glass));

    set(&overlay, &named(":segments"), Some(b"none"));
    let refused = overlay.merge_into(&world);
    let property = ":segments".to_owned();
    assert!(
        matches!(refused.as_ref().err().and_then(Error::layer::<SegmentError>), Some(found) if *found == SegmentError::EnginesProperty { property }),
        "{refused:?}"
    );
}
