/* Bytes of a stored row that changed on the disk: an error and never absence, and nothing is written over them. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fixture.h"

enum { MARK = 40000, CUT = 64 };

static cg_handle world, binding;
static uint32_t dim;
static uint8_t mark[MARK]; /* random bytes, which are stored as they are */
static char file[1200];    /* the file that holds them */
static long where;         /* the place that was overwritten in it */
static uint8_t before[CUT];

static uint8_t next_byte(void) {
    static uint64_t state = 0x9e3779b97f4a7c15u;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint8_t)(state >> 24);
}

static void open_with(uint32_t mode, uint32_t on_damage) {
    cg_options options = options_of(mode);
    options.durability = CG_PROCESS;
    options.on_damage = on_damage;
    options.min_free_bytes = 1;
    world = world_with("world", &options);
    binding = binding_of(world, 8);
    dim = overworld(world);
}

/* A column of blocks 4 and 3 with a block entity of random bytes in each section, so that the row of each section is in a
 * block of the file of its own. */
static void save_marked(int64_t x, const uint8_t *first, const uint8_t *second) {
    column *c = column_new(dim, x, 0, 3);
    column_add(c, 0, 4);
    column_add(c, 1, 3);
    cg_block_entity owned[2] = {block_entity_of(pos(x * 16 + 1, 1, 1), bytes(first, MARK)),
                                block_entity_of(pos(x * 16 + 1, 17, 1), bytes(second, MARK))};
    c->view.block_entities = owned;
    c->view.block_entity_count = 2;
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    free(c);
}

static int search(const char *path, const struct stat *status, int flag, struct FTW *place) {
    (void)status, (void)place;
    size_t length = strlen(path);
    if (flag != FTW_F || length < 4 || strcmp(path + length - 4, ".sst") != 0) return 0;
    FILE *opened = fopen(path, "rb");
    CHECK(opened != NULL && fseek(opened, 0, SEEK_END) == 0);
    long size = ftell(opened);
    uint8_t *all = (uint8_t *)malloc((size_t)size + 1);
    rewind(opened);
    CHECK(fread(all, 1, (size_t)size, opened) == (size_t)size);
    fclose(opened);
    const uint8_t *found = (const uint8_t *)memmem(all, (size_t)size, mark + MARK / 2, CUT);
    if (found != NULL) {
        snprintf(file, sizeof file, "%s", path);
        where = (long)(found - all);
    }
    free(all);
    return found != NULL;
}

static void overwrite(const uint8_t *with) {
    FILE *opened = fopen(file, "r+b");
    if (opened == NULL) test_fail(__FILE__, __LINE__, "%s is gone", file);
    CHECK(fseek(opened, where, SEEK_SET) == 0 && fread(before, 1, CUT, opened) == CUT);
    CHECK(fseek(opened, where, SEEK_SET) == 0 && fwrite(with, 1, CUT, opened) == CUT);
    CHECK(fclose(opened) == 0);
}

/* A closed world of three columns, whose middle one is damaged. */
static void damage(void) {
    static uint8_t other[5][MARK];
    open_with(CG_CREATE, CG_REFUSE);
    for (size_t i = 0; i < MARK; i++) {
        mark[i] = next_byte();
        for (size_t j = 0; j < 5; j++) other[j][i] = next_byte();
    }
    save_marked(0, other[0], other[1]);
    save_marked(1, other[2], mark);
    save_marked(2, other[3], other[4]);
    world_close(world);
    open_with(CG_OPEN, CG_REFUSE); /* moves the log into tables */
    world_close(world);
    CHECK(nftw(world_path("world").ptr, search, 16, FTW_PHYS) == 1);
    static const uint8_t zeros[CUT] = {0};
    overwrite(zeros);
}

/* The file is as the damage left it; without the damage the column is what it was. */
static void repair_and_check(void) {
    uint8_t sound[CUT], damaged[CUT];
    memcpy(sound, mark + MARK / 2, CUT);
    overwrite(sound);
    memcpy(damaged, before, CUT);
    for (size_t i = 0; i < CUT; i++) EQUAL(0, damaged[i]);
    open_with(CG_OPEN, CG_REFUSE);
    const cg_column *view = NULL;
    cg_handle out = column_load(world, binding, dim, 1, &view);
    EQUAL(2, view->section_count);
    EQUAL(3, block_in(view, 5, 20, 5));
    size_t marked = 0;
    for (size_t i = 0; i < view->block_entity_count; i++) {
        const cg_block_entity *found = &view->block_entities[i];
        marked += found->at.y == 17 && found->nbt.len == MARK && memcmp(found->nbt.ptr, mark, MARK) == 0;
    }
    EQUAL(1, marked);
    EQUAL(CG_OK, cg_release(out));
    world_close(world);
}

TEST(a_damaged_column_is_an_error_and_stays_as_it_is) {
    damage();
    open_with(CG_OPEN, CG_REFUSE);
    cg_column_at at = at_of(dim, 1, 0, 0, 3);
    cg_handle out = 0;
    const cg_column *view = NULL;
    for (int i = 0; i < 3; i++) {
        cg_error *error = E;
        EXPECT(CG_DAMAGED, cg_column_load(world, binding, &at, &out, &view, error));
        CHECK(error->has_place && error->chunk.x == 1 && error->chunk.y == 1 && error->dimension == dim);
        EQUAL(0, out);
    }
    int peeked = cg_column_peek(world, binding, &at, &out, &view, E);
    CHECK(peeked == CG_DAMAGED || peeked == CG_PENDING);
    /* A host that generated anew must not be able to write over it. */
    column *c = column_of(dim, 1, 0, 1);
    column_add(c, 1, 1);
    EXPECT(CG_DAMAGED, cg_column_save(world, binding, &c->view, 0, NULL, E));
    if (cg_column_submit(world, binding, &c->view, 0, E) >= 0) (void)cg_world_flush(world, E);
    cg_handle tx = 0, queue = 0;
    OK(cg_tx_new(world, &tx, E));
    int result = cg_tx_column(tx, binding, &c->view, 0, E);
    if (result >= 0) result = cg_tx_commit(tx, CG_DEFAULT, NULL, E);
    EXPECT(CG_DAMAGED, result);
    EQUAL(CG_OK, cg_release(tx));
    OK(cg_queue_new(world, 1, &queue, E));
    OK(cg_queue_load(queue, binding, &at, 5, E));
    cg_done done;
    size_t n = 0;
    OK(cg_queue_wait(queue, &done, 1, &n, 10000, E));
    CHECK(n == 1 && done.result == CG_DAMAGED && done.column == 0 && done.message != 0);
    CHECK((done.flags & CG_DONE_HAS_PLACE) != 0 && done.chunk.x == 1 && done.chunk.y == 1);
    EQUAL(CG_OK, cg_release(done.message));
    EQUAL(CG_OK, cg_release(queue));
    /* Its neighbours are sound and take writes. */
    OK(load_result(world, binding, dim, 0, 0));
    save_one(world, binding, dim, 2, 0, 6);
    (void)cg_world_close(world, NULL);
    free(c);
    repair_and_check();
}

TEST(a_flush_says_what_was_refused) {
    damage();
    open_with(CG_OPEN, CG_REFUSE);
    column *c = column_of(dim, 1, 0, 1);
    column_add(c, 1, 1);
    int result = cg_column_submit(world, binding, &c->view, 0, E); /* it was not read yet */
    CHECK(result == CG_OK || result == CG_DAMAGED);
    if (result == CG_OK) {
        cg_error *error = E;
        EXPECT(CG_DAMAGED, cg_world_flush(world, error));
        CHECK(error->has_place && error->chunk.x == 1);
        OK(cg_world_flush(world, E));
    }
    EXPECT(CG_DAMAGED, load_result(world, binding, dim, 1, 0));
    EXPECT(CG_DAMAGED, cg_column_submit(world, binding, &c->view, 0, E));
    world_close(world);
    free(c);
    repair_and_check();
}

TEST(sound_sections_of_a_damaged_column) {
    damage();
    open_with(CG_OPEN, CG_PARTIAL);
    const cg_column *view = NULL;
    cg_handle out = column_load(world, binding, dim, 1, &view);
    EQUAL(1, view->damaged_sections);
    EQUAL(2, view->section_count);
    EQUAL(0, view->sections[0].flags);
    EQUAL(CG_SECTION_DAMAGED, view->sections[1].flags);
    EQUAL(4, block_in(view, 5, 5, 5));
    EQUAL(1, block_in(view, 5, 20, 5)); /* the placeholder */
    EQUAL(1, view->block_entity_count);
    EQUAL(1, view->block_entities[0].at.y);
    EQUAL(CG_OK, cg_release(out));
    column *c = column_of(dim, 1, 0, 4);
    column_add(c, 1, 1);
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E)); /* it writes the sound section */
    EQUAL(4, stored_block(world, binding, dim, 20, 5, 5));
    (void)cg_world_close(world, NULL);
    free(c);
    repair_and_check();
}

TEST(a_damaged_chunk_is_neither_deleted_nor_replaced) {
    damage();
    open_with(CG_OPEN, CG_REFUSE);
    cg_handle tx = tx_of(world), chunk = 0;
    OK(cg_tx_delete_chunk(tx, dim, pos(1, 1, 0), E));
    EXPECT(CG_DAMAGED, commit(tx));
    OK(cg_chunk_new(world, 0, &chunk, E));
    tx = tx_of(world);
    OK(cg_tx_chunk(tx, dim, pos(1, 1, 0), chunk, E));
    EXPECT(CG_DAMAGED, commit(tx));
    EQUAL(CG_OK, cg_release(chunk));
    EXPECT(CG_DAMAGED, load_result(world, binding, dim, 1, 0));
    (void)cg_world_close(world, NULL);
    repair_and_check();
}

/* Whether the log has an error with this text. Reads the log to its end. */
static int log_has(const char *text) {
    char line[2048];
    size_t len = 0, found = 0;
    uint32_t level = 0;
    int result = CG_OK;
    while ((result = cg_log_next(line, sizeof line, &len, &level)) == CG_OK)
        found += level == 1 && contains(bytes(line, len < sizeof line ? len : sizeof line), text);
    EQUAL(CG_ABSENT, result);
    return found > 0;
}

TEST(a_damaged_world_says_where) {
    damage();
    open_with(CG_OPEN_READ_ONLY, CG_REFUSE);
    cg_handle json = 0;
    OK(cg_world_verify(world, 1, &json, E));
    cg_bytes found;
    OK(cg_bytes_of(json, &found, E));
    CHECK(!contains(found, "\"problems\":[]"));
    EQUAL(CG_OK, cg_release(json));
    EXPECT(CG_DAMAGED, load_result(world, binding, dim, 1, 0));
    CHECK(log_has("a column cannot be read"));
    world_close(world);
    repair_and_check();
}

TEST(a_damaged_object_is_no_absent_object) {
    open_with(CG_CREATE, CG_REFUSE);
    for (size_t i = 0; i < MARK; i++) mark[i] = next_byte();
    cg_handle tx = 0, out = 0;
    OK(cg_tx_new(world, &tx, E));
    OK(cg_tx_object_put(tx, text_bytes("k"), bytes(mark, MARK), E));
    OK(cg_tx_commit(tx, CG_SAFE, NULL, E));
    EQUAL(CG_OK, cg_release(tx));
    world_close(world);
    open_with(CG_OPEN, CG_REFUSE);
    world_close(world);
    CHECK(nftw(world_path("world").ptr, search, 16, FTW_PHYS) == 1);
    static const uint8_t zeros[CUT] = {0};
    overwrite(zeros);
    open_with(CG_OPEN, CG_REFUSE);
    EXPECT(CG_DAMAGED, cg_object_get(world, text_bytes("k"), &out, NULL, E));
    EXPECT(CG_ABSENT, cg_object_get(world, text_bytes("other"), &out, NULL, E));
    (void)cg_world_close(world, NULL);
}
