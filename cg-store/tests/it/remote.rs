//! Worlds over an engine on a simulated server: nothing is lost or applied twice, whatever the network loses.

use std::sync::Arc;
use std::time::Duration;

use cg_engine::conformance::remote::{Network, Remote, Server};
use cg_store::engine::{Engine as _, EngineError};
use cg_store::prelude::*;

fn connect(server: &Arc<Server>, network: &Arc<Network>) -> Remote {
    Remote::connect(server, network).expect("it answers")
}

/// Networks that lose nothing, something and much, with and without latency.
fn networks() -> [Network; 3] {
    [(Duration::ZERO, 0), (Duration::ZERO, 3), (Duration::from_micros(20), 5)]
        .map(|(latency, lost_one_in)| Network::new(latency, lost_one_in))
}

#[test]
fn a_world_is_stored_once_whatever_is_lost() {
    let mut ends = Vec::new();
    for network in networks() {
        let (server, network) = (Server::new(), Arc::new(network));
        let options = WorldOptions { durability: Durability::Process, ..WorldOptions::default() };
        let world = World::builder().options(&options).over(connect(&server, &network)).expect("a world");
        let overworld = world.registry().register_dimension("game:overworld").expect("registers");
        let [air, stone] = world.registry().register_blocks([":air", "game:stone"]).expect("registers");
        let at = |x: i64| ChunkAt::new(overworld, ChunkPos::new(x, 0, 0).expect("inside the world"));
        for x in 0..20 {
            let chunk =
                Chunk::filled(if x % 2 == 0 { air } else { stone }, &world.catalog().current_schema());
            let committed = world.transaction(|tx| {
                tx.save(at(x), chunk.expect("is registered"));
                Ok::<_, Error>(())
            });
            committed.expect("commits");
        }
        assert!(world.verify(cg_store::verify::VerifyDepth::Full, |_| {}).expect("verifies").is_ok());
        let hash = world.content_hash(cg_store::view::Area::World).expect("hashes");
        world.close().expect("closes");
        let again = connect(&server, &network);
        ends.push((again.last_commit(), hash));
        let again = World::builder().options(&options).over(again).expect("opens");
        assert_eq!(again.content_hash(cg_store::view::Area::World).expect("hashes"), hash);
    }
    // The first network loses nothing: a commit that was applied twice would show as a higher number.
    assert_eq!(ends, [ends[0]; 3]);
}

#[test]
fn a_world_goes_on_after_its_network_was_cut() {
    let (server, network) = (Server::new(), Arc::new(Network::new(Duration::ZERO, 0)));
    let options = WorldOptions { durability: Durability::Process, ..WorldOptions::default() };
    let world = World::builder().options(&options).over(connect(&server, &network)).expect("a world");
    let score = Property::Named(Name::new("game:score").expect("a name"));
    let set = || {
        world.transaction(|tx| {
            tx.set_property(score.clone(), Some(vec![7]));
            Ok::<_, Error>(())
        })
    };
    network.cut(true);
    let failed = set().map(drop).expect_err("no request arrives");
    assert!(matches!(failed, Error::Engine(EngineError::WriteFailed { .. })), "{failed}");
    let read = world.property(&score).expect_err("no request arrives");
    assert!(matches!(read, Error::Engine(EngineError::Unavailable { .. })), "{read}");
    network.cut(false);
    let refused = set().map(drop).expect_err("the world is read-only");
    assert!(matches!(refused, Error::Engine(EngineError::ReadOnly { .. })), "{refused}");
    assert_eq!(world.property(&score).expect("reads go on"), None, "nothing was written");
    world.resume().expect("connects again");
    set().expect("commits");
    assert_eq!(world.property(&score).expect("reads"), Some(vec![7]));
}
