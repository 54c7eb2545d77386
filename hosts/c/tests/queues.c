/* Queues: loads and commits whose answers are fetched later. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fixture.h"

enum { COLUMNS = 64, SECOND = 1000 };

static cg_handle world, binding, queue;
static uint32_t dim;

static void begin(uint32_t capacity) {
    world = world_new();
    binding = binding_of(world, 8);
    dim = overworld(world);
    cg_handle tx = 0;
    OK(cg_tx_new(world, &tx, E));
    for (int64_t x = 0; x < COLUMNS; x++) {
        column *c = column_of(dim, x, 0, (uint32_t)(x % 8));
        OK(cg_tx_column(tx, binding, &c->view, 0, E));
        free(c);
    }
    OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    EQUAL(CG_OK, cg_release(tx));
    OK(cg_queue_new(world, capacity, &queue, E));
    CHECK(queue != 0);
}

static void end(void) {
    EQUAL(CG_OK, cg_release(queue));
    world_close(world);
}

static int ask(int64_t x, uint64_t tag) {
    cg_column_at at = at_of(dim, x, 0, 0, 3);
    return cg_queue_load(queue, binding, &at, tag, E);
}

static void check_answer(const cg_done *done, int64_t x) {
    EQUAL(CG_OK, done->result);
    EQUAL(0, done->message);
    CHECK(done->column != 0 && done->view != NULL);
    EQUAL(x, done->view->x);
    EQUAL(x % 8, block_in(done->view, 1, 2, 3));
    EQUAL(CG_OK, cg_release(done->column));
}

TEST(loads_are_answered_once_each) {
    begin(COLUMNS);
    for (int64_t x = 0; x < COLUMNS; x++) OK(ask(x, (uint64_t)x + 1000));
    uint8_t seen[COLUMNS] = {0};
    for (size_t total = 0; total < COLUMNS;) {
        cg_done done[10];
        size_t n = 0;
        OK(cg_queue_wait(queue, done, 10, &n, 10 * SECOND, E));
        CHECK(n > 0 && n <= 10);
        for (size_t i = 0; i < n; i++, total++) {
            CHECK(done[i].tag >= 1000 && done[i].tag < 1000 + COLUMNS);
            CHECK(seen[done[i].tag - 1000]++ == 0);
            check_answer(&done[i], (int64_t)done[i].tag - 1000);
        }
    }
    cg_done done;
    size_t n = 7;
    OK(cg_queue_wait(queue, &done, 1, &n, 0, E));
    EQUAL(0, n);
    end();
}

TEST(absence_and_errors_are_answers) {
    begin(4);
    OK(ask(5000, 1));
    cg_done done;
    size_t n = 0;
    OK(cg_queue_wait(queue, &done, 1, &n, 10 * SECOND, E));
    CHECK(n == 1 && done.tag == 1 && done.result == CG_ABSENT && done.column == 0 && done.message == 0);
    cg_handle tx = 0;
    OK(cg_tx_new(world, &tx, E));
    OK(cg_tx_expect_chunk(tx, dim, pos(0, 0, 0), UINT64_MAX, E));
    OK(cg_tx_object_put(tx, text_bytes("k"), text_bytes("v"), E));
    OK(cg_queue_commit(queue, tx, CG_DEFAULT, 2, E));
    OK(cg_queue_wait(queue, &done, 1, &n, 10 * SECOND, E));
    CHECK(n == 1 && done.tag == 2 && done.result == CG_CONFLICT && done.message != 0 && done.column == 0);
    CHECK((done.flags & CG_DONE_HAS_PLACE) != 0 && done.dimension == dim && done.chunk.x == 0);
    cg_bytes text;
    OK(cg_bytes_of(done.message, &text, E));
    CHECK(text.len > 0);
    EQUAL(CG_OK, cg_release(done.message));
    EQUAL(CG_OK, cg_release(tx));
    end();
}

TEST(a_commit_is_answered_when_it_is_durable) {
    begin(4);
    cg_handle tx = 0;
    OK(cg_tx_new(world, &tx, E));
    OK(cg_tx_object_put(tx, text_bytes("k"), text_bytes("v"), E));
    OK(cg_queue_commit(queue, tx, CG_SAFE, 9, E));
    OK(cg_tx_object_put(tx, text_bytes("later"), text_bytes("v"), E)); /* it is empty, and may be used again */
    cg_done done;
    size_t n = 0;
    OK(cg_queue_wait(queue, &done, 1, &n, 10 * SECOND, E));
    CHECK(n == 1 && done.tag == 9 && done.result == CG_OK && done.commit > 0 && done.column == 0);
    cg_handle out = 0;
    OK(cg_object_get(world, text_bytes("k"), &out, NULL, E));
    EQUAL(CG_OK, cg_release(out));
    EXPECT(CG_ABSENT, cg_object_get(world, text_bytes("later"), &out, NULL, E));
    EXPECT(CG_INVALID, cg_queue_commit(queue, tx, 9, 1, E));
    EQUAL(CG_OK, cg_release(tx));
    end();
}

TEST(a_full_queue_is_busy) {
    begin(3);
    for (uint64_t tag = 0; tag < 3; tag++) OK(ask(0, tag));
    cg_error *error = E;
    EXPECT(CG_BUSY, ask(0, 3));
    EQUAL(1, error->retryable);
    cg_handle tx = 0;
    OK(cg_tx_new(world, &tx, E));
    OK(cg_tx_object_put(tx, text_bytes("k"), text_bytes("v"), E));
    EXPECT(CG_BUSY, cg_queue_commit(queue, tx, CG_DEFAULT, 4, E));
    cg_done done[3];
    size_t n = 0;
    OK(cg_queue_wait(queue, done, 1, &n, 10 * SECOND, E));
    EQUAL(1, n);
    check_answer(&done[0], 0);
    OK(cg_queue_commit(queue, tx, CG_DEFAULT, 4, E)); /* it still had its write */
    for (size_t total = 0; total < 3; total += n) {
        OK(cg_queue_wait(queue, done, 3, &n, 10 * SECOND, E));
        CHECK(n > 0);
        for (size_t i = 0; i < n; i++)
            if (done[i].column != 0) EQUAL(CG_OK, cg_release(done[i].column));
    }
    cg_handle out = 0;
    OK(cg_object_get(world, text_bytes("k"), &out, NULL, E));
    EQUAL(CG_OK, cg_release(out));
    EQUAL(CG_OK, cg_release(tx));
    end();
}

TEST(what_was_not_begun_is_cancelled) {
    begin(COLUMNS);
    for (int64_t x = 0; x < COLUMNS; x++) OK(ask(x, (uint64_t)x));
    size_t cancelled = 0, closed = 0, loaded = 0;
    for (uint64_t tag = COLUMNS; tag-- > 0;) {
        int result = cg_queue_cancel(queue, tag);
        CHECK(result == CG_OK || result == CG_ABSENT);
        cancelled += result == CG_OK;
    }
    EQUAL(CG_ABSENT, cg_queue_cancel(queue, 99999));
    for (size_t total = 0; total < COLUMNS; total++) {
        cg_done done;
        size_t n = 0;
        OK(cg_queue_wait(queue, &done, 1, &n, 10 * SECOND, E));
        EQUAL(1, n);
        if (done.result == CG_CLOSED) {
            closed++;
            if (done.message != 0) EQUAL(CG_OK, cg_release(done.message));
        } else {
            check_answer(&done, (int64_t)done.tag);
            loaded++;
        }
    }
    EQUAL(cancelled, closed);
    EQUAL(COLUMNS, closed + loaded);
    end();
}

TEST(answers_that_are_not_fetched_are_released) {
    begin(COLUMNS);
    for (int64_t x = 0; x < COLUMNS; x++) OK(ask(x, (uint64_t)x));
    cg_done done;
    size_t n = 0;
    OK(cg_queue_wait(queue, &done, 1, &n, 10 * SECOND, E));
    check_answer(&done, (int64_t)done.tag);
    end();
}

TEST(arguments_of_queues) {
    begin(4);
    cg_handle other = 0;
    cg_done done;
    size_t n = 0;
    EXPECT(CG_INVALID, cg_queue_new(world, 0, &other, E));
    EXPECT(CG_INVALID, cg_queue_new(world, 4, NULL, E));
    EXPECT(CG_INVALID, cg_queue_load(queue, binding, NULL, 1, E));
    cg_column_at at = at_of(dim, 0, 0, 3, 0);
    EXPECT(CG_INVALID, cg_queue_load(queue, binding, &at, 1, E));
    at = at_of(dim, 0, 0, 0, 3);
    EXPECT(CG_INVALID, cg_queue_load(queue, world, &at, 1, E));
    EXPECT(CG_INVALID, cg_queue_commit(queue, binding, CG_DEFAULT, 1, E));
    EXPECT(CG_INVALID, cg_queue_wait(queue, NULL, 1, &n, 0, E));
    EXPECT(CG_INVALID, cg_queue_wait(queue, &done, 1, NULL, 0, E));
    EXPECT(CG_INVALID, cg_queue_wait(world, &done, 1, &n, 0, E));
    OK(cg_queue_wait(queue, NULL, 0, &n, 0, E));
    EQUAL(0, n);
    EQUAL(CG_INVALID, cg_queue_cancel(world, 1));
    int result = cg_queue_new(world, UINT32_MAX, &other, E);
    if (result == CG_OK) EQUAL(CG_OK, cg_release(other));
    end();
}

static void *wait_until_closed(void *results) {
    cg_done done;
    size_t n = 0;
    *(int *)results = cg_queue_wait(queue, &done, 1, &n, 60 * SECOND, NULL);
    return NULL;
}

static void pause_ms(long ms) {
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

TEST(release_wakes_all_that_wait) {
    begin(4);
    pthread_t threads[4];
    int results[4] = {0};
    for (size_t i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, wait_until_closed, &results[i]) == 0);
    pause_ms(100);
    EQUAL(CG_OK, cg_release(queue));
    for (size_t i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (size_t i = 0; i < 4; i++) EQUAL(CG_CLOSED, results[i]);
    world_close(world);
}

TEST(a_closed_world_wakes_all_that_wait) {
    begin(4);
    pthread_t thread;
    int result = 0;
    CHECK(pthread_create(&thread, NULL, wait_until_closed, &result) == 0);
    pause_ms(100);
    world_close(world);
    CHECK(pthread_join(thread, NULL) == 0);
    EQUAL(CG_CLOSED, result);
    EQUAL(CG_OK, cg_release(queue));
}

enum { ASKERS = 3, EACH = 200 };
static int fetched;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t seen[ASKERS * EACH];

static void *ask_many(void *argument) {
    uint64_t first = *(const uint64_t *)argument;
    for (uint64_t i = 0; i < EACH;) {
        int result = ask((int64_t)((first + i) % COLUMNS), first + i);
        if (result == CG_BUSY)
            pause_ms(1);
        else {
            CHECK(result == CG_OK);
            i++;
        }
    }
    return NULL;
}

static void *fetch_many(void *argument) {
    (void)argument;
    for (;;) {
        cg_done done[8];
        size_t n = 0;
        int result = cg_queue_wait(queue, done, 8, &n, 50, NULL);
        CHECK(result == CG_OK);
        pthread_mutex_lock(&lock);
        for (size_t i = 0; i < n; i++) {
            CHECK(done[i].tag < ASKERS * EACH && seen[done[i].tag]++ == 0);
            fetched++;
        }
        int all = fetched == ASKERS * EACH;
        pthread_mutex_unlock(&lock);
        for (size_t i = 0; i < n; i++) check_answer(&done[i], (int64_t)(done[i].tag % COLUMNS));
        if (all) return NULL;
    }
}

TEST(many_threads_ask_and_fetch) {
    begin(16);
    pthread_t threads[ASKERS + 3];
    uint64_t firsts[ASKERS];
    for (size_t i = 0; i < ASKERS; i++) {
        firsts[i] = i * EACH;
        CHECK(pthread_create(&threads[i], NULL, ask_many, &firsts[i]) == 0);
    }
    for (size_t i = ASKERS; i < ASKERS + 3; i++) CHECK(pthread_create(&threads[i], NULL, fetch_many, NULL) == 0);
    for (size_t i = 0; i < ASKERS + 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    EQUAL(ASKERS * EACH, fetched);
    end();
}
