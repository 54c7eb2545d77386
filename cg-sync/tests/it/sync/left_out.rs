//! Components that a client leaves out of its chunks.

use super::*;
use cg_format::SchemaView as _;

over_both_engines! {
    what_a_client_leaves_out_of_chunks_has_its_default
}

fn what_a_client_leaves_out_of_chunks_has_its_default(server: &World) {
    let (ids, cache) = (Ids::register(server), client());
    let (at, here) = (ids.at(0, 0, 0), here(&cache, [0, 0, 0]));
    save(server, [(at, machine(server, &ids, 5))]);
    let found = || {
        let chunk = cache.world().load(here).expect("reads").expect("came");
        let catalog = cache.world().catalog();
        let component = |component: &str| {
            let id = catalog.component_id(component).expect("is registered");
            let cell = CellLayer { cell: LocalPos::new(1, 2, 3), layer: 0 };
            chunk.component(cell, id).expect("the block has it").to_vec()
        };
        [component("game:items"), component("game:power")]
    };
    let (items, power, unknown) = (name("game:items"), name("game:power"), name("game:smoke"));
    let default = server.catalog().current_schema().default_bytes(ids.power).to_vec();

    let request = cache.request(&[here]).expect("asks").without(&items).without(&unknown);
    exchange(server, &cache, &request, &SyncServerLimits::default());
    assert_eq!(found(), [vec![], vec![5, 0, 0, 1]]);
    let version = cache.version(here).expect("reads");
    assert_eq!(version, server.load_versioned(at).expect("reads").map(|it| it.1));

    // As it is cached, until it changes.
    assert_eq!(ask(server, &cache, &[here]).up_to_date, 1);
    assert_eq!(found(), [vec![], vec![5, 0, 0, 1]]);
    save(server, [(at, machine(server, &ids, 6))]);
    let request = cache.request_area(here.dimension, area()).expect("asks").without(&power);
    exchange(server, &cache, &request, &SyncServerLimits::default());
    let request = cache.request(&[here]).expect("asks").without(&power);
    exchange(server, &cache, &request, &SyncServerLimits::default());
    assert_eq!(found(), [b"pickaxe".to_vec(), default]);
    // The server has all of it.
    let chunk = server.load(at).expect("reads").expect("is stored");
    assert_eq!(*chunk, machine(server, &ids, 6));

    let many = (0..1025).fold(request, |request, _| request.without(&items));
    let refused = SyncServer::new(server.clone(), SyncServerLimits::default()).answer(&many);
    let too_many = cg_sync::MessageError::TooMany { what: "components", found: 1026, limit: 1024 };
    assert!(matches!(&refused, Err(SyncError::Message(error)) if *error == too_many), "{refused:?}");
}
