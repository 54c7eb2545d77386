//! A panic in the library is `CG_INTERNAL`, and the world goes on. The environment asks for it, so the test runs itself in a
//! process of its own.

use std::process::Command;
use std::ptr::{null, null_mut};

use cherrygrove::*;

use crate::support::*;

const IN_CHILD: &str = "CG_TEST_OF_PANICS";

#[test]
fn a_panic_is_an_error_and_the_world_goes_on() {
    if std::env::var_os(IN_CHILD).is_some() {
        return in_child();
    }
    let this = std::env::current_exe().expect("a program");
    let mut child = Command::new(this);
    child.args(["--exact", "panics::a_panic_is_an_error_and_the_world_goes_on", "--nocapture"]);
    let output = child.env(IN_CHILD, "1").env("CG_TEST_PANIC", "cg_world_usage").output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

fn in_child() {
    let game = Game::in_memory();
    // SAFETY: all memory is of this function.
    unsafe {
        let mut usage = std::mem::zeroed::<cg_usage>();
        usage.struct_size = size_of_val(&usage) as u32;
        for _ in 0..2 {
            fails(CG_INTERNAL, "cg_world_usage: an error of the library: CG_TEST_PANIC asks for it", |e| {
                cg_world_usage(game.world, &raw mut usage, e)
            });
        }
        assert_eq!(cg_world_usage(game.world, null_mut(), null_mut()), CG_INTERNAL);
        let (mut found, mut buffer, mut len, mut level) = (0, vec![0_u8; 1000], 0, 0);
        while cg_log_next(buffer.as_mut_ptr().cast(), 1000, &raw mut len, &raw mut level) == CG_OK {
            let line = String::from_utf8_lossy(&buffer[..len]).into_owned();
            found += usize::from(level == 1 && line.contains("the library panicked: CG_TEST_PANIC"));
        }
        assert_eq!(found, 3);
        assert_eq!(game.save(1, 1, 1), CG_OK);
        let (mut json, mut view) = (0, cg_bytes { ptr: null(), len: 0 });
        ok(|e| cg_world_verify(game.world, 1, &raw mut json, e));
        ok(|e| cg_bytes_of(json, &raw mut view, e));
        assert!(copied(view).starts_with(b"{\"problems\":[],\"rows\":"));
    }
    game.close();
}
