//! Properties of the world and of mods.

use super::*;

over_both_engines! {
    a_property_is_there_until_it_is_removed
    properties_and_the_engine_s_own_rows_do_not_meet
}

fn all() -> Vec<Property> {
    let named = ["game:seed", ":seed", "game:time", "a:b", "game:commit_sequence"];
    let named = named.into_iter().filter_map(|text| Some(Property::Named(Name::new(text).ok()?)));
    let own = [
        Property::Seed,
        Property::Key,
        Property::Time,
        Property::Name,
        Property::Created,
        Property::Changed,
        Property::Engine,
        Property::Thumbnail,
    ];
    own.into_iter().chain(named).collect()
}

fn a_property_is_there_until_it_is_removed(world: &World) {
    assert!(all().len() >= 11);
    for (n, property) in all().into_iter().enumerate() {
        assert_eq!(world.property(&property).expect("reads"), None, "{property}");
        for bytes in [vec![n as u8; 3], Vec::new(), vec![n as u8; 5000]] {
            let set = world.transaction(|tx| {
                tx.set_property(property.clone(), Some(bytes.clone()));
                Ok::<_, Error>(())
            });
            drop(set.expect("sets"));
            assert_eq!(world.property(&property).expect("reads"), Some(bytes), "{property}");
        }
    }
    for (n, property) in all().into_iter().enumerate() {
        assert_eq!(world.property(&property).expect("reads"), Some(vec![n as u8; 5000]), "{property}");
        let removed = world.transaction(|tx| {
            tx.set_property(property.clone(), None);
            assert_eq!(tx.property(&property)?, None);
            Ok::<_, Error>(())
        });
        drop(removed.expect("removes"));
        assert_eq!(world.property(&property).expect("reads"), None, "{property}");
    }
    assert_sound(world);
}

fn properties_and_the_engine_s_own_rows_do_not_meet(world: &World) {
    let ids = Ids::register(world);
    let (limits, before) = (world.limits(), world.last_commit());
    world
        .transaction(|tx| {
            for property in all() {
                tx.set_property(property, Some(b"mine".to_vec()));
            }
            Ok::<_, Error>(())
        })
        .expect("sets");
    assert_eq!(world.limits(), limits);
    assert_eq!(world.last_commit(), before.next());
    assert_eq!(Ids::of(world).stone, ids.stone);
    assert_sound(world);
}
