//! The life of worlds.

use cherrygrove::*;

use crate::support::*;

#[test]
fn a_world_is_made_saved_closed_and_found() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("world").to_string_lossy().into_owned();
    let game = Game::at(&path);
    assert_eq!(game.load(3, -4), None);
    assert_eq!(game.save(3, -4, 1), CG_OK);
    assert_eq!(game.save(3, -4, 1), CG_UNCHANGED);
    assert_eq!(game.load(3, -4), Some(vec![1]));
    let binding = game.binding;
    // SAFETY: it takes no memory.
    ok(|error| unsafe { cg_world_close(game.world, error) });
    let game = Game::at(&path);
    assert_eq!(game.load(3, -4), Some(vec![1]));
    game.close();
    // SAFETY: it takes no memory.
    assert_eq!(unsafe { cg_release(binding) }, CG_OK);
}

#[test]
fn modes_say_what_must_be_there() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("world").to_string_lossy().into_owned();
    let mut world = 9;
    let as_mode = |mode| cg_options { mode, ..options() };
    // SAFETY: all memory is of this function.
    unsafe {
        let mut open = |path: &str, options: cg_options, e| {
            let result = cg_world_open(text(path), &raw const options, &raw mut world, e);
            assert_eq!(result == CG_OK, world != 0);
            if result == CG_OK {
                assert_eq!(cg_world_close(world, std::ptr::null_mut()), CG_OK);
            }
            result
        };
        for mode in [0, 3] {
            fails(result::NOT_FOUND, "", |e| open(&path, as_mode(mode), e));
            fails(result::NOT_FOUND, "a world in memory is new", |e| open(":memory:", as_mode(mode), e));
        }
        ok(|e| open(&path, cg_options { game: text("java"), signature: text("mine"), ..as_mode(1) }, e));
        fails(result::INVALID, "already holds files", |e| open(&path, as_mode(1), e));
        let mine = |mode| cg_options { signature: text("mine"), ..as_mode(mode) };
        for mode in [0, 2, 3] {
            ok(|e| open(&path, mine(mode), e));
        }
        fails(result::INVALID, "java", |e| open(&path, cg_options { game: text("bedrock"), ..mine(0) }, e));
        // The refused one keeps no lock.
        ok(|e| open(&path, cg_options { game: text("java"), ..mine(0) }, e));
        fails(result::INVALID, "yours", |e| {
            open(&path, cg_options { signature: text("yours"), ..as_mode(0) }, e)
        });
        ok(|e| open(":memory:", as_mode(1), e));
    }
}

#[test]
fn an_open_world_is_busy_and_one_for_reading_takes_no_writes() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("world").to_string_lossy().into_owned();
    let game = Game::at(&path);
    game.save(0, 0, 1);
    let mut world = 0;
    // SAFETY: all memory is of this function.
    unsafe {
        fails(result::BUSY, "this process has it", |e| {
            cg_world_open(text(&path), &options(), &raw mut world, e)
        });
        game.close();
        let reading = cg_options { mode: 3, ..options() };
        ok(|e| cg_world_open(text(&path), &raw const reading, &raw mut world, e));
        let mut info = std::mem::zeroed::<cg_world_info>();
        info.struct_size = size_of_val(&info) as u32;
        ok(|e| cg_world_info_of(world, &raw mut info, e));
        assert_eq!((info.read_only, info.abi_version, info.durability), (1, CG_ABI_VERSION, 1));
        assert!(info.id != [0; 16] && info.incarnation != [0; 16] && info.last_commit > 0);
        let game = Game { world, binding: bind(world), dimension: 0 };
        assert_eq!(game.load(0, 0), Some(vec![1]));
        let column = game.column(0, 0);
        fails(-5, "", |e| cg_column_save(world, game.binding, &raw const column, 0, std::ptr::null_mut(), e));
        game.close();
    }
}

#[test]
fn a_copy_is_a_world_and_what_a_world_takes_is_known() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let game = Game::at(&place("world"));
    game.save(0, 0, 1);
    // SAFETY: all memory is of this function.
    unsafe {
        for (name, copied) in [("linked", 0), ("copied", 1)] {
            ok(|e| cg_world_checkpoint(game.world, text(&place(name)), copied, e));
            let copy = Game::at(&place(name));
            assert_eq!(copy.load(0, 0), Some(vec![1]));
            copy.close();
        }
        fails(result::INVALID, "already holds files", |e| {
            cg_world_checkpoint(game.world, text(&place("copied")), 1, e)
        });
        fails(result::INVALID, "directory is empty", |e| cg_world_checkpoint(game.world, text(""), 1, e));
        let mut usage = std::mem::zeroed::<cg_usage>();
        usage.struct_size = size_of_val(&usage) as u32;
        ok(|e| cg_world_usage(game.world, &raw mut usage, e));
        assert!(usage.memory_bytes > 0 && usage.free_bytes > 0);
        let player = cg_player_at { id: [1; 16], dimension: 0, reserved: 0, block: cg_pos::default() };
        let mut report = std::mem::zeroed::<cg_tick_report>();
        report.struct_size = size_of_val(&report) as u32;
        ok(|e| cg_tick(game.world, 1, &raw const player, 1, 1000, &raw mut report, e));
        let (mut pin, chunks) = (0, cg_box::default());
        ok(|e| cg_keep_loaded(game.world, 0, &raw const chunks, &raw mut pin, e));
        assert_eq!(cg_release(pin), CG_OK);
        // Nothing is wrong with it.
        ok(|e| cg_world_resume(game.world, e));
    }
    game.close();
}

#[test]
fn a_plan_says_what_packs_would_change_and_changes_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("world").to_string_lossy().into_owned();
    let pack = text(r#"{"pack":"game","version":"1","namespaces":["game"],"blocks":[{"name":"game:ruby"}]}"#);
    let with_pack = |mode| cg_options { mode, manifests: &raw const pack, manifest_count: 1, ..options() };
    let (mut plan, mut world, mut id) = (0, 0, 0);
    // SAFETY: all memory is of this function.
    unsafe {
        let mut planned = |mode, e| cg_world_plan(text(&path), &with_pack(mode), &raw mut plan, e);
        fails(result::NOT_FOUND, "", |e| planned(0, e));
        ok(|e| planned(2, e));
        assert!(said(plan).contains("game:ruby"), "{}", said(plan));
        assert!(!dir.path().join("world").exists());
        ok(|e| cg_world_open(text(&path), &options(), &raw mut world, e));
        ok(|e| cg_world_close(world, e));
        let mut planned = |mode, e| cg_world_plan(text(&path), &with_pack(mode), &raw mut plan, e);
        ok(|e| planned(0, e));
        assert!(said(plan).contains("game:ruby"), "{}", said(plan));
        ok(|e| cg_world_open(text(&path), &with_pack(0), &raw mut world, e));
        ok(|e| cg_names_find(world, 0, &text("game:ruby"), 1, &raw mut id, e));
        assert_ne!(id, CG_NO_ID);
        ok(|e| cg_world_close(world, e));
        let mut planned = |mode, e| cg_world_plan(text(&path), &with_pack(mode), &raw mut plan, e);
        ok(|e| planned(0, e));
        assert_eq!(said(plan), "accepted: the registry stays as it is\n");
    }
}

fn said(text: cg_handle) -> String {
    let mut lent = cg_bytes::NONE;
    // SAFETY: all memory is of this function.
    ok(|e| unsafe { cg_bytes_of(text, &raw mut lent, e) });
    String::from_utf8(copied(lent)).expect("UTF-8")
}
