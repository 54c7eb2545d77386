//! The file system as the kernel sees it. One thread serves it, so that operations are recorded in one order.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::Errno;

use super::fault::{Call, Fault, Faults};
use super::op::Op;
use super::tree::{Content, Node, Tree};
use super::wire::{Answer, Asked, Attributes, REQUEST_BYTES, Request};
use crate::failure::Failure;

/// The system has no FUSE, or does not let this process mount: why not.
#[derive(Debug)]
pub(crate) struct Skipped(pub(crate) String);

impl Skipped {
    /// The exit code of a program that was skipped for it.
    pub(crate) const EXIT_CODE: u8 = 77;
}

impl std::fmt::Display for Skipped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a file system cannot be mounted: {}", self.0)
    }
}

impl std::error::Error for Skipped {}

/// What was done to a file system while it was mounted.
#[derive(Debug)]
pub(crate) struct Recording {
    /// What was there before.
    pub(crate) base: Tree,
    /// The operations, in order.
    pub(crate) ops: Vec<Op>,
    /// What is there now, as processes see it.
    pub(crate) tree: Tree,
    /// How many calls of each kind there were.
    pub(crate) calls: BTreeMap<Call, u64>,
}

/// A mounted file system. Dropped, it is unmounted.
pub(crate) struct Mounted {
    at: PathBuf,
    base: Tree,
    /// `None` once it ended.
    server: Option<JoinHandle<io::Result<State>>>,
    is_given_up: Arc<AtomicBool>,
}

impl Mounted {
    /// Mounts what a tree holds.
    ///
    /// # Errors
    /// [`Skipped`].
    pub(crate) fn mount(base: Tree, at: &Path, fault: Option<Fault>) -> Result<Self, Skipped> {
        let skipped = |why: &str| Skipped(why.trim().to_owned());
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let device = device.map_err(|error| skipped(&format!("/dev/fuse: {error}")))?;
        let its = device.try_clone().map_err(|error| skipped(&error.to_string()))?;
        let faults = Faults { fault, ..Faults::default() };
        let state = State { next: base.unused(), tree: base.clone(), ops: Vec::new(), faults };
        let is_given_up = Arc::new(AtomicBool::new(false));
        // It serves already while the tool mounts, which may look at the directory.
        let flag = Arc::clone(&is_given_up);
        let server = std::thread::spawn(move || state.serve(device, &flag));
        let mounted = Self { at: at.to_owned(), base, server: Some(server), is_given_up };
        // Its standard input is the device: a descriptor counts in the process that mounts.
        let options = "fd=0,rootmode=40000,user_id=0,group_id=0,noatime";
        let mut mount = Command::new("mount");
        mount.args(["-i", "-t", "fuse", "-o", options, "cg-torture"]).arg(at).stdin(Stdio::from(its));
        match mount.output() {
            Ok(output) if output.status.success() => Ok(mounted),
            Ok(output) => Err(skipped(&String::from_utf8_lossy(&output.stderr))),
            Err(error) => Err(skipped(&format!("mount: {error}"))),
        }
    }

    /// Unmounts it.
    pub(crate) fn end(mut self) -> Result<Recording, Failure> {
        let unmounted = Command::new("umount").arg(&self.at).output()?;
        if !unmounted.status.success() {
            return Err(String::from_utf8_lossy(&unmounted.stderr).into());
        }
        let server = self.server.take().ok_or("it has ended")?;
        let state = server.join().map_err(|_| "the server panicked")??;
        let base = std::mem::take(&mut self.base);
        Ok(Recording { base, ops: state.ops, tree: state.tree, calls: state.faults.counts })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.is_given_up.store(true, Ordering::Relaxed);
        if self.server.is_some() {
            // It is not mounted where mounting failed.
            let _ = Command::new("umount").args(["--quiet", "--lazy"]).arg(&self.at).output();
        }
    }
}

struct State {
    tree: Tree,
    ops: Vec<Op>,
    faults: Faults,
    next: Node,
}

impl State {
    fn does(&mut self, op: Op) {
        self.tree.apply(&op);
        self.ops.push(op);
    }

    fn unused(&mut self) -> Node {
        self.next += 1;
        self.next
    }

    /// Counts a call, and lets it fail if it is to.
    fn may(&mut self, call: Call) -> Result<(), Errno> {
        match self.faults.count(call) {
            Some(fault) if !fault.is_kept_secret => Err(Errno::from_raw_os_error(fault.errno)),
            _ => Ok(()),
        }
    }

    fn find(&self, dir: Node, name: &OsStr) -> Result<Node, Errno> {
        self.tree.named(dir, name).ok_or(Errno::NOENT)
    }

    fn attributes(&self, node: Node) -> Result<Attributes, Errno> {
        let len = match self.tree.content(node).ok_or(Errno::NOENT)? {
            Content::File(bytes) => Some(bytes.len() as u64),
            Content::Dir(_) => None,
        };
        Ok(Attributes { node, len })
    }

    fn make(
        &mut self,
        dir: Node,
        name: &OsStr,
        op: impl FnOnce(Node, Node) -> Op,
    ) -> Result<Attributes, Errno> {
        if self.tree.named(dir, name).is_some() {
            return Err(Errno::EXIST);
        }
        let node = self.unused();
        self.does(op(dir, node));
        self.attributes(node)
    }

    fn open(&mut self, node: Node) -> Result<(), Errno> {
        self.may(Call::Open)?;
        self.attributes(node).map(drop)
    }

    fn read(&mut self, node: Node, at: u64, len: usize) -> Result<&[u8], Errno> {
        self.may(Call::Read)?;
        let bytes = self.tree.bytes(node);
        let from = (at as usize).min(bytes.len());
        Ok(&bytes[from..bytes.len().min(from + len)])
    }

    fn write(&mut self, node: Node, at: u64, bytes: &[u8]) -> Result<usize, Errno> {
        self.may(Call::Write)?;
        self.does(Op::Write { node, at, bytes: bytes.to_vec() });
        Ok(bytes.len())
    }

    fn sync(&mut self, node: Node) -> Result<(), Errno> {
        match self.faults.count(Call::Sync) {
            None => self.does(Op::Sync { node }),
            Some(fault) => {
                self.does(Op::FailedSync { node });
                if !fault.is_kept_secret {
                    return Err(Errno::from_raw_os_error(fault.errno));
                }
            }
        }
        Ok(())
    }

    fn sync_dir(&mut self, dir: Node) -> Result<(), Errno> {
        // A failed one changes nothing: the names may be synced later.
        match self.faults.count(Call::Sync) {
            Some(fault) if fault.is_kept_secret => Ok(()),
            Some(fault) => Err(Errno::from_raw_os_error(fault.errno)),
            None => {
                self.does(Op::SyncDir { dir });
                Ok(())
            }
        }
    }

    fn resize(&mut self, node: Node, len: Option<u64>) -> Result<Attributes, Errno> {
        if let Some(len) = len {
            self.may(Call::Truncate)?;
            self.does(Op::Resize { node, len });
        }
        self.attributes(node)
    }

    fn mkdir(&mut self, dir: Node, name: &OsStr) -> Result<Attributes, Errno> {
        self.may(Call::Mkdir)?;
        self.make(dir, name, |dir, node| Op::MakeDir { dir, name: name.to_owned(), node })
    }

    fn create(&mut self, dir: Node, name: &OsStr) -> Result<Attributes, Errno> {
        self.may(Call::Open)?;
        self.make(dir, name, |dir, node| Op::MakeFile { dir, name: name.to_owned(), node })
    }

    fn link(&mut self, node: Node, dir: Node, name: &OsStr) -> Result<Attributes, Errno> {
        self.may(Call::Link)?;
        if self.tree.named(dir, name).is_some() {
            return Err(Errno::EXIST);
        }
        self.does(Op::Link { dir, name: name.to_owned(), node });
        self.attributes(node)
    }

    fn remove(&mut self, dir: Node, name: &OsStr) -> Result<(), Errno> {
        self.may(Call::Unlink)?;
        let node = self.find(dir, name)?;
        if self.tree.names(node).is_some_and(|names| !names.is_empty()) {
            return Err(Errno::NOTEMPTY);
        }
        self.does(Op::Remove { dir, name: name.to_owned() });
        Ok(())
    }

    fn rename(&mut self, from: (Node, &OsStr), to: (Node, &OsStr), replaces: bool) -> Result<(), Errno> {
        self.may(Call::Rename)?;
        self.find(from.0, from.1)?;
        let target = self.tree.named(to.0, to.1);
        if target.is_some() && !replaces {
            return Err(Errno::EXIST);
        }
        if target.and_then(|node| self.tree.names(node)).is_some_and(|names| !names.is_empty()) {
            return Err(Errno::NOTEMPTY);
        }
        self.does(Op::Rename { from: (from.0, from.1.to_owned()), to: (to.0, to.1.to_owned()) });
        Ok(())
    }

    fn list(&mut self, dir: Node, from: u64, len: usize) -> Result<Answer, Errno> {
        if from == 0 {
            self.may(Call::Read)?;
        }
        let names = self.tree.names(dir).ok_or(Errno::NOTDIR)?;
        let dots = [".", ".."].map(|name| (OsStr::new(name), dir));
        let all = dots.into_iter().chain(names.iter().map(|(name, node)| (name.as_os_str(), *node)));
        let mut answer = Answer::default();
        for (next, (name, node)) in (1..).zip(all).skip(from as usize) {
            let is_dir = node == dir || self.tree.names(node).is_some();
            if !answer.list((name, node, is_dir), next, len) {
                break;
            }
        }
        Ok(answer)
    }

    fn answer(&mut self, node: Node, call: &Asked<'_>) -> Result<Answer, Errno> {
        let entry = Answer::entry;
        let nothing = |()| Answer::default();
        match *call {
            Asked::Start => Ok(Answer::started()),
            Asked::Find { name } => self.find(node, name).and_then(|node| self.attributes(node)).map(entry),
            Asked::Attributes => self.attributes(node).map(Answer::of_attributes),
            Asked::Set { len } => self.resize(node, len).map(Answer::of_attributes),
            Asked::MakeDir { name } => self.mkdir(node, name).map(entry),
            Asked::MakeFile { name } => self.create(node, name).map(|made| entry(made).and_opened()),
            Asked::Remove { name } => self.remove(node, name).map(nothing),
            Asked::Rename { name, to, new_name, replaces } => {
                self.rename((node, name), (to, new_name), replaces).map(nothing)
            }
            Asked::Link { linked, name } => self.link(linked, node, name).map(entry),
            Asked::Open => self.open(node).map(|()| Answer::opened()),
            Asked::Read { at, len } => self.read(node, at, len).map(Answer::bytes),
            Asked::Write { at, bytes } => self.write(node, at, bytes).map(Answer::written),
            Asked::Sync => self.sync(node).map(nothing),
            Asked::OpenDir => self.attributes(node).map(|_| Answer::opened()),
            Asked::List { from, len } => self.list(node, from, len),
            Asked::SyncDir => self.sync_dir(node).map(nothing),
            Asked::Space => Ok(Answer::space()),
            Asked::Done | Asked::Unanswered => Ok(Answer::default()),
            Asked::Unknown => Err(Errno::NOSYS),
        }
    }

    /// Answers until it is unmounted, or given up before it is mounted.
    fn serve(mut self, mut device: File, is_given_up: &AtomicBool) -> io::Result<Self> {
        let mut buffer = vec![0; REQUEST_BYTES];
        loop {
            let len = match device.read(&mut buffer) {
                Ok(len) => len,
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::NODEV) => return Ok(self),
                    // Not mounted yet.
                    Some(Errno::PERM) if is_given_up.load(Ordering::Relaxed) => return Ok(self),
                    Some(Errno::PERM) => {
                        std::thread::sleep(Duration::from_millis(1));
                        continue;
                    }
                    // A request that was taken back.
                    Some(Errno::NOENT | Errno::INTR | Errno::AGAIN) => continue,
                    _ => return Err(error),
                },
            };
            let request =
                Request::read(&buffer[..len]).ok_or_else(|| io::Error::other("a request is cut off"))?;
            let answer = self.answer(request.node, &request.call);
            if !matches!(request.call, Asked::Unanswered) {
                match device.write(&request.answer(answer)) {
                    // Nobody waits for it any more.
                    Err(error) if Errno::from_io_error(&error) == Some(Errno::NOENT) => {}
                    written => drop(written?),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;

    use super::*;
    use crate::disk::ROOT;

    #[test]
    fn what_processes_do_is_recorded_and_one_call_fails() {
        let dir = tempfile::tempdir().expect("a directory");
        let fault = Fault { call: Call::Sync, number: 2, errno: 5, is_kept_secret: false };
        let mounted = match Mounted::mount(Tree::default(), dir.path(), Some(fault)) {
            Ok(mounted) => mounted,
            // The steps of the torture say so too.
            Err(why) => return eprintln!("SKIPPED: {why}"),
        };
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("sub")).expect("makes");
        fs::write(path("file"), b"first").expect("writes");
        let mut file = OpenOptions::new().append(true).open(path("file")).expect("opens");
        file.write_all(b" second").expect("writes");
        file.sync_all().expect("the first is not the one");
        assert_eq!(file.sync_all().expect_err("fails").raw_os_error(), Some(5));
        file.sync_data().expect("no later one fails");
        fs::hard_link(path("file"), path("sub/link")).expect("links");
        fs::rename(path("file"), path("renamed")).expect("renames");
        assert_eq!(fs::read(path("sub/link")).expect("reads"), b"first second");
        file.set_len(5).expect("cuts");
        drop(file);
        let long: Vec<_> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
        fs::write(path("long"), &long).expect("writes");
        assert!(fs::read(path("long")).expect("reads") == long);
        for number in 0..300 {
            fs::write(path(&format!("sub/{number}")), []).expect("makes");
        }
        let names = fs::read_dir(path("sub")).expect("lists").map(|entry| entry.expect("lists").file_name());
        assert_eq!(names.count(), 301);
        let refused = [
            (fs::remove_dir(path("sub")), ErrorKind::DirectoryNotEmpty),
            (fs::create_dir(path("long")), ErrorKind::AlreadyExists),
            (fs::remove_file(path("file")), ErrorKind::NotFound),
        ];
        for (done, kind) in refused {
            assert_eq!(done.expect_err("is refused").kind(), kind);
        }
        fs::remove_dir_all(path("sub")).expect("removes");

        let recording = mounted.end().expect("unmounts");
        let syncs: Vec<_> =
            recording.ops.iter().filter(|op| op.is_sync() || matches!(op, Op::FailedSync { .. })).collect();
        assert!(matches!(syncs[..], [Op::Sync { .. }, Op::FailedSync { .. }, Op::Sync { .. }]), "{syncs:?}");
        let [Some(renamed), Some(left)] =
            ["renamed", "long"].map(|name| recording.tree.named(ROOT, name.as_ref()))
        else {
            panic!("a name is gone")
        };
        assert_eq!(recording.tree.bytes(renamed), b"first");
        assert!(recording.tree.bytes(left) == long);
        assert_eq!(recording.tree.names(ROOT).expect("is a directory").len(), 2);
        let counts = [Call::Sync, Call::Rename, Call::Link, Call::Unlink, Call::Truncate];
        assert_eq!(counts.map(|call| recording.calls[&call]), [3, 1, 1, 303, 1]);
    }
}
