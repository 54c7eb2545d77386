/* What a column has besides the blocks of layer 0, and what the host does not know of it. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

TEST(two_layers) {
    cg_handle world = world_new();
    uint32_t dim = overworld(world), numbers[CELLS], water[CELLS];
    cg_binding_desc desc = desc_of(8);
    desc.layer_count = 2;
    cg_handle binding = bind(world, &desc);
    column *c = column_of(dim, 0, 0, 1);
    for (uint32_t i = 0; i < CELLS; i++) {
        numbers[i] = 1 + i % 3;
        water[i] = i % 5 == 0 ? 5 : 0;
    }
    column_fill(c, 0, 0, numbers, plain());
    column_fill(c, 0, 1, water, plain());
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    world_close(world);
    world = world_again();
    binding = bind(world, &desc);
    const cg_column *view = NULL;
    cg_handle loaded = column_load(world, binding, dim, 0, &view);
    EQUAL(2, view->sections[0].layer_count);
    for (uint32_t i = 0; i < CELLS; i++) {
        EQUAL(numbers[i], cell_at(&view->sections[0].layers[0], i >> 8, i >> 4 & 15, i & 15));
        EQUAL(water[i], cell_at(&view->sections[0].layers[1], i >> 8, i >> 4 & 15, i & 15));
    }
    EXPECT(CG_UNCHANGED, cg_column_save(world, binding, &c->view, 0, NULL, E));
    EQUAL(CG_OK, cg_release(loaded));
    /* A host with two layers that lists one has the other empty. */
    c->sections[0].layer_count = 1;
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    loaded = column_load(world, binding, dim, 0, &view);
    for (uint32_t i = 0; i < CELLS && view->sections[0].layer_count == 2; i++)
        EQUAL(0, cell_at(&view->sections[0].layers[1], i >> 8, i >> 4 & 15, i & 15));
    EQUAL(CG_OK, cg_release(loaded));
    world_close(world);
    free(c);
}

TEST(layers_above_those_of_the_host_stay) {
    cg_handle world = world_new();
    uint32_t dim = overworld(world), numbers[CELLS] = {0};
    cg_binding_desc desc = desc_of(8);
    cg_handle one = bind(world, &desc);
    desc.layer_count = 2;
    cg_handle two = bind(world, &desc);
    column *c = column_of(dim, 0, 0, 1);
    numbers[300] = 5;
    column_fill(c, 0, 1, numbers, plain());
    OK(cg_column_save(world, two, &c->view, 0, NULL, E));
    save_one(world, one, dim, 0, 0, 2);
    const cg_column *view = NULL;
    cg_handle loaded = column_load(world, two, dim, 0, &view);
    EQUAL(2, view->sections[0].layer_count);
    EQUAL(5, cell_at(&view->sections[0].layers[1], 1, 2, 12));
    EQUAL(2, cell_at(&view->sections[0].layers[0], 1, 2, 12));
    EQUAL(CG_OK, cg_release(loaded));
    world_close(world);
    free(c);
}

static void biomes(uint8_t side_log2) {
    cg_handle world = world_new();
    uint32_t dim = overworld(world), numbers[CELLS], count = 1u << (3 * side_log2), side = 1u << side_log2;
    cg_binding_desc desc = desc_of(4);
    desc.biome_side_log2 = side_log2;
    cg_handle binding = bind(world, &desc);
    column *c = column_of(dim, 0, 0, 1);
    for (uint32_t i = 0; i < count; i++) numbers[i] = i * 7 % 8 * 3;
    column_biomes(c, 0, numbers, side_log2);
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    world_close(world);
    world = world_again();
    binding = bind(world, &desc);
    save_one(world, binding, dim, 0, 0, 2); /* without biomes: stored ones stay */
    const cg_column *view = NULL;
    cg_handle loaded = column_load(world, binding, dim, 0, &view);
    EQUAL(side_log2, view->sections[0].biomes.side_log2);
    for (uint32_t i = 0; i < count; i++)
        EQUAL(numbers[i],
              cell_at(&view->sections[0].biomes, i >> (2 * side_log2), i >> side_log2 & (side - 1), i & (side - 1)));
    EQUAL(CG_OK, cg_release(loaded));
    world_close(world);
    free(c);
}

TEST(biomes_of_each_block) { biomes(4); }
TEST(biomes_of_each_4_blocks) { biomes(2); }

TEST(light_comes_back_and_stays) {
    cg_handle world = world_new(), binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    column *c = column_of(dim, 0, 0, 1);
    for (size_t i = 0; i < LIGHT; i++) {
        c->light[0][0][i] = (uint8_t)(i * 31);
        c->light[0][1][i] = (uint8_t)(i * 17 + 1);
    }
    c->sections[0].block_light = c->light[0][0];
    c->sections[0].sky_light = c->light[0][1];
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    save_one(world, binding, dim, 0, 0, 2);
    const cg_column *view = NULL;
    cg_handle loaded = column_load(world, binding, dim, 0, &view);
    CHECK(view->sections[0].block_light != NULL && view->sections[0].sky_light != NULL);
    CHECK(memcmp(view->sections[0].block_light, c->light[0][0], LIGHT) == 0);
    CHECK(memcmp(view->sections[0].sky_light, c->light[0][1], LIGHT) == 0);
    EQUAL(CG_OK, cg_release(loaded));
    world_close(world);
    free(c);
}

TEST(block_entities_come_back) {
    cg_handle world = world_new(), binding = binding_of(world, 8);
    uint32_t dim = overworld(world), numbers[CELLS] = {0};
    numbers[1 << 8 | 2 << 4 | 3] = 3; /* a block that owns one */
    column *c = column_of(dim, 0, 0, 1);
    column_add(c, 2, 3);
    column_fill(c, 0, 0, numbers, plain());
    cg_block_entity owned[2] = {block_entity_of(pos(1, 2, 3), text_bytes("a chest")),
                                block_entity_of(pos(15, 47, 0), text_bytes("another"))};
    c->view.block_entities = owned;
    c->view.block_entity_count = 2;
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    EXPECT(CG_UNCHANGED, cg_column_save(world, binding, &c->view, 0, NULL, E));
    world_close(world);
    world = world_again();
    binding = binding_of(world, 8);
    const cg_column *view = NULL;
    cg_handle loaded = column_load(world, binding, dim, 0, &view);
    EQUAL(2, view->block_entity_count);
    for (size_t i = 0; i < 2; i++) {
        const cg_block_entity *found = &view->block_entities[i];
        int is_first = found->at.y == 2;
        CHECK(same_text(found->nbt, is_first ? "a chest" : "another"));
        EQUAL(is_first ? 1 : 15, found->at.x);
        EQUAL(is_first ? 2 : 47, found->at.y);
    }
    EQUAL(CG_OK, cg_release(loaded));
    /* Without its block entity, and with another block. */
    numbers[1 << 8 | 2 << 4 | 3] = 2;
    column_fill(c, 0, 0, numbers, plain());
    c->view.block_entity_count = 1;
    c->view.block_entities = owned + 1;
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    loaded = column_load(world, binding, dim, 0, &view);
    EQUAL(1, view->block_entity_count);
    EQUAL(47, view->block_entities[0].at.y);
    EQUAL(CG_OK, cg_release(loaded));
    world_close(world);
    free(c);
}

TEST(a_block_entity_of_a_block_that_owns_none) {
    cg_handle world = world_new(), binding = binding_of(world, 8);
    uint32_t dim = overworld(world);
    column *c = column_of(dim, 0, 0, 1);
    cg_block_entity owned = block_entity_of(pos(4, 5, 6), text_bytes("unusual"));
    c->view.block_entities = &owned;
    c->view.block_entity_count = 1;
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    const cg_column *view = NULL;
    cg_handle loaded = column_load(world, binding, dim, 0, &view);
    EQUAL(1, view->block_entity_count);
    CHECK(same_text(view->block_entities[0].nbt, "unusual"));
    EQUAL(5, view->block_entities[0].at.y);
    EQUAL(CG_OK, cg_release(loaded));
    world_close(world);
    free(c);
}

TEST(scheduled_ticks_are_relative) {
    cg_handle world = world_new(), binding = binding_of(world, 8);
    uint32_t dim = overworld(world);
    column *c = column_of(dim, 0, 0, 1);
    cg_scheduled due[2];
    memset(due, 0, sizeof due);
    due[0].at = pos(1, 1, 1);
    due[0].due = 1010;
    due[0].block = 1;
    due[0].priority = -3;
    due[1].at = pos(2, 1, 1);
    due[1].due = 1500;
    due[1].block = 1;
    c->view.tick = 1000;
    c->view.scheduled = due;
    c->view.scheduled_count = 2;
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    const cg_column *view = NULL;
    cg_handle loaded = column_load(world, binding, dim, 0, &view);
    EQUAL(2, view->scheduled_count);
    size_t first = view->scheduled[0].at.x == 1 ? 0 : 1;
    EQUAL(10, view->scheduled[first].due - view->tick);
    EQUAL(-3, view->scheduled[first].priority);
    EQUAL(1, view->scheduled[first].block);
    EQUAL(500, view->scheduled[1 - first].due - view->tick);
    EQUAL(CG_OK, cg_release(loaded));
    world_close(world);
    free(c);
}

TEST(an_unknown_block_is_kept_under_the_placeholder) {
    cg_handle world = world_new();
    uint32_t dim = overworld(world), numbers[CELLS];
    cg_handle all = binding_of(world, 8), few = binding_of(world, 3);
    for (uint32_t i = 0; i < CELLS; i++) numbers[i] = i % 8;
    column *c = column_of(dim, 0, 0, 0);
    column_fill(c, 0, 0, numbers, plain());
    OK(cg_column_save(world, all, &c->view, 0, NULL, E));
    const cg_column *view = NULL;
    cg_handle loaded = column_load(world, few, dim, 0, &view);
    CHECK(view->kept > 0);
    for (uint32_t i = 0; i < CELLS; i++) {
        uint32_t expected = i % 8 < 3 ? i % 8 : 1;
        EQUAL(expected, cell_at(&view->sections[0].layers[0], i >> 8, i >> 4 & 15, i & 15));
        numbers[i] = expected;
    }
    EQUAL(CG_OK, cg_release(loaded));
    numbers[7] = 2;     /* the host replaces an unknown block */
    numbers[8 + 1] = 2; /* and one that it knows */
    column_fill(c, 0, 0, numbers, plain());
    OK(cg_column_save(world, few, &c->view, 0, NULL, E));
    loaded = column_load(world, all, dim, 0, &view);
    for (uint32_t i = 0; i < CELLS; i++)
        EQUAL(i == 7 || i == 9 ? 2 : i % 8, cell_at(&view->sections[0].layers[0], i >> 8, i >> 4 & 15, i & 15));
    EQUAL(0, view->kept);
    EQUAL(CG_OK, cg_release(loaded));
    world_close(world);
    free(c);
}

TEST(a_column_that_was_not_loaded_keeps_unknown_blocks_too) {
    cg_handle world = world_new();
    uint32_t dim = overworld(world);
    cg_handle all = binding_of(world, 8), few = binding_of(world, 3);
    save_one(world, all, dim, 0, 0, 7);
    column *c = column_of(dim, 0, 0, 1); /* the placeholder in each cell */
    EXPECT(CG_UNCHANGED, cg_column_save(world, few, &c->view, 0, NULL, E));
    EQUAL(7, stored_block(world, all, dim, 3, 3, 3));
    world_close(world);
    free(c);
}

TEST(a_block_entity_of_an_unknown_block_is_kept) {
    cg_handle world = world_new();
    uint32_t dim = overworld(world), numbers[CELLS] = {0};
    cg_handle all = binding_of(world, 8), few = binding_of(world, 3);
    numbers[5] = 3;
    column *c = column_of(dim, 0, 0, 0);
    column_fill(c, 0, 0, numbers, plain());
    cg_block_entity owned = block_entity_of(pos(0, 0, 5), text_bytes("of a mod"));
    c->view.block_entities = &owned;
    c->view.block_entity_count = 1;
    OK(cg_column_save(world, all, &c->view, 0, NULL, E));
    const cg_column *view = NULL;
    cg_handle loaded = column_load(world, few, dim, 0, &view);
    EQUAL(0, view->block_entity_count);
    EQUAL(CG_OK, cg_release(loaded));
    numbers[5] = 1;
    numbers[6] = 2;
    column_fill(c, 0, 0, numbers, plain());
    c->view.block_entity_count = 0;
    OK(cg_column_save(world, few, &c->view, 0, NULL, E));
    loaded = column_load(world, all, dim, 0, &view);
    EQUAL(1, view->block_entity_count);
    CHECK(same_text(view->block_entities[0].nbt, "of a mod"));
    EQUAL(CG_OK, cg_release(loaded));
    world_close(world);
    free(c);
}

TEST(a_part_keeps_what_is_above_and_below) {
    cg_handle world = world_new(), binding = binding_of(world, 8);
    uint32_t dim = overworld(world);
    column *c = column_new(dim, 0, 0, 3);
    for (int32_t y = 0; y < 3; y++) column_add(c, y, 3);
    cg_block_entity owned[2] = {block_entity_of(pos(0, 1, 0), text_bytes("low")),
                                block_entity_of(pos(0, 40, 0), text_bytes("high"))};
    c->view.block_entities = owned;
    c->view.block_entity_count = 2;
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    column *part = column_new(dim, 0, 0, 3);
    column_add(part, 0, 2);
    OK(cg_column_save(world, binding, &part->view, CG_PART, NULL, E));
    const cg_column *view = NULL;
    cg_handle loaded = column_load(world, binding, dim, 0, &view);
    EQUAL(3, view->section_count);
    EQUAL(1, view->block_entity_count);
    CHECK(same_text(view->block_entities[0].nbt, "high"));
    EQUAL(CG_OK, cg_release(loaded));
    world_close(world);
    free(c);
    free(part);
}
