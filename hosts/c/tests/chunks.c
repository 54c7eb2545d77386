/* Chunks by themselves, in numbers of the world. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static cg_handle world, tx;
static uint32_t dim;
static uint64_t heat, items, air, furnace, stone, side;

static void begin(void) {
    world = world_new();
    dim = overworld(world);
    uint64_t ids[3];
    cg_name parts[2] = {name_of("game:heat", 0, 4), name_of("game:items", 0, 0)};
    OK(cg_names_register(world, CG_COMPONENTS, parts, 2, ids, E));
    heat = ids[0];
    items = ids[1];
    cg_str has[2] = {str("game:heat"), str("game:items")};
    cg_name blocks[3] = {name_of("minecraft:air", 0, 0), name_of("game:furnace", 0, 0), name_of("game:stone", 0, 0)};
    blocks[1].components = has;
    blocks[1].component_count = 2;
    OK(cg_names_register(world, CG_BLOCKS, blocks, 3, ids, E));
    air = ids[0];
    furnace = ids[1];
    stone = ids[2];
    cg_name weather = name_of("game:weather", 0, 0);
    OK(cg_names_register(world, CG_SIDES, &weather, 1, &side, E));
    tx = tx_of(world);
}

static void end(void) {
    EQUAL(CG_OK, cg_release(tx));
    world_close(world);
}

static cg_cell cell(uint8_t x, uint8_t y, uint8_t z, uint8_t layer) {
    cg_cell c = {x, y, z, layer};
    return c;
}

static cg_handle chunk_of(uint64_t block) {
    cg_handle chunk = 0;
    OK(cg_chunk_new(world, block, &chunk, E));
    return chunk;
}

static void store(cg_handle chunk) {
    OK(cg_tx_chunk(tx, dim, pos(0, 0, 0), chunk, E));
    OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
}

static cg_handle load(void) {
    cg_handle chunk = 0;
    uint64_t version = 0;
    OK(cg_chunk_load(world, dim, pos(0, 0, 0), &chunk, &version, E));
    CHECK(version > 0);
    return chunk;
}

TEST(a_chunk_is_stored_and_loaded) {
    begin();
    cg_handle chunk = 0;
    EXPECT(CG_ABSENT, cg_chunk_load(world, dim, pos(0, 0, 0), &chunk, NULL, E));
    EQUAL(0, chunk);
    chunk = chunk_of(stone);
    OK(cg_chunk_set_block(chunk, cell(1, 2, 3, 0), air, E));
    store(chunk);
    EQUAL(CG_OK, cg_release(chunk));
    chunk = load();
    uint64_t id = 0;
    OK(cg_chunk_block(chunk, cell(1, 2, 3, 0), &id, E));
    EQUAL(air, id);
    OK(cg_chunk_block(chunk, cell(3, 2, 1, 0), &id, E));
    EQUAL(stone, id);
    EQUAL(CG_OK, cg_release(chunk));
    end();
}

TEST(cells_in_each_order) {
    begin();
    cg_handle chunk = chunk_of(air);
    static uint64_t ids[CELLS], found[CELLS];
    for (uint32_t order = CG_ORDER_XYZ; order <= CG_ORDER_YZX; order++) {
        for (size_t i = 0; i < CELLS; i++) ids[i] = i % 3 == 0 ? stone : air;
        OK(cg_chunk_set_cells(chunk, order, ids, CELLS, E));
        OK(cg_chunk_cells(chunk, order, found, CELLS, E));
        CHECK(memcmp(ids, found, sizeof ids) == 0);
        static const cg_cell third[3] = {{0, 0, 3, 0}, {0, 3, 0, 0}, {3, 0, 0, 0}};
        uint64_t id = 0;
        OK(cg_chunk_block(chunk, third[order], &id, E));
        EQUAL(stone, id);
    }
    EXPECT(CG_INVALID, cg_chunk_cells(chunk, 9, found, CELLS, E));
    EXPECT(CG_INVALID, cg_chunk_cells(chunk, 0, found, CELLS - 1, E));
    EXPECT(CG_INVALID, cg_chunk_cells(chunk, 0, NULL, CELLS, E));
    EXPECT(CG_INVALID, cg_chunk_set_cells(chunk, 3, ids, CELLS, E));
    EXPECT(CG_INVALID, cg_chunk_set_cells(chunk, 0, ids, CELLS + 1, E));
    EXPECT(CG_INVALID, cg_chunk_set_cells(chunk, 0, NULL, CELLS, E));
    OK(cg_chunk_cells(chunk, CG_ORDER_YZX, found, CELLS, E));
    CHECK(memcmp(ids, found, sizeof ids) == 0);
    EQUAL(CG_OK, cg_release(chunk));
    end();
}

TEST(cells_that_are_none) {
    begin();
    cg_handle chunk = chunk_of(stone);
    uint64_t id = 0;
    EXPECT(CG_INVALID, cg_chunk_block(chunk, cell(16, 0, 0, 0), &id, E));
    EXPECT(CG_INVALID, cg_chunk_block(chunk, cell(0, 255, 0, 0), &id, E));
    EXPECT(CG_ABSENT, cg_chunk_block(chunk, cell(0, 0, 0, 1), &id, E));
    EXPECT(CG_INVALID, cg_chunk_block(chunk, cell(0, 0, 0, 0), NULL, E));
    EXPECT(CG_INVALID, cg_chunk_set_block(chunk, cell(0, 0, 16, 0), stone, E));
    EXPECT(CG_INVALID, cg_chunk_set_block(chunk, cell(0, 0, 0, 2), stone, E));
    EXPECT(CG_INVALID, cg_chunk_set_block(chunk, cell(0, 0, 0, 255), stone, E));
    cg_handle none = 0;
    int result = cg_chunk_new(world, 1 << 20, &none, E);
    CHECK(result == CG_INVALID || result == CG_NOT_FOUND);
    result = cg_chunk_set_block(chunk, cell(0, 0, 0, 0), 1 << 20, E);
    CHECK(result == CG_INVALID || result == CG_NOT_FOUND);
    EXPECT(CG_INVALID, cg_chunk_new(world, stone, NULL, E));
    EXPECT(CG_INVALID, cg_chunk_load(world, dim, pos(0, 0, 0), NULL, NULL, E));
    EXPECT(CG_INVALID, cg_chunk_load(world, dim, pos(INT64_MAX, 0, 0), &none, NULL, E));
    EQUAL(CG_OK, cg_release(chunk));
    end();
}

TEST(layers_are_added_on_top) {
    begin();
    cg_handle chunk = chunk_of(stone);
    uint64_t id = 0;
    OK(cg_chunk_set_block(chunk, cell(4, 5, 6, 1), furnace, E));
    OK(cg_chunk_block(chunk, cell(4, 5, 6, 1), &id, E));
    EQUAL(furnace, id);
    EXPECT(CG_ABSENT, cg_chunk_block(chunk, cell(4, 5, 7, 1), &id, E));
    store(chunk);
    EQUAL(CG_OK, cg_release(chunk));
    chunk = load();
    OK(cg_chunk_block(chunk, cell(4, 5, 6, 1), &id, E));
    EQUAL(furnace, id);
    EQUAL(CG_OK, cg_release(chunk));
    end();
}

TEST(components_of_cells) {
    begin();
    cg_handle chunk = chunk_of(stone);
    OK(cg_chunk_set_block(chunk, cell(1, 1, 1, 0), furnace, E));
    static const uint8_t hot[4] = {1, 2, 3, 4};
    OK(cg_chunk_set_component(chunk, cell(1, 1, 1, 0), heat, bytes(hot, 4), E));
    OK(cg_chunk_set_component(chunk, cell(1, 1, 1, 0), items, text_bytes("coal"), E));
    EXPECT(CG_INVALID, cg_chunk_set_component(chunk, cell(1, 1, 1, 0), heat, bytes(hot, 3), E));
    CHECK(cg_chunk_set_component(chunk, cell(2, 1, 1, 0), items, text_bytes("coal"), E) < 0); /* stone has none */
    CHECK(cg_chunk_set_component(chunk, cell(1, 1, 1, 0), 1 << 20, text_bytes("coal"), E) < 0);
    EXPECT(CG_INVALID, cg_chunk_set_component(chunk, cell(1, 16, 1, 0), heat, bytes(hot, 4), E));
    store(chunk);
    EQUAL(CG_OK, cg_release(chunk));
    chunk = load();
    cg_bytes found;
    OK(cg_chunk_component(chunk, cell(1, 1, 1, 0), items, &found, E));
    CHECK(same_text(found, "coal"));
    OK(cg_chunk_component(chunk, cell(1, 1, 1, 0), heat, &found, E));
    CHECK(found.len == 4 && memcmp(found.ptr, hot, 4) == 0);
    EXPECT(CG_INVALID, cg_chunk_component(chunk, cell(1, 1, 1, 0), heat, NULL, E));
    CHECK(cg_chunk_component(chunk, cell(2, 1, 1, 0), items, &found, E) != CG_OK);
    const cg_component *all = NULL;
    size_t count = 0;
    OK(cg_chunk_components(chunk, &all, &count, E));
    size_t seen = 0;
    for (size_t i = 0; i < count; i++) {
        CHECK(all[i].at.x == 1 && all[i].at.y == 1 && all[i].at.z == 1 && all[i].at.layer == 0);
        seen += all[i].component == items && same_text(all[i].bytes, "coal");
    }
    EQUAL(1, seen);
    EXPECT(CG_INVALID, cg_chunk_components(chunk, NULL, &count, E));
    EXPECT(CG_INVALID, cg_chunk_components(chunk, &all, NULL, E));
    EQUAL(CG_OK, cg_release(chunk));
    end();
}

TEST(components_in_a_transaction) {
    begin();
    cg_handle chunk = chunk_of(furnace);
    store(chunk);
    EQUAL(CG_OK, cg_release(chunk));
    OK(cg_tx_set_component(tx, dim, pos(3, 3, 3), 0, items, text_bytes("iron"), E));
    OK(cg_tx_set_side(tx, dim, pos(0, 0, 0), side, text_bytes("rain"), E));
    OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    chunk = load();
    cg_bytes found;
    OK(cg_chunk_component(chunk, cell(3, 3, 3, 0), items, &found, E));
    CHECK(same_text(found, "iron"));
    OK(cg_chunk_side(chunk, side, &found, E));
    CHECK(same_text(found, "rain"));
    EQUAL(CG_OK, cg_release(chunk));
    OK(cg_tx_set_side(tx, dim, pos(0, 0, 0), side, bytes(NULL, 0), E));
    OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    chunk = load();
    EXPECT(CG_ABSENT, cg_chunk_side(chunk, side, &found, E));
    EQUAL(CG_OK, cg_release(chunk));
    end();
}

TEST(side_data_of_a_chunk) {
    begin();
    cg_handle chunk = chunk_of(stone);
    cg_bytes found;
    EXPECT(CG_ABSENT, cg_chunk_side(chunk, side, &found, E));
    OK(cg_chunk_set_side(chunk, side, text_bytes("snow"), E));
    store(chunk);
    EQUAL(CG_OK, cg_release(chunk));
    chunk = load();
    OK(cg_chunk_side(chunk, side, &found, E));
    CHECK(same_text(found, "snow"));
    EXPECT(CG_INVALID, cg_chunk_side(chunk, side, NULL, E));
    CHECK(cg_chunk_set_side(chunk, 1 << 20, text_bytes("snow"), E) < 0);
    EQUAL(CG_OK, cg_release(chunk));
    end();
}

TEST(components_that_a_column_does_not_name_stay) {
    begin();
    cg_handle chunk = chunk_of(furnace);
    OK(cg_chunk_set_component(chunk, cell(1, 1, 1, 0), items, text_bytes("gold"), E));
    OK(cg_chunk_set_side(chunk, side, text_bytes("snow"), E));
    store(chunk);
    EQUAL(CG_OK, cg_release(chunk));
    cg_binding_desc desc = desc_of(1);
    cg_block blocks[3];
    memset(blocks, 0, sizeof blocks);
    blocks[0].name = str("minecraft:air");
    blocks[1].name = str("game:furnace");
    blocks[2].name = str("game:stone");
    desc.blocks = blocks;
    desc.block_count = 3;
    cg_handle binding = bind(world, &desc);
    uint32_t numbers[CELLS];
    for (size_t i = 0; i < CELLS; i++) numbers[i] = i % 2 == 0 ? 2 : 1; /* cell (1, 1, 1) is odd: still a furnace */
    column *c = column_of(dim, 0, 0, 0);
    column_fill(c, 0, 0, numbers, plain());
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    chunk = load();
    cg_bytes found;
    OK(cg_chunk_component(chunk, cell(1, 1, 1, 0), items, &found, E));
    CHECK(same_text(found, "gold"));
    OK(cg_chunk_side(chunk, side, &found, E));
    CHECK(same_text(found, "snow"));
    uint64_t id = 0;
    OK(cg_chunk_block(chunk, cell(0, 0, 0, 0), &id, E));
    EQUAL(stone, id);
    EQUAL(CG_OK, cg_release(chunk));
    end();
    free(c);
}

TEST(heights_beyond_those_of_columns) {
    begin();
    cg_handle chunk = chunk_of(stone), cursor = 0;
    OK(cg_tx_chunk(tx, dim, pos(0, INT64_C(1) << 40, 0), chunk, E));
    OK(cg_tx_chunk(tx, dim, pos(7, 2, 0), chunk, E));
    OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    OK(cg_columns_walk(world, dim, &cursor, E));
    cg_column_place places[2];
    size_t n = 0;
    OK(cg_columns_next(cursor, places, 2, &n, E));
    CHECK(n == 1 && places[0].x == 7 && places[0].min_y == 2 && places[0].max_y == 2);
    EQUAL(CG_OK, cg_release(cursor));
    EXPECT(CG_INVALID, cg_tx_chunk(tx, dim, pos(0, INT64_MAX, 0), chunk, E));
    EQUAL(CG_OK, cg_release(chunk));
    end();
}

TEST(a_chunk_of_another_world_is_refused) {
    begin();
    cg_options options = options_of(CG_CREATE);
    cg_handle other = world_with("other", &options), chunk = 0;
    cg_name name = name_of("game:stone", 0, 0);
    uint64_t id = 0;
    OK(cg_names_register(other, CG_BLOCKS, &name, 1, &id, E));
    OK(cg_chunk_new(other, id, &chunk, E));
    EXPECT(CG_INVALID, cg_tx_chunk(tx, dim, pos(0, 0, 0), chunk, E));
    EQUAL(CG_OK, cg_release(chunk));
    world_close(other);
    end();
}
