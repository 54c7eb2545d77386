/* Calls with any values over a world in memory: no crash, and the world is sound afterwards. Memory is valid where the
 * header asks for it, and lengths are true; all else is drawn from what programs get wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

enum { PROGRAMS = 40, CALLS = 400, POOL = 24, SPACE = 70000 };

static uint64_t state;
static cg_handle pool[POOL];
static size_t accepted, changed;
static uint8_t space[SPACE];
static uint32_t palette[CELLS];
static uint64_t ids[CELLS];

static uint64_t any(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static uint64_t below(uint64_t limit) { return any() % limit; }

/* A number that is often at a border. */
static uint64_t number(void) {
    static const uint64_t borders[] = {0, 1, 2, 3, 4, 15, 16, 17, 64, 255, 4096, UINT32_MAX, INT64_MAX, UINT64_MAX};
    uint64_t drawn = any();
    return drawn % 4 == 0 ? drawn : borders[drawn / 4 % (sizeof borders / sizeof borders[0])];
}

static int64_t coordinate(void) {
    static const int64_t borders[] = {0, 1, -1, 15, 16, -17, 1 << 20, (INT64_C(1) << 59) - 1, INT64_MIN, INT64_MAX};
    return borders[below(sizeof borders / sizeof borders[0])];
}

static cg_handle handle(void) {
    uint64_t drawn = any();
    return drawn % 8 == 0 ? drawn : pool[drawn / 8 % POOL];
}

/* Mostly a handle of this place of the pool: 0 the world, 1 a binding, 2 a transaction, 3 a chunk, 4 a queue, 5 a cursor. */
static cg_handle mostly(size_t place) { return below(5) == 0 ? handle() : pool[place]; }

static void keep(cg_handle made) {
    if (made == 0) return;
    size_t place = 8 + below(POOL - 8);
    if (pool[place] != 0) (void)cg_release(pool[place]);
    pool[place] = made;
}

static cg_pos place(void) { return pos(coordinate(), coordinate(), coordinate()); }

static cg_bytes some_bytes(void) {
    cg_bytes b = bytes(space, below(300));
    if (below(8) == 0) b.ptr = NULL;
    return b;
}

static cg_str some_str(void) {
    static const char *const texts[] = {"game:block_1", "game:x",      "",     "x",
                                        "game:[",       "game:a[b=c]", "\xff", "a:b[c=d,c=d]"};
    return str(texts[below(sizeof texts / sizeof texts[0])]);
}

static cg_cells some_cells(void) {
    cg_cells cells;
    memset(&cells, 0, sizeof cells);
    if (below(8) != 0) { /* a sound one */
        static uint32_t sound[16];
        for (uint32_t i = 0; i < 16; i++) sound[i] = i * 7 % 16;
        cells.bits = 4;
        cells.word_bits = (uint8_t)(16 << below(3));
        cells.order = (uint8_t)below(3);
        cells.side_log2 = 4;
        cells.words_len = CELLS / 2;
        cells.words = space + below(SPACE - CELLS / 2);
        cells.palette = sound;
        cells.palette_len = 16;
        return cells;
    }
    static const uint8_t widths[] = {0, 1, 4, 5, 15, 16, 17, 64, 255}, words[] = {0, 8, 16, 32, 64, 255};
    cells.bits = widths[below(sizeof widths)];
    cells.word_bits = words[below(sizeof words)];
    cells.order = (uint8_t)below(4);
    cells.side_log2 = below(4) == 0 ? (uint8_t)below(7) : 4;
    if (below(2) == 0 && cells.bits != 0 && cells.word_bits >= cells.bits) {
        size_t each = cells.word_bits / cells.bits;
        cells.words_len = (4096 + each - 1) / each * (cells.word_bits / 8);
    } else
        cells.words_len = below(9000);
    if (cells.words_len > SPACE) cells.words_len = SPACE;
    cells.words = below(8) == 0 ? NULL : space + below(SPACE - cells.words_len + 1);
    if (cells.bits == 0 && below(2) == 0) cells.words_len = 0;
    cells.palette_len = (uint32_t)(below(3) == 0 ? below(CELLS + 1) : below(17));
    cells.palette = below(6) == 0 ? NULL : palette;
    return cells;
}

static cg_entity some_entity(void) {
    cg_entity mob = entity_of((uint8_t)below(4), (uint32_t)below(4), (uint32_t)below(2), place(), "");
    mob.nbt = some_bytes();
    if (below(6) == 0) memcpy(mob.fraction, space + below(1000), sizeof mob.fraction);
    return mob;
}

static int column_call(void) {
    static cg_cells cells[4];
    static cg_section sections[3];
    static cg_entity mobs[2];
    static cg_block_entity owned[2];
    cg_column c;
    memset(&c, 0, sizeof c);
    c.struct_size = below(12) == 0 ? (uint32_t)below(sizeof c + 1) : (uint32_t)sizeof c;
    c.x = below(8) == 0 ? coordinate() : 0;
    c.min_y = (int32_t)below(3) - 1;
    c.max_y = below(8) == 0 ? c.min_y - 1 : c.min_y + 2;
    c.section_count = below(4);
    c.sections = below(12) == 0 ? NULL : sections;
    for (size_t i = 0; i < 4; i++) cells[i] = some_cells();
    for (size_t i = 0; i < 3; i++) {
        memset(&sections[i], 0, sizeof sections[i]);
        sections[i].y = c.min_y + (int32_t)i;
        sections[i].layer_count = (uint16_t)(below(8) == 0 ? 2 : below(2));
        sections[i].layers = below(12) == 0 ? NULL : cells;
        if (below(12) == 0) sections[i].biomes = some_cells();
        if (below(3) == 0) sections[i].sky_light = space;
    }
    for (size_t i = 0; i < 2; i++) {
        mobs[i] = some_entity();
        owned[i].at = below(12) == 0 ? place() : pos((int64_t)below(16), c.min_y * 16, 3);
        owned[i].nbt = some_bytes();
        if (below(3) != 0)
            mobs[i] = entity_of((uint8_t)below(4), (uint32_t)below(2), 0, pos(3, c.min_y * 16, 3), "mob");
    }
    c.entities = mobs;
    c.entity_count = below(3);
    c.block_entities = owned;
    c.block_entity_count = below(3);
    uint32_t flags = (uint32_t)(below(12) == 0 ? 2 : below(2));
    switch (below(3)) {
    case 0: return cg_column_save(mostly(0), mostly(1), &c, flags, NULL, E);
    case 1: return cg_column_submit(mostly(0), mostly(1), &c, flags, E);
    default: return cg_tx_column(mostly(2), mostly(1), &c, flags, E);
    }
}

static int read_call(void) {
    cg_handle out = 0;
    const cg_column *view = NULL;
    const cg_entity *entity = NULL;
    const cg_settings *settings = NULL;
    cg_column_at at =
        at_of((uint32_t)below(3), below(3) == 0 ? coordinate() : 0, 0, (int32_t)number(), (int32_t)number());
    uint64_t version = 0;
    cg_bytes found;
    cg_row rows[2];
    cg_column_place places[2];
    size_t n = 0;
    cg_box box = {place(), place()};
    uint8_t id[16] = {0};
    int result = CG_OK;
    switch (below(14)) {
    case 0: result = cg_column_load(mostly(0), mostly(1), &at, &out, &view, E); break;
    case 1: result = cg_column_peek(mostly(0), mostly(1), &at, &out, &view, E); break;
    case 2: result = cg_entity_get(mostly(0), mostly(1), id, &out, &entity, &version, E); break;
    case 3: result = cg_settings_load(mostly(0), &out, &settings, E); break;
    case 4: result = cg_property_get(mostly(0), some_str(), &out, E); break;
    case 5: result = cg_object_get(mostly(0), some_bytes(), &out, NULL, E); break;
    case 6: result = cg_object_list(mostly(0), some_bytes(), &out, E); break;
    case 7: result = cg_records_in(mostly(0), (uint32_t)below(3), &box, &out, E); break;
    case 8: result = cg_entities_detached(mostly(0), mostly(1), &out, E); break;
    case 9: result = cg_columns_walk(mostly(0), (uint32_t)number(), &out, E); break;
    case 10: result = cg_name_of(mostly(0), (uint32_t)below(7), number(), &out, E); break;
    case 11: return cg_cursor_next(mostly(5), rows, below(3), &n, E);
    case 12: return cg_columns_next(handle(), places, below(3), &n, E);
    default: return cg_bytes_of(handle(), &found, E);
    }
    keep(out);
    return result;
}

static int tx_call(void) {
    cg_handle tx = mostly(2);
    cg_entity mob = some_entity();
    uint8_t id[16] = {0};
    cg_record record;
    memset(&record, 0, sizeof record);
    record.block = place();
    record.kind = some_str();
    record.bytes = some_bytes();
    uint32_t d = (uint32_t)below(3);
    switch (below(16)) {
    case 0: return cg_tx_chunk(tx, d, place(), mostly(3), E);
    case 1: return cg_tx_delete_chunk(tx, d, place(), E);
    case 2: return cg_tx_set_block(tx, d, place(), number(), E);
    case 3: return cg_tx_set_component(tx, d, place(), (uint8_t)below(256), number(), some_bytes(), E);
    case 4: return cg_tx_set_side(tx, d, place(), number(), some_bytes(), E);
    case 5: return cg_tx_entity_put(tx, mostly(1), &mob, (uint32_t)below(3), E);
    case 6: return cg_tx_entity_delete(tx, mob.id, E);
    case 7: return cg_tx_entity_component(tx, mob.id, number(), some_bytes(), E);
    case 8: return cg_tx_property(tx, some_str(), some_bytes(), E);
    case 9: return cg_tx_object_put(tx, some_bytes(), some_bytes(), E);
    case 10: return cg_tx_object_delete(tx, some_bytes(), E);
    case 11: return cg_tx_record_put(tx, &record, E);
    case 12: return cg_tx_record_delete(tx, id, E);
    case 13: return below(3) == 0 ? cg_tx_expect_chunk(tx, d, place(), number(), E) : cg_tx_submit(tx, E);
    default: {
        int result = cg_tx_commit(tx, (uint32_t)below(7), NULL, E);
        if (result >= 0 || tx != pool[2]) return result;
        /* It keeps its writes after an error: begin anew. */
        (void)cg_release(pool[2]);
        OK(cg_tx_new(pool[0], &pool[2], E));
        return result;
    }
    }
}

static int chunk_call(void) {
    cg_handle chunk = mostly(3), out = 0;
    cg_cell at = {(uint8_t)below(18), (uint8_t)below(18), (uint8_t)below(18), (uint8_t)below(4)};
    cg_bytes found;
    const cg_component *all = NULL;
    size_t count = 0;
    uint64_t id = 0;
    int result = CG_OK;
    switch (below(10)) {
    case 0: return cg_chunk_cells(chunk, (uint32_t)below(4), ids, below(4) == 0 ? below(CELLS) : CELLS, E);
    case 1: return cg_chunk_set_cells(chunk, (uint32_t)below(4), ids, CELLS, E);
    case 2: return cg_chunk_block(chunk, at, &id, E);
    case 3: return cg_chunk_set_block(chunk, at, number(), E);
    case 4: return cg_chunk_component(chunk, at, number(), &found, E);
    case 5: return cg_chunk_set_component(chunk, at, number(), some_bytes(), E);
    case 6: return cg_chunk_components(chunk, &all, &count, E);
    case 7: return cg_chunk_set_side(chunk, number(), some_bytes(), E);
    case 8: result = cg_chunk_load(mostly(0), (uint32_t)below(3), place(), &out, NULL, E); break;
    default: result = cg_chunk_new(mostly(0), number(), &out, E); break;
    }
    keep(out);
    return result;
}

static int other_call(void) {
    cg_column_at at = at_of(0, 0, 0, 0, (int32_t)below(4));
    cg_done done[4];
    size_t n = 0;
    cg_handle out = 0;
    uint64_t found[4];
    cg_box box = {place(), place()};
    cg_name name;
    memset(&name, 0, sizeof name);
    name.name = some_str();
    name.flags = (uint32_t)below(5);
    name.width = (uint32_t)number();
    int result = CG_OK;
    switch (below(8)) {
    case 0: return cg_queue_load(mostly(4), mostly(1), &at, number(), E);
    case 1: return cg_queue_commit(mostly(4), mostly(2), (uint32_t)below(7), number(), E);
    case 2:
        result = cg_queue_wait(mostly(4), done, below(5), &n, 0, E);
        for (size_t i = 0; result == CG_OK && i < n; i++) {
            keep(done[i].column);
            keep(done[i].message);
        }
        return result;
    case 3: return cg_names_register(mostly(0), (uint32_t)below(7), &name, below(2), found, E);
    case 4: return cg_names_find(mostly(0), (uint32_t)below(7), &name.name, below(2), found, E);
    case 5: return cg_world_flush(mostly(0), E);
    case 6: result = cg_keep_loaded(mostly(0), (uint32_t)below(3), &box, &out, E); break;
    default: return cg_queue_cancel(mostly(4), number());
    }
    keep(out);
    return result;
}

static void program(uint64_t seed) {
    state = seed * 0x9e3779b97f4a7c15u + 1;
    memset(pool, 0, sizeof pool);
    for (size_t i = 0; i < SPACE; i++) space[i] = (uint8_t)any();
    for (size_t i = 0; i < CELLS; i++) {
        palette[i] = (uint32_t)below(20);
        ids[i] = below(8);
    }
    cg_options options = options_of(CG_CREATE);
    options.group_ms = 5;
    OK(cg_world_open(str(":memory:"), &options, &pool[0], E));
    pool[1] = binding_of(pool[0], 16);
    overworld(pool[0]);
    OK(cg_tx_new(pool[0], &pool[2], E));
    OK(cg_chunk_new(pool[0], 0, &pool[3], E));
    OK(cg_queue_new(pool[0], 4, &pool[4], E));
    OK(cg_object_list(pool[0], text_bytes(""), &pool[5], E));
    for (int i = 0; i < CALLS; i++) {
        uint64_t kind = below(10);
        int result = kind < 3   ? column_call()
                     : kind < 5 ? read_call()
                     : kind < 8 ? tx_call()
                     : kind < 9 ? chunk_call()
                                : other_call();
        accepted += result >= 0;
        changed += result == CG_OK && kind < 3;
        if (result == CG_INTERNAL)
            test_fail(__FILE__, __LINE__, "program %llu, call %d: an error of the library", (unsigned long long)seed,
                      i);
        if (result < CG_INTERNAL || result > CG_UNCHANGED) test_fail(__FILE__, __LINE__, "a result %d", result);
    }
    cg_handle json = 0;
    OK(cg_world_verify(pool[0], 1, &json, E));
    cg_bytes text;
    OK(cg_bytes_of(json, &text, E));
    if (!contains(text, "\"problems\":[]"))
        test_fail(__FILE__, __LINE__, "program %llu: %.*s", (unsigned long long)seed, (int)text.len,
                  (const char *)text.ptr);
    EQUAL(CG_OK, cg_release(json));
    for (size_t i = POOL; i-- > 1;) (void)cg_release(pool[i]);
    (void)cg_world_close(pool[0], NULL);
}

TEST(any_calls_leave_a_sound_world) {
    const char *chosen = getenv("CG_SEED");
    if (chosen != NULL) {
        program(strtoull(chosen, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) program(seed);
    /* The calls are no mere nonsense. */
    CHECK(accepted > PROGRAMS * CALLS / 10 && changed > PROGRAMS);
}
