//! The README's lines of Rust: they are those of the example, and the example works.

#[expect(dead_code, reason = "the example's `main` takes its directory from the command line")]
#[path = "../../examples/readme.rs"]
mod example;

#[test]
fn the_example_works() {
    let parent = tempfile::tempdir().unwrap();
    example::run(&parent.path().join("world")).unwrap();
}

#[test]
fn the_readme_shows_the_example() {
    let readme = include_str!("../../../README.md");
    let (_, rest) = readme.split_once("```rust\n").expect("lines of Rust");
    let (shown, _) = rest.split_once("```").expect("their end");
    let indented: String = shown.lines().map(|line| format!("    {line}\n")).collect();
    assert!(include_str!("../../examples/readme.rs").contains(&indented), "{indented}");
}
