/* Objects, properties and records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

TEST(objects_have_versions) {
    cg_handle world = world_new(), out = 0, tx = tx_of(world);
    OK(cg_tx_object_put(tx, text_bytes("key"), text_bytes("one"), E));
    OK(commit(tx));
    int64_t first = 0, second = 0;
    OK(cg_object_get(world, text_bytes("key"), &out, &first, E));
    CHECK(holds(out, "one"));
    tx = tx_of(world);
    OK(cg_tx_object_put(tx, text_bytes("key"), text_bytes("two"), E));
    OK(commit(tx));
    OK(cg_object_get(world, text_bytes("key"), &out, &second, E));
    CHECK(holds(out, "two"));
    CHECK(second > first);
    tx = tx_of(world);
    OK(cg_tx_object_delete(tx, text_bytes("key"), E));
    OK(commit(tx));
    EXPECT(CG_ABSENT, cg_object_get(world, text_bytes("key"), &out, &second, E));
    EQUAL(0, out);
    EXPECT(CG_INVALID, cg_object_get(world, text_bytes("key"), NULL, NULL, E));
    world_close(world);
}

TEST(keys_and_values_are_any_bytes) {
    cg_handle world = world_new(), out = 0, tx = tx_of(world);
    static const uint8_t key[5] = {0, 0xff, 0, 0x80, 7};
    uint8_t value[256];
    for (size_t i = 0; i < sizeof value; i++) value[i] = (uint8_t)i;
    OK(cg_tx_object_put(tx, bytes(key, sizeof key), bytes(value, sizeof value), E));
    OK(cg_tx_object_put(tx, text_bytes("empty"), bytes(NULL, 0), E));
    OK(commit(tx));
    world_close(world);
    world = world_again();
    OK(cg_object_get(world, bytes(key, sizeof key), &out, NULL, E));
    cg_bytes found;
    OK(cg_bytes_of(out, &found, E));
    CHECK(found.len == sizeof value && memcmp(found.ptr, value, sizeof value) == 0);
    EQUAL(CG_OK, cg_release(out));
    OK(cg_object_get(world, text_bytes("empty"), &out, NULL, E));
    CHECK(holds(out, ""));
    world_close(world);
}

TEST(objects_are_listed_by_prefix) {
    cg_handle world = world_new(), cursor = 0, tx = tx_of(world);
    for (int i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof key, "%c/%02d", i < 60 ? 'a' : 'b', i);
        OK(cg_tx_object_put(tx, text_bytes(key), text_bytes(key), E));
    }
    OK(commit(tx));
    static const struct {
        const char *prefix;
        size_t count;
    } asked[] = {{"a/", 60}, {"b/", 40}, {"", 100}, {"c", 0}, {"a/1", 10}};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        OK(cg_object_list(world, text_bytes(asked[i].prefix), &cursor, E));
        size_t n = 1, total = 0;
        char last[16] = "";
        while (n > 0) {
            cg_row rows[7];
            OK(cg_cursor_next(cursor, rows, 7, &n, E));
            CHECK(n <= 7);
            for (size_t j = 0; j < n; j++, total++) {
                char key[16] = "";
                CHECK(rows[j].key.len < sizeof key);
                memcpy(key, rows[j].key.ptr, rows[j].key.len);
                CHECK(strcmp(key, last) > 0 && same_text(rows[j].bytes, key));
                strcpy(last, key);
            }
        }
        EQUAL(asked[i].count, total);
        EQUAL(CG_OK, cg_release(cursor));
    }
    EXPECT(CG_INVALID, cg_object_list(world, text_bytes("a"), NULL, E));
    world_close(world);
}

TEST(arguments_of_cursors) {
    cg_handle world = world_new(), cursor = 0;
    OK(cg_object_list(world, text_bytes(""), &cursor, E));
    cg_row row;
    size_t n = 5;
    EXPECT(CG_INVALID, cg_cursor_next(cursor, NULL, 1, &n, E));
    EXPECT(CG_INVALID, cg_cursor_next(cursor, &row, 1, NULL, E));
    EXPECT(CG_INVALID, cg_cursor_next(world, &row, 1, &n, E));
    OK(cg_cursor_next(cursor, &row, 1, &n, E));
    EQUAL(0, n);
    cg_column_place place;
    EXPECT(CG_INVALID, cg_columns_next(cursor, &place, 1, &n, E));
    EQUAL(CG_OK, cg_release(cursor));
    world_close(world);
}

TEST(an_object_that_is_too_large) {
    cg_handle world = world_new(), out = 0, tx = tx_of(world);
    size_t len = 65u << 20;
    uint8_t *large = (uint8_t *)calloc(1, len);
    int result = cg_tx_object_put(tx, text_bytes("large"), bytes(large, len), E);
    if (result == CG_OK) {
        OK(cg_tx_object_put(tx, text_bytes("small"), text_bytes("x"), E));
        result = cg_tx_commit(tx, CG_DEFAULT, NULL, E);
    }
    EXPECT(CG_TOO_LARGE, result);
    EQUAL(CG_OK, cg_release(tx));
    EXPECT(CG_ABSENT, cg_object_get(world, text_bytes("small"), &out, NULL, E));
    world_close(world);
    free(large);
}

TEST(properties) {
    cg_handle world = world_new(), out = 0, cursor = 0, tx = tx_of(world);
    OK(cg_tx_property(tx, str("game:a"), text_bytes("1"), E));
    OK(cg_tx_property(tx, str("game:b"), text_bytes("2"), E));
    OK(cg_tx_property(tx, str("game:empty"), text_bytes(""), E));
    OK(cg_tx_property(tx, str("other:c"), text_bytes("3"), E));
    OK(commit(tx));
    OK(cg_property_get(world, str("game:b"), &out, E));
    CHECK(holds(out, "2"));
    OK(cg_property_get(world, str("game:empty"), &out, E));
    CHECK(holds(out, ""));
    EXPECT(CG_ABSENT, cg_property_get(world, str("game:z"), &out, E));
    OK(cg_property_list(world, str("game:"), &cursor, E));
    cg_row rows[8];
    size_t n = 0;
    OK(cg_cursor_next(cursor, rows, 8, &n, E));
    EQUAL(3, n);
    CHECK(same_text(rows[0].key, "game:a") && same_text(rows[1].key, "game:b") && same_text(rows[1].bytes, "2"));
    EQUAL(CG_OK, cg_release(cursor));
    tx = tx_of(world);
    OK(cg_tx_property(tx, str("game:b"), bytes(NULL, 0), E));
    OK(commit(tx));
    EXPECT(CG_ABSENT, cg_property_get(world, str("game:b"), &out, E));
    EXPECT(CG_INVALID, cg_property_get(world, str("game:a"), NULL, E));
    EXPECT(CG_INVALID, cg_property_list(world, str("game:"), NULL, E));
    world_close(world);
}

TEST(records_are_found_by_id_and_place) {
    cg_handle world = world_new(), out = 0, cursor = 0, tx = tx_of(world);
    uint32_t dim = overworld(world), moon = dimension(world, "game:moon");
    cg_record record;
    memset(&record, 0, sizeof record);
    record.kind = str("game:sign");
    for (uint8_t i = 0; i < 100; i++) {
        record.id[15] = i;
        record.dimension = i == 99 ? moon : dim;
        record.block = pos(i * 10, -5, i * -7);
        record.bytes = bytes(&i, 1);
        OK(cg_tx_record_put(tx, &record, E));
    }
    OK(commit(tx));
    const cg_record *view = NULL;
    record.id[15] = 42;
    OK(cg_record_get(world, record.id, &out, &view, E));
    CHECK(view->block.x == 420 && view->bytes.len == 1 && view->bytes.ptr[0] == 42 && view->dimension == dim);
    EQUAL(CG_OK, cg_release(out));
    cg_box box;
    box.min = pos(100, -5, -10000);
    box.max = pos(300, -5, 10000);
    for (int step = 0; step < 2; step++) {
        size_t n = 1, total = 0;
        OK(cg_records_in(world, dim, &box, &cursor, E));
        while (n > 0) {
            cg_row rows[6];
            OK(cg_cursor_next(cursor, rows, 6, &n, E));
            for (size_t i = 0; i < n; i++, total++)
                CHECK(rows[i].record.block.x >= 100 && rows[i].record.block.x <= 300);
        }
        EQUAL(step == 0 ? 21 : 20, total);
        EQUAL(CG_OK, cg_release(cursor));
        record.id[15] = 20;
        tx = tx_of(world);
        OK(cg_tx_record_delete(tx, record.id, E));
        OK(commit(tx));
    }
    EXPECT(CG_ABSENT, cg_record_get(world, record.id, &out, &view, E));
    EXPECT(CG_INVALID, cg_record_get(world, NULL, &out, &view, E));
    EXPECT(CG_INVALID, cg_record_get(world, record.id, NULL, &view, E));
    EXPECT(CG_INVALID, cg_record_get(world, record.id, &out, NULL, E));
    world_close(world);
}

TEST(a_record_moves) {
    cg_handle world = world_new(), cursor = 0;
    uint32_t dim = overworld(world);
    cg_record record;
    memset(&record, 0, sizeof record);
    record.id[3] = 1;
    record.dimension = dim;
    record.kind = str("game:boat");
    record.fraction[1] = 0.5f;
    record.timestamp = -12;
    record.bytes = text_bytes("boat");
    for (int64_t x = 0; x < 3; x++) {
        cg_handle tx = tx_of(world);
        record.block = pos(x * 1000, 0, 0);
        OK(cg_tx_record_put(tx, &record, E));
        OK(commit(tx));
    }
    cg_box box;
    box.min = pos(-10, -10, -10);
    box.max = pos(10000, 10, 10);
    cg_row rows[4];
    size_t n = 0;
    OK(cg_records_in(world, dim, &box, &cursor, E));
    OK(cg_cursor_next(cursor, rows, 4, &n, E));
    EQUAL(1, n);
    EQUAL(2000, rows[0].record.block.x);
    EQUAL(-12, rows[0].record.timestamp);
    CHECK(rows[0].record.fraction[1] == 0.5f && rows[0].record.kind.len == 9);
    EQUAL(CG_OK, cg_release(cursor));
    world_close(world);
}
