/* Processes that end without closing their world. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

/* Runs a function in a process of its own and returns how that ended. */
static int in_process(void (*function)(void)) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        function();
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

static cg_handle world, binding;
static uint32_t dim;

static void open_new(void) {
    world = world_new();
    binding = binding_of(world, 8);
    dim = overworld(world);
}

static void open_again(void) {
    world = world_again();
    binding = binding_of(world, 8);
    dim = overworld(world);
}

static void save_and_leave(void) {
    open_new();
    for (int64_t x = 0; x < 50; x++) save_one(world, binding, dim, x, 0, (uint32_t)(x % 8));
}

TEST(a_process_that_ends_without_close) {
    EQUAL(0, in_process(save_and_leave));
    open_again();
    for (int64_t x = 0; x < 50; x++) EQUAL(x % 8, stored_block(world, binding, dim, x * 16, 0, 0));
    world_close(world);
}

static void save_and_exit(void) {
    save_and_leave();
    exit(3);
}

TEST(a_process_that_calls_exit) {
    int status = in_process(save_and_exit);
    CHECK(WIFEXITED(status)); /* with 3, or with that of the leak detector */
    open_again();
    EQUAL(1, stored_block(world, binding, dim, 49 * 16, 0, 0));
    world_close(world);
}

static void save_and_be_killed(void) {
    save_and_leave();
    kill(getpid(), SIGKILL);
}

TEST(a_process_that_is_killed) {
    int status = in_process(save_and_be_killed);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    open_again();
    for (int64_t x = 0; x < 50; x++) EQUAL(x % 8, stored_block(world, binding, dim, x * 16, 0, 0));
    world_close(world);
}

static void submit_flush_and_be_killed(void) {
    open_new();
    for (int64_t x = 0; x < 20; x++) {
        column *c = column_of(dim, x, 0, 3);
        OK(cg_column_submit(world, binding, &c->view, 0, E));
        free(c);
    }
    OK(cg_world_flush(world, E));
    for (int64_t x = 20; x < 40; x++) {
        column *c = column_of(dim, x, 0, 4);
        OK(cg_column_submit(world, binding, &c->view, 0, E));
        free(c);
    }
    kill(getpid(), SIGKILL);
}

TEST(what_was_flushed_survives_a_kill) {
    CHECK(WIFSIGNALED(in_process(submit_flush_and_be_killed)));
    open_again();
    for (int64_t x = 0; x < 20; x++) EQUAL(3, stored_block(world, binding, dim, x * 16, 0, 0));
    for (int64_t x = 20; x < 40; x++) {
        int result = load_result(world, binding, dim, x, 0); /* whole, or not at all */
        CHECK(result == CG_OK || result == CG_ABSENT);
        if (result == CG_OK) EQUAL(4, stored_block(world, binding, dim, x * 16, 0, 0));
    }
    world_close(world);
}

static void commit_and_be_killed(void) {
    open_new();
    cg_handle tx = 0;
    OK(cg_tx_new(world, &tx, E));
    OK(cg_tx_object_put(tx, text_bytes("durable"), text_bytes("v"), E));
    OK(cg_tx_commit(tx, CG_PROCESS, NULL, E));
    OK(cg_tx_object_put(tx, text_bytes("open"), text_bytes("v"), E));
    kill(getpid(), SIGKILL);
}

TEST(an_open_transaction_is_gone_with_its_process) {
    CHECK(WIFSIGNALED(in_process(commit_and_be_killed)));
    open_again();
    cg_handle out = 0;
    OK(cg_object_get(world, text_bytes("durable"), &out, NULL, E));
    EQUAL(CG_OK, cg_release(out));
    EXPECT(CG_ABSENT, cg_object_get(world, text_bytes("open"), &out, NULL, E));
    world_close(world);
}
