/* Columns that contradict themselves are refused, and nothing of them is stored. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static cg_handle world, binding;
static uint32_t dim;
static column *c;
static column saved;

/* A column of one section with cells of four bits, over a stored one of block 2. */
static void begin(void) {
    world = world_new();
    binding = binding_of(world, 16);
    dim = overworld(world);
    save_one(world, binding, dim, 0, 0, 2);
    c = column_of(dim, 0, 0, 0);
    uint32_t numbers[CELLS];
    for (uint32_t i = 0; i < CELLS; i++) numbers[i] = i % 16;
    form f = {4, 32, CG_ORDER_YZX, 1};
    column_fill(c, 0, 0, numbers, f);
}

static void end(void) {
    EQUAL(2, stored_block(world, binding, dim, 0, 0, 0));
    EQUAL(2, stored_block(world, binding, dim, 15, 15, 15));
    world_close(world);
    free(c);
}

/* Each way of saving refuses the column and names its chunk where `placed`. */
static void refuse(int line, const char *change, int placed) {
    cg_handle tx = 0;
    OK(cg_tx_new(world, &tx, E));
    for (int way = 0; way < 3; way++) {
        cg_error *error = E;
        int result = way == 0   ? cg_column_save(world, binding, &c->view, 0, NULL, error)
                     : way == 1 ? cg_column_submit(world, binding, &c->view, 0, error)
                                : cg_tx_column(tx, binding, &c->view, 0, error);
        if (result != CG_INVALID) test_fail(__FILE__, line, "%s: way %d gave %d", change, way, result);
        test_expect(CG_INVALID, result, __FILE__, line, change);
        if (placed && (!error->has_place || error->chunk.x != c->view.x || error->dimension != dim))
            test_fail(__FILE__, line, "%s: no place in %.*s", change, (int)error->message_len, error->message);
    }
    EQUAL(CG_OK, cg_release(tx));
}

#define WRONG(change)                                                                                                  \
    do {                                                                                                               \
        saved = *c;                                                                                                    \
        cg_cells *cells = &c->layers[0][0];                                                                            \
        cg_section *section = &c->sections[0];                                                                         \
        cg_column *view = &c->view;                                                                                    \
        (void)cells, (void)section, (void)view;                                                                        \
        change;                                                                                                        \
        refuse(__LINE__, #change, 1);                                                                                  \
        *c = saved;                                                                                                    \
    } while (0)

TEST(widths_of_cells) {
    begin();
    WRONG(cells->bits = 17);
    WRONG(cells->bits = 255);
    WRONG(cells->bits = 33);
    WRONG(cells->word_bits = 0);
    WRONG(cells->word_bits = 8);
    WRONG(cells->word_bits = 255);
    WRONG(cells->order = 3);
    WRONG(cells->order = 9);
    WRONG(cells->side_log2 = 3);
    WRONG(cells->side_log2 = 2);
    WRONG(cells->side_log2 = 0);
    WRONG(cells->side_log2 = 255);
    end();
}

TEST(lengths_of_words) {
    begin();
    WRONG(cells->words_len -= 1);
    WRONG(cells->words_len -= 4);
    WRONG(cells->words_len += 1);
    WRONG(cells->words_len += 4);
    WRONG(cells->words_len = 0);
    WRONG(cells->words_len = SIZE_MAX);
    WRONG(cells->words = NULL);
    WRONG(cells->bits = 3);
    WRONG(cells->bits = 5);
    end();
}

TEST(palettes) {
    begin();
    WRONG(cells->palette_len = 0);
    WRONG(cells->palette_len = 15); /* the cells use 16 */
    WRONG(cells->palette_len = 1);
    WRONG(c->palettes[0][0][3] = 16); /* past the binding */
    WRONG(c->palettes[0][0][0] = UINT32_MAX);
    WRONG(cells->bits = 0; cells->words = NULL; cells->words_len = 0; cells->palette_len = 0);
    WRONG(cells->bits = 0; cells->words = NULL; cells->words_len = 0; cells->palette = NULL; cells->palette_len = 0);
    WRONG(cells->bits = 0; cells->words = NULL; cells->words_len = 0; cells->palette = NULL; cells->palette_len = 1);
    end();
}

TEST(a_number_past_the_binding) {
    begin();
    uint32_t numbers[CELLS] = {0};
    numbers[4000] = 16;
    WRONG(column_fill(c, 0, 0, numbers, plain()));
    numbers[4000] = 0xffff;
    WRONG(column_fill(c, 0, 0, numbers, plain()));
    end();
}

TEST(a_repeated_value_in_a_palette_is_sound) {
    begin();
    c->palettes[0][0][3] = 2;
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    EQUAL(2, stored_block(world, binding, dim, 0, 0, 3));
    save_one(world, binding, dim, 0, 0, 2);
    end();
}

TEST(orders_of_sections) {
    begin();
    column_add(c, 1, 1);
    WRONG(c->sections[1].y = 0);
    WRONG(c->sections[1].y = -1);
    WRONG(c->sections[0].y = 2);
    WRONG(c->sections[1].y = 4);
    WRONG(c->sections[0].y = INT32_MIN);
    WRONG(view->min_y = 1);
    WRONG(view->min_y = 5);
    WRONG(view->section_count = 0; view->min_y = 1; view->max_y = 0);
    WRONG(view->min_y = INT32_MAX; view->max_y = INT32_MIN);
    WRONG(view->sections = NULL);
    end();
}

TEST(layers_of_a_section) {
    begin();
    WRONG(section->layer_count = 2); /* the binding has one */
    WRONG(section->layers = NULL);
    end();
}

TEST(counts_without_arrays) {
    begin();
    WRONG(view->block_entity_count = 1);
    WRONG(view->entity_count = 1);
    WRONG(view->scheduled_count = 1);
    WRONG(view->entity_count = SIZE_MAX);
    WRONG(view->section_count = SIZE_MAX; view->sections = NULL);
    end();
}

TEST(lengths_that_no_memory_has) {
    begin();
    cg_bytes huge = bytes("x", SIZE_MAX);
    cg_str text;
    text.ptr = "x";
    text.len = SIZE_MAX;
    cg_handle out = 0, tx = 0;
    cg_name name = name_of("game:x", 0, 0);
    uint64_t id = 0;
    OK(cg_tx_new(world, &tx, E));
    EXPECT(CG_INVALID, cg_tx_object_put(tx, text_bytes("k"), huge, E));
    EXPECT(CG_INVALID, cg_tx_object_put(tx, huge, text_bytes("v"), E));
    EXPECT(CG_INVALID, cg_tx_property(tx, text, text_bytes("v"), E));
    EXPECT(CG_INVALID, cg_object_list(world, huge, &out, E));
    EXPECT(CG_INVALID, cg_names_register(world, CG_BLOCKS, &name, SIZE_MAX, &id, E));
    EXPECT(CG_INVALID, cg_names_find(world, CG_BLOCKS, &name.name, SIZE_MAX / 8, &id, E));
    EXPECT(CG_INVALID, cg_world_checkpoint(world, text, 1, E));
    name.component_count = SIZE_MAX;
    name.components = &name.name;
    EXPECT(CG_INVALID, cg_names_register(world, CG_BLOCKS, &name, 1, &id, E));
    EQUAL(CG_OK, cg_release(tx));
    end();
}

TEST(a_dimension_that_the_world_does_not_have) {
    begin();
    c->view.dimension = 4000000000u;
    int result = cg_column_save(world, binding, &c->view, 0, NULL, E);
    CHECK(result == CG_INVALID || result == CG_NOT_FOUND);
    result = load_result(world, binding, 4000000000u, 0, 0);
    CHECK(result == CG_INVALID || result == CG_NOT_FOUND || result == CG_ABSENT);
    end();
}

TEST(sizes_of_a_column) {
    begin();
    struct {
        cg_column view;
        uint64_t more[2];
    } newer;
    memset(&newer, 0, sizeof newer);
    newer.view = c->view;
    newer.view.struct_size = 0;
    EXPECT(CG_INVALID, cg_column_save(world, binding, &newer.view, 0, NULL, E));
    newer.view.struct_size = 8;
    EXPECT(CG_INVALID, cg_column_save(world, binding, &newer.view, 0, NULL, E));
    newer.view.struct_size = sizeof newer;
    newer.more[0] = 1;
    EXPECT(CG_INVALID, cg_column_save(world, binding, &newer.view, 0, NULL, E));
    newer.view.struct_size = UINT32_MAX - 7;
    newer.more[0] = 1;
    EXPECT(CG_INVALID, cg_column_save(world, binding, &newer.view, 0, NULL, E));
    newer.more[0] = 0;
    newer.view.struct_size = sizeof newer;
    OK(cg_column_save(world, binding, &newer.view, 0, NULL, E));
    save_one(world, binding, dim, 0, 0, 2);
    end();
}

TEST(sizes_and_heights_of_a_load) {
    begin();
    cg_handle loaded = 0;
    const cg_column *view = NULL;
    cg_column_at at = at_of(dim, 0, 0, 3, 0);
    EXPECT(CG_INVALID, cg_column_load(world, binding, &at, &loaded, &view, E));
    EXPECT(CG_INVALID, cg_column_peek(world, binding, &at, &loaded, &view, E));
    at = at_of(dim, 0, 0, 0, 3);
    at.struct_size = 0;
    EXPECT(CG_INVALID, cg_column_load(world, binding, &at, &loaded, &view, E));
    at.struct_size = 4;
    EXPECT(CG_INVALID, cg_column_load(world, binding, &at, &loaded, &view, E));
    at = at_of(dim, 0, 0, INT32_MIN, INT32_MAX);
    int result = cg_column_load(world, binding, &at, &loaded, &view, E);
    if (result == CG_OK) {
        EQUAL(1, view->section_count);
        EQUAL(CG_OK, cg_release(loaded));
    } else
        EXPECT(CG_INVALID, result);
    at = at_of(dim, 0, 0, 0, 3);
    EXPECT(CG_INVALID, cg_column_load(world, binding, NULL, &loaded, &view, E));
    EXPECT(CG_INVALID, cg_column_load(world, binding, &at, NULL, &view, E));
    EXPECT(CG_INVALID, cg_column_load(world, binding, &at, &loaded, NULL, E));
    EXPECT(CG_INVALID, cg_column_save(world, binding, NULL, 0, NULL, E));
    EXPECT(CG_INVALID, cg_column_submit(world, binding, NULL, 0, E));
    end();
}

TEST(biomes_that_are_none) {
    begin();
    uint32_t numbers[64];
    for (uint32_t i = 0; i < 64; i++) numbers[i] = i % 8 * 3;
    column_biomes(c, 0, numbers, 2);
    WRONG(section->biomes.side_log2 = 3);
    WRONG(section->biomes.side_log2 = 4); /* the words are for 64 cells */
    WRONG(section->biomes.bits = 17);
    WRONG(section->biomes.palette_len = 3);
    WRONG(c->palettes[0][2][1] = 1); /* no biome has this number */
    WRONG(section->biomes.words = NULL);
    end();
}

TEST(block_entities_that_are_none) {
    begin();
    cg_block_entity sound = block_entity_of(pos(1, 2, 3), text_bytes("x")), owned[2] = {sound, sound};
    c->view.block_entities = owned;
    c->view.block_entity_count = 1;
    WRONG(owned[0].at.x = 16);
    owned[0] = sound;
    WRONG(owned[0].at.y = 64);
    owned[0] = sound;
    WRONG(owned[0].at.y = INT64_C(1) << 40);
    owned[0] = sound;
    WRONG(view->block_entity_count = 2); /* two at one cell */
    WRONG(owned[0].nbt.ptr = NULL);
    end();
}

TEST(entities_that_are_none) {
    begin();
    cg_entity mobs[2];
    cg_entity sound = entity_of(1, 0, dim, pos(1, 2, 3), "x");
    mobs[0] = mobs[1] = sound;
    c->view.entities = mobs;
    c->view.entity_count = 1;
    static const uint32_t no_number = 0x7fc00000;
    float nan = 0;
    memcpy(&nan, &no_number, sizeof nan);
#define MOB(change)                                                                                                    \
    WRONG(change);                                                                                                     \
    mobs[0] = mobs[1] = sound
    MOB(mobs[0].kind = 2);
    MOB(mobs[0].dimension = dim + 1);
    MOB(mobs[0].fraction[1] = 1.0f);
    MOB(mobs[0].fraction[1] = -0.5f);
    MOB(mobs[0].fraction[2] = nan);
    MOB(mobs[0].nbt.ptr = NULL);
    MOB(view->entity_count = 2); /* two of one id */
#undef MOB
    end();
}
