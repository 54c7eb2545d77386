//! The effect of damage: at most its own group is lost, and no wrong byte is ever read.

use super::*;

/// The result of reading a damaged row, compared with its original content.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// Chunks that cannot be read any more; all if the row cannot be opened.
    lost: usize,
    /// Chunks that are read with other bytes or another version.
    wrong: usize,
}

fn outcome(tier: ClusterTier, held: &Chunks, row: &[u8]) -> Outcome {
    match read(tier, row) {
        Err(_) => Outcome { lost: held.len(), wrong: 0 },
        Ok((found, errors)) => {
            let wrong = found.iter().filter(|(slot, chunk)| held.get(slot) != Some(chunk)).count();
            let lost = held.keys().filter(|slot| !found.contains_key(slot)).count();
            assert_eq!(lost == 0, errors.is_empty(), "what is lost is reported: {errors:?}");
            Outcome { lost, wrong }
        }
    }
}

/// By byte of a row: the number of chunks that a flip there may damage. Those of the group, or all in frame and
/// directory.
fn at_stake(tier: ClusterTier, held: &Chunks, row: &[u8]) -> Vec<usize> {
    let (spans, answer) = trace(tier, KEY, row);
    assert_eq!(answer, Ok(()));
    let cluster = StoredCluster::open(tier, KEY, row).unwrap();
    let mut groups = cluster.groups();
    let mut stakes = Vec::new();
    for span in spans {
        let chunks = match span.section {
            Section::ClusterGroup => {
                let group = groups.next().expect("one field for each group");
                held.keys().filter(|slot| cluster.group_of(**slot) == group).count()
            }
            _ => held.len(),
        };
        stakes.extend(vec![chunks; span.len_bytes as usize]);
    }
    assert_eq!((stakes.len(), groups.next()), (row.len(), None));
    stakes
}

/// Flips every bit of a row, one at a time, and checks that each flip loses exactly the affected chunks.
fn flip_every_bit(tier: ClusterTier, held: &Chunks, row: &[u8]) {
    let mut damaged = row.to_vec();
    for (at, at_stake) in at_stake(tier, held, row).into_iter().enumerate() {
        for bit in 0..8 {
            damaged[at] ^= 1 << bit;
            let outcome = outcome(tier, held, &damaged);
            assert_eq!(outcome, Outcome { lost: at_stake, wrong: 0 }, "bit {bit} of byte {at}");
            damaged[at] ^= 1 << bit;
        }
    }
}

#[test]
fn a_flip_in_a_full_l1_cluster_costs_the_16_chunks_of_one_group_and_no_wrong_byte() {
    let tier = ClusterTier::L1;
    let held = chunks(tier, 0..64);
    for codec in Codec::ALL {
        let row = build(tier, codec, &held);
        let mut stakes = at_stake(tier, &held, &row);
        stakes.dedup();
        assert_eq!(stakes, [64, 16], "{codec:?}: frame and directory, then groups");
        flip_every_bit(tier, &held, &row);
    }
}

#[test]
fn a_flip_in_an_l1_cluster_of_one_group_costs_its_64_chunks_and_no_wrong_byte() {
    let held = chunks(ClusterTier::L1, 0..64);
    flip_every_bit(ClusterTier::L1, &held, &slabs::in_one_group(Codec::Lz4, &held));
}

#[test]
fn a_flip_in_an_l2_cluster_costs_the_32_chunks_of_one_group_at_most() {
    let tier = ClusterTier::L2;
    let in_cube = |cube, count| {
        (0..count).map(move |place| Slot::in_cube_of(ClusterTier::L2, cube, place).unwrap().index())
    };
    let few = chunks(tier, in_cube(21, 5).chain(in_cube(63, 2)));
    let many = chunks(tier, in_cube(0, 64).chain(in_cube(21, 5)));
    for (codec, held, expected) in [(Codec::None, few, vec![7, 5, 2]), (Codec::Zstd, many, vec![69, 32, 5])] {
        let row = build(tier, codec, &held);
        let mut stakes = at_stake(tier, &held, &row);
        stakes.dedup();
        assert_eq!(stakes, expected, "{codec:?}: frame and directory, then groups");
        flip_every_bit(tier, &held, &row);
    }
}

#[test]
fn a_flip_in_a_shared_group_costs_the_chunks_that_share_it() {
    let tier = ClusterTier::L2;
    let held = alike(0..4, 2);
    let row = build(tier, Codec::Zstd, &held);
    let spans = trace(tier, KEY, &row).0.into_iter().filter(|span| span.section == Section::ClusterGroup);
    let lost: Vec<_> = spans
        .map(|span| {
            let mut damaged = row.clone();
            damaged[span.offset_bytes as usize] ^= 1;
            outcome(tier, &held, &damaged)
        })
        .collect();
    assert_eq!(lost, [9, 3].map(|lost| Outcome { lost, wrong: 0 }));
}

/// The negative control: without the checksums the same flips give wrong bytes, and this test detects them.
#[test]
fn without_checksums_the_same_flips_would_be_read() {
    let tier = ClusterTier::L2;
    let held = chunks(tier, [0, 1, 4095]);
    let row = build(tier, Codec::None, &held);
    let resealed = replace_group(&row, 0, |raw| {
        let mut raw = raw.to_vec();
        *raw.last_mut().unwrap() ^= 1;
        raw
    });
    assert_eq!(outcome(tier, &held, &resealed), Outcome { lost: 0, wrong: 1 });
}

#[test]
fn a_cut_costs_the_groups_behind_it() {
    let tier = ClusterTier::L2;
    let held = chunks(tier, [0, 1, 300, 301, 4095]);
    let row = build(tier, Codec::Lz4, &held);
    let (spans, answer) = trace(tier, KEY, &row);
    assert_eq!(answer, Ok(()));
    let groups: Vec<_> = spans.iter().filter(|span| span.section == Section::ClusterGroup).collect();
    let whole =
        |cut: usize| groups.iter().filter(|span| span.offset_bytes + span.len_bytes <= cut as u64).count();
    for cut in 0..row.len() {
        let readable = if cut < groups[0].offset_bytes as usize { 0 } else { [0, 2, 4, 5][whole(cut)] };
        let expected = Outcome { lost: held.len() - readable, wrong: 0 };
        assert_eq!(outcome(tier, &held, &row[..cut]), expected, "cut at {cut}");
        assert!(trace(tier, KEY, &row[..cut]).1.is_err(), "cut at {cut}");
    }
}

#[test]
fn a_row_under_another_key_or_tier_is_damaged() {
    let row = build(ClusterTier::L1, Codec::Lz4, &chunks(ClusterTier::L1, [3]));
    for (tier, key) in [(ClusterTier::L1, &b"another key"[..]), (ClusterTier::L2, KEY)] {
        let error = StoredCluster::open(tier, key, &row).unwrap_err();
        assert!(matches!(error.problem, Problem::Checksum { .. }), "{error}");
    }
}

#[test]
fn damage_stops_a_merge_only_where_it_changes_something() {
    let tier = ClusterTier::L2;
    let held = chunks(tier, [0, 1, 4095]);
    let mut row = build(tier, Codec::Lz4, &held);
    *row.last_mut().unwrap() ^= 1;
    let base = StoredCluster::open(tier, KEY, &row).unwrap();
    let (info, value) = chunk(slot(tier, 2));

    let elsewhere = seal(ClusterBuilder::over(&base).put(slot(tier, 2), info, &value)).unwrap().unwrap();
    let (found, errors) = read(tier, &elsewhere).unwrap();
    assert_eq!(found, chunks(tier, [0, 1, 2]));
    assert!(matches!(errors[..], [DecodeError { problem: Problem::Checksum { .. }, .. }]), "still noticed");

    let beside = slot(tier, 4094);
    assert_eq!(beside.cube(), 63);
    let error = seal(ClusterBuilder::over(&base).put(beside, info, &value)).unwrap_err();
    assert!(matches!(error, AssembleError::Damaged(_)), "{error}");

    let replaced = seal(ClusterBuilder::over(&base).put(slot(tier, 4095), info, &value)).unwrap().unwrap();
    assert_eq!(read_whole(tier, &replaced)[&slot(tier, 4095)], (info, value), "nothing old is needed");
    let dropped = seal(ClusterBuilder::over(&base).remove(slot(tier, 4095))).unwrap().unwrap();
    assert_eq!(read_whole(tier, &dropped), chunks(tier, [0, 1]));
}

proptest! {
    #[test]
    fn any_bytes_give_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..700), l1: bool) {
        let mut seed = bytes.clone();
        if l1 && bytes.len() > 9 {
            seed[..9].copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 1]);
        }
        if let Ok(view) = ClusterView::new(&seed) {
            prop_assert_eq!(&ClusterView::encode(view.tier(), view.chunks()).unwrap(), &seed);
        }
        let draft = frame::Draft::cluster(Codec::Lz4, |out| {
            out.extend(&bytes);
            bytes.len().min(32)
        });
        let _ = read(ClusterTier::L1, &draft.seal(Space::ClusterL1, KEY, 1));
    }

    #[test]
    fn changed_seed_bytes_are_an_error_or_written_the_same(indices in prop::collection::btree_set(0_u16..64, 1..9), at: prop::sample::Index, flip in 1_u8..) {
        let all = chunks(ClusterTier::L1, indices);
        let mut seed = ClusterView::encode(ClusterTier::L1, all.iter().map(|(slot, (_, value))| (*slot, &value[..]))).unwrap();
        for end in 0..header_len_bytes(ClusterTier::L1) {
            prop_assert!(ClusterView::new(&seed[..end]).is_err());
        }
        let at = at.index(seed.len());
        seed[at] ^= flip;
        if let Ok(view) = ClusterView::new(&seed) {
            prop_assert_eq!(ClusterView::encode(view.tier(), view.chunks()), Some(seed.clone()));
        }
    }
}
