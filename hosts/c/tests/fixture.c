#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cg_str str(const char *text) {
    cg_str s;
    s.ptr = text;
    s.len = strlen(text);
    return s;
}

cg_bytes bytes(const void *data, size_t len) {
    cg_bytes b;
    b.ptr = (const uint8_t *)data;
    b.len = len;
    return b;
}

cg_bytes text_bytes(const char *text) { return bytes(text, strlen(text)); }

int same_text(cg_bytes found, const char *text) {
    return found.len == strlen(text) && memcmp(found.ptr, text, found.len) == 0;
}

int contains(cg_bytes found, const char *text) {
    size_t len = strlen(text);
    for (size_t i = 0; i + len <= found.len; i++)
        if (memcmp(found.ptr + i, text, len) == 0) return 1;
    return 0;
}

cg_str world_path(const char *name) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    return str(path);
}

cg_options options_of(uint32_t mode) {
    cg_options options = {0};
    options.struct_size = sizeof options;
    options.mode = mode;
    return options;
}

cg_handle world_with(const char *name, const cg_options *options) {
    cg_handle world = 0;
    OK(cg_world_open(world_path(name), options, &world, E));
    CHECK(world != 0);
    return world;
}

cg_handle world_open(uint32_t mode, uint32_t durability) {
    cg_options options = options_of(mode);
    options.durability = durability;
    options.min_free_bytes = 1;
    return world_with("world", &options);
}

cg_handle world_new(void) { return world_open(CG_CREATE, CG_PROCESS); }
cg_handle world_again(void) { return world_open(CG_OPEN, CG_PROCESS); }
void world_close(cg_handle world) { OK(cg_world_close(world, E)); }

cg_name name_of(const char *name, uint32_t flags, uint32_t width) {
    cg_name n = {0};
    n.name = str(name);
    n.flags = flags;
    n.width = width;
    return n;
}

uint32_t dimension(cg_handle world, const char *name) {
    cg_name added = name_of(name, 0, 0);
    uint64_t id = CG_NO_ID;
    OK(cg_names_register(world, CG_DIMENSIONS, &added, 1, &id, E));
    CHECK(id < UINT32_MAX);
    return (uint32_t)id;
}

uint32_t overworld(cg_handle world) { return dimension(world, "game:overworld"); }

enum { MAX_BLOCKS = 5000, BIOMES = 8 };

cg_binding_desc desc_of(uint32_t count) {
    static char names[MAX_BLOCKS][24];
    static cg_block blocks[MAX_BLOCKS];
    static char biome_names[BIOMES][24];
    static cg_biome biomes[BIOMES];
    static cg_str entities[2];
    CHECK(count <= MAX_BLOCKS);
    for (uint32_t i = 0; i < MAX_BLOCKS; i++) {
        snprintf(names[i], sizeof names[i], i == 0 ? "minecraft:air" : "game:block_%u", i);
        blocks[i].name = str(names[i]);
        blocks[i].flags = (i % 2 == 0 ? 0 : CG_NAME_OPAQUE) | (i == 3 ? CG_NAME_BLOCK_ENTITY : 0);
        blocks[i].reserved = 0;
    }
    for (uint32_t i = 0; i < BIOMES; i++) {
        snprintf(biome_names[i], sizeof biome_names[i], "game:biome_%u", i);
        biomes[i].name = str(biome_names[i]);
        biomes[i].number = i * 3;
        biomes[i].reserved = 0;
    }
    entities[0] = str("game:pig");
    entities[1] = str("game:cow");
    cg_binding_desc desc = {0};
    desc.struct_size = sizeof desc;
    desc.block_count = count;
    desc.blocks = blocks;
    desc.biomes = biomes;
    desc.biome_count = BIOMES;
    desc.entities = entities;
    desc.entity_count = 2;
    desc.placeholder = count > 1 ? 1 : 0;
    desc.layer_count = 1;
    desc.order = CG_ORDER_YZX;
    desc.word_bits = 64;
    desc.biome_side_log2 = 2;
    return desc;
}

cg_handle bind(cg_handle world, const cg_binding_desc *desc) {
    cg_handle binding = 0;
    OK(cg_binding_new(world, desc, &binding, E));
    CHECK(binding != 0);
    return binding;
}

cg_handle binding_of(cg_handle world, uint32_t count) {
    cg_binding_desc desc = desc_of(count);
    return bind(world, &desc);
}

form plain(void) {
    form f = {16, 16, CG_ORDER_XYZ, 0};
    return f;
}

column *column_new(uint32_t dimension, int64_t x, int64_t z, int32_t max_y) {
    column *c = (column *)calloc(1, sizeof *c);
    CHECK(c != NULL);
    c->view.struct_size = sizeof c->view;
    c->view.dimension = dimension;
    c->view.x = x;
    c->view.z = z;
    c->view.max_y = max_y;
    c->view.sections = c->sections;
    return c;
}

cg_section *column_add(column *c, int32_t y, uint32_t number) {
    size_t index = c->view.section_count++;
    CHECK(index < MAX_SECTIONS);
    cg_section *section = &c->sections[index];
    section->y = y;
    section->layer_count = 1;
    section->layers = c->layers[index];
    c->palettes[index][0][0] = number;
    cg_cells *cells = &c->layers[index][0];
    memset(cells, 0, sizeof *cells);
    cells->palette = c->palettes[index][0];
    cells->palette_len = 1;
    cells->side_log2 = 4;
    return section;
}

void column_fill(column *c, size_t section, uint32_t layer, const uint32_t *numbers, form f) {
    CHECK(layer < MAX_LAYERS);
    if (c->sections[section].layer_count <= layer) c->sections[section].layer_count = (uint16_t)(layer + 1);
    CHECK(pack(&c->layers[section][layer], c->words[section][layer], c->palettes[section][layer], numbers, 4, f));
}

void column_biomes(column *c, size_t section, const uint32_t *numbers, uint8_t side_log2) {
    form f = {8, 64, CG_ORDER_YZX, 1};
    uint8_t *words = c->words[section][MAX_LAYERS];
    CHECK(pack(&c->sections[section].biomes, words, c->palettes[section][MAX_LAYERS], numbers, side_log2, f));
}

column *column_of(uint32_t dimension, int64_t x, int64_t z, uint32_t number) {
    column *c = column_new(dimension, x, z, 3);
    column_add(c, 0, number);
    return c;
}

void save_one(cg_handle world, cg_handle binding, uint32_t dimension, int64_t x, int64_t z, uint32_t number) {
    column *c = column_of(dimension, x, z, number);
    OK(cg_column_save(world, binding, &c->view, 0, NULL, E));
    free(c);
}

cg_handle column_load(cg_handle world, cg_handle binding, uint32_t dimension, int64_t x, const cg_column **view) {
    cg_column_at at = at_of(dimension, x, 0, 0, 3);
    cg_handle loaded = 0;
    OK(cg_column_load(world, binding, &at, &loaded, view, E));
    return loaded;
}

cg_block_entity block_entity_of(cg_pos at, cg_bytes nbt) {
    cg_block_entity owned = {0};
    owned.at = at;
    owned.nbt = nbt;
    return owned;
}

cg_handle tx_of(cg_handle world) {
    cg_handle tx = 0;
    OK(cg_tx_new(world, &tx, E));
    return tx;
}

int commit(cg_handle tx) {
    int result = cg_tx_commit(tx, CG_DEFAULT, NULL, E);
    EQUAL(CG_OK, cg_release(tx));
    return result;
}

int holds(cg_handle out, const char *text) {
    cg_bytes found;
    OK(cg_bytes_of(out, &found, E));
    int same = same_text(found, text);
    EQUAL(CG_OK, cg_release(out));
    return same;
}

cg_column_at at_of(uint32_t dimension, int64_t x, int64_t z, int32_t min_y, int32_t max_y) {
    cg_column_at at = {0};
    at.struct_size = sizeof at;
    at.dimension = dimension;
    at.x = x;
    at.z = z;
    at.min_y = min_y;
    at.max_y = max_y;
    return at;
}

cg_pos pos(int64_t x, int64_t y, int64_t z) {
    cg_pos p;
    p.x = x;
    p.y = y;
    p.z = z;
    return p;
}
