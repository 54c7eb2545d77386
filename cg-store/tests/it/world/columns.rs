//! The walk by columns: in order, whole, and continued behind any of them.

use std::ops::ControlFlow;

use super::iterate::{ALL, Lies, build};
use super::*;
use cg_format::{Space, Tier, key};
use cg_store::view::StoredPlace;

over_both_engines! {
    columns_are_whole_and_in_order_and_a_walk_goes_on_behind_each
    damage_is_of_its_column_or_comes_first
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

fn damage_is_of_its_column_or_comes_first(world: &World) {
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
        expected(&[(0, "damaged"), (0, "damaged"), (1, one), (40, one), (50, "too high")])
    );
    // A walk that goes on does not begin with it again.
    assert_eq!(
        shown(walk(world, &ids, ChunkBox::EVERYTHING, Some([0, 0]))),
        expected(&[(1, one), (40, one), (50, "too high")])
    );
}
