//! How the crate compiles its C++: read from its own build, which runs with recorders in the place of the compilers.
//!
//! A recorder lets the probes of the build through to the real compiler. A file of the crate, which is named by a
//! relative path, it does not compile: it writes the call down and makes an empty object, so the build takes the time
//! of its Rust alone.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::crate_build;
use super::progress::Progress;
use super::recipe::Recipe;
use crate::context::Context;
use crate::process::Tool;
use crate::setup::compiler;

/// How the crate compiles each of its sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Recorded {
    /// The folder in which the compiler runs; paths are relative to it.
    pub(super) dir: PathBuf,
    /// Arguments of the compiler besides the source and the object.
    pub(super) flags: Vec<String>,
    /// The sources, sorted.
    pub(super) sources: Vec<String>,
}

/// Runs the crate's build with recorders in `work`, whose files the flags may name.
///
/// # Errors
/// The build fails. That it compiles in a way that cannot be recorded is the inner error.
pub(super) fn record(
    context: &Context,
    recipe: &Recipe,
    work: &Path,
    progress: &mut Progress,
) -> Result<Result<Recorded>> {
    let calls = work.join("calls");
    fs::create_dir_all(&calls)?;
    let empty = work.join("empty.o");
    let source = work.join("empty.cc");
    fs::write(&source, "")?;
    compiler::program().arg("-c").arg(&source).arg("-o").arg(&empty).capture()?;
    let write = |name: &str, real: Tool, calls: Option<&Path>| -> Result<PathBuf> {
        let path = work.join(name);
        fs::write(&path, recorder(&real, &empty, calls)?)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(path)
    };
    let cc = env::var("CC").ok().filter(|cc| !cc.trim().is_empty()).unwrap_or_else(|| "cc".to_owned());
    let cxx = write("record-cxx", compiler::program(), Some(&calls))?;
    let cc = write("record-cc", compiler::words(&cc), None)?;
    // `check` runs the same build scripts as `build`, and links nothing.
    let tool = crate_build::cargo(context, "check", recipe, &work.join("target"));
    // A wrapper that keeps objects would keep the empty ones.
    let tool = tool.env("CXX", cxx).env("CC", cc).env("RUSTC_WRAPPER", "");
    crate_build::run(tool, &work.join("record.log"), progress, &|| 0)?;
    let mut texts = Vec::new();
    for entry in fs::read_dir(&calls)? {
        texts.push(fs::read(entry?.path())?);
    }
    Ok(agree(&texts))
}

/// A shell script that stands for the compiler `real`.
fn recorder(real: &Tool, empty: &Path, calls: Option<&Path>) -> Result<String> {
    let path =
        |path: &Path| path.to_str().map(quoted).with_context(|| format!("{}: no UTF-8", path.display()));
    let write = match calls {
        Some(calls) => format!("printf '%s\\0' \"$PWD\" \"$@\" >{}/\"${{object##*/}}\" && ", path(calls)?),
        None => String::new(),
    };
    let real: Vec<_> = real.words().map(|word| quoted(&word)).collect();
    Ok(format!(
        "#!/bin/sh\n\
         last= object= compiles=\n\
         for word; do\n\
         case \"$last\" in -o) object=$word ;; esac\n\
         case \"$word\" in -c) compiles=yes ;; esac\n\
         last=$word\n\
         done\n\
         case \"$compiles $last\" in\n\
         'yes /'*) ;;\n\
         'yes '*) {write}cp {} \"$object\"; exit ;;\n\
         esac\n\
         exec {} \"$@\"\n",
        path(empty)?,
        real.join(" "),
    ))
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// One recorded call: the folder, the flags and the source, which comes last.
fn parse(call: &[u8]) -> Result<(PathBuf, Vec<String>, String)> {
    let text = std::str::from_utf8(call).context("a flag is no UTF-8")?;
    let mut words = text.strip_suffix('\0').context("a call was not written whole")?.split('\0');
    let dir = words.next().context("a call has a folder")?;
    let mut words: Vec<_> = words.collect();
    let source = words.pop().context("a call has a source")?;
    let output = words.iter().position(|word| *word == "-o").context("a call has no -o")?;
    ensure!(output + 1 < words.len(), "nothing follows -o");
    words.drain(output..output + 2);
    let flags = words.into_iter().filter(|word| *word != "-c").map(str::to_owned).collect();
    Ok((PathBuf::from(dir), flags, source.to_owned()))
}

/// The common part of the calls, which is all but the source.
fn agree(calls: &[Vec<u8>]) -> Result<Recorded> {
    let mut recorded: Option<Recorded> = None;
    for call in calls {
        let (dir, flags, source) = parse(call)?;
        let first =
            recorded.get_or_insert(Recorded { dir: dir.clone(), flags: flags.clone(), sources: vec![] });
        if first.dir != dir || first.flags != flags {
            bail!("{source} is compiled in another way than {}", first.sources.concat());
        }
        first.sources.push(source);
    }
    let mut recorded = recorded.context("no call of the compiler was recorded")?;
    recorded.sources.sort();
    Ok(recorded)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::expect;

    use super::{agree, parse, recorder};
    use crate::process::Tool;

    fn call(words: &[&str]) -> Vec<u8> {
        words.iter().flat_map(|word| word.bytes().chain([0])).collect()
    }

    #[test]
    fn a_call_is_its_folder_its_flags_and_its_source() {
        let call = call(&["/c", "-O3", "-I", ".", "-DA=b c", "-o", "/out/x.o", "-c", "rocksdb/x.cc"]);
        let (dir, flags, source) = parse(&call).unwrap();
        assert_eq!(dir, Path::new("/c"));
        assert_eq!(flags, ["-O3", "-I", ".", "-DA=b c"]);
        assert_eq!(source, "rocksdb/x.cc");
    }

    #[test]
    fn a_call_that_is_cut_off_is_no_call() {
        let whole = call(&["/c", "-O3", "-o", "/out/x.o", "-c", "x.cc"]);
        for length in 0..whole.len() {
            let cut = &whole[..length];
            assert!(cut.last() == Some(&0) || parse(cut).is_err(), "{}", String::from_utf8_lossy(cut));
        }
        assert!(parse(&call(&["/c", "-O3", "x.cc"])).is_err());
        assert!(parse(&call(&["/c", "-o", "x.cc"])).is_err());
        assert!(parse(b"/c\0\xff\0").is_err());
    }

    #[test]
    fn calls_that_differ_in_more_than_the_source_are_not_one_way() {
        let of = |flag: &str, source: &str| call(&["/c", flag, "-o", "/out/x.o", "-c", source]);
        let recorded = agree(&[of("-O2", "b.cc"), of("-O2", "a.cc")]).unwrap();
        assert_eq!(
            (recorded.flags, recorded.sources),
            (vec!["-O2".into()], vec!["a.cc".into(), "b.cc".into()])
        );
        assert!(agree(&[of("-O2", "b.cc"), of("-O3", "a.cc")]).is_err());
        assert!(agree(&[]).is_err());
    }

    #[test]
    fn a_recorder_passes_probes_on() {
        let real = Tool::new("ccache").arg("it's c++");
        let script = recorder(&real, Path::new("/w/empty.o"), Some(Path::new("/w/two words"))).unwrap();
        expect![[r#"
            #!/bin/sh
            last= object= compiles=
            for word; do
            case "$last" in -o) object=$word ;; esac
            case "$word" in -c) compiles=yes ;; esac
            last=$word
            done
            case "$compiles $last" in
            'yes /'*) ;;
            'yes '*) printf '%s\0' "$PWD" "$@" >'/w/two words'/"${object##*/}" && cp '/w/empty.o' "$object"; exit ;;
            esac
            exec 'ccache' 'it'\''s c++' "$@"
        "#]]
        .assert_eq(&script);
    }
}
