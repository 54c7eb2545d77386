/* A disk that takes nothing for a while: what was accepted is held, seen, and stored later. The limit on the size of files
 * stands for the disk, since it can be set and lifted without rights. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "fixture.h"

enum { BEFORE = 4, HELD = 40 };

static cg_handle world, binding;
static uint32_t dim;

static void begin(void) {
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    world = world_new();
    binding = binding_of(world, 64);
    dim = overworld(world);
    for (int64_t x = 0; x < BEFORE; x++) save_one(world, binding, dim, x, 0, 2);
    OK(cg_world_flush(world, E));
}

static void limit_files(rlim_t bytes_of_a_file) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes_of_a_file < limit.rlim_max ? bytes_of_a_file : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* A column of mixed blocks, so that it takes some bytes. */
static column *column_mixed(int64_t x, uint32_t salt) {
    uint32_t numbers[CELLS];
    for (uint32_t i = 0; i < CELLS; i++) numbers[i] = (i * 2654435761u + salt) >> 13 & 63;
    numbers[0] = salt & 63;
    column *c = column_of(dim, x, 0, 0);
    column_fill(c, 0, 0, numbers, plain());
    return c;
}

/* The block at the corner of a column, loaded in the heights in which it was saved: in others it cannot be given while it
 * is held. */
static uint32_t block_of(int64_t x) {
    const cg_column *view = NULL;
    cg_handle out = column_load(world, binding, dim, x, &view);
    uint32_t block = block_in(view, 0, 0, 0);
    EQUAL(CG_OK, cg_release(out));
    return block;
}

static void check_all(void) {
    for (int64_t x = 0; x < BEFORE; x++) EQUAL(2, block_of(x));
    for (int64_t x = 0; x < HELD; x++) EQUAL(x, block_of(x + BEFORE));
}

TEST(what_was_accepted_is_held_and_stored_later) {
    begin();
    limit_files(1);
    for (int64_t x = 0; x < HELD; x++) {
        column *c = column_mixed(x + BEFORE, (uint32_t)x);
        OK(cg_column_submit(world, binding, &c->view, 0, E));
        free(c);
    }
    CHECK(cg_world_flush(world, E) < 0); /* it ends the group, which the disk refuses */
    check_all();                         /* loads are given what is held */
    limit_files(RLIM_INFINITY);
    OK(cg_world_resume(world, E));
    OK(cg_world_flush(world, E));
    check_all();
    world_close(world);
    world = world_again();
    binding = binding_of(world, 64);
    check_all();
    world_close(world);
}

TEST(a_save_fails_and_is_made_again) {
    begin();
    limit_files(1);
    column *c = NULL;
    uint32_t salt = 0;
    int result = CG_OK;
    while (result >= 0 && salt < 20) {
        free(c);
        c = column_mixed(0, ++salt);
        result = cg_column_save(world, binding, &c->view, 0, NULL, E);
    }
    CHECK(result == CG_READ_ONLY || result == CG_LOW_DISK || result == CG_ENGINE || result == CG_IN_DOUBT);
    EQUAL(2, stored_block(world, binding, dim, 16, 0, 0));
    limit_files(RLIM_INFINITY);
    OK(cg_world_resume(world, E));
    CHECK(cg_column_save(world, binding, &c->view, 0, NULL, E) >= 0);
    world_close(world);
    world = world_again();
    binding = binding_of(world, 64);
    EQUAL(salt, stored_block(world, binding, dim, 0, 0, 0));
    world_close(world);
    free(c);
}

TEST(a_close_says_what_it_could_not_write) {
    begin();
    limit_files(1);
    for (int64_t x = 0; x < HELD; x++) {
        column *c = column_mixed(x + BEFORE, (uint32_t)x);
        OK(cg_column_submit(world, binding, &c->view, 0, E));
        free(c);
    }
    cg_error *error = E;
    int result = cg_world_close(world, error);
    CHECK(result < 0);
    test_expect(result, result, __FILE__, __LINE__, "cg_world_close");
    EXPECT(CG_CLOSED, cg_world_close(world, E));
    limit_files(RLIM_INFINITY);
    world = world_again();
    binding = binding_of(world, 64);
    for (int64_t x = 0; x < BEFORE; x++) EQUAL(2, stored_block(world, binding, dim, x * 16, 0, 0));
    world_close(world);
}

TEST(more_than_may_be_held_is_refused) {
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    cg_options options = options_of(CG_CREATE);
    options.durability = CG_PROCESS;
    options.min_free_bytes = 1;
    options.held_bytes = 1 << 20;
    options.group_ms = 1;
    world = world_with("world", &options);
    binding = binding_of(world, 64);
    dim = overworld(world);
    limit_files(1);
    int result = CG_OK;
    int64_t x = 0;
    for (; x < 3000 && result >= 0; x++) {
        column *c = column_mixed(x, (uint32_t)x);
        result = cg_column_submit(world, binding, &c->view, 0, E);
        free(c);
    }
    CHECK(result < 0 && result != CG_INTERNAL);
    CHECK(x > 1); /* some were accepted */
    limit_files(RLIM_INFINITY);
    OK(cg_world_resume(world, E));
    OK(cg_world_flush(world, E));
    for (int64_t i = 0; i + 1 < x; i++) EQUAL(i & 63, stored_block(world, binding, dim, i * 16, 0, 0));
    world_close(world);
}
