/* Handles that are stale, foreign, doubled or invented. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static uint8_t id[16] = {1};
static int calls;

/* The result says that the handle is none, or none any more, and the error too. */
static void refused(int result, int line, const char *call) {
    if (result != CG_INVALID && result != CG_CLOSED) test_fail(__FILE__, line, "%s gave %d", call, result);
    test_expect(result, result, __FILE__, line, call);
    calls++;
}

#define REFUSED(call) refused(call, __LINE__, #call)

/* Calls every function that takes a world, with arguments that are sound otherwise. */
static void as_world(cg_handle h, cg_handle binding) {
    cg_handle out = 0;
    const cg_column *view = NULL;
    const cg_entity *entity = NULL;
    const cg_record *record = NULL;
    const cg_settings *settings = NULL;
    uint64_t number = 0;
    cg_str text = str("game:x");
    cg_name name = name_of("game:x", 0, 0);
    cg_world_info info;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    cg_usage usage;
    memset(&usage, 0, sizeof usage);
    usage.struct_size = sizeof usage;
    cg_box box = {{0, 0, 0}, {1, 1, 1}};
    cg_binding_desc desc = desc_of(2);
    cg_column_at at = at_of(0, 0, 0, 0, 3);
    column *c = column_of(0, 0, 0, 0);
    REFUSED(cg_world_flush(h, E));
    REFUSED(cg_world_resume(h, E));
    REFUSED(cg_world_info_of(h, &info, E));
    REFUSED(cg_world_checkpoint(h, world_path("copy"), 1, E));
    REFUSED(cg_world_verify(h, 0, &out, E));
    REFUSED(cg_world_usage(h, &usage, E));
    REFUSED(cg_tick(h, 1, NULL, 0, 100, NULL, E));
    REFUSED(cg_keep_loaded(h, 0, &box, &out, E));
    REFUSED(cg_metrics(h, &number, 1, E));
    REFUSED(cg_names_register(h, CG_BLOCKS, &name, 1, &number, E));
    REFUSED(cg_names_find(h, CG_BLOCKS, &text, 1, &number, E));
    REFUSED(cg_name_of(h, CG_BLOCKS, 0, &out, E));
    REFUSED(cg_names_count(h, CG_BLOCKS, &number, E));
    REFUSED(cg_binding_new(h, &desc, &out, E));
    REFUSED(cg_column_load(h, binding, &at, &out, &view, E));
    REFUSED(cg_column_peek(h, binding, &at, &out, &view, E));
    REFUSED(cg_column_save(h, binding, &c->view, 0, NULL, E));
    REFUSED(cg_column_submit(h, binding, &c->view, 0, E));
    REFUSED(cg_columns_walk(h, 0, &out, E));
    REFUSED(cg_settings_load(h, &out, &settings, E));
    REFUSED(cg_tx_new(h, &out, E));
    REFUSED(cg_entity_get(h, 0, id, &out, &entity, NULL, E));
    REFUSED(cg_property_get(h, text, &out, E));
    REFUSED(cg_object_get(h, text_bytes("k"), &out, NULL, E));
    REFUSED(cg_object_list(h, text_bytes("k"), &out, E));
    REFUSED(cg_records_in(h, 0, &box, &out, E));
    REFUSED(cg_record_get(h, id, &out, &record, E));
    REFUSED(cg_property_list(h, text, &out, E));
    REFUSED(cg_entities_detached(h, binding, &out, E));
    REFUSED(cg_chunk_load(h, 0, pos(0, 0, 0), &out, NULL, E));
    REFUSED(cg_chunk_new(h, 0, &out, E));
    REFUSED(cg_queue_new(h, 4, &out, E));
    EQUAL(0, out);
    free(c);
}

static void as_tx(cg_handle h, cg_handle binding, cg_handle chunk) {
    column *c = column_of(0, 0, 0, 0);
    cg_entity mob = entity_of(1, 0, 0, pos(0, 0, 0), "x");
    cg_settings settings;
    memset(&settings, 0, sizeof settings);
    settings.struct_size = sizeof settings;
    cg_record record;
    memset(&record, 0, sizeof record);
    record.kind = str("game:sign");
    cg_bytes some = text_bytes("x");
    REFUSED(cg_tx_commit(h, CG_DEFAULT, NULL, E));
    REFUSED(cg_tx_submit(h, E));
    REFUSED(cg_tx_expect_chunk(h, 0, pos(0, 0, 0), 1, E));
    REFUSED(cg_tx_expect_entity(h, id, 1, E));
    REFUSED(cg_tx_column(h, binding, &c->view, 0, E));
    REFUSED(cg_tx_chunk(h, 0, pos(0, 0, 0), chunk, E));
    REFUSED(cg_tx_delete_chunk(h, 0, pos(0, 0, 0), E));
    REFUSED(cg_tx_set_block(h, 0, pos(0, 0, 0), 0, E));
    REFUSED(cg_tx_set_component(h, 0, pos(0, 0, 0), 0, 0, some, E));
    REFUSED(cg_tx_set_side(h, 0, pos(0, 0, 0), 0, some, E));
    REFUSED(cg_tx_entity_put(h, binding, &mob, CG_DETACHED, E));
    REFUSED(cg_tx_entity_delete(h, id, E));
    REFUSED(cg_tx_entity_component(h, id, 0, some, E));
    REFUSED(cg_tx_property(h, str("game:x"), some, E));
    REFUSED(cg_tx_settings(h, &settings, E));
    REFUSED(cg_tx_object_put(h, some, some, E));
    REFUSED(cg_tx_object_delete(h, some, E));
    REFUSED(cg_tx_record_put(h, &record, E));
    REFUSED(cg_tx_record_delete(h, id, E));
    free(c);
}

static void as_chunk(cg_handle h) {
    static uint64_t ids[CELLS];
    uint64_t number = 0;
    cg_cell at = {0, 0, 0, 0};
    cg_bytes out = {NULL, 0};
    const cg_component *all = NULL;
    size_t count = 0;
    REFUSED(cg_chunk_cells(h, 0, ids, CELLS, E));
    REFUSED(cg_chunk_set_cells(h, 0, ids, CELLS, E));
    REFUSED(cg_chunk_block(h, at, &number, E));
    REFUSED(cg_chunk_set_block(h, at, 0, E));
    REFUSED(cg_chunk_component(h, at, 0, &out, E));
    REFUSED(cg_chunk_set_component(h, at, 0, text_bytes("x"), E));
    REFUSED(cg_chunk_components(h, &all, &count, E));
    REFUSED(cg_chunk_side(h, 0, &out, E));
    REFUSED(cg_chunk_set_side(h, 0, text_bytes("x"), E));
}

static void as_the_rest(cg_handle h, cg_handle world, cg_handle queue) {
    cg_handle out = 0;
    cg_bytes some;
    cg_column_place place;
    cg_row row;
    cg_done done;
    size_t n = 0;
    const cg_column *view = NULL;
    cg_column_at at = at_of(0, 0, 0, 0, 3);
    column *c = column_of(0, 0, 0, 0);
    REFUSED(cg_bytes_of(h, &some, E));
    REFUSED(cg_columns_next(h, &place, 1, &n, E));
    REFUSED(cg_cursor_next(h, &row, 1, &n, E));
    REFUSED(cg_queue_load(h, h, &at, 1, E));
    REFUSED(cg_queue_commit(h, h, CG_DEFAULT, 1, E));
    REFUSED(cg_queue_wait(h, &done, 1, &n, 0, E));
    REFUSED(cg_binding_unknown(h, &out, E));
    uint64_t number = 0;
    REFUSED(cg_binding_ids(h, &number, 1, E));
    REFUSED(cg_entity_component(h, 0, &some, E));
    /* As a binding of a sound world, and as what a sound queue loads. */
    REFUSED(cg_column_load(world, h, &at, &out, &view, E));
    REFUSED(cg_column_save(world, h, &c->view, 0, NULL, E));
    REFUSED(cg_column_submit(world, h, &c->view, 0, E));
    REFUSED(cg_queue_load(queue, h, &at, 1, E));
    REFUSED(cg_queue_commit(queue, h, CG_DEFAULT, 1, E));
    int result = cg_queue_cancel(h, 1);
    CHECK(result == CG_INVALID || result == CG_CLOSED);
    free(c);
}

static cg_handle world, binding, queue, chunk;

static void begin(void) {
    world = world_new();
    binding = binding_of(world, 4);
    overworld(world);
    OK(cg_queue_new(world, 4, &queue, E));
    OK(cg_chunk_new(world, 0, &chunk, E));
}

static void end(void) {
    EQUAL(CG_OK, cg_release(chunk));
    EQUAL(CG_OK, cg_release(queue));
    EQUAL(CG_OK, cg_release(binding));
    world_close(world);
}

static void every_function(cg_handle h) {
    as_world(h, binding);
    as_tx(h, binding, chunk);
    as_chunk(h);
    as_the_rest(h, world, queue);
}

TEST(zero_is_no_handle) {
    begin();
    every_function(0);
    CHECK(calls > 60);
    EXPECT(CG_INVALID, cg_world_close(0, E));
    end();
}

TEST(invented_handles) {
    begin();
    static const uint64_t masks[] = {1, 0xff, 0xffff, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX};
    cg_handle sound[4] = {world, binding, queue, chunk};
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) every_function(UINT64_MAX / 3 * 2 ^ masks[i]);
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        uint64_t h = i % 2 == 0 ? state : sound[state & 3] ^ (UINT64_C(1) << (state >> 8 & 63));
        if (h == world || h == binding || h == queue || h == chunk) continue;
        int result = cg_release(h);
        CHECK(result == CG_INVALID || result == CG_CLOSED);
    }
    end();
}

TEST(released_handles) {
    begin();
    cg_handle tx = 0, other = 0;
    OK(cg_tx_new(world, &tx, E));
    EQUAL(CG_OK, cg_release(tx));
    CHECK(cg_release(tx) < 0);
    every_function(tx);
    OK(cg_tx_new(world, &other, E)); /* perhaps in the same place */
    CHECK(other != tx);
    every_function(tx);
    CHECK(cg_release(tx) < 0);
    OK(cg_tx_object_put(other, text_bytes("k"), text_bytes("v"), E));
    EQUAL(CG_OK, cg_release(other));
    end();
}

TEST(handles_of_another_kind) {
    begin();
    as_world(binding, binding);
    as_world(chunk, binding);
    as_tx(world, binding, chunk);
    as_tx(queue, binding, chunk);
    as_chunk(world);
    as_chunk(queue);
    as_the_rest(chunk, world, queue);
    as_the_rest(world, world, queue);
    EXPECT(CG_INVALID, cg_world_close(binding, E));
    EQUAL(CG_OK, cg_world_flush(world, E));
    end();
}

TEST(handles_of_another_world) {
    begin();
    cg_options options = options_of(CG_CREATE);
    cg_handle other = world_with("other", &options), tx = tx_of(other);
    column *c = column_of(0, 0, 0, 0);
    cg_column_at at = at_of(0, 0, 0, 0, 3);
    cg_handle out = 0;
    const cg_column *view = NULL;
    REFUSED(cg_column_load(other, binding, &at, &out, &view, E));
    REFUSED(cg_column_save(other, binding, &c->view, 0, NULL, E));
    REFUSED(cg_column_submit(other, binding, &c->view, 0, E));
    REFUSED(cg_tx_column(tx, binding, &c->view, 0, E));
    REFUSED(cg_queue_commit(queue, tx, CG_DEFAULT, 1, E));
    EQUAL(CG_OK, cg_release(tx));
    world_close(other);
    end();
    free(c);
}

TEST(handles_of_a_closed_world) {
    begin();
    cg_handle tx = 0, cursor = 0, loaded = 0;
    uint32_t dim = overworld(world);
    const cg_column *view = NULL;
    save_one(world, binding, dim, 0, 0, 2);
    cg_column_at at = at_of(dim, 0, 0, 0, 3);
    OK(cg_column_load(world, binding, &at, &loaded, &view, E));
    OK(cg_tx_new(world, &tx, E));
    OK(cg_tx_object_put(tx, text_bytes("k"), text_bytes("v"), E));
    OK(cg_object_list(world, text_bytes(""), &cursor, E));
    world_close(world);
    as_world(world, binding);
    cg_row row;
    cg_done done;
    size_t n = 0;
    EXPECT(CG_CLOSED, cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    EXPECT(CG_CLOSED, cg_cursor_next(cursor, &row, 1, &n, E));
    EXPECT(CG_CLOSED, cg_queue_wait(queue, &done, 1, &n, 0, E));
    EXPECT(CG_CLOSED, cg_queue_load(queue, binding, &at, 1, E));
    EXPECT(CG_CLOSED, cg_world_close(world, E));
    EQUAL(2, block_in(view, 3, 3, 3)); /* lent until its own release */
    EQUAL(CG_OK, cg_release(loaded));
    EQUAL(CG_OK, cg_release(tx));
    EQUAL(CG_OK, cg_release(cursor));
    EQUAL(CG_OK, cg_release(queue));
    EQUAL(CG_OK, cg_release(binding));
    EQUAL(CG_OK, cg_release(chunk));
    CHECK(cg_release(binding) < 0);
}

TEST(a_released_world_is_closed) {
    begin();
    uint32_t dim = overworld(world);
    column *c = column_of(dim, 0, 0, 2);
    OK(cg_column_submit(world, binding, &c->view, 0, E));
    EQUAL(CG_OK, cg_release(world));
    CHECK(cg_release(world) < 0);
    world = world_again();
    binding = binding_of(world, 4);
    EQUAL(2, stored_block(world, binding, dim, 0, 0, 0));
    world_close(world);
    free(c);
}

TEST(many_columns_at_once) {
    enum { MANY = 3000 };
    begin();
    uint32_t dim = overworld(world);
    save_one(world, binding, dim, 0, 0, 2);
    cg_handle *loaded = (cg_handle *)calloc(MANY, sizeof *loaded);
    const cg_column **views = (const cg_column **)calloc(MANY, sizeof *views);
    cg_column_at at = at_of(dim, 0, 0, 0, 3);
    for (size_t i = 0; i < MANY; i++) OK(cg_column_load(world, binding, &at, &loaded[i], &views[i], E));
    for (size_t i = 0; i < MANY; i++) EQUAL(2, block_in(views[i], 1, 1, 1));
    for (size_t i = 0; i < MANY; i++) EQUAL(CG_OK, cg_release(loaded[i * 7 % MANY]));
    for (size_t i = 0; i < MANY; i++) CHECK(cg_release(loaded[i]) < 0);
    end();
    free(loaded);
    free(views);
}
