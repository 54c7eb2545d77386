/* Names and bindings. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

TEST(names_keep_their_numbers) {
    cg_handle world = world_new();
    for (uint32_t list = CG_BLOCKS; list <= CG_SIDES; list++) {
        cg_name names[2] = {name_of("game:first", 0, 0), name_of("game:second", 0, 0)};
        uint64_t ids[2] = {0, 0}, again[2] = {0, 0}, before = 0, after = 0;
        OK(cg_names_count(world, list, &before, E));
        OK(cg_names_register(world, list, names, 2, ids, E));
        CHECK(ids[0] != ids[1] && ids[0] != CG_NO_ID && ids[1] != CG_NO_ID);
        OK(cg_names_count(world, list, &after, E));
        EQUAL(before + 2, after);
        OK(cg_names_register(world, list, names, 2, again, E));
        CHECK(ids[0] == again[0] && ids[1] == again[1]);
        cg_str asked[3] = {str("game:second"), str("game:third"), str("game:first")};
        uint64_t found[3];
        OK(cg_names_find(world, list, asked, 3, found, E));
        CHECK(found[0] == ids[1] && found[1] == CG_NO_ID && found[2] == ids[0]);
    }
    world_close(world);
    world = world_again();
    cg_str name = str("game:first");
    uint64_t id = CG_NO_ID;
    OK(cg_names_find(world, CG_ENTITIES, &name, 1, &id, E));
    CHECK(id != CG_NO_ID);
    cg_handle text = 0;
    OK(cg_name_of(world, CG_ENTITIES, id, &text, E));
    CHECK(holds(text, "game:first"));
    EXPECT(CG_ABSENT, cg_name_of(world, CG_ENTITIES, 1 << 20, &text, E));
    EXPECT(CG_ABSENT, cg_name_of(world, CG_ENTITIES, CG_NO_ID, &text, E));
    world_close(world);
}

TEST(names_that_are_none_register_nothing) {
    cg_handle world = world_new();
    static const char *const wrong[] = {"", "no_namespace", "game:", "game:\xff"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cg_name names[2] = {name_of("game:sound", 0, 0), name_of(wrong[i], 0, 0)};
        uint64_t ids[2], before = 0, after = 0;
        OK(cg_names_count(world, CG_BLOCKS, &before, E));
        int result = cg_names_register(world, CG_BLOCKS, names, 2, ids, E);
        if (result == CG_OK) test_fail(__FILE__, __LINE__, "\"%s\" was registered", wrong[i]);
        EXPECT(CG_INVALID, result);
        OK(cg_names_count(world, CG_BLOCKS, &after, E));
        EQUAL(before, after);
    }
    world_close(world);
}

TEST(lists_and_flags_that_are_none) {
    cg_handle world = world_new();
    cg_name name = name_of("game:x", 0, 0);
    uint64_t id = 0;
    EXPECT(CG_INVALID, cg_names_register(world, CG_SIDES + 1, &name, 1, &id, E));
    EXPECT(CG_INVALID, cg_names_find(world, UINT32_MAX, &name.name, 1, &id, E));
    EXPECT(CG_INVALID, cg_names_count(world, CG_SIDES + 1, &id, E));
    cg_handle text = 0;
    EXPECT(CG_INVALID, cg_name_of(world, CG_SIDES + 1, 0, &text, E));
    name.flags = 0x80;
    EXPECT(CG_INVALID, cg_names_register(world, CG_BLOCKS, &name, 1, &id, E));
    EXPECT(CG_INVALID, cg_names_register(world, CG_BLOCKS, NULL, 1, &id, E));
    EXPECT(CG_INVALID, cg_names_register(world, CG_BLOCKS, &name, 1, NULL, E));
    EXPECT(CG_INVALID, cg_names_find(world, CG_BLOCKS, NULL, 1, &id, E));
    EXPECT(CG_INVALID, cg_names_find(world, CG_BLOCKS, &name.name, 1, NULL, E));
    EXPECT(CG_INVALID, cg_names_count(world, CG_BLOCKS, NULL, E));
    EXPECT(CG_INVALID, cg_name_of(world, CG_BLOCKS, 0, NULL, E));
    OK(cg_names_register(world, CG_BLOCKS, NULL, 0, NULL, E));
    OK(cg_names_find(world, CG_BLOCKS, NULL, 0, NULL, E));
    world_close(world);
}

TEST(a_block_has_the_components_of_its_registration) {
    cg_handle world = world_new();
    cg_name parts[2] = {name_of("game:heat", 0, 4), name_of("game:items", 0, 0)};
    uint64_t ids[2], furnace_id = 0;
    OK(cg_names_register(world, CG_COMPONENTS, parts, 2, ids, E));
    cg_str has[2] = {str("game:heat"), str("game:items")};
    cg_name furnace = name_of("game:furnace", CG_NAME_OPAQUE, 0);
    furnace.components = has;
    furnace.component_count = 2;
    OK(cg_names_register(world, CG_BLOCKS, &furnace, 1, &furnace_id, E));
    has[1] = str("game:unknown");
    cg_name other = furnace;
    other.name = str("game:other");
    CHECK(cg_names_register(world, CG_BLOCKS, &other, 1, &furnace_id, E) < 0);
    other.components = NULL;
    EXPECT(CG_INVALID, cg_names_register(world, CG_BLOCKS, &other, 1, &furnace_id, E));
    world_close(world);
}

TEST(a_binding_survives_other_orders_and_more_blocks) {
    cg_handle world = world_new();
    uint32_t dim = overworld(world);
    cg_handle binding = binding_of(world, 4);
    save_one(world, binding, dim, 0, 0, 2);
    EQUAL(CG_OK, cg_release(binding));
    cg_binding_desc desc = desc_of(6);
    cg_block turned[6];
    for (uint32_t i = 0; i < 6; i++) turned[i] = desc.blocks[5 - i];
    desc.blocks = turned;
    desc.air = 5;
    binding = bind(world, &desc);
    EQUAL(3, stored_block(world, binding, dim, 1, 1, 1));
    world_close(world);
}

TEST(keys_of_states_come_in_any_order) {
    cg_handle world = world_new();
    uint32_t dim = overworld(world);
    cg_binding_desc desc = desc_of(2);
    cg_block blocks[2] = {desc.blocks[0], desc.blocks[1]};
    blocks[1].name = str("game:door[open=true,half=upper]");
    desc.blocks = blocks;
    cg_handle binding = bind(world, &desc);
    save_one(world, binding, dim, 0, 0, 1);
    blocks[1].name = str("game:door[half=upper,open=true]");
    cg_handle other = bind(world, &desc);
    EQUAL(1, stored_block(world, other, dim, 0, 0, 0));
    cg_str spelled[2] = {str("game:door[half=upper,open=true]"), str("game:door[open=true,half=upper]")};
    uint64_t ids[2] = {0, 1};
    OK(cg_names_find(world, CG_BLOCKS, spelled, 2, ids, E));
    CHECK(ids[0] != CG_NO_ID && ids[0] == ids[1]);
    world_close(world);
}

static void refused(cg_handle world, const cg_binding_desc *desc) {
    cg_handle binding = 0;
    uint64_t before = 0, after = 0;
    OK(cg_names_count(world, CG_BLOCKS, &before, E));
    EXPECT(CG_INVALID, cg_binding_new(world, desc, &binding, E));
    EQUAL(0, binding);
    OK(cg_names_count(world, CG_BLOCKS, &after, E));
    EQUAL(before, after);
}

TEST(a_binding_gives_numbers_of_the_world) {
    cg_handle world = world_new(), binding = binding_of(world, 6);
    cg_binding_desc desc = desc_of(6);
    uint64_t ids[6], found[6];
    OK(cg_binding_ids(binding, ids, 6, E));
    cg_str names[6];
    for (size_t i = 0; i < 6; i++) names[i] = desc.blocks[i].name;
    OK(cg_names_find(world, CG_BLOCKS, names, 6, found, E));
    CHECK(memcmp(ids, found, sizeof ids) == 0);
    EXPECT(CG_INVALID, cg_binding_ids(binding, ids, 5, E));
    EXPECT(CG_INVALID, cg_binding_ids(binding, ids, 7, E));
    EXPECT(CG_INVALID, cg_binding_ids(binding, NULL, 6, E));
    world_close(world);
}

TEST(names_that_are_none_are_not_found) {
    cg_handle world = world_new();
    cg_str names[3] = {str("no namespace"), str(""), str("game:door[b=2,a=1]")};
    uint64_t ids[3] = {0, 0, 0};
    OK(cg_names_find(world, CG_BLOCKS, names, 3, ids, E));
    CHECK(ids[0] == CG_NO_ID && ids[1] == CG_NO_ID && ids[2] == CG_NO_ID);
    names[1] = str("game:\xff");
    EXPECT(CG_INVALID, cg_names_find(world, CG_BLOCKS, names, 3, ids, E));
    world_close(world);
}

TEST(two_blocks_of_one_name_are_refused) {
    cg_handle world = world_new();
    cg_binding_desc desc = desc_of(3);
    cg_block blocks[3] = {desc.blocks[0], desc.blocks[1], desc.blocks[1]};
    desc.blocks = blocks;
    refused(world, &desc);
    blocks[1].name = str("game:door[a=1,b=2]");
    blocks[2].name = str("game:door[b=2,a=1]");
    refused(world, &desc);
    world_close(world);
}

TEST(descriptions_that_contradict_the_header) {
    cg_handle world = world_new();
    cg_binding_desc sound = desc_of(4), d;
#define WRONG(change)                                                                                                  \
    d = sound;                                                                                                         \
    change;                                                                                                            \
    refused(world, &d)
    WRONG(d.struct_size = 0);
    WRONG(d.block_count = 0);
    WRONG(d.blocks = NULL);
    WRONG(d.biomes = NULL);
    WRONG(d.entities = NULL);
    WRONG(d.placeholder = 4);
    WRONG(d.air = 4);
    WRONG(d.layer_count = 0);
    WRONG(d.layer_count = 3);
    WRONG(d.order = 3);
    WRONG(d.word_bits = 8);
    WRONG(d.word_bits = 0);
    WRONG(d.biome_side_log2 = 3);
    WRONG(d.widths = 1u << 1); /* no width that holds 4,096 values */
    WRONG(d.reserved = 1);
#undef WRONG
    refused(world, NULL);
    EXPECT(CG_INVALID, cg_binding_new(world, &sound, NULL, E));
    cg_block block = sound.blocks[0];
    block.name = str("game:\xff");
    d = sound;
    d.blocks = &block;
    d.block_count = 1;
    d.placeholder = 0;
    refused(world, &d);
    block = sound.blocks[0];
    block.flags = 0x40;
    refused(world, &d);
    world_close(world);
}

TEST(descriptions_of_other_sizes) {
    cg_handle world = world_new(), binding = 0;
    struct {
        cg_binding_desc desc;
        uint64_t more[2];
    } newer;
    memset(&newer, 0, sizeof newer);
    newer.desc = desc_of(4);
    newer.desc.struct_size = sizeof newer;
    OK(cg_binding_new(world, &newer.desc, &binding, E));
    newer.more[1] = 1;
    refused(world, &newer.desc);
    newer.desc.struct_size = 8;
    refused(world, &newer.desc); /* it has no blocks */
    world_close(world);
}

TEST(unknown_names_are_listed) {
    cg_handle world = world_new(), json = 0;
    cg_handle all = binding_of(world, 6);
    save_one(world, all, overworld(world), 0, 0, 5);
    cg_handle few = binding_of(world, 2);
    OK(cg_binding_unknown(few, &json, E));
    cg_bytes found;
    OK(cg_bytes_of(json, &found, E));
    CHECK(contains(found, "game:block_5"));
    CHECK(contains(found, "\"blocks\":[") && contains(found, "\"entities\":["));
    CHECK(!contains(found, "game:block_1\""));
    EQUAL(CG_OK, cg_release(json));
    OK(cg_binding_unknown(all, &json, E));
    OK(cg_bytes_of(json, &found, E));
    CHECK(contains(found, "\"blocks\":[]"));
    EQUAL(CG_OK, cg_release(json));
    EXPECT(CG_INVALID, cg_binding_unknown(few, NULL, E));
    world_close(world);
}
