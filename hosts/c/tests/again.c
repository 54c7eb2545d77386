/* Saves of one column that follow each other: within a group, with other heights, through other bindings. What the library
 * remembers of a column must never hide a save. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static cg_handle world, binding;
static uint32_t dim;

/* A world whose groups stay open until they are ended. */
static void begin(void) {
    cg_options options = options_of(CG_CREATE);
    options.group_ms = 60000;
    options.min_free_bytes = 1;
    world = world_with("world", &options);
    binding = binding_of(world, 16);
    dim = overworld(world);
}

static void submit(const column *c, uint32_t flags) { OK(cg_column_submit(world, binding, &c->view, flags, E)); }

TEST(a_save_of_fewer_heights_is_not_forgotten) {
    begin();
    column *whole = column_of(dim, 0, 0, 2), *part = column_of(dim, 0, 0, 3);
    part->view.max_y = 0;
    OK(cg_column_save(world, binding, &whole->view, 0, NULL, E));
    OK(cg_column_save(world, binding, &part->view, 0, NULL, E));
    OK(cg_column_save(world, binding, &whole->view, 0, NULL, E)); /* it differs from what is stored now */
    EQUAL(2, stored_block(world, binding, dim, 0, 0, 0));
    submit(part, 0);
    submit(whole, 0);
    EQUAL(2, stored_block(world, binding, dim, 0, 0, 0));
    submit(part, CG_PART);
    OK(cg_world_flush(world, E));
    OK(cg_column_submit(world, binding, &whole->view, CG_PART, E));
    EQUAL(2, stored_block(world, binding, dim, 0, 0, 0));
    world_close(world);
    free(whole);
    free(part);
}

TEST(a_binding_in_the_place_of_another_one) {
    begin();
    for (uint32_t i = 2; i < 40; i++) {
        cg_binding_desc all = desc_of(50), desc = desc_of(3);
        cg_block blocks[3] = {all.blocks[0], all.blocks[i], all.blocks[49]};
        desc.blocks = blocks;
        desc.placeholder = 2;
        cg_handle two = bind(world, &desc);
        column *c = column_of(dim, 0, 0, 1); /* the same bytes each time, and another block */
        if (i % 2 == 0)
            OK(cg_column_save(world, two, &c->view, 0, NULL, E));
        else
            OK(cg_column_submit(world, two, &c->view, 0, E));
        EQUAL(1, stored_block(world, two, dim, 0, 0, 0));
        EQUAL(CG_OK, cg_release(two));
        free(c);
    }
    cg_handle all = binding_of(world, 50);
    EQUAL(39, stored_block(world, all, dim, 0, 0, 0));
    world_close(world);
}

TEST(a_raw_change_is_not_forgotten) {
    begin();
    column *c = column_of(dim, 0, 0, 2);
    cg_handle tx = 0;
    uint64_t ids[16];
    OK(cg_binding_ids(binding, ids, 16, E));
    OK(cg_tx_new(world, &tx, E));
    for (int submitted = 0; submitted < 2; submitted++) {
        if (submitted)
            CHECK(cg_column_submit(world, binding, &c->view, 0, E) >= 0);
        else
            CHECK(cg_column_save(world, binding, &c->view, 0, NULL, E) >= 0);
        OK(cg_tx_set_block(tx, dim, pos(1, 1, 1), ids[5], E));
        OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
        EQUAL(5, stored_block(world, binding, dim, 1, 1, 1));
        OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
        EQUAL(2, stored_block(world, binding, dim, 1, 1, 1));
    }
    EQUAL(CG_OK, cg_release(tx));
    world_close(world);
    free(c);
}

TEST(a_pending_column_is_never_peeked_at_in_an_older_state) {
    begin();
    save_one(world, binding, dim, 0, 0, 2);
    OK(load_result(world, binding, dim, 0, 0));
    column *c = column_of(dim, 0, 0, 3);
    submit(c, 0);
    cg_column_at at = at_of(dim, 0, 0, 0, 3);
    cg_handle out = 0;
    const cg_column *view = NULL;
    int result = cg_column_peek(world, binding, &at, &out, &view, E);
    CHECK(result == CG_PENDING || result == CG_OK);
    if (result == CG_OK) {
        EQUAL(3, block_in(view, 0, 0, 0));
        EQUAL(CG_OK, cg_release(out));
    }
    OK(cg_world_flush(world, E));
    OK(cg_column_peek(world, binding, &at, &out, &view, E));
    EQUAL(3, block_in(view, 0, 0, 0));
    EQUAL(CG_OK, cg_release(out));
    world_close(world);
    free(c);
}

TEST(a_pending_column_shows_what_stays) {
    begin();
    uint32_t numbers[64];
    for (uint32_t i = 0; i < 64; i++) numbers[i] = i % 8 * 3;
    column *c = column_of(dim, 0, 0, 2), *plain_one = column_of(dim, 0, 0, 3);
    column_biomes(c, 0, numbers, 2);
    memset(c->light[0][0], 0x77, LIGHT);
    c->sections[0].block_light = c->light[0][0];
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    submit(plain_one, 0); /* without biomes and light: stored ones stay */
    for (int committed = 0; committed < 2; committed++) {
        const cg_column *view = NULL;
        cg_handle out = column_load(world, binding, dim, 0, &view);
        EQUAL(3, block_in(view, 0, 0, 0));
        CHECK(view->sections[0].block_light != NULL && view->sections[0].block_light[5] == 0x77);
        EQUAL(2, view->sections[0].biomes.side_log2);
        for (uint32_t i = 0; i < 64; i++)
            EQUAL(numbers[i], cell_at(&view->sections[0].biomes, i >> 4, i >> 2 & 3, i & 3));
        EQUAL(CG_OK, cg_release(out));
        OK(cg_world_flush(world, E));
    }
    world_close(world);
    free(c);
    free(plain_one);
}

TEST(a_pending_column_shows_entities_that_stay) {
    begin();
    column *c = column_of(dim, 0, 0, 2);
    cg_entity mob = entity_of(1, 0, dim, pos(1, 1, 1), "x");
    c->view.entities = &mob;
    c->view.entity_count = 1;
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    world_close(world);
    world = world_open(CG_OPEN, CG_BALANCED);
    binding = binding_of(world, 16);
    c->view.entity_count = 0;
    c->palettes[0][0][0] = 3;
    submit(c, 0); /* the host was not shown the entity, so it stays */
    EQUAL(1, entity_count(world, binding, dim, 0, 1));
    OK(cg_world_flush(world, E));
    EQUAL(1, entity_count(world, binding, dim, 0, 1));
    world_close(world);
    free(c);
}

TEST(a_pending_column_has_the_form_of_its_binding) {
    begin();
    uint32_t numbers[CELLS], biomes[64];
    for (uint32_t i = 0; i < CELLS; i++) numbers[i] = i * 7 % 16;
    for (uint32_t i = 0; i < 64; i++) biomes[i] = i % 8 * 3;
    column *c = column_of(dim, 0, 0, 0);
    column_fill(c, 0, 0, numbers, plain()); /* 16-bit words, XYZ, no palette; loads give 64-bit words and YZX */
    column_biomes(c, 0, biomes, 2);
    c->sections[0].biomes.order = CG_ORDER_XYZ; /* with the same bytes: its numbers are then elsewhere */
    submit(c, 0);
    for (int committed = 0; committed < 2; committed++) {
        const cg_column *view = NULL;
        cg_handle out = column_load(world, binding, dim, 0, &view);
        const cg_cells *cells = &view->sections[0].layers[0];
        EQUAL(CG_ORDER_YZX, cells->order);
        EQUAL(64, cells->word_bits);
        CHECK(cells->palette != NULL);
        for (uint32_t i = 0; i < CELLS; i++) EQUAL(numbers[i], cell_at(cells, i >> 8, i >> 4 & 15, i & 15));
        EQUAL(CG_ORDER_YZX, view->sections[0].biomes.order);
        EQUAL(64, view->sections[0].biomes.word_bits);
        EQUAL(CG_OK, cg_release(out));
        OK(cg_world_flush(world, E));
    }
    world_close(world);
    free(c);
}

/* The column at x with the entity or without it. */
static void submit_with(int64_t x, uint32_t block, const cg_entity *mob) {
    column *c = column_of(dim, x, 0, block);
    c->view.entities = mob;
    c->view.entity_count = mob != NULL;
    submit(c, 0);
    free(c);
}

TEST(an_entity_walks_away_and_back_within_a_group) {
    begin();
    cg_entity mob = entity_of(1, 0, dim, pos(15, 1, 1), "x");
    submit_with(0, 2, &mob);
    submit_with(1, 2, NULL);
    OK(cg_world_flush(world, E));
    submit_with(0, 3, NULL);
    mob.block.x = 16;
    submit_with(1, 3, &mob);
    mob.block.x = 15;
    submit_with(0, 4, &mob);
    submit_with(1, 4, NULL);
    EQUAL(1, entity_count(world, binding, dim, 1, 1));
    OK(cg_world_flush(world, E));
    EQUAL(1, entity_count(world, binding, dim, 1, 1));
    world_close(world);
}

TEST(an_entity_is_missing_once_within_a_group) {
    begin();
    cg_entity mob = entity_of(1, 0, dim, pos(1, 1, 1), "x");
    submit_with(0, 2, &mob);
    OK(cg_world_flush(world, E));
    submit_with(0, 3, NULL);
    submit_with(0, 4, &mob);
    OK(cg_world_flush(world, E));
    EQUAL(1, entity_count(world, binding, dim, 0, 1));
    submit_with(0, 5, &mob);
    submit_with(0, 6, NULL);
    OK(cg_world_flush(world, E));
    EQUAL(0, entity_count(world, binding, dim, 0, 1));
    world_close(world);
}

TEST(a_part_leaves_entities_of_other_sections) {
    begin();
    column *c = column_new(dim, 0, 0, 3);
    for (int32_t y = 0; y < 3; y++) column_add(c, y, 2);
    cg_entity mobs[2] = {entity_of(1, 0, dim, pos(1, 5, 1), "low"), entity_of(2, 0, dim, pos(1, 40, 1), "high")};
    c->view.entities = mobs;
    c->view.entity_count = 2;
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    OK(load_result(world, binding, dim, 0, 0));
    column *part = column_of(dim, 0, 0, 3);
    part->view.entities = mobs;
    part->view.entity_count = 1;
    OK(cg_column_save(world, binding, &part->view, CG_PART, NULL, E));
    EQUAL(1, entity_count(world, binding, dim, 0, 1));
    EQUAL(1, entity_count(world, binding, dim, 0, 2));
    part->view.entity_count = 0;
    part->palettes[0][0][0] = 4;
    OK(cg_column_save(world, binding, &part->view, CG_PART, NULL, E));
    EQUAL(0, entity_count(world, binding, dim, 0, 1)); /* it was in the section that is listed */
    EQUAL(1, entity_count(world, binding, dim, 0, 2));
    world_close(world);
    free(c);
    free(part);
}

TEST(scheduled_ticks_of_a_part) {
    begin();
    column *c = column_of(dim, 0, 0, 2);
    column_add(c, 1, 2);
    cg_scheduled due[2];
    memset(due, 0, sizeof due);
    due[0].at = pos(1, 1, 1);
    due[0].due = 10;
    due[0].block = 2;
    due[1] = due[0];
    due[1].at = pos(1, 17, 1);
    due[1].due = 20;
    c->view.scheduled = due;
    c->view.scheduled_count = 1;
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    column *part = column_new(dim, 0, 0, 3);
    column_add(part, 1, 3);
    part->view.scheduled = &due[1]; /* the other one is in a section that is not listed, and stays */
    part->view.scheduled_count = 1;
    OK(cg_column_save(world, binding, &part->view, CG_PART, NULL, E));
    const cg_column *view = NULL;
    cg_handle out = column_load(world, binding, dim, 0, &view);
    EQUAL(2, view->scheduled_count);
    EQUAL(CG_OK, cg_release(out));
    world_close(world);
    free(c);
    free(part);
}

TEST(what_can_never_be_stored_is_not_accepted) {
    begin();
    size_t len = 65u << 20;
    uint8_t *large = (uint8_t *)calloc(1, len);
    cg_handle tx = 0;
    OK(cg_tx_new(world, &tx, E));
    int result = cg_tx_object_put(tx, text_bytes("k"), bytes(large, len), E);
    if (result == CG_OK) result = cg_tx_submit(tx, E);
    EXPECT(CG_TOO_LARGE, result);
    EQUAL(CG_OK, cg_release(tx));
    column *c = column_of(dim, 0, 0, 2);
    cg_entity mob = entity_of(1, 0, dim, pos(1, 1, 1), "x");
    mob.nbt = bytes(large, 2u << 20);
    c->view.entities = &mob;
    c->view.entity_count = 1;
    EXPECT(CG_TOO_LARGE, cg_column_submit(world, binding, &c->view, 0, E));
    OK(cg_world_flush(world, E));
    EXPECT(CG_ABSENT, load_result(world, binding, dim, 0, 0));
    world_close(world);
    free(large);
    free(c);
}

static void *save_often(void *way) {
    int submits = *(const int *)way;
    for (uint32_t i = 0; i < 400; i++) {
        column *c = column_of(dim, 0, 0, 1 + (i * 7 + (uint32_t)submits) % 4);
        int result = submits ? cg_column_submit(world, binding, &c->view, 0, NULL)
                             : cg_column_save(world, binding, &c->view, 0, NULL, NULL);
        CHECK(result >= 0);
        free(c);
    }
    return NULL;
}

TEST(unchanged_is_never_said_of_another_column) {
    world = world_open(CG_CREATE, CG_BALANCED);
    binding = binding_of(world, 16);
    dim = overworld(world);
    for (int round = 0; round < 20; round++) {
        pthread_t threads[2];
        static const int ways[2] = {0, 1};
        for (size_t i = 0; i < 2; i++)
            CHECK(pthread_create(&threads[i], NULL, save_often, (void *)(uintptr_t)&ways[i]) == 0);
        for (size_t i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
        for (uint32_t block = 1; block <= 4; block++) {
            column *c = column_of(dim, 0, 0, block);
            CHECK(cg_column_submit(world, binding, &c->view, 0, E) >= 0);
            EQUAL(block, stored_block(world, binding, dim, 0, 0, 0));
            free(c);
        }
    }
    world_close(world);
}
