/* The library itself: versions, codes, errors, texts and the log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

TEST(version_is_that_of_the_header) { EQUAL(CG_ABI_VERSION, cg_abi_version()); }

TEST(another_version_is_refused_with_both_numbers) {
    OK(cg_abi_check(CG_ABI_VERSION, E));
    cg_error *error = E;
    EXPECT(CG_UNSUPPORTED, cg_abi_check(7 * 65536 + 3, error));
    CHECK(contains(bytes(error->message, error->message_len), "7.3"));
    EXPECT(CG_UNSUPPORTED, cg_abi_check(CG_ABI_VERSION + 1, E));
    EQUAL(CG_UNSUPPORTED, cg_abi_check(UINT32_MAX, NULL));
}

TEST(build_info_is_a_text_that_stays) {
    cg_str info = cg_build_info();
    CHECK(info.ptr != NULL && info.len > 0 && info.len < 500);
    CHECK(cg_build_info().ptr == info.ptr);
}

TEST(each_result_has_a_code) {
    static const struct {
        int kind;
        const char *code;
    } codes[] = {
        {CG_DAMAGED, "damaged"},         {CG_CONFLICT, "conflict"},   {CG_BUSY, "busy"},
        {CG_LOW_DISK, "low_disk"},       {CG_READ_ONLY, "read_only"}, {CG_FENCED, "fenced"},
        {CG_UNAVAILABLE, "unavailable"}, {CG_IN_DOUBT, "in_doubt"},   {CG_NOT_FOUND, "not_found"},
        {CG_TOO_LARGE, "too_large"},     {CG_INVALID, "invalid"},     {CG_CLOSED, "closed"},
        {CG_UNSUPPORTED, "unsupported"}, {CG_ENGINE, "engine"},       {CG_INTERNAL, "internal"},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        EQUAL(-1 - (int)i, codes[i].kind);
        cg_str code = cg_kind_code(codes[i].kind);
        CHECK(same_text(bytes(code.ptr, code.len), codes[i].code));
    }
    for (int kind = CG_OK; kind <= CG_UNCHANGED; kind++) CHECK(cg_kind_code(kind).len > 0);
    EQUAL(0, cg_kind_code(4).len);
    EQUAL(0, cg_kind_code(CG_INTERNAL - 1).len);
    EQUAL(0, cg_kind_code(INT32_MIN).len);
    EQUAL(0, cg_kind_code(INT32_MAX).len);
}

TEST(release_of_what_is_no_handle) {
    EQUAL(CG_INVALID, cg_release(0));
    EQUAL(CG_INVALID, cg_release(UINT64_MAX));
    EQUAL(CG_INVALID, cg_release(1));
}

TEST(an_error_may_be_null) {
    cg_handle world = 0;
    EQUAL(CG_NOT_FOUND, cg_world_open(world_path("none"), NULL, &world, NULL));
    EQUAL(0, world);
    EQUAL(CG_INVALID, cg_world_flush(77, NULL));
}

TEST(an_error_is_left_alone_by_success) {
    cg_handle world = world_new();
    cg_error error;
    memset(&error, 0x5a, sizeof error);
    error.struct_size = sizeof error;
    EQUAL(CG_OK, cg_world_flush(world, &error));
    EQUAL(0x5a5a5a5a, error.kind);
    EQUAL(0x5a, error.message[0]);
    world_close(world);
}

/* Fails with this struct_size; returns the struct, which was filled with 0x5a before. */
static cg_error error_of_size(uint32_t size) {
    cg_error error;
    memset(&error, 0x5a, sizeof error);
    error.struct_size = size;
    EQUAL(CG_INVALID, cg_world_flush(77, &error));
    EQUAL(size, error.struct_size);
    return error;
}

TEST(an_error_of_an_older_caller_is_not_written_beyond_its_end) {
    cg_error error = error_of_size(0);
    EQUAL(0x5a5a5a5a, error.kind);
    error = error_of_size(8);
    EQUAL(CG_INVALID, error.kind);
    EQUAL(0x5a5a5a5a, error.retryable);
    error = error_of_size((uint32_t)offsetof(cg_error, message) + 10);
    EQUAL(CG_INVALID, error.kind);
    CHECK(error.message_len <= 10 && error.message_full_len > 10);
    EQUAL(0x5a, error.message[10]);
}

TEST(an_error_of_a_newer_caller_is_filled_as_far_as_it_is_known) {
    struct {
        cg_error error;
        uint8_t more[64];
    } newer;
    memset(&newer, 0, sizeof newer);
    newer.error.struct_size = sizeof newer;
    EQUAL(CG_INVALID, cg_world_flush(77, &newer.error));
    EQUAL(CG_INVALID, newer.error.kind);
    for (size_t i = 0; i < sizeof newer.more; i++) EQUAL(0, newer.more[i]);
}

TEST(a_long_message_is_cut_at_a_character) {
    /* Each character has three bytes, so at most one of three cuts is at a border. */
    enum { CHARACTERS = 700 };
    for (size_t shift = 0; shift < 3; shift++) {
        char path[3 * CHARACTERS + 4];
        memset(path, 'x', shift);
        for (size_t i = 0; i < CHARACTERS; i++) memcpy(path + shift + 3 * i, "\xe2\x82\xac", 3);
        path[shift + 3 * CHARACTERS] = 0;
        cg_handle world = 0;
        cg_error *error = E;
        int result = cg_world_open(str(path), NULL, &world, error);
        CHECK(result < 0);
        test_expect(result, result, __FILE__, __LINE__, "cg_world_open");
        CHECK(error->message_full_len > error->message_len);
    }
}

TEST(a_panic_is_an_error_and_the_world_goes_on) {
    cg_str info = cg_build_info();
    cg_handle world = world_new(), binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    save_one(world, binding, dim, 0, 0, 2);
    if (!contains(bytes(info.ptr, info.len), "debug")) {
        printf("  a release build has no panic to force\n");
        world_close(world);
        return;
    }
    static const char *const names[2] = {"cg_column_load", "cg_names_count"};
    for (size_t i = 0; i < 2; i++) {
        setenv("CG_TEST_PANIC", names[i], 1);
        uint64_t count = 0;
        int result = i == 0 ? load_result(world, binding, dim, 0, 0) : cg_names_count(world, CG_BLOCKS, &count, E);
        unsetenv("CG_TEST_PANIC");
        EXPECT(CG_INTERNAL, result);
        EQUAL(2, stored_block(world, binding, dim, 0, 0, 0));
        OK(cg_names_count(world, CG_BLOCKS, &count, E));
    }
    world_close(world);
}

TEST(bytes_of_a_text) {
    cg_handle world = world_new();
    uint64_t id = 0;
    cg_str name = str("game:overworld");
    overworld(world);
    OK(cg_names_find(world, CG_DIMENSIONS, &name, 1, &id, E));
    cg_handle text = 0;
    OK(cg_name_of(world, CG_DIMENSIONS, id, &text, E));
    cg_bytes found;
    OK(cg_bytes_of(text, &found, E));
    CHECK(same_text(found, "game:overworld"));
    EXPECT(CG_INVALID, cg_bytes_of(text, NULL, E));
    EXPECT(CG_INVALID, cg_bytes_of(world, &found, E));
    EXPECT(CG_INVALID, cg_bytes_of(0, &found, E));
    EQUAL(CG_OK, cg_release(text));
    int result = cg_bytes_of(text, &found, E);
    CHECK(result == CG_INVALID || result == CG_CLOSED);
    world_close(world);
}

TEST(the_log_has_an_end) {
    char line[512];
    size_t len = 0;
    uint32_t level = 0;
    world_close(world_new());
    for (int i = 0; i < 2000; i++) {
        int result = cg_log_next(line, sizeof line, &len, &level);
        if (result == CG_ABSENT) return;
        EQUAL(CG_OK, result);
        CHECK(level >= 1 && level <= 3 && len > 0);
    }
    test_fail(__FILE__, __LINE__, "the log does not end");
}

TEST(the_log_takes_any_buffer) {
    size_t len = 0;
    uint32_t level = 0;
    char one[1];
    cg_handle world = world_new();
    world_close(world);
    int result = cg_log_next(NULL, 0, &len, &level);
    CHECK(result == CG_OK || result == CG_ABSENT);
    result = cg_log_next(one, 1, &len, &level);
    CHECK(result == CG_OK || result == CG_ABSENT);
    EQUAL(CG_INVALID, cg_log_next(NULL, 100, &len, &level));
    result = cg_log_next(one, 1, NULL, NULL);
    CHECK(result == CG_OK || result == CG_ABSENT || result == CG_INVALID);
}

TEST(metrics_have_names_that_stay) {
    cg_handle world = world_new();
    size_t count = cg_metric_count();
    CHECK(count > 0 && count < 1000);
    for (size_t i = 0; i < count; i++) CHECK(cg_metric_name(i).len > 0);
    EQUAL(0, cg_metric_name(count).len);
    EQUAL(0, cg_metric_name(SIZE_MAX).len);
    uint64_t *values = (uint64_t *)malloc((count + 2) * sizeof *values);
    values[count] = values[1] = 0x77;
    OK(cg_metrics(world, values, count, E));
    EQUAL(0x77, values[count]);
    values[1] = 0x77;
    OK(cg_metrics(world, values, 1, E));
    EQUAL(0x77, values[1]);
    OK(cg_metrics(world, NULL, 0, E));
    int result = cg_metrics(world, values, count + 2, E);
    CHECK(result == CG_OK || result == CG_INVALID);
    EXPECT(CG_INVALID, cg_metrics(world, NULL, 1, E));
    free(values);
    world_close(world);
}
