//! Files and directories in memory, by number.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use super::op::Op;
use crate::failure::Failure;

/// The number of a file or a directory.
pub(crate) type Node = u64;

/// The number of the outermost directory.
pub(crate) const ROOT: Node = 1;

/// The content of a node.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// The bytes of a file.
    File(Vec<u8>),
    /// The names in a directory.
    Dir(BTreeMap<OsString, Node>),
}

/// All nodes. One without a name stays, because a process may have it open.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    nodes: BTreeMap<Node, Content>,
}

impl Default for Tree {
    fn default() -> Self {
        Self { nodes: BTreeMap::from([(ROOT, Content::Dir(BTreeMap::new()))]) }
    }
}

impl Tree {
    /// Reads a directory and all in it.
    pub(crate) fn read(dir: &Path) -> Result<Self, Failure> {
        let mut tree = Self::default();
        tree.read_into(ROOT, dir)?;
        Ok(tree)
    }

    fn read_into(&mut self, dir: Node, from: &Path) -> Result<(), Failure> {
        for entry in fs::read_dir(from)? {
            let (entry, node) = (entry?, self.unused());
            let name = entry.file_name();
            if entry.file_type()?.is_dir() {
                self.apply(&Op::MakeDir { dir, name, node });
                self.read_into(node, &entry.path())?;
            } else {
                self.apply(&Op::MakeFile { dir, name, node });
                self.nodes.insert(node, Content::File(fs::read(entry.path())?));
            }
        }
        Ok(())
    }

    /// Writes all that has a name into a directory, in place of what is there.
    pub(crate) fn write(&self, to: &Path) -> Result<(), Failure> {
        if to.exists() {
            fs::remove_dir_all(to)?;
        }
        self.write_out(ROOT, to)
    }

    fn write_out(&self, node: Node, to: &Path) -> Result<(), Failure> {
        match self.nodes.get(&node) {
            Some(Content::File(bytes)) => fs::write(to, bytes)?,
            Some(Content::Dir(names)) => {
                fs::create_dir(to)?;
                for (name, node) in names {
                    self.write_out(*node, &to.join(name))?;
                }
            }
            None => return Err("a name leads to no node".into()),
        }
        Ok(())
    }

    /// A number that no node has.
    pub(crate) fn unused(&self) -> Node {
        self.nodes.last_key_value().map_or(ROOT, |(last, _)| *last) + 1
    }

    /// The content of a node.
    pub(crate) fn content(&self, node: Node) -> Option<&Content> {
        self.nodes.get(&node)
    }

    /// The bytes of a file; none of a directory.
    pub(crate) fn bytes(&self, node: Node) -> &[u8] {
        match self.nodes.get(&node) {
            Some(Content::File(bytes)) => bytes,
            _ => &[],
        }
    }

    /// The names in a directory.
    pub(crate) fn names(&self, dir: Node) -> Option<&BTreeMap<OsString, Node>> {
        match self.nodes.get(&dir)? {
            Content::Dir(names) => Some(names),
            Content::File(_) => None,
        }
    }

    /// The node of a name.
    pub(crate) fn named(&self, dir: Node, name: &OsStr) -> Option<Node> {
        self.names(dir)?.get(name).copied()
    }

    /// Does it: one operation that is possible here. Syncs change nothing.
    pub(crate) fn apply(&mut self, op: &Op) {
        match op {
            Op::MakeFile { dir, name, node } | Op::MakeDir { dir, name, node } => {
                self.make(*node, op);
                self.name(*dir, name, *node);
            }
            Op::Link { dir, name, node } => self.name(*dir, name, *node),
            Op::Remove { dir, name } => drop(self.unname(*dir, name)),
            Op::Rename { from, to } => {
                if let Some(node) = self.unname(from.0, &from.1) {
                    self.name(to.0, &to.1, node);
                }
            }
            Op::Write { node, at, bytes } => {
                if let Some(Content::File(held)) = self.nodes.get_mut(node) {
                    let at = *at as usize;
                    if held.len() < at + bytes.len() {
                        held.resize(at + bytes.len(), 0);
                    }
                    held[at..at + bytes.len()].copy_from_slice(bytes);
                }
            }
            Op::Resize { node, len } => {
                if let Some(Content::File(held)) = self.nodes.get_mut(node) {
                    held.resize(*len as usize, 0);
                }
            }
            Op::Sync { .. } | Op::FailedSync { .. } | Op::SyncDir { .. } => {}
        }
    }

    /// Makes what an operation makes, still without a name.
    pub(crate) fn make(&mut self, node: Node, op: &Op) {
        let empty = match op {
            Op::MakeDir { .. } => Content::Dir(BTreeMap::new()),
            _ => Content::File(Vec::new()),
        };
        self.nodes.entry(node).or_insert(empty);
    }

    fn name(&mut self, dir: Node, name: &OsStr, node: Node) {
        if let Some(Content::Dir(names)) = self.nodes.get_mut(&dir) {
            names.insert(name.to_owned(), node);
        }
    }

    fn unname(&mut self, dir: Node, name: &OsStr) -> Option<Node> {
        match self.nodes.get_mut(&dir)? {
            Content::Dir(names) => names.remove(name),
            Content::File(_) => None,
        }
    }
}
