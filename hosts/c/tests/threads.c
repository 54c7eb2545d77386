/* Several threads on one world, one transaction, one chunk and one cursor. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

enum { THREADS = 4, ROUNDS = 300 };

static cg_handle world, binding, shared;
static uint32_t dim;
static size_t outcomes[2]; /* done, busy */

static void begin(void) {
    world = world_new();
    binding = binding_of(world, 8);
    dim = overworld(world);
}

static void in_threads(void *(*function)(void *)) {
    pthread_t threads[THREADS];
    static int64_t numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, function, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* Counts how a call on a shared handle ended. */
static void count(int result) {
    if (result != CG_OK && result != CG_BUSY) test_fail(__FILE__, __LINE__, "a shared handle gave %d", result);
    __atomic_add_fetch(&outcomes[result == CG_BUSY], 1, __ATOMIC_RELAXED);
}

static void *write_to_tx(void *number) {
    for (int i = 0; i < ROUNDS; i++) {
        column *c = column_of(dim, *(const int64_t *)number, i % 5, 2);
        count(cg_tx_column(shared, binding, &c->view, 0, NULL));
        count(cg_tx_object_put(shared, bytes(&i, sizeof i), bytes(number, 8), NULL));
        free(c);
    }
    return NULL;
}

TEST(one_transaction_of_many_threads) {
    begin();
    OK(cg_tx_new(world, &shared, E));
    in_threads(write_to_tx);
    CHECK(outcomes[0] > 0);
    EQUAL(THREADS * ROUNDS * 2, outcomes[0] + outcomes[1]);
    CHECK(cg_tx_commit(shared, CG_DEFAULT, NULL, E) >= 0);
    EQUAL(CG_OK, cg_release(shared));
    world_close(world);
}

static void *change_chunk(void *number) {
    static uint64_t cells[THREADS][CELLS];
    int64_t me = *(const int64_t *)number;
    for (int i = 0; i < ROUNDS; i++) {
        cg_cell at = {(uint8_t)(i & 15), (uint8_t)me, 3, 0};
        count(cg_chunk_set_block(shared, at, (uint64_t)(i & 1), NULL));
        count(cg_chunk_cells(shared, CG_ORDER_YZX, cells[me], CELLS, NULL));
        count(cg_chunk_set_cells(shared, CG_ORDER_YZX, cells[me], CELLS, NULL));
    }
    return NULL;
}

TEST(one_chunk_of_many_threads) {
    begin();
    OK(cg_chunk_new(world, 0, &shared, E));
    in_threads(change_chunk);
    CHECK(outcomes[0] > 0);
    EQUAL(THREADS * ROUNDS * 3, outcomes[0] + outcomes[1]);
    EQUAL(CG_OK, cg_release(shared));
    world_close(world);
}

static size_t walked;

static void *walk(void *number) {
    (void)number;
    for (int i = 0; i < ROUNDS; i++) {
        cg_column_place places[3];
        size_t n = 0;
        count(cg_columns_next(shared, places, 3, &n, NULL));
        __atomic_add_fetch(&walked, n, __ATOMIC_RELAXED);
    }
    return NULL;
}

TEST(one_cursor_of_many_threads) {
    begin();
    for (int64_t x = 0; x < 50; x++) save_one(world, binding, dim, x, 0, 1);
    OK(cg_columns_walk(world, dim, &shared, E));
    in_threads(walk);
    EQUAL(THREADS * ROUNDS, outcomes[0] + outcomes[1]);
    EQUAL(50, walked);
    EQUAL(CG_OK, cg_release(shared));
    world_close(world);
}

static void *save_and_load(void *number) {
    int64_t me = *(const int64_t *)number;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t block = (uint32_t)i % 7 + 1;
        column *c = column_of(dim, me * 100 + i % 3, 0, block);
        int result = i % 2 == 0 ? cg_column_submit(world, binding, &c->view, 0, NULL)
                                : cg_column_save(world, binding, &c->view, 0, NULL, NULL);
        CHECK(result == CG_OK || result == CG_UNCHANGED);
        /* A load right after a save never sees an older state. */
        EQUAL(block, stored_block(world, binding, dim, c->view.x * 16, 0, 0));
        free(c);
    }
    return NULL;
}

TEST(columns_of_many_threads) {
    begin();
    in_threads(save_and_load);
    world_close(world);
}

static void *save_the_same(void *number) {
    int64_t me = *(const int64_t *)number;
    for (int i = 0; i < ROUNDS; i++) {
        column *c = column_of(dim, 0, 0, (uint32_t)me + 1);
        CHECK(cg_column_save(world, binding, &c->view, 0, NULL, NULL) >= 0); /* conflicts are retried inside */
        uint32_t found = stored_block(world, binding, dim, 0, 0, 0);
        CHECK(found >= 1 && found <= THREADS);
        free(c);
    }
    return NULL;
}

TEST(one_column_of_many_threads) {
    begin();
    in_threads(save_the_same);
    world_close(world);
}

static uint32_t accepted[THREADS][50];

static void *use_until_closed(void *number) {
    int64_t me = *(const int64_t *)number;
    for (int i = 0; i < 1000000; i++) {
        column *c = column_of(dim, me, i % 50, (uint32_t)i % 8);
        int result = i % 2 == 0 ? cg_column_submit(world, binding, &c->view, 0, NULL)
                                : cg_column_save(world, binding, &c->view, 0, NULL, NULL);
        free(c);
        if (result == CG_CLOSED || result == CG_INVALID) return NULL;
        CHECK(result >= 0);
        accepted[me][i % 50] = (uint32_t)i % 8 + 1;
        __atomic_add_fetch(&outcomes[0], 1, __ATOMIC_RELAXED);
    }
    test_fail(__FILE__, __LINE__, "the world did not close");
}

static void *close_soon(void *number) {
    if (*(const int64_t *)number != 0) return use_until_closed(number);
    while (__atomic_load_n(&outcomes[0], __ATOMIC_RELAXED) < 200) {
    }
    CHECK(cg_world_close(world, NULL) == CG_OK);
    return NULL;
}

TEST(a_world_is_closed_while_others_save) {
    begin();
    in_threads(close_soon);
    /* What was accepted before the close is there. */
    world = world_again();
    binding = binding_of(world, 8);
    for (int64_t me = 1; me < THREADS; me++)
        for (int64_t z = 0; z < 50; z++)
            if (accepted[me][z] != 0) EQUAL(accepted[me][z] - 1, stored_block(world, binding, dim, me * 16, 0, z * 16));
    world_close(world);
}

static void *transfer(void *number) {
    (void)number;
    for (int done = 0; done < 50;) {
        const cg_entity *view = NULL;
        cg_handle out = 0, tx = 0;
        uint64_t version = 0;
        uint8_t id[16] = {0};
        CHECK(cg_entity_get(world, binding, id, &out, &view, &version, NULL) == CG_OK);
        cg_entity changed = *view;
        uint64_t gold = 0;
        memcpy(&gold, view->nbt.ptr, sizeof gold);
        gold++;
        changed.nbt = bytes(&gold, sizeof gold);
        CHECK(cg_tx_new(world, &tx, NULL) == CG_OK);
        CHECK(cg_tx_expect_entity(tx, id, version, NULL) == CG_OK);
        CHECK(cg_tx_entity_put(tx, binding, &changed, CG_DETACHED, NULL) == CG_OK);
        int result = cg_tx_commit(tx, CG_DEFAULT, NULL, NULL);
        CHECK(result == CG_OK || result == CG_CONFLICT);
        done += result == CG_OK;
        CHECK(cg_release(out) == CG_OK && cg_release(tx) == CG_OK);
    }
    return NULL;
}

TEST(no_transfer_is_lost) {
    begin();
    uint64_t gold = 0;
    cg_handle tx = 0, out = 0;
    cg_entity player = entity_of(0, 0, dim, pos(0, 0, 0), "");
    memset(player.id, 0, sizeof player.id);
    player.nbt = bytes(&gold, sizeof gold);
    OK(cg_tx_new(world, &tx, E));
    OK(cg_tx_entity_put(tx, binding, &player, CG_DETACHED, E));
    OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    in_threads(transfer);
    const cg_entity *view = NULL;
    OK(cg_entity_get(world, binding, player.id, &out, &view, NULL, E));
    memcpy(&gold, view->nbt.ptr, sizeof gold);
    EQUAL(THREADS * 50, gold);
    EQUAL(CG_OK, cg_release(out));
    EQUAL(CG_OK, cg_release(tx));
    world_close(world);
}
