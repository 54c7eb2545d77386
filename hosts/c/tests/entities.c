/* Entities: neither lost nor doubled. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static void save_mobs(cg_handle world, cg_handle binding, uint32_t dim, int64_t x, const cg_entity *mobs,
                      size_t count) {
    column *c = column_of(dim, x, 0, 2);
    c->view.entities = mobs;
    c->view.entity_count = count;
    CHECK(cg_column_save(world, binding, &c->view, 0, NULL, E) >= 0);
    free(c);
}

/* Shows the host the entities of a column. */
static void show(cg_handle world, cg_handle binding, uint32_t dim, int64_t x) {
    OK(load_result(world, binding, dim, x, 0));
}

TEST(an_entity_comes_back) {
    cg_handle world = world_new(), binding = binding_of(world, 4), loaded = 0;
    uint32_t dim = overworld(world);
    cg_entity cow = entity_of(7, 1, dim, pos(3, 17, 15), "moo");
    save_mobs(world, binding, dim, 0, &cow, 1);
    world_close(world);
    world = world_again();
    binding = binding_of(world, 4);
    const cg_column *view = NULL;
    loaded = column_load(world, binding, dim, 0, &view);
    EQUAL(1, view->entity_count);
    const cg_entity *found = &view->entities[0];
    CHECK(memcmp(found->id, cow.id, 16) == 0 && same_text(found->nbt, "moo"));
    CHECK(found->kind == 1 && found->dimension == dim);
    CHECK(found->block.x == 3 && found->block.y == 17 && found->block.z == 15);
    CHECK(memcmp(found->fraction, cow.fraction, sizeof cow.fraction) == 0);
    EQUAL(CG_OK, cg_release(loaded));
    const cg_entity *one = NULL;
    uint64_t version = 0;
    OK(cg_entity_get(world, binding, cow.id, &loaded, &one, &version, E));
    CHECK(version > 0 && same_text(one->nbt, "moo") && one->kind == 1);
    EQUAL(CG_OK, cg_release(loaded));
    OK(cg_entity_get(world, 0, cow.id, &loaded, &one, NULL, E));
    cg_str name = str("game:cow");
    uint64_t kind = 0;
    OK(cg_names_find(world, CG_ENTITIES, &name, 1, &kind, E));
    EQUAL(kind, one->kind);
    EQUAL(CG_OK, cg_release(loaded));
    uint8_t other[16] = {9};
    EXPECT(CG_ABSENT, cg_entity_get(world, binding, other, &loaded, &one, &version, E));
    EXPECT(CG_INVALID, cg_entity_get(world, binding, NULL, &loaded, &one, &version, E));
    EXPECT(CG_INVALID, cg_entity_get(world, binding, cow.id, NULL, &one, &version, E));
    EXPECT(CG_INVALID, cg_entity_get(world, binding, cow.id, &loaded, NULL, &version, E));
    world_close(world);
}

TEST(an_entity_that_the_host_was_shown_is_deleted) {
    cg_handle world = world_new(), binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    cg_entity mobs[2] = {entity_of(1, 0, dim, pos(1, 1, 1), "a"), entity_of(2, 0, dim, pos(2, 1, 1), "b")};
    save_mobs(world, binding, dim, 0, mobs, 2);
    show(world, binding, dim, 0);
    save_mobs(world, binding, dim, 0, mobs, 1);
    EQUAL(1, entity_count(world, binding, dim, 0, 1));
    EQUAL(0, entity_count(world, binding, dim, 0, 2));
    const cg_entity *one = NULL;
    cg_handle out = 0;
    EXPECT(CG_ABSENT, cg_entity_get(world, binding, mobs[1].id, &out, &one, NULL, E));
    world_close(world);
}

TEST(an_entity_that_the_host_was_not_shown_stays) {
    cg_handle world = world_new(), binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    cg_entity mob = entity_of(1, 0, dim, pos(1, 1, 1), "a");
    save_mobs(world, binding, dim, 0, &mob, 1);
    world_close(world);
    world = world_again();
    binding = binding_of(world, 4);
    save_mobs(world, binding, dim, 0, NULL, 0);
    EQUAL(1, entity_count(world, binding, dim, 0, 1));
    world_close(world);
}

TEST(an_entity_of_an_unknown_kind_stays) {
    cg_handle world = world_new(), binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    cg_entity mob = entity_of(1, 1, dim, pos(1, 1, 1), "of a mod");
    save_mobs(world, binding, dim, 0, &mob, 1);
    cg_binding_desc desc = desc_of(4);
    desc.entity_count = 1;
    cg_handle few = bind(world, &desc);
    cg_handle out = 0;
    const cg_entity *one = NULL;
    EXPECT(CG_UNSUPPORTED, cg_entity_get(world, few, mob.id, &out, &one, NULL, E));
    const cg_column *view = NULL;
    out = column_load(world, few, dim, 0, &view);
    EQUAL(0, view->entity_count);
    CHECK(view->kept > 0);
    EQUAL(CG_OK, cg_release(out));
    column *c = column_of(dim, 0, 0, 3);
    OK(cg_column_save(world, few, &c->view, 0, NULL, E));
    EQUAL(1, entity_count(world, binding, dim, 0, 1));
    cg_handle json = 0;
    OK(cg_binding_unknown(few, &json, E));
    cg_bytes found;
    OK(cg_bytes_of(json, &found, E));
    CHECK(contains(found, "game:cow"));
    EQUAL(CG_OK, cg_release(json));
    world_close(world);
    free(c);
}

/* Moves an entity from column 0 to column 1 and saves both, in an order, within one commit. */
static void moved(int first, int submitted) {
    cg_handle world = world_new(), binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    cg_entity mob = entity_of(1, 0, dim, pos(15, 1, 1), "wanderer");
    save_mobs(world, binding, dim, 0, &mob, 1);
    save_mobs(world, binding, dim, 1, NULL, 0);
    show(world, binding, dim, 0);
    show(world, binding, dim, 1);
    mob.block.x = 16;
    column *columns[2] = {column_of(dim, 0, 0, 3), column_of(dim, 1, 0, 3)};
    columns[1]->view.entities = &mob;
    columns[1]->view.entity_count = 1;
    cg_handle tx = 0;
    OK(cg_tx_new(world, &tx, E));
    for (int i = 0; i < 2; i++) {
        const cg_column *view = &columns[i == 0 ? first : 1 - first]->view;
        if (submitted)
            OK(cg_column_submit(world, binding, view, 0, E));
        else
            OK(cg_tx_column(tx, binding, view, 0, E));
    }
    if (submitted)
        OK(cg_world_flush(world, E));
    else
        OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
    EQUAL(CG_OK, cg_release(tx));
    world_close(world);
    world = world_again();
    binding = binding_of(world, 4);
    EQUAL(1, entity_count(world, binding, dim, 1, 1));
    const cg_entity *one = NULL;
    cg_handle out = 0;
    OK(cg_entity_get(world, binding, mob.id, &out, &one, NULL, E));
    EQUAL(16, one->block.x);
    EQUAL(CG_OK, cg_release(out));
    world_close(world);
    free(columns[0]);
    free(columns[1]);
}

TEST(moved_in_a_transaction_source_first) { moved(0, 0); }
TEST(moved_in_a_transaction_target_first) { moved(1, 0); }
TEST(moved_in_a_group_source_first) { moved(0, 1); }
TEST(moved_in_a_group_target_first) { moved(1, 1); }

TEST(entities_of_a_transaction) {
    cg_handle world = world_new(), binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    save_one(world, binding, dim, 0, 0, 2);
    save_one(world, binding, dim, 1, 0, 2);
    cg_entity mob = entity_of(1, 0, dim, pos(1, 1, 1), "x");
    cg_handle tx = tx_of(world);
    OK(cg_tx_entity_put(tx, binding, &mob, 0, E));
    OK(commit(tx));
    EQUAL(1, entity_count(world, binding, dim, 1, 1));
    mob.block.x = 20;
    tx = tx_of(world);
    OK(cg_tx_entity_put(tx, binding, &mob, 0, E));
    OK(commit(tx));
    EQUAL(1, entity_count(world, binding, dim, 1, 1));
    EQUAL(0, entity_count(world, binding, dim, 0, 1));
    tx = tx_of(world);
    OK(cg_tx_entity_delete(tx, mob.id, E));
    OK(commit(tx));
    EQUAL(0, entity_count(world, binding, dim, 1, 1));
    mob.block.x = 1000; /* its chunk is not stored */
    tx = tx_of(world);
    int result = cg_tx_entity_put(tx, binding, &mob, 0, E);
    if (result == CG_OK) result = cg_tx_commit(tx, CG_DEFAULT, NULL, E);
    EXPECT(CG_NOT_FOUND, result);
    EQUAL(CG_OK, cg_release(tx));
    tx = tx_of(world);
    EXPECT(CG_INVALID, cg_tx_entity_put(tx, binding, NULL, 0, E));
    EXPECT(CG_INVALID, cg_tx_entity_put(tx, binding, &mob, 0x80, E));
    EXPECT(CG_INVALID, cg_tx_entity_delete(tx, NULL, E));
    mob.kind = 9;
    EXPECT(CG_INVALID, cg_tx_entity_put(tx, binding, &mob, CG_DETACHED, E));
    EQUAL(CG_OK, cg_release(tx));
    world_close(world);
}

TEST(components_of_entities) {
    cg_handle world = world_new(), binding = binding_of(world, 4), out = 0;
    uint32_t dim = overworld(world);
    cg_name names[2] = {name_of("game:health", 0, 4), name_of("game:bag", 0, 0)};
    uint64_t parts[2];
    OK(cg_names_register(world, CG_COMPONENTS, names, 2, parts, E));
    static const uint8_t health[4] = {20, 0, 0, 0};
    cg_entity mob = entity_of(1, 0, dim, pos(1, 1, 1), "first");
    save_mobs(world, binding, dim, 0, &mob, 1);
    cg_handle tx = tx_of(world);
    OK(cg_tx_entity_component(tx, mob.id, parts[0], bytes(health, 4), E));
    OK(cg_tx_entity_component(tx, mob.id, parts[1], text_bytes("apples"), E));
    OK(commit(tx));
    mob.nbt = text_bytes("second"); /* a save that does not name them leaves them */
    save_mobs(world, binding, dim, 0, &mob, 1);
    const cg_entity *view = NULL;
    OK(cg_entity_get(world, binding, mob.id, &out, &view, NULL, E));
    CHECK(same_text(view->nbt, "second"));
    cg_bytes found;
    OK(cg_entity_component(out, parts[0], &found, E));
    CHECK(found.len == 4 && memcmp(found.ptr, health, 4) == 0);
    OK(cg_entity_component(out, parts[1], &found, E));
    CHECK(same_text(found, "apples"));
    EXPECT(CG_INVALID, cg_entity_component(out, parts[1], NULL, E));
    EQUAL(CG_OK, cg_release(out));
    tx = tx_of(world);
    OK(cg_tx_entity_component(tx, mob.id, parts[1], bytes(NULL, 0), E));
    OK(commit(tx));
    OK(cg_entity_get(world, binding, mob.id, &out, &view, NULL, E));
    EXPECT(CG_ABSENT, cg_entity_component(out, parts[1], &found, E));
    EQUAL(CG_OK, cg_release(out));
    mob = entity_of(9, 0, dim, pos(1, 1, 1), "");
    tx = tx_of(world);
    OK(cg_tx_entity_component(tx, mob.id, parts[0], bytes(health, 4), E));
    EXPECT(CG_NOT_FOUND, commit(tx));
    tx = tx_of(world);
    OK(cg_tx_entity_put(tx, binding, &mob, 0, E));
    OK(cg_tx_entity_component(tx, mob.id, parts[0], bytes(health, 4), E));
    OK(commit(tx));
    tx = tx_of(world);
    EXPECT(CG_INVALID, cg_tx_entity_component(tx, NULL, parts[0], bytes(health, 4), E));
    int result = cg_tx_entity_component(tx, mob.id, parts[0], bytes(health, 3), E);
    if (result == CG_OK) result = cg_tx_commit(tx, CG_DEFAULT, NULL, E);
    EXPECT(CG_INVALID, result);
    EQUAL(CG_OK, cg_release(tx));
    world_close(world);
}

TEST(an_entity_that_fell_out_of_the_world_is_kept) {
    cg_handle world = world_new(), binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    cg_entity mob = entity_of(1, 0, dim, pos(1, -5000, 1), "fell");
    save_mobs(world, binding, dim, 0, &mob, 1);
    world_close(world);
    world = world_again();
    binding = binding_of(world, 4);
    EQUAL(1, entity_count(world, binding, dim, 0, 1));
    world_close(world);
}

TEST(players_belong_to_no_chunk) {
    cg_handle world = world_new(), binding = binding_of(world, 4), cursor = 0;
    uint32_t dim = overworld(world);
    cg_handle tx = tx_of(world);
    for (uint8_t i = 1; i <= 5; i++) {
        cg_entity player = entity_of(i, i % 2, dim, pos(i * 1000, 70, -5), "inventory");
        OK(cg_tx_entity_put(tx, binding, &player, CG_DETACHED, E));
    }
    OK(commit(tx));
    world_close(world);
    world = world_again();
    binding = binding_of(world, 4);
    cg_binding_desc desc = desc_of(4);
    desc.entity_count = 1;
    cg_handle pigs = bind(world, &desc);
    for (int i = 0; i < 2; i++) {
        size_t n = 1, total = 0;
        OK(cg_entities_detached(world, i == 0 ? binding : pigs, &cursor, E));
        while (n > 0) {
            cg_row rows[2];
            OK(cg_cursor_next(cursor, rows, 2, &n, E));
            for (size_t j = 0; j < n; j++, total++) {
                EQUAL(rows[j].entity.id[15] * 1000, rows[j].entity.block.x);
                CHECK(same_text(rows[j].entity.nbt, "inventory"));
            }
        }
        EQUAL(i == 0 ? 5 : 2, total);
        EQUAL(CG_OK, cg_release(cursor));
    }
    world_close(world);
}
