//! Settings of a world.

use std::ptr::null;

use cherrygrove::*;

use crate::support::*;

#[test]
fn settings_are_set_and_the_others_stay() {
    let game = Game::in_memory();
    let (w, tx) = (game.world, new_tx(game.world));
    let png = b"\x89PNG\r\n\x1a\n and so on";
    // SAFETY: all memory is of this function, and a view is lent until its handle is released.
    unsafe {
        let mut given = std::mem::zeroed::<cg_settings>();
        given.struct_size = size_of_val(&given) as u32;
        given.present = (1 << 0) | (1 << 4) | (1 << 5) | (1 << 6) | (1 << 10) | (1 << 12);
        (given.name, given.thumbnail, given.seed) = (text("Grove"), bytes(png), -5);
        (given.spawn_dimension, given.spawn_block) = (text("game:overworld"), cg_pos { x: 1, y: 2, z: -3 });
        (given.raining, given.thundering, given.tick_range) = (1, 0, 99);
        ok(|e| cg_tx_settings(tx, &raw const given, e));
        commit(tx);
        (given.present, given.name) = (1 << 0, text("Wood"));
        ok(|e| cg_tx_settings(tx, &raw const given, e));
        ok(|e| cg_tx_submit(tx, e));
        let (mut handle, mut view) = (0, null::<cg_settings>());
        ok(|e| cg_settings_load(w, &raw mut handle, &raw mut view, e));
        let view = &*view;
        assert_eq!(view.present, (1 << 0) | (1 << 4) | (1 << 5) | (1 << 6) | (1 << 10) | (1 << 12));
        assert_eq!((copied_text(view.name), view.seed, view.tick_range), ("Wood".into(), -5, 0));
        assert_eq!(
            (copied(view.thumbnail), copied_text(view.spawn_dimension)),
            (png.to_vec(), "game:overworld".into())
        );
        assert_eq!((view.spawn_block.z, view.raining, view.thundering), (-3, 1, 0));
        assert!(view.engine.ptr.is_null());
        assert_eq!(cg_release(handle), CG_OK);
    }
    game.close();
}

#[test]
fn each_setting_has_a_place_of_its_own() {
    let game = Game::in_memory();
    let tx = new_tx(game.world);
    // SAFETY: all memory is of this function, and a view is lent until its handle is released.
    unsafe {
        let mut given = std::mem::zeroed::<cg_settings>();
        given.struct_size = size_of_val(&given) as u32;
        given.present = (1 << 19) - 1;
        (given.name, given.engine) = (text("n"), text("e"));
        (given.game_mode, given.difficulty) = (text("survival"), text("hard"));
        (given.thumbnail, given.spawn_dimension) = (bytes(b"\x89PNG\r\n\x1a\n"), text("game:overworld"));
        (given.created_ms, given.changed_ms, given.seed, given.time) = (1, 2, 3, 4);
        (given.game_time, given.rain_time, given.thunder_time) = (5, 6, 7);
        (given.required_sleep_ticks, given.tick_range) = (8, 9);
        let flags = |settings: &cg_settings| {
            [settings.time_cycle, settings.raining, settings.thundering, settings.weather_cycle]
        };
        let numbers = |of: &cg_settings| {
            let first = [of.created_ms, of.changed_ms, of.seed, of.time, of.game_time, of.rain_time];
            (first, [of.thunder_time, of.required_sleep_ticks, of.tick_range])
        };
        let texts = |of: &cg_settings| [of.name, of.engine, of.game_mode, of.difficulty].map(copied_text);
        // One flag at a time.
        for at in 0..4 {
            let mut of_flag = [0; 4];
            of_flag[at] = 1;
            [given.time_cycle, given.raining, given.thundering, given.weather_cycle] = of_flag;
            ok(|e| cg_tx_settings(tx, &raw const given, e));
            commit(tx);
            let (mut handle, mut view) = (0, null::<cg_settings>());
            ok(|e| cg_settings_load(game.world, &raw mut handle, &raw mut view, e));
            assert_eq!((flags(&*view), (*view).present), (of_flag, (1 << 19) - 1));
            assert_eq!((numbers(&*view), texts(&*view)), (numbers(&given), texts(&given)));
            assert_eq!(cg_release(handle), CG_OK);
        }
    }
    game.close();
}
