//! Objects and records against the naive ones.

use cg_format::entity::EntityPos;
use cg_format::object::ObjectView;
use cg_format::record::{Record, RecordView};
use cg_format::{BlockPos, Dimension};

use crate::naive::object::{self, Object as NaiveObject};
use crate::naive::record::{self, Record as NaiveRecord};
use crate::naive::{Dice, hex};

/// A value with one thing about it changed.
fn mutated(dice: &mut Dice, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = dice.below(bytes.len() as u64) as usize;
    match dice.below(5) {
        0 => bytes[at] = [0, 1, 2, 0x80, 0xff][dice.below(5) as usize],
        1 => bytes.truncate(at),
        2 => bytes.insert(at, dice.next() as u8),
        _ => bytes[at] ^= 1 << dice.below(8),
    }
    bytes
}

fn encoded_object(object: &ObjectView<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    object.encode(&mut out);
    out
}

#[test]
fn objects_and_their_mutations_agree() {
    let mut dice = Dice(51);
    let mut taken = 0;
    for _ in 0..500 {
        let len = dice.below(12) as usize;
        let bytes = (dice.below(4) > 0).then(|| dice.bytes(len));
        let version = [0, 1, i64::MAX, (dice.next() >> 1) as i64][dice.below(4) as usize];
        let naive = NaiveObject { version, bytes };
        let stored = object::encode(&naive);
        let ours = ObjectView { version, bytes: naive.bytes.as_deref() };
        assert_eq!(hex(&encoded_object(&ours)), hex(&stored));
        assert_eq!(object::decode(&stored).as_ref(), Ok(&naive));
        for _ in 0..40 {
            let bytes = mutated(&mut dice, &stored);
            let (theirs, ours) = (object::decode(&bytes), ObjectView::decode(&bytes));
            assert_eq!(ours.is_ok(), theirs.is_ok(), "ours {ours:?}\nnaive {theirs:?}\n{}", hex(&bytes));
            if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
                assert_eq!(hex(&encoded_object(&ours)), hex(&object::encode(&theirs)));
                taken += 1;
            }
        }
    }
    assert!((2_000..18_000).contains(&taken), "{taken} of 20000 were taken");
}

#[test]
fn records_and_their_mutations_agree() {
    let mut dice = Dice(52);
    let mut taken = 0;
    for _ in 0..500 {
        let axis = |dice: &mut Dice| [dice.next() as i64, -1, 0, i64::MIN, i64::MAX][dice.below(5) as usize];
        let fraction = |dice: &mut Dice| dice.below(1 << 24) as f32 / (1_u32 << 24) as f32;
        let len = dice.below(20) as usize;
        let naive = NaiveRecord {
            dimension: dice.next(),
            block: [axis(&mut dice), axis(&mut dice), axis(&mut dice)],
            fraction: [fraction(&mut dice), fraction(&mut dice), fraction(&mut dice)],
            timestamp: dice.next() as i64,
            kind: ["", "game:sign", "läuft"][dice.below(3) as usize].into(),
            payload: dice.bytes(len),
        };
        let stored = record::encode(&naive);
        let [x, y, z] = naive.block;
        let position =
            EntityPos::new(Dimension::new(naive.dimension), BlockPos::new(x, y, z), naive.fraction);
        let position = position.expect("fractions below 1");
        let ours = Record::new(position, naive.kind.clone(), naive.timestamp, naive.payload.clone());
        let encoded = |record: &Record| {
            let mut out = Vec::new();
            record.encode(&mut out);
            hex(&out)
        };
        assert_eq!(encoded(&ours.expect("a short kind")), hex(&stored));
        assert_eq!(record::decode(&stored), Ok(naive));
        for _ in 0..40 {
            let bytes = mutated(&mut dice, &stored);
            let (theirs, ours) = (record::decode(&bytes), RecordView::decode(&bytes));
            assert_eq!(ours.is_ok(), theirs.is_ok(), "ours {ours:?}\nnaive {theirs:?}\n{}", hex(&bytes));
            if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
                assert_eq!(encoded(&ours.to_record()), hex(&record::encode(&theirs)));
                taken += 1;
            }
        }
    }
    assert!((2_000..18_000).contains(&taken), "{taken} of 20000 were taken");
}
