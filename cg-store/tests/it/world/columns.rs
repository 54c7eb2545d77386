//! The walk by columns: in order, whole, and continued behind any of them.

use std::ops::ControlFlow;

use super::iterate::{ALL, Lies, build};
use super::*;
use cg_format::{Space, Tier, key};
use cg_store::view::StoredPlace;

over_both_engines! {
    columns_are_whole_and_in_order_and_a_walk_goes_on_behind_each
    damage_is_of_its_column_or_of_its_square
    a_walk_past_damage_goes_on_anywhere
}

/// The columns of a walk: their places, and the heights and chunks that each has.
type Walked = Vec<([i64; 2], Result<Vec<(i64, Chunk)>, Error>)>;

/// What a column of a sound world has.
type Sound = ([i64; 2], Vec<(i64, Chunk)>);

fn walk(world: &World, ids: &Ids, area: ChunkBox, behind: Option<[i64; 2]>) -> Walked {
    let mut found = Vec::new();
    let walked = world.read_view(|view| {
        view.for_each_column(ids.overworld, &area, behind, |at, column| {
            let chunks = |column: cg_store::cache::Column| {
                column.chunks().map(|(y, chunk)| (y, (**chunk).clone())).collect()
            };
            found.push((at, column.map(chunks)));
            ControlFlow::<()>::Continue(())
        })
    });
    assert_eq!(walked.expect("walks"), None);
    found
}

fn columns_are_whole_and_in_order_and_a_walk_goes_on_behind_each(world: &World) {
    let ids = Ids::register(world);
    // Three in twenty-one columns, which are far from one another.
    let places = (0..63_i64).map(|n| (n % 21 * 7 % 23 - 9, n / 21 * 9 - n % 5, n % 21 * 11 % 19 - 9));
    let chunks = places.zip(0..).map(|((x, y, z), n)| (ids.at(x, y, z), ALL[n % ALL.len()]));
    let mut live = build(world, &ids, &chunks.collect());
    let order = |at: ChunkAt| {
        let (x, z) = (at.pos.x(), at.pos.z());
        (x >> 4, z >> 4, x, z, at.pos.y())
    };
    live.sort_by_key(|(place, _)| order(place.at));
    let expected = |area: ChunkBox| -> Vec<Sound> {
        let inside: Vec<_> = live.iter().filter(|(place, _)| area.contains(place.at.pos)).collect();
        let column = |place: &StoredPlace| [place.at.pos.x(), place.at.pos.z()];
        let columns = inside.chunk_by(|a, b| column(&a.0) == column(&b.0));
        let with_chunks = |chunks: &[&(StoredPlace, Chunk)]| {
            let all = chunks.iter().map(|(place, chunk)| (place.at.pos.y(), chunk.clone()));
            (column(&chunks[0].0), all.collect())
        };
        columns.map(with_chunks).collect()
    };
    let sound = |walked: Walked| -> Vec<_> {
        walked.into_iter().map(|(at, column)| (at, column.expect("is sound"))).collect()
    };
    let all = sound(walk(world, &ids, ChunkBox::EVERYTHING, None));
    assert_eq!(all, expected(ChunkBox::EVERYTHING));
    assert!(all.len() > 12 && all.iter().any(|(_, chunks)| chunks.len() > 1), "{} columns", all.len());
    let small = ChunkBox::new(ChunkPos::constant(-3, -2, -5), ChunkPos::constant(9, 4, 7));
    let part = sound(walk(world, &ids, small, None));
    assert_eq!(part, expected(small));
    for (index, (at, _)) in all.iter().enumerate() {
        assert_eq!(sound(walk(world, &ids, ChunkBox::EVERYTHING, Some(*at))), all[index + 1..]);
    }
    // A visitor that has enough is asked no more.
    let mut shown = 0;
    let third = world.read_view(|view| {
        view.for_each_column(ids.overworld, &ChunkBox::EVERYTHING, None, |at, _| {
            shown += 1;
            if shown == 3 { ControlFlow::Break(at) } else { ControlFlow::Continue(()) }
        })
    });
    assert_eq!((third.expect("walks"), shown), (Some(all[2].0), 3));
    assert!(live.iter().any(|(place, _)| place.tier == Tier::L2));
}

/// A walk that is broken off at each step and goes on shows what one walk shows.
#[track_caller]
fn goes_on_anywhere(world: &World, ids: &Ids, area: ChunkBox) {
    let shown = |walked: Walked| -> Vec<_> {
        walked.into_iter().map(|(at, column)| (at, column.map_err(|error| error.to_string()))).collect()
    };
    let all = shown(walk(world, ids, area, None));
    for (index, (at, _)) in all.iter().enumerate() {
        assert_eq!(shown(walk(world, ids, area, Some(*at))), all[index + 1..], "behind {at:?}");
    }
}

/// Damage takes no column's place: not of a square with several damaged clusters, nor where it hides what the box has.
fn a_walk_past_damage_goes_on_anywhere(world: &World) {
    let ids = Ids::register(world);
    // Two columns in each of three cubes of one square, one of them also in a cold cluster, and one in another square.
    let places = [(0, 0, 0), (1, 0, 0), (4, 4, 4), (5, 4, 4), (8, 8, 8), (9, 8, 8), (2, 40, 2), (15, 0, 15)];
    let chunks = places.map(|(x, y, z)| (ids.at(x, y, z), Lies::Warm)).into_iter();
    let others =
        [(ids.at(3, 0, 3), Lies::Hot), (ids.at(1, 80, 0), Lies::Cold), (ids.at(40, 0, 0), Lies::Hot)];
    build(world, &ids, &chunks.chain(others).collect());
    goes_on_anywhere(world, &ids, ChunkBox::EVERYTHING);
    let columns = |of: &Walked| of.iter().filter(|(_, column)| column.is_ok()).count();
    let sound = walk(world, &ids, ChunkBox::EVERYTHING, None);
    assert_eq!((sound.len(), columns(&sound)), (10, 10));
    let cluster = |at: ChunkAt, tier: cg_format::ClusterTier| {
        let space = Space::of_cluster(tier);
        (space, key::cluster(at.dimension, at.pos.cluster(tier)).to_vec(), Some(plain(b"no cluster")))
    };
    let warm = [(0, 0, 0), (4, 4, 4), (8, 8, 8)].map(|(x, y, z)| ids.at(x, y, z));
    plant(world, warm.map(|at| cluster(at, cg_format::ClusterTier::L1)));
    plant(world, [cluster(ids.at(1, 80, 0), cg_format::ClusterTier::L2)]);
    let area = ChunkBox::new(ChunkPos::constant(0, 0, 0), ChunkPos::constant(15, 90, 15));
    for area in [ChunkBox::EVERYTHING, area] {
        goes_on_anywhere(world, &ids, area);
        let walked = walk(world, &ids, area, None);
        let kept = if area == ChunkBox::EVERYTHING { 4 } else { 3 };
        assert_eq!((walked.len() - columns(&walked), columns(&walked)), (4, kept), "{walked:?}");
    }
    // One column alone: there is no other place.
    let narrow = ChunkBox::new(ChunkPos::constant(3, -10, 3), ChunkPos::constant(3, 10, 3));
    let walked = walk(world, &ids, narrow, None);
    assert!(matches!(walked.as_slice(), [([3, 3], Err(Error::Corrupt(_)))]), "{walked:?}");
}

fn damage_is_of_its_column_or_of_its_square(world: &World) {
    let ids = Ids::register(world);
    let [hot, beside, cold, far] =
        [(0, 0, 0), (1, 0, 0), (2, 0, 0), (40, 0, 0)].map(|(x, y, z)| ids.at(x, y, z));
    let lies = [(hot, Lies::Hot), (beside, Lies::Hot), (cold, Lies::Cold), (far, Lies::Hot)];
    build(world, &ids, &lies.into_iter().collect());
    let high = ids.at(50, ChunkPos::MAX, 0);
    save(world, [(ids.at(50, ChunkPos::MIN, 0), filled(world, ids.stone)), (high, filled(world, ids.stone))]);
    plant(world, [(Space::ChunkL0, key::chunk(hot).to_vec(), Some(plain(b"no chunk")))]);
    let shown = |walked: Walked| -> Vec<_> {
        let kind = |column: Result<Vec<_>, Error>| match column {
            Ok(chunks) => format!("{} chunks", chunks.len()),
            Err(Error::Corrupt(_)) => "damaged".to_owned(),
            Err(Error::ColumnTooHigh { .. }) => "too high".to_owned(),
            Err(other) => panic!("{other}"),
        };
        walked.into_iter().map(|(at, column)| (at[0], kind(column))).collect()
    };
    let expected =
        |of: &[(i64, &str)]| of.iter().map(|(x, what)| (*x, (*what).to_owned())).collect::<Vec<_>>();
    let one = "1 chunks";
    assert_eq!(
        shown(walk(world, &ids, ChunkBox::EVERYTHING, None)),
        expected(&[(0, "damaged"), (1, one), (2, one), (40, one), (50, "too high")])
    );
    // Without its directory the cold cluster hides what it has.
    let cold_key = key::cluster(ids.overworld, cold.pos.cluster(cg_format::ClusterTier::L2));
    plant(world, [(Space::ClusterL2, cold_key.to_vec(), Some(plain(b"no cluster")))]);
    assert_eq!(
        shown(walk(world, &ids, ChunkBox::EVERYTHING, None)),
        expected(&[(0, "damaged"), (1, one), (15, "damaged"), (40, one), (50, "too high")])
    );
    goes_on_anywhere(world, &ids, ChunkBox::EVERYTHING);
}
