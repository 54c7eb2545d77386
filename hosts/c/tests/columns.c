/* Columns that are saved come back the same. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

/* Numbers in XYZ order that use `kinds` kinds, each at least once. */
static void fill(uint32_t *numbers, uint32_t kinds, uint32_t salt) {
    for (uint32_t i = 0; i < CELLS; i++) {
        uint32_t mixed = (i + salt) * 2654435761u;
        numbers[i] = i < kinds ? i : (mixed >> 16) % kinds;
    }
}

static void check_cells(const cg_cells *cells, const uint32_t *numbers, uint32_t side) {
    size_t i = 0;
    for (uint32_t x = 0; x < side; x++)
        for (uint32_t y = 0; y < side; y++)
            for (uint32_t z = 0; z < side; z++, i++) EQUAL(numbers[i], cell_at(cells, x, y, z));
}

static uint32_t bits_for(uint32_t values) {
    uint32_t bits = 1;
    while ((UINT64_C(1) << bits) < values) bits++;
    return bits;
}

static void load_and_check(cg_handle world, cg_handle binding, uint32_t dim, int64_t x, const uint32_t *numbers) {
    const cg_column *view = NULL;
    cg_handle loaded = column_load(world, binding, dim, x, &view);
    EQUAL(1, view->section_count);
    EQUAL(0, view->sections[0].y);
    EQUAL(x, view->x);
    EQUAL(dim, view->dimension);
    EQUAL(0, view->kept);
    check_cells(&view->sections[0].layers[0], numbers, 16);
    EQUAL(CG_OK, cg_release(loaded));
}

/* Saves columns of this many kinds in each order, word size, width and with or without a palette, and loads each in
 * another order and word size. */
static void kinds(uint32_t count) {
    static const uint8_t words[3] = {16, 32, 64};
    cg_handle world = world_open(CG_CREATE, CG_BALANCED), bindings[9];
    uint32_t dim = overworld(world), numbers[CELLS];
    for (uint8_t i = 0; i < 9; i++) {
        cg_binding_desc desc = desc_of(CELLS);
        desc.order = i % 3;
        desc.word_bits = words[i / 3];
        bindings[i] = bind(world, &desc);
    }
    int64_t x = 0;
    column *c = column_new(dim, 0, 0, 3);
    column_add(c, 0, 0);
    for (uint8_t i = 0; i < 9; i++)
        for (uint32_t bits = count == 1 ? 0 : bits_for(count); bits <= 16; bits++)
            for (int palette = bits == 0; palette <= 1; palette++, x++) {
                fill(numbers, count, (uint32_t)x);
                form f = {(uint8_t)bits, words[i / 3], i % 3, palette};
                column_fill(c, 0, 0, numbers, f);
                c->view.x = x;
                OK(cg_column_save(world, bindings[0], &c->view, 0, NULL, E));
                load_and_check(world, bindings[(size_t)(x * 4 + 1) % 9], dim, x, numbers);
            }
    /* All nine forms of a load, from what was written. */
    world_close(world);
    world = world_again();
    for (uint8_t i = 0; i < 9; i++) {
        cg_binding_desc desc = desc_of(CELLS);
        desc.order = i % 3;
        desc.word_bits = words[i / 3];
        load_and_check(world, bind(world, &desc), dim, x - 1, numbers);
    }
    world_close(world);
    free(c);
}

TEST(of_1_kind) { kinds(1); }
TEST(of_2_kinds) { kinds(2); }
TEST(of_16_kinds) { kinds(16); }
TEST(of_17_kinds) { kinds(17); }
TEST(of_256_kinds) { kinds(256); }
TEST(of_4096_kinds) { kinds(4096); }

TEST(loads_give_allowed_widths_only) {
    cg_handle world = world_new();
    uint32_t dim = overworld(world), numbers[CELLS];
    column *c = column_new(dim, 0, 0, 3);
    column_add(c, 0, 0);
    cg_binding_desc desc = desc_of(CELLS);
    /* Those of Java Edition, and those of Bedrock Edition. */
    static const uint32_t widths[2] = {0xfffe & ~0xeu,
                                       1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 8 | 1u << 16};
    for (int i = 0; i < 2; i++) {
        desc.widths = widths[i];
        desc.word_bits = i == 0 ? 64 : 32;
        cg_handle binding = bind(world, &desc);
        for (uint32_t count = 2; count <= CELLS; count *= 2) {
            fill(numbers, count, count);
            column_fill(c, 0, 0, numbers, plain());
            cg_handle loaded = 0;
            const cg_column *view = NULL;
            cg_column_at at = at_of(dim, 0, 0, 0, 0);
            CHECK(cg_column_save(world, binding, &c->view, 0, NULL, E) >= 0);
            OK(cg_column_load(world, binding, &at, &loaded, &view, E));
            const cg_cells *cells = &view->sections[0].layers[0];
            CHECK(cells->bits > 0 && (desc.widths >> cells->bits & 1) == 1);
            EQUAL(desc.word_bits, cells->word_bits);
            EQUAL(desc.order, cells->order);
            check_cells(cells, numbers, 16);
            EQUAL(CG_OK, cg_release(loaded));
        }
    }
    world_close(world);
    free(c);
}

TEST(words_may_be_at_any_address) {
    cg_handle world = world_new(), binding = binding_of(world, 64);
    uint32_t dim = overworld(world), numbers[CELLS];
    uint8_t *shifted = (uint8_t *)malloc(CELLS * 4 + 8);
    column *c = column_new(dim, 0, 0, 3);
    column_add(c, 0, 0);
    for (uint8_t shift = 0; shift < 8; shift++) {
        fill(numbers, 64, shift);
        form f = {7, (uint8_t)(16 << shift % 3), CG_ORDER_XZY, shift % 2};
        column_fill(c, 0, 0, numbers, f);
        memcpy(shifted + shift, c->words[0][0], c->layers[0][0].words_len);
        c->layers[0][0].words = shifted + shift;
        c->view.x = shift;
        OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
        load_and_check(world, binding, dim, shift, numbers);
    }
    world_close(world);
    free(shifted);
    free(c);
}

TEST(a_column_of_many_heights) {
    cg_handle world = world_new(), binding = binding_of(world, 16);
    uint32_t dim = overworld(world);
    static const int32_t heights[5] = {-4, -1, 0, 7, 19};
    column *c = column_new(dim, -3, 1000000, 19);
    c->view.min_y = -4;
    for (uint32_t i = 0; i < 5; i++) column_add(c, heights[i], i + 1);
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    cg_column_at at = at_of(dim, -3, 1000000, -4, 19);
    cg_handle loaded = 0;
    const cg_column *view = NULL;
    OK(cg_column_load(world, binding, &at, &loaded, &view, E));
    EQUAL(5, view->section_count);
    for (uint32_t i = 0; i < 5; i++) {
        EQUAL(heights[i], view->sections[i].y);
        EQUAL(i + 1, block_in(view, 3, heights[i] * 16, 4));
    }
    EQUAL(CG_OK, cg_release(loaded));
    at = at_of(dim, -3, 1000000, 0, 7);
    OK(cg_column_load(world, binding, &at, &loaded, &view, E));
    EQUAL(2, view->section_count);
    EQUAL(CG_OK, cg_release(loaded));
    at = at_of(dim, -3, 1000000, 1, 6);
    EXPECT(CG_ABSENT, cg_column_load(world, binding, &at, &loaded, &view, E));
    world_close(world);
    free(c);
}

TEST(absence_is_no_error) {
    cg_handle world = world_new(), binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    EXPECT(CG_ABSENT, load_result(world, binding, dim, 0, 0));
    save_one(world, binding, dim, 0, 0, 2);
    OK(load_result(world, binding, dim, 0, 0));
    EXPECT(CG_ABSENT, load_result(world, binding, dim, 1, 0));
    EXPECT(CG_ABSENT, load_result(world, binding, dimension(world, "game:moon"), 0, 0));
    world_close(world);
}

TEST(air_is_stored_and_not_absent) {
    cg_handle world = world_new(), binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    save_one(world, binding, dim, 0, 0, 0);
    world_close(world);
    world = world_again();
    binding = binding_of(world, 4);
    EQUAL(0, stored_block(world, binding, dim, 1, 2, 3));
    world_close(world);
}

TEST(a_section_without_layers_is_air) {
    cg_handle world = world_new(), binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    column *c = column_of(dim, 0, 0, 2);
    c->sections[0].layer_count = 0;
    c->sections[0].layers = NULL;
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    OK(load_result(world, binding, dim, 0, 0));
    EQUAL(0, stored_block(world, binding, dim, 1, 2, 3));
    world_close(world);
    free(c);
}

TEST(what_did_not_change_is_not_written) {
    cg_handle world = world_new(), binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    column *c = column_of(dim, 0, 0, 2);
    uint64_t first = 0, second = 0;
    OK(cg_column_save(world, binding, &c->view, 0, &first, E));
    CHECK(first > 0);
    EXPECT(CG_UNCHANGED, cg_column_save(world, binding, &c->view, 0, NULL, E));
    EXPECT(CG_UNCHANGED, cg_column_submit(world, binding, &c->view, 0, E));
    uint32_t numbers[CELLS];
    for (size_t i = 0; i < CELLS; i++) numbers[i] = 2;
    form f = {11, 32, CG_ORDER_XZY, 0};
    column_fill(c, 0, 0, numbers, f);
    EXPECT(CG_UNCHANGED, cg_column_save(world, binding, &c->view, 0, NULL, E));
    numbers[77] = 3;
    column_fill(c, 0, 0, numbers, f);
    OK(cg_column_save(world, binding, &c->view, 0, &second, E));
    CHECK(second > first);
    world_close(world);
    free(c);
}

TEST(sections_that_are_not_listed) {
    cg_handle world = world_new(), binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    column *c = column_new(dim, 0, 0, 3);
    for (int32_t y = 0; y < 4; y++) column_add(c, y, 2);
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    column *one = column_new(dim, 0, 0, 3);
    column_add(one, 1, 3);
    OK(cg_column_save(world, binding, &one->view, CG_PART, NULL, E));
    EQUAL(2, stored_block(world, binding, dim, 0, 0, 0));
    EQUAL(3, stored_block(world, binding, dim, 0, 16, 0));
    EXPECT(CG_UNCHANGED, cg_column_save(world, binding, &one->view, CG_PART, NULL, E));
    one->view.max_y = 2;
    OK(cg_column_save(world, binding, &one->view, 0, NULL, E));
    cg_column_at at = at_of(dim, 0, 0, -100, 100);
    cg_handle loaded = 0;
    const cg_column *view = NULL;
    OK(cg_column_load(world, binding, &at, &loaded, &view, E));
    EQUAL(2, view->section_count);
    EQUAL(1, view->sections[0].y);
    EQUAL(3, view->sections[1].y); /* beyond max_y, so it was not touched */
    EQUAL(CG_OK, cg_release(loaded));
    one->view.section_count = 0;
    one->view.max_y = 3;
    OK(cg_column_save(world, binding, &one->view, 0, NULL, E));
    EXPECT(CG_ABSENT, load_result(world, binding, dim, 0, 0));
    EXPECT(CG_UNCHANGED, cg_column_save(world, binding, &one->view, 0, NULL, E));
    EXPECT(CG_INVALID, cg_column_save(world, binding, &c->view, 0x80, NULL, E));
    world_close(world);
    free(c);
    free(one);
}

TEST(memory_of_the_caller_may_change_after_a_save) {
    cg_handle world = world_open(CG_CREATE, CG_FAST), binding = binding_of(world, 8);
    uint32_t dim = overworld(world), numbers[CELLS];
    fill(numbers, 8, 5);
    column *c = column_new(dim, 0, 0, 3);
    column_add(c, 0, 0);
    column_fill(c, 0, 0, numbers, plain());
    OK(cg_column_submit(world, binding, &c->view, 0, E));
    memset(c, 0xff, sizeof *c);
    free(c);
    load_and_check(world, binding, dim, 0, numbers);
    OK(cg_world_flush(world, E));
    load_and_check(world, binding, dim, 0, numbers);
    world_close(world);
}

TEST(peek_reads_memory_alone) {
    cg_handle world = world_new(), binding = binding_of(world, 4), loaded = 0;
    uint32_t dim = overworld(world);
    save_one(world, binding, dim, 0, 0, 2);
    world_close(world);
    world = world_again();
    binding = binding_of(world, 4);
    cg_column_at at = at_of(dim, 0, 0, 0, 3);
    const cg_column *view = NULL;
    EXPECT(CG_PENDING, cg_column_peek(world, binding, &at, &loaded, &view, E));
    EQUAL(0, loaded);
    OK(load_result(world, binding, dim, 0, 0));
    OK(cg_column_peek(world, binding, &at, &loaded, &view, E));
    EQUAL(2, block_in(view, 0, 0, 0));
    EQUAL(CG_OK, cg_release(loaded));
    world_close(world);
}

TEST(a_walk_gives_each_column_once) {
    cg_handle world = world_new(), binding = binding_of(world, 4), cursor = 0;
    uint32_t dim = overworld(world);
    column *c = column_new(dim, 0, 0, 9);
    c->view.min_y = -2;
    column_add(c, -2, 1);
    column_add(c, 5, 1);
    for (int64_t x = -3; x < 4; x++)
        for (int64_t z = -2; z < 3; z++) {
            c->view.x = x * 1000;
            c->view.z = z;
            OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
        }
    for (size_t cap = 1; cap < 50; cap += 16) {
        cg_column_place found[50];
        size_t n = 1, total = 0;
        int64_t last_x = INT64_MIN, last_z = 0;
        OK(cg_columns_walk(world, dim, &cursor, E));
        while (n > 0) {
            memset(found, 0, sizeof found);
            OK(cg_columns_next(cursor, found, cap, &n, E));
            CHECK(n <= cap);
            for (size_t i = 0; i < n; i++, total++) {
                CHECK(found[i].x > last_x || (found[i].x == last_x && found[i].z > last_z));
                last_x = found[i].x;
                last_z = found[i].z;
                EQUAL(-2, found[i].min_y);
                EQUAL(5, found[i].max_y);
                EQUAL(dim, found[i].dimension);
            }
        }
        EQUAL(35, total);
        OK(cg_columns_next(cursor, found, cap, &n, E));
        EQUAL(0, n);
        EXPECT(CG_INVALID, cg_columns_next(cursor, NULL, 1, &n, E));
        EXPECT(CG_INVALID, cg_columns_next(cursor, found, 1, NULL, E));
        EQUAL(CG_OK, cg_release(cursor));
    }
    world_close(world);
    free(c);
}

TEST(columns_are_far_away) {
    cg_handle world = world_new(), binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    static const int64_t far[4] = {-(INT64_C(1) << 59), (INT64_C(1) << 59) - 1, 0, -1};
    for (int i = 0; i < 4; i++) save_one(world, binding, dim, far[i], far[3 - i], 2);
    for (int i = 0; i < 4; i++) OK(load_result(world, binding, dim, far[i], far[3 - i]));
    column *c = column_of(dim, INT64_C(1) << 59, 0, 2);
    EXPECT(CG_INVALID, cg_column_save(world, binding, &c->view, 0, NULL, E));
    c->view.x = INT64_MIN;
    EXPECT(CG_INVALID, cg_column_save(world, binding, &c->view, 0, NULL, E));
    EXPECT(CG_INVALID, load_result(world, binding, dim, INT64_MAX, 0));
    world_close(world);
    free(c);
}
