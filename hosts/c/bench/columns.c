/* The cost of a column that is saved and loaded through the C interface: columns_bench DIR [COLUMNS [SECONDS]].
 *
 * Each column has 10 mixed sections of 16 and 16 of one block, as a column of Minecraft has. One line for each figure:
 * its name, and microseconds a column. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cherrygrove.h"

enum { CELLS = 4096, SECTIONS = 24, MIXED = 10, BLOCKS = 1000, KINDS = 16, BITS = 4 };

static cg_error error;

static void check(int result, const char *call) {
    if (result >= 0) return;
    fprintf(stderr, "%s: %.*s\n", call, (int)error.message_len, error.message);
    exit(1);
}
#define CALL(call) check(call, #call)

static cg_error *fresh(void) {
    error.struct_size = sizeof error;
    error.message_len = 0;
    return &error;
}

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static cg_str str(const char *text) {
    cg_str s = {text, strlen(text)};
    return s;
}

static cg_handle open_world(const char *path, uint32_t mode) {
    cg_options options = {0};
    options.struct_size = sizeof options;
    options.mode = mode;
    cg_handle world = 0;
    CALL(cg_world_open(str(path), &options, &world, fresh()));
    return world;
}

static cg_handle bind(cg_handle world) {
    static char names[BLOCKS][32];
    static cg_block blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        snprintf(names[i], sizeof names[i], "bench:block[kind=%d]", i);
        blocks[i].name = str(names[i]);
        blocks[i].flags = CG_NAME_OPAQUE;
    }
    cg_binding_desc desc = {0};
    desc.struct_size = sizeof desc;
    desc.blocks = blocks;
    desc.block_count = BLOCKS;
    desc.layer_count = 1;
    desc.order = CG_ORDER_YZX;
    desc.word_bits = 64;
    desc.biome_side_log2 = 2;
    cg_handle binding = 0;
    CALL(cg_binding_new(world, &desc, &binding, fresh()));
    return binding;
}

static uint64_t words[SECTIONS][CELLS * BITS / 64];
static uint32_t palettes[SECTIONS][KINDS];
static cg_cells cells[SECTIONS];
static cg_section sections[SECTIONS];

/* Terrain-like words: runs of a kind, of lengths that change with the column. */
static void fill(cg_column *column, uint64_t seed) {
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    memset(sections, 0, sizeof sections);
    memset(cells, 0, sizeof cells);
    for (int y = 0; y < SECTIONS; y++) {
        for (uint32_t i = 0; i < KINDS; i++) palettes[y][i] = (uint32_t)(y * 37 + (int)i * 3) % BLOCKS;
        cells[y].palette = palettes[y];
        cells[y].palette_len = y < MIXED ? KINDS : 1;
        cells[y].word_bits = 64;
        cells[y].order = CG_ORDER_YZX;
        cells[y].side_log2 = 4;
        if (y < MIXED) {
            uint64_t kind = 0;
            for (size_t i = 0, left = 0; i < CELLS; i++, left--) {
                if (left == 0) {
                    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
                    kind = state & (KINDS - 1);
                    left = 1 + (state >> 8 & 31);
                }
                size_t shift = i % 16 * BITS;
                uint64_t *word = &words[y][i / 16];
                *word = shift == 0 ? kind : *word | kind << shift;
            }
            cells[y].bits = BITS;
            cells[y].words = (const uint8_t *)words[y];
            cells[y].words_len = sizeof words[y];
        }
        sections[y].y = y - 4;
        sections[y].layer_count = 1;
        sections[y].layers = &cells[y];
    }
    column->sections = sections;
    column->section_count = SECTIONS;
}

static cg_column column_at(uint32_t dimension, int64_t i) {
    cg_column column = {0};
    column.struct_size = sizeof column;
    column.dimension = dimension;
    column.x = i % 32;
    column.z = i / 32;
    column.min_y = -4;
    column.max_y = SECTIONS - 5;
    return column;
}

static int64_t total, limit_us;

/* Loads all columns and says how long each took. */
static void load_all(const char *name, cg_handle world, cg_handle binding, uint32_t dimension) {
    int64_t count = 0;
    double start = now_us();
    for (; count < total && now_us() - start < (double)limit_us; count++) {
        cg_column_at at = {0};
        at.struct_size = sizeof at;
        at.dimension = dimension;
        at.x = count % 32;
        at.z = count / 32;
        at.min_y = -4;
        at.max_y = SECTIONS - 5;
        cg_handle loaded = 0;
        const cg_column *view = NULL;
        CALL(cg_column_load(world, binding, &at, &loaded, &view, fresh()));
        if (loaded == 0 || view->section_count != SECTIONS) {
            fprintf(stderr, "a column is not there\n");
            exit(1);
        }
        cg_release(loaded);
    }
    printf("%-28s %8.1f us a column (%lld columns)\n", name, (now_us() - start) / (double)count, (long long)count);
}

/* Saves all columns, made from seeds that begin at `seed`, without the time that making them takes. */
static void save_all(const char *name, cg_handle world, cg_handle binding, uint32_t dimension, uint64_t seed,
                     int submit) {
    int64_t count = 0;
    double spent = 0;
    for (; count < total && spent < (double)limit_us; count++) {
        cg_column column = column_at(dimension, count);
        fill(&column, seed + (uint64_t)count);
        double start = now_us();
        if (submit)
            CALL(cg_column_submit(world, binding, &column, 0, fresh()));
        else
            CALL(cg_column_save(world, binding, &column, 0, NULL, fresh()));
        spent += now_us() - start;
    }
    double start = now_us();
    CALL(cg_world_flush(world, fresh()));
    spent += now_us() - start;
    printf("%-28s %8.1f us a column (%lld columns)\n", name, spent / (double)count, (long long)count);
    total = count;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: columns_bench DIR [COLUMNS [SECONDS]]\n");
        return 2;
    }
    total = argc > 2 ? atoll(argv[2]) : 1024;
    limit_us = (argc > 3 ? atoll(argv[3]) : 20) * 1000000 / 7;
    cg_handle world = open_world(argv[1], CG_CREATE), binding = bind(world);
    cg_name name = {0};
    name.name = str("bench:overworld");
    uint64_t id = 0;
    CALL(cg_names_register(world, CG_DIMENSIONS, &name, 1, &id, fresh()));
    uint32_t dimension = (uint32_t)id;
    save_all("save, new", world, binding, dimension, 0, 0);
    save_all("save, all changed", world, binding, dimension, 1000000, 0);
    save_all("save, unchanged", world, binding, dimension, 1000000, 0);
    save_all("submit, all changed", world, binding, dimension, 2000000, 1);
    load_all("load, in memory", world, binding, dimension);
    CALL(cg_world_close(world, fresh()));
    world = open_world(argv[1], CG_OPEN);
    binding = bind(world);
    load_all("load, reopened", world, binding, dimension);
    load_all("load, again", world, binding, dimension);
    CALL(cg_world_close(world, fresh()));
    return 0;
}
