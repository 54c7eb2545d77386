//! `cg checkpoint`

use std::path::Path;

use serde_json::json;

use super::{Sample, run, text};

#[test]
fn a_checkpoint_holds_the_same_content() {
    let sample = Sample::new();
    let copy = sample.beside("copy");
    let said = sample.cg("checkpoint", &[text(&copy), "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.json()["checkpoint"], text(&copy));
    assert_eq!(run(&["hash", text(&copy)]).good(), sample.cg("hash", &[]).good());
    assert_eq!(run(&["verify", text(&copy)]).code, 0);

    let said = sample.cg("checkpoint", &[text(&copy)]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    let expected = format!(
        "cg: {} already holds files; a world is created in an empty or missing directory\n",
        text(&copy)
    );
    assert_eq!(said.err, expected);
}

/// The lengths and numbers of names of a world's tables.
#[cfg(unix)]
fn tables(world: &Path) -> Vec<(std::path::PathBuf, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let files = std::fs::read_dir(world.join("db")).expect("lists").map(|entry| entry.expect("lists").path());
    let tables = files.filter(|path| path.extension().is_some_and(|end| end == "sst"));
    tables.map(|path| (path.clone(), std::fs::metadata(path).expect("is there").nlink())).collect()
}

#[test]
fn damage_is_told_of_and_the_exit_code_says_so() {
    let sample = Sample::new();
    sample.spoil_ground();
    let copy = sample.beside("copy");
    let said = sample.cg("checkpoint", &[text(&copy)]);
    assert_eq!((said.code, said.err.as_str()), (1, ""), "{said:?}");
    assert!(
        said.out.ends_with("DAMAGED, and so is the world: 2 problems found; `cg verify` says which\n"),
        "{said:?}"
    );
    let unseen = sample.beside("unseen");
    let said = sample.cg("checkpoint", &[text(&unseen), "--no-verify", "--json"]);
    assert_eq!((said.code, said.json().get("problems")), (0, None), "{said:?}");
}

#[cfg(unix)]
#[test]
fn a_copy_shares_no_later_damage() {
    let sample = Sample::new();
    let [linked, copied] = ["linked", "copied"].map(|name| sample.beside(name));
    let said = sample.cg("checkpoint", &[text(&linked)]).good();
    assert!(said.contains("may be hard links to the world's") && said.contains("--copy"), "{said}");
    assert!(tables(&linked).iter().any(|(_, names)| *names > 1));
    let said = sample.cg("checkpoint", &[text(&copied), "--copy", "--json"]).json();
    assert_eq!((&said["apart"], &said["problems"]), (&json!(true), &json!(0)));
    assert!(tables(&copied).iter().all(|(_, names)| *names == 1), "{:?}", tables(&copied));
    assert_eq!(
        std::fs::read_dir(copied.join("db"))
            .expect("lists")
            .filter(|entry| { entry.as_ref().expect("lists").file_name() == "world.cg.new" })
            .count(),
        0
    );
    // Every table of the world is damaged in place.
    for (path, _) in tables(&sample.path()) {
        let mut bytes = std::fs::read(&path).expect("reads");
        let middle = bytes.len() / 2;
        bytes[20..middle].fill(0xa5);
        let mut file = std::fs::OpenOptions::new().write(true).open(&path).expect("opens");
        std::io::Write::write_all(&mut file, &bytes).expect("writes");
    }
    assert_eq!(sample.cg("verify", &[]).code, 1);
    assert_eq!(run(&["verify", text(&linked)]).code, 1, "the files are the same");
    assert_eq!(run(&["verify", text(&copied)]).code, 0);
    assert!(run(&["hash", text(&copied)]).code == 0);
}
