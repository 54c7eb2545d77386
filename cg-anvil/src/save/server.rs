//! The folder of a server, in which one world is several saves.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::file::LEVEL;

/// Folders that mark a save, each by itself, as `level.dat` does.
const PARTS: [&str; 4] = ["region", "DIM-1", "DIM1", "dimensions"];

/// How the folders of the nether and of the end are named after that of the overworld.
const ENDINGS: [&str; 2] = ["_nether", "_the_end"];

/// The folder of a server as Bukkit and Paper have it: `world`, `world_nether` and `world_the_end` are one world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFolder {
    path: PathBuf,
    /// The saves of each world: the overworld's first, then those of the nether and the end that are there.
    worlds: Vec<Vec<String>>,
}

impl ServerFolder {
    /// Looks for saves of one world in a folder; `None` if there are not two of any.
    pub(crate) fn find(path: &Path) -> io::Result<Option<Self>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            names.extend(entry?.file_name().into_string());
        }
        names.sort();
        let is_save = |name: &str| {
            let path = path.join(name);
            path.join(LEVEL).is_file() || PARTS.iter().any(|part| path.join(part).is_dir())
        };
        let world = |name: String| {
            let others = ENDINGS.map(|ending| format!("{name}{ending}"));
            let all: Vec<_> = [name].into_iter().chain(others).filter(|name| is_save(name)).collect();
            (all.len() > 1 && !ENDINGS.iter().any(|ending| all[0].ends_with(ending))).then_some(all)
        };
        let worlds: Vec<_> = names.into_iter().filter(|name| is_save(name)).filter_map(world).collect();
        Ok((!worlds.is_empty()).then(|| Self { path: path.to_owned(), worlds }))
    }

    /// The names of all saves.
    pub(crate) fn saves(self) -> Vec<String> {
        self.worlds.into_iter().flatten().collect()
    }

    /// The name of the overworld's save, from that of a save in which a server keeps the nether or the end.
    pub(crate) fn overworld_of(name: &str) -> Option<&str> {
        ENDINGS.iter().find_map(|ending| name.strip_suffix(ending))
    }

    /// How the name of the save ends in which a server keeps a dimension beside that of the overworld.
    pub(crate) fn ending(dimension: &str) -> Option<&'static str> {
        let [nether, end] = ENDINGS;
        match dimension {
            "minecraft:the_nether" => Some(nether),
            "minecraft:the_end" => Some(end),
            _ => None,
        }
    }

    /// The commands that import each of the saves, one after the other, into one world, or into one for each world.
    pub fn commands(&self, world: &Path) -> Vec<String> {
        let several = self.worlds.len() > 1;
        let of_world = self.worlds.iter().flat_map(|saves| {
            let world = world.display().to_string();
            let world = if several { format!("{world}-{}", saves[0]) } else { world };
            saves.iter().enumerate().map(move |(index, save)| {
                let merge = if index == 0 { "" } else { " --merge replace" };
                let save = self.path.join(save).display().to_string();
                format!("cg import {} {}{merge}", quoted(&save), quoted(&world))
            })
        });
        of_world.collect()
    }

    /// Message that says what is wrong and gives the commands that import into a world.
    pub fn message(&self, world: &Path) -> String {
        let saves: Vec<_> = self.worlds.iter().flatten().map(|save| format!("`{save}`")).collect();
        let commands: Vec<_> =
            self.commands(world).into_iter().map(|command| format!("`{command}`")).collect();
        format!(
            "{} is the folder of a server and no save: it has the saves {}, of which each is imported by itself: {}",
            self.path.display(),
            saves.join(", "),
            commands.join(", then ")
        )
    }
}

impl fmt::Display for ServerFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(Path::new("WORLD")))
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(saves: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for save in saves {
            fs::create_dir_all(dir.path().join(save).join("region")).expect("creates");
        }
        fs::create_dir(dir.path().join("plugins")).expect("creates");
        dir
    }

    #[test]
    fn saves_are_told_by_their_names_and_what_they_hold() {
        let commands = |saves: &[&str]| {
            let dir = folder(saves);
            let found = ServerFolder::find(dir.path()).expect("lists")?;
            let found = found.commands(Path::new("w 1"));
            // The path of the folder has no character that is quoted.
            let path = format!("{}/", dir.path().display());
            Some(found.into_iter().map(|line| line.replace(&path, "")).collect::<Vec<_>>())
        };
        assert_eq!(
            commands(&["world_the_end", "world", "world_nether"]),
            Some(vec![
                "cg import world 'w 1'".to_owned(),
                "cg import world_nether 'w 1' --merge replace".into(),
                "cg import world_the_end 'w 1' --merge replace".into()
            ])
        );
        assert_eq!(
            commands(&["it's", "it's_nether", "b", "b_the_end", "alone"]),
            Some(vec![
                "cg import b 'w 1-b'".to_owned(),
                "cg import b_the_end 'w 1-b' --merge replace".into(),
                r"cg import 'it'\''s' 'w 1-it'\''s'".into(),
                r"cg import 'it'\''s_nether' 'w 1-it'\''s' --merge replace".into()
            ])
        );
        assert_eq!(commands(&["world"]), None);
        assert_eq!(commands(&["a", "b", "c_nether", "d_the_end"]), None);
    }
}
