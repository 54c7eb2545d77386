/* Transactions: all or none, and only over what is expected. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static cg_handle world, binding, tx;
static uint32_t dim;

static void begin(void) {
    world = world_new();
    binding = binding_of(world, 8);
    dim = overworld(world);
    tx = tx_of(world);
}

/* Begins with a world whose groups stay open until they are ended. */
static void begin_open_group(void) {
    cg_options options = options_of(CG_CREATE);
    options.group_ms = 60000;
    world = world_with("world", &options);
    binding = binding_of(world, 8);
    dim = overworld(world);
}

static void end(void) {
    EQUAL(CG_OK, cg_release(tx));
    world_close(world);
}

static uint64_t version_of(cg_pos chunk) {
    cg_handle out = 0;
    uint64_t version = 0;
    OK(cg_chunk_load(world, dim, chunk, &out, &version, E));
    CHECK(version > 0);
    EQUAL(CG_OK, cg_release(out));
    return version;
}

static uint64_t world_block(const char *name) {
    cg_str s = str(name);
    uint64_t id = CG_NO_ID;
    OK(cg_names_find(world, CG_BLOCKS, &s, 1, &id, E));
    CHECK(id != CG_NO_ID);
    return id;
}

TEST(everything_of_a_transaction_is_there) {
    begin();
    column *c = column_of(dim, 0, 0, 2);
    cg_entity mob = entity_of(1, 0, dim, pos(1, 1, 1), "mob"), player = entity_of(2, 0, dim, pos(9, 9, 9), "player");
    cg_record record;
    memset(&record, 0, sizeof record);
    record.id[0] = 1;
    record.dimension = dim;
    record.block = pos(5, 5, 5);
    record.kind = str("game:sign");
    record.bytes = text_bytes("a sign");
    OK(cg_tx_column(tx, binding, &c->view, 0, E));
    c->view.x = 1;
    OK(cg_tx_column(tx, binding, &c->view, 0, E));
    OK(cg_tx_entity_put(tx, binding, &mob, 0, E));
    OK(cg_tx_entity_put(tx, binding, &player, CG_DETACHED, E));
    OK(cg_tx_object_put(tx, text_bytes("k"), text_bytes("v"), E));
    OK(cg_tx_record_put(tx, &record, E));
    OK(cg_tx_property(tx, str("game:rules"), text_bytes("none"), E));
    EXPECT(CG_ABSENT, load_result(world, binding, dim, 0, 0));
    uint64_t commit = 0;
    OK(cg_tx_commit(tx, CG_SAFE, &commit, E));
    CHECK(commit > 0);
    end();
    world = world_again();
    binding = binding_of(world, 8);
    EQUAL(2, stored_block(world, binding, dim, 0, 0, 0));
    EQUAL(2, stored_block(world, binding, dim, 16, 0, 0));
    EQUAL(1, entity_count(world, binding, dim, 1, 1));
    cg_handle out = 0;
    OK(cg_object_get(world, text_bytes("k"), &out, NULL, E));
    CHECK(holds(out, "v"));
    OK(cg_property_get(world, str("game:rules"), &out, E));
    CHECK(holds(out, "none"));
    const cg_record *view = NULL;
    OK(cg_record_get(world, record.id, &out, &view, E));
    CHECK(same_text(view->bytes, "a sign"));
    EQUAL(CG_OK, cg_release(out));
    world_close(world);
    free(c);
}

TEST(a_transaction_that_is_released_leaves_nothing) {
    begin();
    OK(cg_tx_object_put(tx, text_bytes("k"), text_bytes("v"), E));
    EQUAL(CG_OK, cg_release(tx));
    cg_handle out = 0;
    EXPECT(CG_ABSENT, cg_object_get(world, text_bytes("k"), &out, NULL, E));
    EQUAL(0, out);
    tx = tx_of(world);
    end();
}

TEST(a_transaction_is_empty_after_its_commit) {
    begin();
    OK(cg_tx_object_put(tx, text_bytes("k"), text_bytes("1"), E));
    OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    cg_handle other = tx_of(world), out = 0;
    OK(cg_tx_object_put(other, text_bytes("k"), text_bytes("2"), E));
    OK(commit(other));
    EXPECT(CG_UNCHANGED, cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    OK(cg_object_get(world, text_bytes("k"), &out, NULL, E));
    CHECK(holds(out, "2"));
    end();
}

TEST(the_last_write_of_a_thing_counts) {
    begin();
    column *c = column_of(dim, 0, 0, 2);
    OK(cg_tx_column(tx, binding, &c->view, 0, E));
    c->palettes[0][0][0] = 3;
    OK(cg_tx_column(tx, binding, &c->view, 0, E));
    OK(cg_tx_object_put(tx, text_bytes("k"), text_bytes("1"), E));
    OK(cg_tx_object_delete(tx, text_bytes("k"), E));
    OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    EQUAL(3, stored_block(world, binding, dim, 0, 0, 0));
    cg_handle out = 0;
    EXPECT(CG_ABSENT, cg_object_get(world, text_bytes("k"), &out, NULL, E));
    end();
    free(c);
}

TEST(a_chunk_that_changed_is_a_conflict) {
    begin();
    save_one(world, binding, dim, 0, 0, 2);
    uint64_t version = version_of(pos(0, 0, 0));
    OK(cg_tx_expect_chunk(tx, dim, pos(0, 0, 0), version, E));
    OK(cg_tx_object_put(tx, text_bytes("k"), text_bytes("v"), E));
    save_one(world, binding, dim, 0, 0, 3);
    CHECK(version_of(pos(0, 0, 0)) != version);
    cg_handle out = 0;
    for (int i = 0; i < 2; i++) { /* the transaction keeps its writes */
        cg_error *error = E;
        EXPECT(CG_CONFLICT, cg_tx_commit(tx, CG_DEFAULT, NULL, error));
        CHECK(error->has_place && error->chunk.x == 0 && error->dimension == dim);
        EXPECT(CG_ABSENT, cg_object_get(world, text_bytes("k"), &out, NULL, E));
    }
    EQUAL(CG_OK, cg_release(tx));
    tx = tx_of(world);
    OK(cg_tx_expect_chunk(tx, dim, pos(0, 0, 0), version_of(pos(0, 0, 0)), E));
    OK(cg_tx_object_put(tx, text_bytes("k"), text_bytes("v"), E));
    OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    OK(cg_object_get(world, text_bytes("k"), &out, NULL, E));
    EQUAL(CG_OK, cg_release(out));
    end();
}

TEST(an_absent_chunk_may_be_expected) {
    begin();
    column *c = column_of(dim, 0, 0, 2);
    OK(cg_tx_expect_chunk(tx, dim, pos(0, 0, 0), 0, E));
    OK(cg_tx_column(tx, binding, &c->view, 0, E));
    OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    OK(cg_tx_expect_chunk(tx, dim, pos(0, 0, 0), 0, E));
    c->palettes[0][0][0] = 3;
    OK(cg_tx_column(tx, binding, &c->view, 0, E));
    EXPECT(CG_CONFLICT, cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    EQUAL(2, stored_block(world, binding, dim, 0, 0, 0));
    end();
    free(c);
}

TEST(an_entity_that_changed_is_a_conflict) {
    begin();
    cg_entity player = entity_of(1, 0, dim, pos(1, 1, 1), "10 gold");
    OK(cg_tx_expect_entity(tx, player.id, 0, E));
    OK(cg_tx_entity_put(tx, binding, &player, CG_DETACHED, E));
    OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    const cg_entity *view = NULL;
    uint64_t version = 0;
    cg_handle out = 0;
    OK(cg_entity_get(world, binding, player.id, &out, &view, &version, E));
    EQUAL(CG_OK, cg_release(out));
    player.nbt = text_bytes("9 gold");
    OK(cg_tx_expect_entity(tx, player.id, version, E));
    OK(cg_tx_entity_put(tx, binding, &player, CG_DETACHED, E));
    OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    OK(cg_tx_expect_entity(tx, player.id, version, E));
    player.nbt = text_bytes("1000 gold");
    OK(cg_tx_entity_put(tx, binding, &player, CG_DETACHED, E));
    EXPECT(CG_CONFLICT, cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    OK(cg_entity_get(world, binding, player.id, &out, &view, &version, E));
    CHECK(same_text(view->nbt, "9 gold"));
    EQUAL(CG_OK, cg_release(out));
    EXPECT(CG_INVALID, cg_tx_expect_entity(tx, NULL, 0, E));
    end();
}

/* The 50th of 100 columns has a block entity that is larger than a chunk may be. */
TEST(one_of_100_columns_is_too_large) {
    begin();
    size_t len = 17 << 20;
    uint8_t *large = (uint8_t *)malloc(len);
    for (size_t i = 0; i < len; i++) large[i] = (uint8_t)((i * 2654435761u) >> 13);
    cg_block_entity owned = block_entity_of(pos(49 * 16 + 1, 1, 1), bytes(large, len));
    int result = CG_OK;
    cg_error *error = E;
    for (int64_t x = 0; x < 100 && result == CG_OK; x++) {
        column *c = column_of(dim, x, 0, 3);
        if (x == 49) {
            c->view.block_entities = &owned;
            c->view.block_entity_count = 1;
        }
        error = E;
        result = cg_tx_column(tx, binding, &c->view, 0, error);
        free(c);
    }
    if (result == CG_OK) result = cg_tx_commit(tx, CG_DEFAULT, NULL, error);
    EXPECT(CG_TOO_LARGE, result);
    CHECK(error->has_place && error->chunk.x == 49 && error->chunk.z == 0 && error->dimension == dim);
    for (int64_t x = 0; x < 100; x++) EXPECT(CG_ABSENT, load_result(world, binding, dim, x, 0));
    end();
    free(large);
}

TEST(columns_100_in_one_commit) {
    begin();
    for (int64_t x = 0; x < 100; x++) {
        column *c = column_of(dim, x, 0, (uint32_t)(x % 8));
        OK(cg_tx_column(tx, binding, &c->view, 0, E));
        free(c);
    }
    uint64_t commit = 0;
    OK(cg_tx_commit(tx, CG_DEFAULT, &commit, E));
    for (int64_t x = 0; x < 100; x++) EQUAL(x % 8, stored_block(world, binding, dim, x * 16, 0, 0));
    end();
}

TEST(blocks_of_stored_chunks) {
    begin();
    save_one(world, binding, dim, 0, 0, 2);
    uint64_t four = world_block("game:block_4");
    OK(cg_tx_set_block(tx, dim, pos(3, 4, 5), four, E));
    OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    EQUAL(4, stored_block(world, binding, dim, 3, 4, 5));
    EQUAL(2, stored_block(world, binding, dim, 3, 4, 6));
    OK(cg_tx_set_block(tx, dim, pos(3, 4, 5), world_block("game:block_5"), E));
    OK(cg_tx_set_block(tx, dim, pos(3, 4, 5000), four, E));
    EXPECT(CG_NOT_FOUND, cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    EQUAL(4, stored_block(world, binding, dim, 3, 4, 5));
    EQUAL(CG_OK, cg_release(tx));
    tx = tx_of(world);
    int result = cg_tx_set_block(tx, dim, pos(3, 4, 5), 1 << 20, E); /* the world has no such block */
    if (result == CG_OK) result = cg_tx_commit(tx, CG_DEFAULT, NULL, E);
    CHECK(result == CG_INVALID || result == CG_NOT_FOUND);
    EQUAL(4, stored_block(world, binding, dim, 3, 4, 5));
    end();
}

TEST(chunks_are_deleted_with_their_entities) {
    begin();
    cg_entity mob = entity_of(1, 0, dim, pos(1, 1, 1), "x");
    save_one(world, binding, dim, 0, 0, 2);
    OK(cg_tx_entity_put(tx, binding, &mob, 0, E));
    OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    OK(cg_tx_delete_chunk(tx, dim, pos(0, 0, 0), E));
    OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    EXPECT(CG_ABSENT, load_result(world, binding, dim, 0, 0));
    const cg_entity *view = NULL;
    cg_handle out = 0;
    EXPECT(CG_ABSENT, cg_entity_get(world, binding, mob.id, &out, &view, NULL, E));
    end();
}

TEST(what_is_submitted_is_seen_at_once) {
    begin();
    column *c = column_of(dim, 0, 0, 2);
    OK(cg_tx_column(tx, binding, &c->view, 0, E));
    OK(cg_tx_object_put(tx, text_bytes("k"), text_bytes("v"), E));
    OK(cg_tx_submit(tx, E));
    EQUAL(2, stored_block(world, binding, dim, 0, 0, 0));
    OK(cg_world_flush(world, E));
    cg_handle out = 0;
    OK(cg_object_get(world, text_bytes("k"), &out, NULL, E));
    EQUAL(CG_OK, cg_release(out));
    EQUAL(2, stored_block(world, binding, dim, 0, 0, 0));
    OK(cg_tx_expect_chunk(tx, dim, pos(0, 0, 0), 1, E));
    EXPECT(CG_INVALID, cg_tx_submit(tx, E));
    end();
    free(c);
}

TEST(a_group_is_seen_before_it_is_committed) {
    begin_open_group();
    cg_world_info before, after;
    memset(&before, 0, sizeof before);
    before.struct_size = sizeof before;
    after = before;
    OK(cg_world_info_of(world, &before, E));
    for (int64_t x = 0; x < 5; x++) {
        column *c = column_of(dim, x, 0, (uint32_t)x);
        OK(cg_column_submit(world, binding, &c->view, 0, E));
        free(c);
    }
    for (int64_t x = 0; x < 5; x++) {
        const cg_column *view = NULL;
        cg_handle out = column_load(world, binding, dim, x, &view); /* other heights would end the group */
        EQUAL(x, block_in(view, 1, 2, 3));
        EQUAL(CG_OK, cg_release(out));
    }
    /* A save of its own comes after what was submitted. */
    save_one(world, binding, dim, 2, 0, 7);
    EQUAL(7, stored_block(world, binding, dim, 32, 0, 0));
    OK(cg_world_flush(world, E));
    OK(cg_world_info_of(world, &after, E));
    CHECK(after.last_commit > before.last_commit);
    EQUAL(7, stored_block(world, binding, dim, 32, 0, 0));
    EQUAL(3, stored_block(world, binding, dim, 48, 0, 0));
    world_close(world);
}

TEST(a_close_commits_the_open_group) {
    begin_open_group();
    column *c = column_of(dim, 0, 0, 5);
    OK(cg_column_submit(world, binding, &c->view, 0, E));
    world_close(world);
    world = world_again();
    binding = binding_of(world, 8);
    EQUAL(5, stored_block(world, binding, dim, 0, 0, 0));
    world_close(world);
    free(c);
}

TEST(arguments_of_transactions) {
    begin();
    EXPECT(CG_INVALID, cg_tx_new(world, NULL, E));
    EXPECT(CG_INVALID, cg_tx_commit(tx, 6, NULL, E));
    EXPECT(CG_INVALID, cg_tx_column(tx, binding, NULL, 0, E));
    EXPECT(CG_INVALID, cg_tx_settings(tx, NULL, E));
    EXPECT(CG_INVALID, cg_tx_record_put(tx, NULL, E));
    EXPECT(CG_INVALID, cg_tx_record_delete(tx, NULL, E));
    cg_bytes none = {NULL, 4};
    EXPECT(CG_INVALID, cg_tx_object_put(tx, none, text_bytes("v"), E));
    EXPECT(CG_INVALID, cg_tx_object_put(tx, text_bytes("k"), none, E));
    EXPECT(CG_INVALID, cg_tx_object_delete(tx, none, E));
    EXPECT(CG_INVALID, cg_tx_property(tx, str("\xff:x"), text_bytes("v"), E));
    EXPECT(CG_INVALID, cg_tx_expect_chunk(tx, dim, pos(INT64_MAX, 0, 0), 1, E));
    EXPECT(CG_INVALID, cg_tx_delete_chunk(tx, dim, pos(0, INT64_MIN, 0), E));
    EXPECT(CG_UNCHANGED, cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    end();
}
