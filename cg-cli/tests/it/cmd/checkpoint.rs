//! `cg checkpoint`

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
