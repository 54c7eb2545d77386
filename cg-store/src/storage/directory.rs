//! `world.cg`: the file that makes a directory a world.
//!
//! ```text
//! cherrygrove world 1
//! uuid = 6d1f6a5e-6f9e-4d8e-a4f4-0a4a4b2b8c11
//! incarnation = 0b8d2a52-6d8e-4cf6-bd52-1f5b1b2f9d10
//! state = ready
//! signature = castle builder 3
//! chunk_side_blocks = 16
//! key_version = 1
//! frame_version = 1
//! draft = 1
//! crc32c = 9ab3c01d
//! ```
//! The first line can be read by any version. The last line has the checksum of every byte before it. The file is only
//! ever replaced: a temporary file is written and synced, renamed over it, and the directory is synced. The other
//! entries of the directory are the engine's directory `db`, and `settings.txt`, a copy of the settings for launchers.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::storage::error::OpenError;
use crate::storage::location::Location;
use crate::storage::meta::Identity;

/// The file's name in a world directory.
pub const FILE_NAME: &str = "world.cg";
/// The name of the copy of the settings in a world directory.
pub const SETTINGS_NAME: &str = "settings.txt";
/// The engine's directory in a world directory.
pub const ENGINE_DIR: &str = "db";

/// More than the file ever holds. What is longer is damaged.
const MAX_BYTES: u64 = 64 << 10;
/// The name of a copy that replaces a shared file, while it is written.
#[cfg(feature = "rocks")]
const COPY_NAME: &str = "world.cg.new";
const MAGIC: &str = "cherrygrove world ";
const VERSION: u32 = 1;
const CHUNK_SIDE_BLOCKS: u32 = 16;
const KEY_VERSION: u32 = 1;
const FRAME_VERSION: u32 = 1;
/// Layouts of a draft world may still change. A later release refuses worlds of another draft by this number.
const DRAFT: u32 = 1;

/// Whether a world may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Creation did not finish. The directory holds no data of value and can only be deleted.
    Creating,
    /// In use or cleanly closed.
    Ready,
    /// A copy made by a checkpoint. Opening it for writing starts a new incarnation of the world.
    Checkpoint,
}

impl State {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Creating, "creating"), (Self::Ready, "ready"), (Self::Checkpoint, "checkpoint")];

    fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(state, _)| *state == self).map_or("", |(_, name)| name)
    }
}

/// The content of `world.cg`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldFile {
    /// The identity of the world, which never changes.
    pub uuid: Uuid,
    /// Newly generated when a backup is restored or a world salvaged: versions of two incarnations are not comparable.
    pub incarnation: Uuid,
    /// Whether the world may be used.
    pub state: State,
    /// The application's name for its own layout: one line, or none.
    pub signature: Option<String>,
}

impl WorldFile {
    /// Creates the file of a new world that is not ready yet.
    pub fn new_world() -> Self {
        Self { uuid: Uuid::new_v4(), incarnation: Uuid::new_v4(), state: State::Creating, signature: None }
    }

    /// Creates the file of a new world with the signature of an application.
    ///
    /// # Errors
    /// [`OpenError::NotASignature`] for a signature that is not a line of 1 to 256 bytes.
    pub fn signed(signature: Option<String>) -> Result<Self, OpenError> {
        match signature {
            Some(found) if !is_signature(&found) => Err(OpenError::NotASignature { found }),
            signature => Ok(Self { signature, ..Self::new_world() }),
        }
    }

    /// The world and its incarnation.
    pub const fn identity(&self) -> Identity {
        let Self { uuid, incarnation, .. } = *self;
        Identity { uuid, incarnation }
    }

    /// Checks that a world has the offered signature. Without an offered signature every world passes.
    ///
    /// # Errors
    /// [`OpenError::OtherSignature`] if it is not.
    pub fn check_signature(&self, world: &Location, offered: Option<&str>) -> Result<(), OpenError> {
        match offered {
            Some(offered) if self.signature.as_deref() != Some(offered) => Err(OpenError::OtherSignature {
                at: world.clone(),
                stored: self.signature.clone(),
                offered: offered.into(),
            }),
            _ => Ok(()),
        }
    }

    /// Reads the file of a world directory.
    ///
    /// # Errors
    /// [`OpenError::NotAWorld`] if there is no file or its first line is not of a world; [`OpenError::NewerFormat`] if
    /// a newer release wrote it; [`OpenError::DamagedWorldFile`] if its checksum or a line is wrong.
    pub fn read(world: &Path) -> Result<Self, OpenError> {
        let path = world.join(FILE_NAME);
        let bytes = match read_file(&path) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                let why = if engine_dir(world).is_dir() {
                    "it has no file `world.cg`, but a database: copy that file from a checkpoint or an older copy of this world; the rows are in `db`"
                } else {
                    "it has no file `world.cg`"
                };
                return Err(OpenError::NotAWorld { at: world.into(), why: why.into() });
            }
            Err(error) => return Err(OpenError::io("read", &path, error)),
        };
        Self::decode(&bytes).map_err(|fault| match fault {
            Fault::Foreign => OpenError::NotAWorld {
                at: world.into(),
                why: "its `world.cg` does not begin with `cherrygrove world`".into(),
            },
            Fault::Newer { field, found, newest } => OpenError::NewerFormat { field, found, newest },
            Fault::Damaged(what) => OpenError::DamagedWorldFile { path, what },
        })
    }

    /// Replaces the file of a world directory. A crash leaves either the old file or the new one.
    ///
    /// # Errors
    /// [`OpenError::Io`] if the operating system reports an error. The old file still exists then.
    pub fn write(&self, world: &Path) -> Result<(), OpenError> {
        replace(world, FILE_NAME, self.encode().as_bytes())
    }

    fn encode(&self) -> String {
        let signature = self.signature.as_ref().map_or(String::new(), |line| format!("signature = {line}\n"));
        let text = format!(
            "{MAGIC}{VERSION}\nuuid = {}\nincarnation = {}\nstate = {}\n{signature}chunk_side_blocks = {CHUNK_SIDE_BLOCKS}\n\
             key_version = {KEY_VERSION}\nframe_version = {FRAME_VERSION}\ndraft = {DRAFT}\n",
            self.uuid,
            self.incarnation,
            self.state.name(),
        );
        let sum = crc32c::crc32c(text.as_bytes());
        text + &format!("crc32c = {sum:08x}\n")
    }

    fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        let version = bytes.strip_prefix(MAGIC.as_bytes()).ok_or(Fault::Foreign)?;
        let text = str::from_utf8(bytes).map_err(|_| Fault::damaged("it is not text"))?;
        let version = str::from_utf8(version).ok().and_then(|rest| rest.lines().next()?.parse().ok());
        match version {
            Some(VERSION) => {}
            Some(found) if found > VERSION => {
                return Err(Fault::Newer { field: "world file version", found, newest: VERSION });
            }
            _ => return Err(Fault::damaged("its first line names no version")),
        }
        let (summed, last) = text
            .strip_suffix('\n')
            .and_then(|text| text.rsplit_once('\n'))
            .ok_or_else(|| Fault::damaged("it ends too early"))?;
        let expected = crc32c::crc32c(&bytes[..=summed.len()]);
        if last != format!("crc32c = {expected:08x}") {
            return Err(Fault::Damaged(format!(
                "its last line is `{last}`, its bytes sum to {expected:08x}"
            )));
        }
        let value = |name: &str| {
            let line = summed.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
            line.ok_or_else(|| Fault::Damaged(format!("the line `{name}` is missing")))
        };
        let uuid = |name| {
            let text = value(name)?;
            text.parse().map_err(|_| Fault::Damaged(format!("`{name}` is `{text}`, which is no uuid")))
        };
        let fixed = |name: &'static str, ours: u32| match value(name)?.parse::<u32>() {
            Ok(found) if found == ours => Ok(()),
            Ok(found) => Err(Fault::Newer { field: name, found, newest: ours }),
            Err(_) => Err(Fault::Damaged(format!("`{name}` is no number"))),
        };
        fixed("chunk_side_blocks", CHUNK_SIDE_BLOCKS)?;
        fixed("key_version", KEY_VERSION)?;
        fixed("frame_version", FRAME_VERSION)?;
        fixed("draft", DRAFT)?;
        let state = value("state")?;
        let (state, _) = State::ALL
            .into_iter()
            .find(|(_, name)| *name == state)
            .ok_or_else(|| Fault::Damaged(format!("`state` is `{state}`")))?;
        let signature = value("signature").ok().map(str::to_owned);
        if let Some(found) = signature.as_ref().filter(|found| !is_signature(found)) {
            return Err(Fault::Damaged(format!("`signature` is `{}`", found.escape_debug())));
        }
        Ok(Self { uuid: uuid("uuid")?, incarnation: uuid("incarnation")?, state, signature })
    }
}

/// Replaces a file of a world directory. A crash leaves either the old file or the new one.
///
/// # Errors
/// [`OpenError::Io`] if the operating system reports an error. The old file still exists then.
pub(crate) fn replace(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), OpenError> {
    let (path, temporary) = (dir.join(name), dir.join(format!("{name}.new")));
    let written =
        remove_if_there(&temporary).and_then(|()| File::create_new(&temporary)).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
    written.map_err(|error| OpenError::io("write", &temporary, error))?;
    fs::rename(&temporary, &path).map_err(|error| OpenError::io("replace", &path, error))?;
    sync_directory(dir)
}

/// Reads a file of at most [`MAX_BYTES`]. A pipe in its place would be waited for, and a device may never end.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        let problem = "it is no regular file: put the file itself in its place";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Removes what has the name of a temporary file. Nothing is written to it, since it may be a link.
fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether a text fits into one line of the file.
fn is_signature(text: &str) -> bool {
    (1..=256).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Syncs a directory, so that names created or renamed in it survive a power cut. Only Unix can sync a directory;
/// elsewhere this does nothing.
///
/// # Errors
/// [`OpenError::Io`] if the operating system reports an error.
pub fn sync_directory(path: &Path) -> Result<(), OpenError> {
    let synced =
        if cfg!(unix) { File::open(path).and_then(|directory| directory.sync_all()) } else { Ok(()) };
    synced.map_err(|error| OpenError::io("sync", path, error))
}

/// Replaces the files that a directory shares with others by hard links with copies of its own.
///
/// # Errors
/// [`OpenError::Io`] if the operating system reports an error.
#[cfg(feature = "rocks")]
pub(crate) fn unshare(dir: &Path) -> Result<(), OpenError> {
    let new = dir.join(COPY_NAME);
    for entry in fs::read_dir(dir).map_err(|error| OpenError::io("list", dir, error))? {
        let path = entry.map_err(|error| OpenError::io("list", dir, error))?.path();
        let found = fs::metadata(&path).map_err(|error| OpenError::io("read", &path, error))?;
        if !found.is_file() || !is_shared(&found) {
            continue;
        }
        let copied = remove_if_there(&new)
            .and_then(|()| fs::copy(&path, &new))
            .and_then(|_| File::open(&new)?.sync_all());
        copied.map_err(|error| OpenError::io("copy", &path, error))?;
        fs::rename(&new, &path).map_err(|error| OpenError::io("replace", &path, error))?;
    }
    sync_directory(dir)
}

/// Whether a file may have another hard link.
#[cfg(all(feature = "rocks", unix))]
fn is_shared(file: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(file) > 1
}

#[cfg(all(feature = "rocks", not(unix)))]
fn is_shared(_file: &fs::Metadata) -> bool {
    true
}

/// Why it is not known which commits of a world were synced: the file that says so is missing or damaged. A checkpoint needs
/// none.
///
/// Reading goes on without it. An open for writing needs
/// [`accept_lost_commits`](crate::WorldOptions::accept_lost_commits).
#[cfg(feature = "rocks")]
pub fn floor_problem(world: &Path, file: &WorldFile) -> Option<crate::engine::EngineError> {
    if file.state == State::Checkpoint {
        return None;
    }
    crate::engine::RocksEngine::floor_problem(&engine_dir(world))
}

/// The engine's directory inside a world's directory.
pub fn engine_dir(world: &Path) -> PathBuf {
    world.join(ENGINE_DIR)
}

enum Fault {
    Foreign,
    Newer { field: &'static str, found: u32, newest: u32 },
    Damaged(String),
}

impl Fault {
    fn damaged(what: &str) -> Self {
        Self::Damaged(what.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn sample() -> WorldFile {
        let (uuid, incarnation) = (Uuid::from_u128(1), Uuid::from_u128(2));
        WorldFile { uuid, incarnation, state: State::Ready, signature: None }
    }

    #[track_caller]
    fn check(text: &[u8], expected: Expect) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE_NAME), text).unwrap();
        let error = WorldFile::read(dir.path()).unwrap_err().to_string();
        expected.assert_eq(&error.replace(dir.path().to_str().unwrap(), "DIR"));
    }

    fn resummed(from: &str, to: &str) -> Vec<u8> {
        let text = sample().encode().replace(from, to);
        let (body, _) = text.trim_end().rsplit_once('\n').unwrap();
        format!("{body}\ncrc32c = {:08x}\n", crc32c::crc32c(format!("{body}\n").as_bytes())).into_bytes()
    }

    #[test]
    fn what_is_written_is_read_in_every_state() {
        let dir = tempfile::tempdir().unwrap();
        for (state, _) in State::ALL {
            let file = WorldFile { state, ..sample() };
            file.write(dir.path()).unwrap();
            assert_eq!(WorldFile::read(dir.path()).unwrap(), file);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_waited_for_or_written_through_a_link() {
        use std::os::unix::{fs::symlink, net::UnixListener};
        let dir = tempfile::tempdir().unwrap();
        let (path, precious) = (dir.path().join(FILE_NAME), dir.path().join("precious"));
        fs::write(&precious, "precious").unwrap();
        symlink(&precious, dir.path().join("world.cg.new")).unwrap();
        sample().write(dir.path()).unwrap();
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
        assert_eq!(WorldFile::read(dir.path()).unwrap(), sample());
        let refused = || match WorldFile::read(dir.path()) {
            Err(OpenError::Io { source, .. }) => source.to_string(),
            other => panic!("{other:?}"),
        };
        fs::remove_file(&path).unwrap();
        let _socket = UnixListener::bind(&path).unwrap();
        assert_eq!(refused(), "it is no regular file: put the file itself in its place");
        fs::remove_file(&path).unwrap();
        // It never ends.
        symlink("/dev/zero", &path).unwrap();
        assert_eq!(refused(), "it is no regular file: put the file itself in its place");
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let good = sample().encode().into_bytes();
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                assert!(WorldFile::decode(&bytes).is_err(), "byte {at}, bit {bit}");
            }
            assert!(WorldFile::decode(&good[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn each_refusal_says_what_it_found() {
        check(
            b"level.dat",
            expect!["DIR is not a world: its `world.cg` does not begin with `cherrygrove world`"],
        );
        check(
            &resummed("world 1", "world 2"),
            expect![
                "world file version is 2, and this release knows 1; open the world with the release that wrote it"
            ],
        );
        check(
            &resummed("key_version = 1", "key_version = 9"),
            expect![
                "key_version is 9, and this release knows 1; open the world with the release that wrote it"
            ],
        );
        check(
            &resummed("state = ready", "state = steady"),
            expect![
                "DIR/world.cg is damaged: `state` is `steady`; restore it from a backup or a checkpoint of this world"
            ],
        );
        check(
            &sample().encode().replace("ready", "crown").into_bytes(),
            expect![
                "DIR/world.cg is damaged: its last line is `crc32c = 7812515c`, its bytes sum to 077823c8; restore it from a backup or a checkpoint of this world"
            ],
        );
        check(
            b"cherrygrove world 1\n",
            expect![
                "DIR/world.cg is damaged: it ends too early; restore it from a backup or a checkpoint of this world"
            ],
        );
        let dir = tempfile::tempdir().unwrap();
        let error = WorldFile::read(dir.path()).unwrap_err();
        assert!(matches!(error, OpenError::NotAWorld { .. }), "{error}");
    }
}
