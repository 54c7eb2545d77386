//! The state that a power cut may leave: what was synced, and some of what was not.
//!
//! The bytes of a file are those of its last sync and some of the later writes. The names in a directory are those of its last
//! sync; of all later changes of names the first few are kept, in their order. A disk writes sectors whole.

use std::collections::BTreeMap;

use super::op::Op;
use super::tree::{Node, Tree};
use crate::rng::Rng;

const SECTOR_BYTES: usize = 512;

/// The part of the unsynced writes that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// None, and no name.
    Nothing,
    /// Of each file the first few.
    Prefix,
    /// Any, whole.
    Subset,
    /// Any, and of those any sectors.
    Torn,
    /// All, and all names: what a killed process leaves.
    Everything,
}

impl Manner {
    /// Those of power cuts.
    pub(crate) const OF_POWER_CUTS: [Self; 4] = [Self::Nothing, Self::Prefix, Self::Subset, Self::Torn];
}

/// A power cut behind some operations.
#[derive(Debug)]
pub(crate) struct Left<'o> {
    durable: Tree,
    data: BTreeMap<Node, Vec<&'o Op>>,
    names: Vec<&'o Op>,
    manner: Manner,
    rng: Rng,
}

impl<'o> Left<'o> {
    /// The state after `ops` upon what was all on the disk. `ignores_syncs` is the control.
    pub(crate) fn of(base: &Tree, ops: &'o [Op], manner: Manner, rng: Rng, ignores_syncs: bool) -> Tree {
        let mut left = Self { durable: base.clone(), data: BTreeMap::new(), names: Vec::new(), manner, rng };
        for op in ops.iter().filter(|op| !(ignores_syncs && op.is_sync())) {
            left.next(op);
        }
        left.cut()
    }

    fn next(&mut self, op: &'o Op) {
        match op {
            Op::Write { node, .. } | Op::Resize { node, .. } => self.data.entry(*node).or_default().push(op),
            Op::Sync { node } => {
                for op in self.data.remove(node).unwrap_or_default() {
                    self.durable.apply(op);
                }
            }
            Op::FailedSync { node } => self.keep_some(*node),
            Op::SyncDir { dir } => {
                let (synced, others) = self.names.drain(..).partition(|op| op.changes_names_in(*dir));
                self.names = others;
                let synced: Vec<&Op> = synced;
                for op in synced {
                    self.durable.apply(op);
                }
            }
            Op::MakeFile { node, .. } | Op::MakeDir { node, .. } => {
                self.durable.make(*node, op);
                self.names.push(op);
            }
            Op::Link { .. } | Op::Remove { .. } | Op::Rename { .. } => self.names.push(op),
        }
    }

    fn cut(mut self) -> Tree {
        for node in self.data.keys().copied().collect::<Vec<_>>() {
            self.keep_some(node);
        }
        let kept = match self.manner {
            Manner::Nothing => 0,
            Manner::Everything => self.names.len(),
            _ => self.rng.below(self.names.len() as u64 + 1) as usize,
        };
        for op in self.names.drain(..kept) {
            self.durable.apply(op);
        }
        self.durable
    }

    /// Chooses among the unsynced writes to a file; the others are gone.
    fn keep_some(&mut self, node: Node) {
        let writes = self.data.remove(&node).unwrap_or_default();
        match self.manner {
            Manner::Nothing => {}
            Manner::Everything => writes.iter().for_each(|op| self.durable.apply(op)),
            Manner::Prefix => {
                let kept = self.rng.below(writes.len() as u64 + 1) as usize;
                writes[..kept].iter().for_each(|op| self.durable.apply(op));
            }
            Manner::Subset | Manner::Torn => {
                for op in writes {
                    if self.rng.one_in(2) {
                        self.keep_or_tear(op);
                    }
                }
            }
        }
    }

    fn keep_or_tear(&mut self, op: &Op) {
        let Op::Write { node, at, bytes } = op else { return self.durable.apply(op) };
        if self.manner != Manner::Torn || self.rng.one_in(2) {
            return self.durable.apply(op);
        }
        let mut at = *at;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let to_border = SECTOR_BYTES - at as usize % SECTOR_BYTES;
            let (sector, behind) = rest.split_at(to_border.min(rest.len()));
            if !self.rng.one_in(3) {
                self.durable.apply(&Op::Write { node: *node, at, bytes: sector.to_vec() });
            }
            at += sector.len() as u64;
            rest = behind;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::ROOT;

    const FILE: Node = 2;

    fn write(at: u64, bytes: &[u8]) -> Op {
        Op::Write { node: FILE, at, bytes: bytes.to_vec() }
    }

    fn make() -> Op {
        Op::MakeFile { dir: ROOT, name: "file".into(), node: FILE }
    }

    /// The bytes of the file in many cuts, `None` where it has no name.
    fn left(ops: &[Op], manner: Manner) -> Vec<Option<Vec<u8>>> {
        let cut = |seed| Left::of(&Tree::default(), ops, manner, Rng::new(seed), false);
        let file = |tree: Tree| tree.named(ROOT, "file".as_ref()).map(|node| tree.bytes(node).to_vec());
        (0..200).map(|seed| file(cut(seed))).collect()
    }

    #[test]
    fn what_was_synced_is_there_and_what_was_not_may_be_gone() {
        let synced = [make(), write(0, b"synced"), Op::Sync { node: FILE }, Op::SyncDir { dir: ROOT }];
        let ops = [&synced[..], &[write(6, b" and"), write(10, b" not")]].concat();
        assert!(left(&ops, Manner::Nothing).iter().all(|bytes| bytes.as_deref() == Some(b"synced")));
        let prefixes = left(&ops, Manner::Prefix);
        for bytes in [&b"synced"[..], b"synced and", b"synced and not"] {
            assert!(prefixes.contains(&Some(bytes.to_vec())));
        }
        // A later write may arrive alone, after a hole.
        assert!(!prefixes.contains(&Some(b"synced\0\0\0\0 not".to_vec())));
        assert!(left(&ops, Manner::Subset).contains(&Some(b"synced\0\0\0\0 not".to_vec())));
        let killed = left(&ops, Manner::Everything);
        assert!(killed.iter().all(|bytes| bytes.as_deref() == Some(b"synced and not")));
    }

    #[test]
    fn a_name_is_there_once_its_directory_was_synced() {
        let ops = [make(), write(0, b"x"), Op::Sync { node: FILE }];
        assert!(left(&ops, Manner::Nothing).iter().all(Option::is_none));
        let with_prefix = left(&ops, Manner::Prefix);
        assert!(with_prefix.contains(&None) && with_prefix.contains(&Some(b"x".to_vec())));
        let renamed = Op::Rename { from: (ROOT, "file".into()), to: (ROOT, "other".into()) };
        let ops = [&ops[..], &[Op::SyncDir { dir: ROOT }, renamed]].concat();
        assert!(left(&ops, Manner::Everything).iter().all(Option::is_none), "it has its other name");
        let before = left(&ops, Manner::Prefix);
        assert!(before.contains(&None) && before.contains(&Some(b"x".to_vec())));
    }

    #[test]
    fn writes_are_torn_between_sectors() {
        let ops = [make(), Op::SyncDir { dir: ROOT }, write(0, &[1; 300]), write(300, &[2; 1000])];
        let torn = left(&ops, Manner::Torn);
        assert!(torn.iter().flatten().any(|bytes| bytes.len() == 1300 && bytes[512..1024] == [0; 512]));
        for bytes in torn.iter().flatten() {
            let whole = |sector: &[u8]| sector.iter().all(|byte| *byte == sector[0]);
            assert!(bytes.get(300..).unwrap_or_default().chunks(212).take(1).all(whole));
            assert!(bytes.get(512..).unwrap_or_default().chunks(512).all(whole));
        }
    }

    #[test]
    fn a_failed_sync_loses_what_a_later_one_does_not_bring_back() {
        let ops = [make(), Op::SyncDir { dir: ROOT }, write(0, b"lost"), Op::FailedSync { node: FILE }];
        let ops = [&ops[..], &[Op::Sync { node: FILE }]].concat();
        assert!(left(&ops, Manner::Nothing).iter().all(|bytes| bytes.as_deref() == Some(b"")));
        let some = left(&ops, Manner::Prefix);
        assert!(some.contains(&Some(b"".to_vec())) && some.contains(&Some(b"lost".to_vec())));
    }
}
