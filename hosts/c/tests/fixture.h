/* Worlds, bindings and columns for the cases. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "harness.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CELLS = 4096, MAX_SECTIONS = 8, MAX_LAYERS = 2, LIGHT = 2048 };

cg_str str(const char *text);
cg_bytes bytes(const void *data, size_t len);
/* Bytes of a text without its mark at the end. */
cg_bytes text_bytes(const char *text);
/* Whether lent bytes are those of a text. */
int same_text(cg_bytes found, const char *text);
/* Whether a text is somewhere in lent bytes. */
int contains(cg_bytes found, const char *text);

/* The path of a world of the case. */
cg_str world_path(const char *name);
/* Options of a mode, and defaults. */
cg_options options_of(uint32_t mode);
/* Opens the world of this name. */
cg_handle world_with(const char *name, const cg_options *options);
/* A new world named "world", at CG_PROCESS. */
cg_handle world_new(void);
/* Opens "world" again. */
cg_handle world_again(void);
/* Opens "world" with a mode and a durability. */
cg_handle world_open(uint32_t mode, uint32_t durability);
void world_close(cg_handle world);
/* A name to register, without components. */
cg_name name_of(const char *name, uint32_t flags, uint32_t width);
/* A dimension of this name. */
uint32_t dimension(cg_handle world, const char *name);
/* The dimension of most cases. */
uint32_t overworld(cg_handle world);

/* A description of blocks 0 to count - 1: minecraft:air and game:block_N. Number 3 owns a block entity. Biomes have the
 * numbers 0, 3, 6, ... 21; entities are game:pig and game:cow. Loads give YZX, 64-bit words and any width. */
cg_binding_desc desc_of(uint32_t count);
cg_handle bind(cg_handle world, const cg_binding_desc *desc);
/* A binding of desc_of(count). */
cg_handle binding_of(cg_handle world, uint32_t count);

/* How cells are packed. */
typedef struct {
    uint8_t bits, word_bits, order;
    int palette; /* 0: values are numbers themselves */
} form;

/* 16-bit numbers in XYZ. */
form plain(void);

/* A column to be saved and the memory of its parts. */
typedef struct {
    cg_column view;
    cg_section sections[MAX_SECTIONS];
    cg_cells layers[MAX_SECTIONS][MAX_LAYERS];
    uint8_t words[MAX_SECTIONS][MAX_LAYERS + 1][CELLS * 4];
    uint32_t palettes[MAX_SECTIONS][MAX_LAYERS + 1][CELLS];
    uint8_t light[MAX_SECTIONS][2][LIGHT];
} column;

/* An empty column from height 0 to the last one. Free it. */
column *column_new(uint32_t dimension, int64_t x, int64_t z, int32_t max_y);
/* Adds a section with one layer, all of block `number`. */
cg_section *column_add(column *c, int32_t y, uint32_t number);
/* Replaces a layer by numbers in XYZ order, in a form. */
void column_fill(column *c, size_t section, uint32_t layer, const uint32_t *numbers, form f);
/* Replaces the biomes by numbers in XYZ order: 64 of them for side_log2 2, else 4,096. */
void column_biomes(column *c, size_t section, const uint32_t *numbers, uint8_t side_log2);
/* A column of one section at height 0, all of one block. */
column *column_of(uint32_t dimension, int64_t x, int64_t z, uint32_t number);
/* Saves such a column. */
void save_one(cg_handle world, cg_handle binding, uint32_t dimension, int64_t x, int64_t z, uint32_t number);
/* Loads heights 0 to 3 of the column (x, 0). Release it. */
cg_handle column_load(cg_handle world, cg_handle binding, uint32_t dimension, int64_t x, const cg_column **view);

cg_block_entity block_entity_of(cg_pos at, cg_bytes nbt);

cg_handle tx_of(cg_handle world);
/* Commits a transaction and releases it, also if that fails. */
int commit(cg_handle tx);
/* Whether a text is what a handle holds, which is released. */
int holds(cg_handle out, const char *text);

cg_column_at at_of(uint32_t dimension, int64_t x, int64_t z, int32_t min_y, int32_t max_y);
cg_pos pos(int64_t x, int64_t y, int64_t z);

/* Packs count values in XYZ order of a cube of this side. Returns 0 if a value does not fit. */
int pack(cg_cells *out, uint8_t *words, uint32_t *palette, const uint32_t *numbers, uint8_t side_log2, form f);
/* The number at a cell of packed cells. */
uint32_t cell_at(const cg_cells *cells, uint32_t x, uint32_t y, uint32_t z);
/* The section at a height, or NULL. */
const cg_section *section_at(const cg_column *view, int32_t y);
/* The block of layer 0 at a place of a column; fails the case if it is not there. */
uint32_t block_in(const cg_column *view, uint32_t x, int32_t y, uint32_t z);
/* The block of layer 0 at a stored place, through a load of its own. */
uint32_t stored_block(cg_handle world, cg_handle binding, uint32_t dimension, int64_t x, int32_t y, int64_t z);
/* The result of loading heights 0 to 3 of a column, and nothing else. */
int load_result(cg_handle world, cg_handle binding, uint32_t dimension, int64_t x, int64_t z);

/* An entity of a kind within a column of its block. The last byte of its id is `id`. */
cg_entity entity_of(uint8_t id, uint32_t kind, uint32_t dimension, cg_pos block, const char *nbt);
/* The entities with this id in the columns (0, 0) to (max_x, 0). */
size_t entity_count(cg_handle world, cg_handle binding, uint32_t dimension, int64_t max_x, uint8_t id);

#ifdef __cplusplus
}
#endif
#endif
