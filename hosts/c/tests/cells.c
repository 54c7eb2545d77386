/* Packing and reading of cells, as the header describes them and without the library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

/* The index of a cell in an order. */
static size_t index_of(uint32_t order, uint32_t side_log2, uint32_t x, uint32_t y, uint32_t z) {
    uint32_t s = side_log2;
    switch (order) {
    case CG_ORDER_XYZ: return (size_t)x << (2 * s) | (size_t)y << s | z;
    case CG_ORDER_XZY: return (size_t)x << (2 * s) | (size_t)z << s | y;
    default: return (size_t)y << (2 * s) | (size_t)z << s | x;
    }
}

int pack(cg_cells *out, uint8_t *words, uint32_t *palette, const uint32_t *numbers, uint8_t side_log2, form f) {
    size_t count = (size_t)1 << (3 * side_log2);
    uint32_t side = 1u << side_log2;
    memset(out, 0, sizeof *out);
    out->side_log2 = side_log2;
    out->order = f.order;
    out->bits = f.bits;
    out->word_bits = f.word_bits;
    static uint32_t index_in_palette[1 << 16];
    static uint8_t is_in_palette[1 << 16];
    memset(is_in_palette, 0, sizeof is_in_palette);
    uint32_t palette_len = 0;
    if (f.palette) {
        for (size_t i = 0; i < count; i++) {
            if (numbers[i] > 0xffff) return 0;
            if (is_in_palette[numbers[i]]) continue;
            is_in_palette[numbers[i]] = 1;
            index_in_palette[numbers[i]] = palette_len;
            palette[palette_len++] = numbers[i];
        }
        out->palette = palette;
        out->palette_len = palette_len;
    }
    if (f.bits == 0) return palette_len == 1;
    size_t each = (size_t)f.word_bits / f.bits, word_bytes = (size_t)f.word_bits / 8;
    size_t word_count = (count + each - 1) / each;
    memset(words, 0, word_count * word_bytes);
    for (uint32_t x = 0; x < side; x++)
        for (uint32_t y = 0; y < side; y++)
            for (uint32_t z = 0; z < side; z++) {
                uint32_t number = numbers[index_of(CG_ORDER_XYZ, side_log2, x, y, z)];
                uint64_t value = f.palette ? index_in_palette[number] : number;
                if (value >> f.bits != 0) return 0;
                size_t index = index_of(f.order, side_log2, x, y, z);
                value <<= index % each * f.bits;
                uint8_t *word = words + index / each * word_bytes;
                for (size_t byte = 0; byte < word_bytes; byte++) word[byte] |= (uint8_t)(value >> (8 * byte) & 0xff);
            }
    out->words = words;
    out->words_len = word_count * word_bytes;
    return 1;
}

uint32_t cell_at(const cg_cells *cells, uint32_t x, uint32_t y, uint32_t z) {
    uint64_t value = 0;
    CHECK(cells->side_log2 == 4 || cells->side_log2 == 2);
    if (cells->bits != 0) {
        CHECK(cells->word_bits == 16 || cells->word_bits == 32 || cells->word_bits == 64);
        CHECK(cells->bits <= cells->word_bits);
        size_t index = index_of(cells->order, cells->side_log2, x, y, z);
        size_t each = (size_t)cells->word_bits / cells->bits, word_bytes = (size_t)cells->word_bits / 8;
        size_t start = index / each * word_bytes;
        CHECK(start + word_bytes <= cells->words_len);
        for (size_t byte = 0; byte < word_bytes; byte++) value |= (uint64_t)cells->words[start + byte] << (8 * byte);
        value = value >> (index % each * cells->bits) & ((UINT64_C(1) << cells->bits) - 1);
    }
    if (cells->palette == NULL) return (uint32_t)value;
    CHECK(value < cells->palette_len);
    return cells->palette[value];
}

const cg_section *section_at(const cg_column *view, int32_t y) {
    for (size_t i = 0; i < view->section_count; i++)
        if (view->sections[i].y == y) return &view->sections[i];
    return NULL;
}

uint32_t block_in(const cg_column *view, uint32_t x, int32_t y, uint32_t z) {
    const cg_section *section = section_at(view, y >> 4);
    CHECK(section != NULL);
    if (section->layer_count == 0) return 0; /* air */
    return cell_at(&section->layers[0], x, (uint32_t)(y & 15), z);
}

uint32_t stored_block(cg_handle world, cg_handle binding, uint32_t dimension, int64_t x, int32_t y, int64_t z) {
    cg_column_at at = at_of(dimension, x >> 4, z >> 4, y >> 4, y >> 4);
    cg_handle loaded = 0;
    const cg_column *view = NULL;
    OK(cg_column_load(world, binding, &at, &loaded, &view, E));
    uint32_t number = block_in(view, (uint32_t)(x & 15), y, (uint32_t)(z & 15));
    EQUAL(CG_OK, cg_release(loaded));
    return number;
}

int load_result(cg_handle world, cg_handle binding, uint32_t dimension, int64_t x, int64_t z) {
    cg_column_at at = at_of(dimension, x, z, 0, 3);
    cg_handle loaded = 0;
    const cg_column *view = NULL;
    int result = cg_column_load(world, binding, &at, &loaded, &view, E);
    if (result == CG_OK)
        EQUAL(CG_OK, cg_release(loaded));
    else
        EQUAL(0, loaded);
    return result;
}

cg_entity entity_of(uint8_t id, uint32_t kind, uint32_t dimension, cg_pos block, const char *nbt) {
    cg_entity entity;
    memset(&entity, 0, sizeof entity);
    entity.id[0] = 0xce;
    entity.id[15] = id;
    entity.kind = kind;
    entity.dimension = dimension;
    entity.block = block;
    entity.fraction[0] = 0.25f;
    entity.fraction[2] = 0.5f;
    entity.nbt = text_bytes(nbt);
    return entity;
}

size_t entity_count(cg_handle world, cg_handle binding, uint32_t dimension, int64_t max_x, uint8_t id) {
    size_t count = 0;
    for (int64_t x = 0; x <= max_x; x++) {
        cg_column_at at = at_of(dimension, x, 0, 0, 3);
        cg_handle loaded = 0;
        const cg_column *view = NULL;
        int result = cg_column_load(world, binding, &at, &loaded, &view, E);
        if (result == CG_ABSENT) continue;
        EXPECT(CG_OK, result);
        for (size_t i = 0; i < view->entity_count; i++) count += view->entities[i].id[15] == id;
        EQUAL(CG_OK, cg_release(loaded));
    }
    return count;
}
