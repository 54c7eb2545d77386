/* Worlds while a game runs: ticks, pins, plans and games. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

TEST(plan_changes_nothing) {
    cg_handle world = world_new();
    world_close(world);
    cg_handle text = 0;
    OK(cg_world_plan(world_path("world"), NULL, &text, E));
    cg_bytes lines;
    OK(cg_bytes_of(text, &lines, E));
    CHECK(contains(lines, "accepted"));
    EQUAL(CG_OK, cg_release(text));
    EXPECT(CG_NOT_FOUND, cg_world_plan(world_path("none"), NULL, &text, E));
    EXPECT(CG_INVALID, cg_world_plan(world_path("world"), NULL, NULL, E));
    world = world_again();
    world_close(world);
}

TEST(a_world_in_memory) {
    cg_options options = options_of(CG_CREATE);
    cg_handle first = 0, second = 0;
    OK(cg_world_open(str(":memory:"), &options, &first, E));
    OK(cg_world_open(str(":memory:"), &options, &second, E)); /* another one */
    cg_handle binding = binding_of(first, 4), other = binding_of(second, 4);
    save_one(first, binding, overworld(first), 0, 0, 2);
    OK(cg_world_flush(first, E));
    EQUAL(2, stored_block(first, binding, overworld(first), 1, 1, 1));
    EXPECT(CG_ABSENT, load_result(second, other, overworld(second), 0, 0));
    world_close(first);
    world_close(second);
    options.mode = CG_OPEN;
    CHECK(cg_world_open(str(":memory:"), &options, &first, E) < 0);
}

TEST(a_world_is_of_one_game) {
    cg_options options = options_of(CG_CREATE);
    options.game = str("harvest");
    cg_handle world = 0;
    OK(cg_world_open(world_path("world"), &options, &world, E));
    world_close(world);
    options.mode = CG_OPEN;
    OK(cg_world_open(world_path("world"), &options, &world, E));
    world_close(world);
    options.game = str("java");
    cg_error *error = E;
    EXPECT(CG_INVALID, cg_world_open(world_path("world"), &options, &world, error));
    CHECK(contains(bytes(error->message, error->message_len), "harvest"));
    options.game = str("");
    OK(cg_world_open(world_path("world"), &options, &world, E));
    world_close(world);
}

TEST(ticks_report_what_they_moved) {
    cg_handle world = world_new();
    cg_handle binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    save_one(world, binding, dim, 0, 0, 2);
    cg_player_at player;
    memset(&player, 0, sizeof player);
    player.id[0] = 1;
    player.dimension = dim;
    player.block = pos(8, 8, 8);
    cg_tick_report report;
    memset(&report, 0, sizeof report);
    report.struct_size = sizeof report;
    for (int64_t now = 1; now <= 50; now++) OK(cg_tick(world, now, &player, 1, 200, &report, E));
    CHECK(report.is_idle <= 1);
    OK(cg_tick(world, 51, NULL, 0, 200, NULL, E));
    EXPECT(CG_INVALID, cg_tick(world, 52, NULL, 1, 200, &report, E));
    EXPECT(CG_INVALID, cg_tick(world, -1, &player, 1, 200, &report, E));
    report.struct_size = 0;
    EXPECT(CG_INVALID, cg_tick(world, 53, &player, 1, 200, &report, E));
    player.dimension = 999;
    report.struct_size = sizeof report;
    OK(cg_tick(world, 54, &player, 1, 200, &report, E)); /* in no dimension of the world */
    EQUAL(2, stored_block(world, binding, dim, 0, 0, 0));
    world_close(world);
}

TEST(time_that_goes_back_does_no_harm) {
    cg_handle world = world_new();
    OK(cg_tick(world, 1000, NULL, 0, 100, NULL, E));
    OK(cg_tick(world, 10, NULL, 0, 100, NULL, E));
    EXPECT(CG_INVALID, cg_tick(world, INT64_MIN, NULL, 0, 100, NULL, E));
    OK(cg_tick(world, INT64_MAX, NULL, 0, 0, NULL, E));
    world_close(world);
}

TEST(a_box_is_kept_until_its_pin_is_released) {
    cg_handle world = world_new();
    uint32_t dim = overworld(world);
    cg_box box;
    box.min = pos(-2, 0, -2);
    box.max = pos(2, 3, 2);
    cg_handle pin = 0;
    OK(cg_keep_loaded(world, dim, &box, &pin, E));
    CHECK(pin != 0);
    EQUAL(CG_OK, cg_release(pin));
    CHECK(cg_release(pin) < 0);
    OK(cg_keep_loaded(world, dim, &box, &pin, E));
    world_close(world);
    EQUAL(CG_OK, cg_release(pin));
}

TEST(boxes_that_are_none) {
    cg_handle world = world_new();
    uint32_t dim = overworld(world);
    cg_box box;
    box.min = pos(2, 0, 0);
    box.max = pos(1, 0, 0);
    cg_handle pin = 0, cursor = 0;
    EXPECT(CG_INVALID, cg_keep_loaded(world, dim, &box, &pin, E));
    EQUAL(0, pin);
    EXPECT(CG_INVALID, cg_records_in(world, dim, &box, &cursor, E));
    EXPECT(CG_INVALID, cg_keep_loaded(world, dim, NULL, &pin, E));
    EXPECT(CG_INVALID, cg_records_in(world, dim, NULL, &cursor, E));
    box.min = pos(INT64_MIN, INT64_MIN, INT64_MIN);
    box.max = pos(INT64_MAX, INT64_MAX, INT64_MAX);
    int result = cg_keep_loaded(world, dim, &box, &pin, E);
    CHECK(result == CG_OK || result == CG_INVALID || result == CG_TOO_LARGE);
    if (result == CG_OK) EQUAL(CG_OK, cg_release(pin));
    OK(cg_records_in(world, dim, &box, &cursor, E));
    EQUAL(CG_OK, cg_release(cursor));
    world_close(world);
}

static cg_settings all_settings(void) {
    static const uint8_t png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 0};
    cg_settings s;
    memset(&s, 0, sizeof s);
    s.struct_size = sizeof s;
    s.present = (CG_SET_TICK_RANGE << 1) - 1;
    s.name = str("Gr\xc3\xbcne Insel");
    s.engine = str("game 1.2");
    s.game_mode = str("survival");
    s.difficulty = str("hard");
    s.thumbnail = bytes(png, sizeof png);
    s.spawn_dimension = str("game:overworld");
    s.spawn_block = pos(-5, 70, 1000000);
    s.created_ms = 1;
    s.changed_ms = 2;
    s.seed = INT64_MIN;
    s.time = 3;
    s.game_time = 4;
    s.rain_time = 5;
    s.thunder_time = 6;
    s.required_sleep_ticks = 7;
    s.tick_range = 8;
    s.time_cycle = s.thundering = 1;
    return s;
}

static int commit_settings(cg_handle world, const cg_settings *settings) {
    cg_handle tx = 0;
    OK(cg_tx_new(world, &tx, E));
    int result = cg_tx_settings(tx, settings, E);
    if (result == CG_OK) result = cg_tx_commit(tx, CG_DEFAULT, NULL, E);
    EQUAL(CG_OK, cg_release(tx));
    return result;
}

static int same_str(cg_str a, cg_str b) { return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0); }

TEST(a_new_world_has_no_settings) {
    cg_handle world = world_new(), out = 0;
    const cg_settings *view = NULL;
    OK(cg_settings_load(world, &out, &view, E));
    EQUAL(0, view->present & (CG_SET_NAME | CG_SET_SPAWN | CG_SET_THUMBNAIL | CG_SET_TICK_RANGE));
    EQUAL(CG_OK, cg_release(out));
    EXPECT(CG_INVALID, cg_settings_load(world, NULL, &view, E));
    EXPECT(CG_INVALID, cg_settings_load(world, &out, NULL, E));
    world_close(world);
}

TEST(all_settings_come_back) {
    cg_handle world = world_new(), out = 0;
    overworld(world);
    cg_settings s = all_settings();
    OK(commit_settings(world, &s));
    world_close(world);
    world = world_again();
    const cg_settings *v = NULL;
    OK(cg_settings_load(world, &out, &v, E));
    EQUAL(s.present, v->present);
    CHECK(same_str(s.name, v->name) && same_str(s.engine, v->engine) && same_str(s.game_mode, v->game_mode));
    CHECK(same_str(s.difficulty, v->difficulty) && same_str(s.spawn_dimension, v->spawn_dimension));
    CHECK(s.thumbnail.len == v->thumbnail.len && memcmp(s.thumbnail.ptr, v->thumbnail.ptr, s.thumbnail.len) == 0);
    CHECK(s.spawn_block.x == v->spawn_block.x && s.spawn_block.y == v->spawn_block.y);
    CHECK(s.spawn_block.z == v->spawn_block.z && s.seed == v->seed && s.time == v->time);
    CHECK(s.created_ms == v->created_ms && s.changed_ms == v->changed_ms && s.game_time == v->game_time);
    CHECK(s.rain_time == v->rain_time && s.thunder_time == v->thunder_time && s.tick_range == v->tick_range);
    CHECK(s.required_sleep_ticks == v->required_sleep_ticks && v->time_cycle == 1 && v->raining == 0);
    CHECK(v->thundering == 1 && v->weather_cycle == 0);
    world_close(world);
    CHECK(same_str(s.name, v->name)); /* the view outlives the world */
    EQUAL(CG_OK, cg_release(out));
}

TEST(settings_without_their_bit_stay) {
    cg_handle world = world_new(), out = 0;
    overworld(world);
    cg_settings s = all_settings();
    OK(commit_settings(world, &s));
    memset(&s, 0, sizeof s);
    s.struct_size = sizeof s;
    s.present = CG_SET_TIME;
    s.time = 18000;
    OK(commit_settings(world, &s));
    const cg_settings *v = NULL;
    OK(cg_settings_load(world, &out, &v, E));
    EQUAL(18000, v->time);
    EQUAL(INT64_MIN, v->seed);
    CHECK(same_str(v->difficulty, str("hard")));
    EQUAL(CG_OK, cg_release(out));
    world_close(world);
}

TEST(settings_that_are_none) {
    cg_handle world = world_new();
    overworld(world);
    cg_settings s = all_settings();
    s.name = str("\xff");
    EXPECT(CG_INVALID, commit_settings(world, &s));
    s = all_settings();
    s.raining = 2;
    EXPECT(CG_INVALID, commit_settings(world, &s));
    s = all_settings();
    s.present |= UINT64_C(1) << 63;
    EXPECT(CG_INVALID, commit_settings(world, &s));
    s = all_settings();
    char *large = (char *)calloc(1, 300 * 1024);
    memset(large, 'x', 300 * 1024);
    s.name.ptr = large;
    s.name.len = 257;
    int result = commit_settings(world, &s);
    CHECK(result == CG_INVALID || result == CG_TOO_LARGE);
    s = all_settings();
    memcpy(large, s.thumbnail.ptr, s.thumbnail.len);
    s.thumbnail = bytes(large, 300 * 1024);
    result = commit_settings(world, &s);
    CHECK(result == CG_INVALID || result == CG_TOO_LARGE);
    s = all_settings();
    s.struct_size = 0;
    EXPECT(CG_INVALID, commit_settings(world, &s));
    free(large);
    world_close(world);
}
