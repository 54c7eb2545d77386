/*
 * cherrygrove.h: voxel worlds that are stored without losing, doubling or corrupting anything.
 *
 * A world has no bounds (block coordinates are int64_t) and holds chunks of 16 x 16 x 16 blocks, entities, records,
 * objects and properties. What is committed together is seen together after any crash.
 *
 * Rules that hold for every function
 *
 *   Results    0 is CG_OK. Positive results are outcomes and no errors: CG_ABSENT, CG_PENDING, CG_UNCHANGED. Negative
 *              results are errors. Absence and damage are different: CG_ABSENT says that nothing is stored, and
 *              CG_DAMAGED that what is stored cannot be read. Never generate over CG_DAMAGED.
 *   Errors     The last argument of a function that can fail is a cg_error of the caller, or NULL. It is filled when the
 *              result is negative, and otherwise left alone. cg_release, cg_queue_cancel and cg_log_next have none.
 *   Handles    A cg_handle is a number. One that was released is CG_CLOSED, and one that is of another kind or was
 *              invented is CG_INVALID, never undefined. cg_release ends a handle of any kind. 0 is no handle.
 *   Memory     What the library lends (cg_str, cg_bytes, views) is valid until the handle is released that gave it; of a
 *              cursor only until its next call, and of a chunk until it is changed. Memory of the caller is read during
 *              the call only. Neither side frees memory of the other. Pointers of the caller need no alignment. A length
 *              that no memory has is CG_INVALID.
 *   Threads    Every function may be called from any thread, on any handle. A transaction, a chunk and a cursor belong to
 *              one thread at a time: a second one at once gets CG_BUSY. The library calls no function of the host.
 *   Strings    UTF-8 with a length and without a mark at the end. Blocks are named minecraft:oak_log[axis=y], keys
 *              ascending; other names are namespace:name.
 *   Structs    struct_size is sizeof of the struct as the caller was compiled. A smaller one than now is of an older caller
 *              and gets defaults; in a larger one that the library reads the rest must be zero, and in one that it writes
 *              the rest is left alone. A smaller one than in version 1, and one of more than 4,096 bytes, is CG_INVALID; a
 *              cg_error gets as many bytes as it has. A view has the struct_size of the library. Structs without
 *              struct_size never change within a major version.
 *   Arguments  Unknown bits, modes and lists and reserved fields that are not 0 are CG_INVALID, and so is a null pointer
 *              where the function does not allow it. A pointer to no values may be null, except where null removes
 *              something: there a pointer to nothing means empty. A handle that is given out is 0 unless the result is
 *              CG_OK.
 *   Waiting    A call may wait for reads of the disk and for commits. cg_column_peek, cg_column_submit, cg_tx_submit,
 *              cg_tick and the functions of queues are for threads that must not: what each waits for stands beside it.
 *              docs/threads.md has a table of all.
 *   Positions  cg_pos is in blocks or in chunks of 16 blocks, as each function says. Boxes include both corners.
 */
#ifndef CHERRYGROVE_H
#define CHERRYGROVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header: major * 65536 + minor. Before format 1 is frozen the major number is 0, and every minor
 * number is a version of its own. */
#define CG_ABI_VERSION 1u

/* Results. Numbers never change; new ones are added at the end. */
#define CG_OK 0
#define CG_ABSENT 1       /* nothing is stored there */
#define CG_PENDING 2      /* it would have to be read from the disk */
#define CG_UNCHANGED 3    /* what was to be saved is what is stored: nothing was written */
#define CG_DAMAGED (-1)   /* stored bytes are damaged; nothing was changed */
#define CG_CONFLICT (-2)  /* another commit changed what this call is based on */
#define CG_BUSY (-3)      /* a queue is full, or something is in use, here or by another process */
#define CG_LOW_DISK (-4)  /* the disk is full, or has less room than the host demands */
#define CG_READ_ONLY (-5) /* the world takes no writes now; cg_world_resume may mend it */
#define CG_FENCED (-6)    /* another writer has the world */
#define CG_UNAVAILABLE (-7)  /* the storage is not reachable now */
#define CG_IN_DOUBT (-8)  /* it is unknown whether a commit is stored */
#define CG_NOT_FOUND (-9) /* the named thing does not exist */
#define CG_TOO_LARGE (-10)   /* something exceeds a limit */
#define CG_INVALID (-11)  /* the call contradicts itself, this header or what is stored */
#define CG_CLOSED (-12)   /* the handle refers to something that was closed or released */
#define CG_UNSUPPORTED (-13) /* this release does not support it */
#define CG_ENGINE (-14)   /* the operating system or the storage library failed */
#define CG_INTERNAL (-15) /* an error of the library itself; the world goes on */

/* A world, binding, column, chunk, transaction, cursor, queue, pin or text. */
typedef uint64_t cg_handle;

typedef struct { const char *ptr; size_t len; } cg_str;
typedef struct { const uint8_t *ptr; size_t len; } cg_bytes;
typedef struct { int64_t x, y, z; } cg_pos;
/* Both corners belong to the box. */
typedef struct { cg_pos min, max; } cg_box;

/* Why a call failed. The library writes at most struct_size bytes. */
typedef struct {
    uint32_t struct_size;
    int32_t kind;          /* the result of the call */
    uint32_t retryable;    /* 1 if the same call may succeed later */
    uint32_t has_place;    /* 1 if dimension and chunk say where */
    uint32_t dimension;    /* the world's number of the dimension */
    uint32_t message_full_len; /* bytes of the whole message; the message below is cut at a character if it is longer */
    cg_pos chunk;
    uint32_t message_len;  /* bytes in message */
    char message[1000];    /* UTF-8: what is wrong, where, and what to do now */
} cg_error;

/* ---- The library ---------------------------------------------------------------------------------------------- */

/* The CG_ABI_VERSION that the library was built with. */
uint32_t cg_abi_version(void);
/* CG_OK if a program that was compiled with this CG_ABI_VERSION may use the library, else CG_UNSUPPORTED with both
 * versions in the message. */
int cg_abi_check(uint32_t built_for, cg_error *error);
/* The release, and how it was built. Valid for ever. */
cg_str cg_build_info(void);
/* The code of a result, such as "damaged". Empty for a number that is none. Valid for ever. */
cg_str cg_kind_code(int kind);
/* Ends a handle of any kind. A world is closed as by cg_world_close, but what it could not write is told to the log
 * alone. */
int cg_release(cg_handle handle);
/* The bytes of a handle that holds a text or bytes. */
int cg_bytes_of(cg_handle text, cg_bytes *out, cg_error *error);
/* The next line of the library's log: CG_ABSENT if there is none. At most cap bytes are copied, cut at a character, and
 * zeros where the next character does not fit; len is the length of the whole line, at most 64 KiB. level: 1 error,
 * 2 warning, 3 information. The log keeps the last 1,024 lines; a line says how many were dropped. */
int cg_log_next(char *buffer, size_t cap, size_t *len, uint32_t *level);
/* Debug builds of the library panic in the function that the environment variable CG_TEST_PANIC names, so that programs can
 * test CG_INTERNAL: any but cg_abi_version, cg_build_info and cg_metric_count. */

/* ---- Worlds --------------------------------------------------------------------------------------------------- */

/* How a world is opened. */
#define CG_OPEN 0u              /* it must be there */
#define CG_CREATE 1u            /* the directory must be missing or empty */
#define CG_OPEN_OR_CREATE 2u
#define CG_OPEN_READ_ONLY 3u

/* When a commit returns, and what it survives. */
#define CG_DEFAULT 0u    /* of a world CG_BALANCED; of a commit that of its world */
#define CG_FAST 1u       /* accepted; a killed process may lose the newest commits, each whole */
#define CG_BALANCED 2u   /* accepted, and synced within about a second */
#define CG_PROCESS 3u    /* the system has it: it survives a killed process */
#define CG_SAFE 4u       /* the disk has it: it survives a power cut */
#define CG_SAFE_BATCH 5u /* as CG_SAFE, with one sync for callers at the same time */

/* What a load of a column does if a chunk of it is damaged. */
#define CG_REFUSE 0u  /* CG_DAMAGED; nothing is loaded */
#define CG_PARTIAL 1u /* the other chunks are loaded; the damaged ones hold the placeholder and are never written */

typedef struct {
    uint32_t struct_size;
    uint32_t mode;            /* CG_OPEN, ... */
    uint32_t durability;      /* CG_FAST, ...; CG_DEFAULT is CG_BALANCED */
    uint32_t on_damage;       /* CG_REFUSE or CG_PARTIAL */
    uint64_t cache_bytes;     /* memory for decoded chunks; 0 is 128 MiB */
    uint64_t queue_bytes;     /* memory for commits that are not written yet; 0 is 64 MiB */
    uint64_t min_free_bytes;  /* room that stays free on the disk; 0 is a twentieth of it, at most 1 GiB */
    uint64_t held_bytes;      /* memory for what was submitted and is not committed; 0 is 256 MiB */
    uint32_t group_ms;        /* how long a group is collected: see cg_column_submit; 0 is 50 ms */
    uint32_t reserved;        /* 0 */
    cg_str game;              /* "java", "bedrock" or a word of the host: a world is of one game. Empty: any */
    cg_str signature;         /* the application's name for its own layout, or empty */
    const cg_str *manifests;  /* packs in JSON, as docs/format/pack.md lays them out */
    size_t manifest_count;
} cg_options;

/* Opens a world. options may be NULL. CG_BUSY names the process that has it. The path ":memory:" with CG_CREATE or
 * CG_OPEN_OR_CREATE is a new world in memory, which is gone when it is closed. */
int cg_world_open(cg_str path, const cg_options *options, cg_handle *world, cg_error *error);
/* What opening would change, as a text: the verdict, then one line for each change; nothing is changed. options may be
 * NULL. */
int cg_world_plan(cg_str path, const cg_options *options, cg_handle *text, cg_error *error);
/* Writes all that was submitted or committed, syncs, and ends the handle, also on an error. What could not be written is
 * lost then; an error may also be that of cg_world_flush. Bindings, queues, transactions, cursors and pins of the world are
 * still to be released, and calls on them give CG_CLOSED. Columns, chunks, entities, records, settings and texts stay. */
int cg_world_close(cg_handle world, cg_error *error);
/* Ends the open group, writes all that was accepted, and syncs. If something that was accepted since the last flush was
 * refused for good, because a stored chunk of it is damaged for example, the first such error is returned: all else is
 * written. The log has each. */
int cg_world_flush(cg_handle world, cg_error *error);
/* Makes a world writable again after the disk was full or failed, and commits what is held. CG_OK if nothing was wrong. */
int cg_world_resume(cg_handle world, cg_error *error);

typedef struct {
    uint32_t struct_size;
    uint32_t read_only;       /* 1 if it was opened for reading */
    uint8_t id[16];           /* made once, at its creation */
    uint8_t incarnation[16];  /* another one for each copy that is written to */
    uint64_t last_commit;
    uint32_t abi_version;     /* of the library */
    uint32_t durability;
} cg_world_info;
int cg_world_info_of(cg_handle world, cg_world_info *out, cg_error *error);
/* Copies the world as it is now into a new directory; copied = 0 links files where the file system allows. */
int cg_world_checkpoint(cg_handle world, cg_str directory, int copied, cg_error *error);
/* Checks the world: deep = 0 rows and references, 1 all values. The text is JSON: {"problems":[...],"rows":n}. CG_OK
 * also if there are problems. Takes as long as the world is large. */
int cg_world_verify(cg_handle world, int deep, cg_handle *json, cg_error *error);

typedef struct { uint32_t struct_size, reserved; uint64_t bytes_on_disk, memory_bytes, free_bytes; } cg_usage;
int cg_world_usage(cg_handle world, cg_usage *out, cg_error *error);

/* A player's place, in blocks. The id is the same from tick to tick: where a player goes is read ahead. */
typedef struct { uint8_t id[16]; uint32_t dimension, reserved; cg_pos block; } cg_player_at;
typedef struct { uint32_t struct_size, is_idle; uint64_t chunks_moved, chunks_prefetched; } cg_tick_report;
/* Moves chunks between tiers for about budget_us microseconds, and reads them. Waits for another cg_tick. Call it once a
 * tick of the game; now is not negative and never goes back. out may be NULL. */
int cg_tick(cg_handle world, int64_t now, const cg_player_at *players, size_t count, uint32_t budget_us,
            cg_tick_report *out, cg_error *error);
/* Keeps a box (in chunks) in the hot tier until the pin is released. */
int cg_keep_loaded(cg_handle world, uint32_t dimension, const cg_box *chunks, cg_handle *pin, cg_error *error);

/* Metrics are appended to and never change places. A name ends with its unit: count, number, bytes or us. Values past
 * cg_metric_count are 0. */
size_t cg_metric_count(void);
cg_str cg_metric_name(size_t index);
int cg_metrics(cg_handle world, uint64_t *values, size_t count, cg_error *error);

/* ---- Names ---------------------------------------------------------------------------------------------------- */

#define CG_BLOCKS 0u
#define CG_COMPONENTS 1u
#define CG_ENTITIES 2u
#define CG_DIMENSIONS 3u
#define CG_SIDES 4u

#define CG_NAME_OPAQUE 1u       /* a block: it hides what is behind it */
#define CG_NAME_BLOCK_ENTITY 2u /* a block: it owns a block entity */

/* A name to register. A component has width bytes, or any number of bytes if width is 0. A block has the listed
 * components; both are fixed at its registration. */
typedef struct {
    cg_str name;
    uint32_t flags;
    uint32_t width;
    const cg_str *components;
    size_t component_count;
} cg_name;

#define CG_NO_ID UINT64_MAX

/* Registers names that the world does not have yet, all or none, and gives the number of each. Numbers never change. A
 * name that the world has stays as it was registered. */
int cg_names_register(cg_handle world, uint32_t list, const cg_name *names, size_t count, uint64_t *ids, cg_error *error);
/* The number of each name; CG_NO_ID for one that the world does not have. Keys of states may come in any order. */
int cg_names_find(cg_handle world, uint32_t list, const cg_str *names, size_t count, uint64_t *ids, cg_error *error);
/* The name of a number as a text: CG_ABSENT if the world has no such number. */
int cg_name_of(cg_handle world, uint32_t list, uint64_t id, cg_handle *text, cg_error *error);
/* How many names a list has. Numbers are below it, except those of components, which have gaps. */
int cg_names_count(cg_handle world, uint32_t list, uint64_t *count, cg_error *error);

/* ---- Bindings: the host's numbers of blocks, biomes and kinds of entity ---------------------------------------- */

/* The order of the cells of a section: the axis that changes slowest first. */
#define CG_ORDER_XYZ 0u /* x * 256 + y * 16 + z */
#define CG_ORDER_XZY 1u /* x * 256 + z * 16 + y: Bedrock Edition */
#define CG_ORDER_YZX 2u /* y * 256 + z * 16 + x: Java Edition */

typedef struct { cg_str name; uint32_t flags; uint32_t reserved; } cg_block; /* flags: CG_NAME_OPAQUE, CG_NAME_BLOCK_ENTITY */
typedef struct { cg_str name; uint32_t number; uint32_t reserved; } cg_biome;

/* What a host knows. The number of a block is its index in blocks, the number of a kind of entity its index in entities. */
typedef struct {
    uint32_t struct_size;
    uint32_t block_count;
    const cg_block *blocks;    /* at least one; two of one name are CG_INVALID; keys of states may come in any order */
    const cg_biome *biomes;
    const cg_str *entities;
    uint32_t biome_count;
    uint32_t entity_count;
    uint32_t placeholder;      /* block that a load gives for one that the host does not know */
    uint32_t air;              /* block of an empty cell */
    uint32_t biome_placeholder; /* number of a biome for one that the host does not know */
    uint8_t layer_count;       /* layers of a cell that are the host's: 1 or 2 (water is the second) */
    uint8_t order;             /* CG_ORDER_...: of the cells that a load gives */
    uint8_t word_bits;         /* 16, 32 or 64: of the words that a load gives */
    uint8_t biome_side_log2;   /* 4: a biome for each block; 2: for each 4 x 4 x 4 blocks */
    uint32_t widths;           /* bit n: a load may give cells of n bits, at most word_bits; 0 allows 0 to 16, otherwise
                                  one of 12 to 16 must be allowed */
    uint32_t reserved;
} cg_binding_desc;

/* Binds a host's numbers to a world's. Registers what the world does not have, in one commit. */
int cg_binding_new(cg_handle world, const cg_binding_desc *desc, cg_handle *binding, cg_error *error);
/* The world's number of each block of the binding, in the order of the host's numbers. count is block_count. */
int cg_binding_ids(cg_handle binding, uint64_t *ids, size_t count, cg_error *error);
/* Names of the world that the binding does not have, as JSON: {"blocks":[...],"entities":[...]}. */
int cg_binding_unknown(cg_handle binding, cg_handle *json, cg_error *error);

/* ---- Columns: chunks above each other, with what is in them ----------------------------------------------------- */

/* Cells of a section, packed: words of word_bits bits, little-endian, at any address. Each word holds word_bits / bits
 * values, lowest bits first; none goes over the end of a word. The rest of a word is zero in a load, and a save does not
 * look at it. bits 0: all cells are palette[0], words_len is 0, and word_bits is not looked at. palette NULL: values are
 * numbers themselves. side_log2 4: 4,096 cells; 2: 64. */
typedef struct {
    const uint8_t *words;
    size_t words_len; /* bytes */
    const uint32_t *palette;
    uint32_t palette_len;
    uint8_t bits, word_bits, order, side_log2;
} cg_cells;

#define CG_SECTION_DAMAGED 1u /* of a load with CG_PARTIAL: the chunk cannot be read, and a save does not touch it */

typedef struct {
    int32_t y;               /* the chunk's height, in chunks */
    uint16_t layer_count;    /* 0: each cell is air */
    uint16_t flags;          /* CG_SECTION_DAMAGED; a save does not look at it */
    const cg_cells *layers;  /* numbers of blocks of the binding */
    cg_cells biomes;         /* numbers of biomes; palette_len 0 and words NULL: none, and stored ones stay */
    const uint8_t *block_light, *sky_light; /* 2,048 bytes each, or NULL: stored ones stay */
} cg_section;

/* At most one for each block, within the column. */
typedef struct { cg_pos at; cg_bytes nbt; } cg_block_entity;
/* It belongs to the chunk of its block, or to the nearest one of the column that has it in its list: it may have fallen
 * out of the world. Components of a stored entity beside the NBT stay. */
typedef struct {
    uint8_t id[16];
    uint32_t kind;      /* index in the binding's entities */
    uint32_t dimension;
    cg_pos block;
    float fraction[3];  /* each from 0 to below 1 */
    uint32_t reserved;
    cg_bytes nbt;
} cg_entity;
typedef struct { cg_pos at; int64_t due; uint32_t block; int32_t priority; } cg_scheduled;

typedef struct {
    uint32_t struct_size;
    uint32_t dimension;
    int64_t x, z;           /* in chunks */
    int32_t min_y, max_y;   /* heights, in chunks, both included, at most 4,096: chunks outside are not touched */
} cg_column_at;

/* A column between two heights, which are as in cg_column_at. Sections ascend by y. */
typedef struct {
    uint32_t struct_size;
    uint32_t dimension;
    int64_t x, z;
    int32_t min_y, max_y;
    int64_t tick;               /* the tick to which the scheduled ones are relative */
    const cg_section *sections;
    const cg_block_entity *block_entities;
    const cg_entity *entities;
    const cg_scheduled *scheduled;
    size_t section_count, block_entity_count, entity_count, scheduled_count;
    uint64_t kept;              /* of a load: blocks, entities and block entities that the host does not know */
    uint64_t damaged_sections;  /* of a load with CG_PARTIAL */
} cg_column;

#define CG_PART 1u /* sections that are not listed stay as they are; without it they are deleted */

/* Loads a column: CG_ABSENT if no chunk of it is stored. The view lives until out is released. Waits for reads of what
 * memory does not have, and for the commit of its group if it was submitted with another binding, in other heights or as a
 * part. */
int cg_column_load(cg_handle world, cg_handle binding, const cg_column_at *at, cg_handle *out, const cg_column **view,
                   cg_error *error);
/* As cg_column_load, if memory has its chunks: CG_PENDING if one would have to be read, or if it is not known that none is
 * stored. Its entities are read, a row for each, and it waits for a commit as cg_column_load. */
int cg_column_peek(cg_handle world, cg_handle binding, const cg_column_at *at, cg_handle *out, const cg_column **view,
                   cg_error *error);
/* Saves a column in a commit of its own and returns as the world's durability says; commit may be NULL. CG_UNCHANGED if
 * it is what is stored.
 *
 * Components of cells whose block did not change stay, also those that the host does not know. Where a cell holds the
 * placeholder and the stored block is one that the host does not know, the stored block stays. An entity is deleted if
 * the host was shown it and the column no longer has it; one that the host was not shown stays. */
int cg_column_save(cg_handle world, cg_handle binding, const cg_column *column, uint32_t flags, uint64_t *commit,
                   cg_error *error);
/* Accepts a column: it is copied, seen by every load from now on, and committed with its group: what is submitted within
 * group_ms of the first of it, at most 4,096 columns and transactions or 64 MiB. Columns that follow each other within a
 * tenth of group_ms stay in one group for as long again, so that it does not end within a save. A commit, a flush and a read of chunks, objects, records,
 * lists or the whole world end the group before. CG_UNCHANGED if the column is what was saved, submitted or loaded last.
 *
 * While the disk takes nothing the group is held in memory, and the world is resumed by itself every five seconds; what
 * would end the group fails until then. A column for which held_bytes has no room waits until the group is committed, and
 * fails if it cannot be. At CG_SAFE and CG_SAFE_BATCH this is cg_column_save, and waits for the disk.
 *
 * An error means that the column was not accepted. What was accepted and is refused for good is returned by the next
 * cg_world_flush or cg_world_close. */
int cg_column_submit(cg_handle world, cg_handle binding, const cg_column *column, uint32_t flags, cg_error *error);
/* A column that is stored: its heights from the lowest to the highest chunk. */
typedef struct { uint32_t dimension, reserved; int64_t x, z; int32_t min_y, max_y; } cg_column_place;
/* The columns of a dimension that are stored, ascending by x, then z, as they are now. Chunks at heights that are no
 * int32_t are left out. Takes about 60 bytes of memory for each column. */
int cg_columns_walk(cg_handle world, uint32_t dimension, cg_handle *cursor, cg_error *error);
/* The next columns. n is 0 at the end. */
int cg_columns_next(cg_handle cursor, cg_column_place *out, size_t cap, size_t *n, cg_error *error);

/* ---- Settings of a world ---------------------------------------------------------------------------------------- */

#define CG_SET_NAME (UINT64_C(1) << 0)
#define CG_SET_CREATED (UINT64_C(1) << 1)
#define CG_SET_CHANGED (UINT64_C(1) << 2)
#define CG_SET_ENGINE (UINT64_C(1) << 3)
#define CG_SET_THUMBNAIL (UINT64_C(1) << 4)
#define CG_SET_SEED (UINT64_C(1) << 5)
#define CG_SET_SPAWN (UINT64_C(1) << 6)
#define CG_SET_TIME (UINT64_C(1) << 7)
#define CG_SET_GAME_TIME (UINT64_C(1) << 8)
#define CG_SET_TIME_CYCLE (UINT64_C(1) << 9)
#define CG_SET_RAINING (UINT64_C(1) << 10)
#define CG_SET_RAIN_TIME (UINT64_C(1) << 11)
#define CG_SET_THUNDERING (UINT64_C(1) << 12)
#define CG_SET_THUNDER_TIME (UINT64_C(1) << 13)
#define CG_SET_WEATHER_CYCLE (UINT64_C(1) << 14)
#define CG_SET_REQUIRED_SLEEP_TICKS (UINT64_C(1) << 15)
#define CG_SET_GAME_MODE (UINT64_C(1) << 16)
#define CG_SET_DIFFICULTY (UINT64_C(1) << 17)
#define CG_SET_TICK_RANGE (UINT64_C(1) << 18)

/* The settings of a world, as docs/format/settings.md stores them. Only fields whose bit is in present have a value. */
typedef struct {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t present;           /* CG_SET_... */
    cg_str name, engine, game_mode, difficulty; /* at most 256 bytes each; such as "survival", "hard" */
    cg_bytes thumbnail;         /* a PNG file of at most 256 KiB */
    cg_str spawn_dimension;     /* a name */
    cg_pos spawn_block;
    int64_t created_ms, changed_ms; /* milliseconds since 1970 */
    int64_t seed, time, game_time, rain_time, thunder_time, required_sleep_ticks, tick_range;
    uint8_t time_cycle, raining, thundering, weather_cycle; /* 0 or 1 */
    uint32_t reserved2;
} cg_settings;

/* The settings; the view lives until out is released. */
int cg_settings_load(cg_handle world, cg_handle *out, const cg_settings **view, cg_error *error);

/* ---- Transactions ----------------------------------------------------------------------------------------------- */

/* A list of writes that are checked and committed at once: all or none. Any number of columns, chunks, entities,
 * objects, records and properties. */
int cg_tx_new(cg_handle world, cg_handle *tx, cg_error *error);
/* Commits and empties the transaction. durability: CG_DEFAULT or one for this commit. CG_UNCHANGED if nothing was to be
 * written; commit is the newest one then. CG_CONFLICT if something expected has another version. On an error nothing is
 * written, and the transaction keeps its writes. commit may be NULL. */
int cg_tx_commit(cg_handle tx, uint32_t durability, uint64_t *commit, cg_error *error);
/* Accepts the writes as cg_column_submit accepts a column, into the same group, and empties the transaction. CG_INVALID if
 * it expects a version, or has writes of cg_tx_chunk, cg_tx_delete_chunk, cg_tx_set_block, cg_tx_set_component,
 * cg_tx_set_side or cg_tx_entity_component, or an entity that is not detached. Waits as cg_column_submit. After an error
 * it keeps its writes. */
int cg_tx_submit(cg_handle tx, cg_error *error);

/* The commit fails unless a chunk has this version, which cg_chunk_load gave; 0: it is not stored. */
int cg_tx_expect_chunk(cg_handle tx, uint32_t dimension, cg_pos chunk, uint64_t version, cg_error *error);
/* The same for an entity, whose version cg_entity_get gave. */
int cg_tx_expect_entity(cg_handle tx, const uint8_t id[16], uint64_t version, cg_error *error);

/* Saves a column as cg_column_save does. */
int cg_tx_column(cg_handle tx, cg_handle binding, const cg_column *column, uint32_t flags, cg_error *error);
/* Saves a copy of a chunk. The entities that are stored there stay. */
int cg_tx_chunk(cg_handle tx, uint32_t dimension, cg_pos chunk_at, cg_handle chunk, cg_error *error);
/* Deletes a chunk and its entities. */
int cg_tx_delete_chunk(cg_handle tx, uint32_t dimension, cg_pos chunk_at, cg_error *error);
/* Replaces a block (a number of the world) of a stored chunk; the commit fails with CG_NOT_FOUND if it is not stored. */
int cg_tx_set_block(cg_handle tx, uint32_t dimension, cg_pos block_at, uint64_t block, cg_error *error);
/* Replaces a component of a block of a stored chunk. */
int cg_tx_set_component(cg_handle tx, uint32_t dimension, cg_pos block_at, uint8_t layer, uint64_t component,
                        cg_bytes bytes, cg_error *error);
/* Replaces side data of a stored chunk; bytes.ptr NULL removes it. */
int cg_tx_set_side(cg_handle tx, uint32_t dimension, cg_pos chunk_at, uint64_t side, cg_bytes bytes, cg_error *error);

#define CG_DETACHED 1u /* the entity belongs to no chunk: a player, for example */
/* binding may be 0: kind is then a number of the world. The NBT, or any bytes, is the component minecraft:entity_nbt. An entity
 * that is not detached belongs to the chunk of its block, which must be stored when this commits. */
int cg_tx_entity_put(cg_handle tx, cg_handle binding, const cg_entity *entity, uint32_t flags, cg_error *error);
int cg_tx_entity_delete(cg_handle tx, const uint8_t id[16], cg_error *error);
/* Replaces a component of a stored entity, or of one that the transaction has put; bytes.ptr NULL removes it. CG_NOT_FOUND
 * at the commit if the world does not have the entity. */
int cg_tx_entity_component(cg_handle tx, const uint8_t id[16], uint64_t component, cg_bytes bytes, cg_error *error);
/* A property of this name; bytes.ptr NULL removes it. */
int cg_tx_property(cg_handle tx, cg_str name, cg_bytes bytes, cg_error *error);
/* Sets the settings that are present; the others stay as they are. */
int cg_tx_settings(cg_handle tx, const cg_settings *settings, cg_error *error);
int cg_tx_object_put(cg_handle tx, cg_bytes key, cg_bytes bytes, cg_error *error);
int cg_tx_object_delete(cg_handle tx, cg_bytes key, cg_error *error);

/* A spatial record: a point with a kind, a time and bytes of the host. */
typedef struct {
    uint8_t id[16];
    uint32_t dimension;
    float fraction[3];  /* each from 0 to below 1 */
    cg_pos block;
    int64_t timestamp;  /* when it was created or changed, in the host's unit */
    cg_str kind;        /* at most 255 bytes */
    cg_bytes bytes;
} cg_record;
int cg_tx_record_put(cg_handle tx, const cg_record *record, cg_error *error);
int cg_tx_record_delete(cg_handle tx, const uint8_t id[16], cg_error *error);

/* ---- The rest of a world ------------------------------------------------------------------------------------------ */

/* An entity: CG_ABSENT if the world does not have it. kind is a number of the binding, or of the world if binding is 0;
 * CG_UNSUPPORTED if the binding does not have its kind. version may be NULL. */
int cg_entity_get(cg_handle world, cg_handle binding, const uint8_t id[16], cg_handle *out, const cg_entity **view,
                  uint64_t *version, cg_error *error);
/* A component of an entity that cg_entity_get gave: CG_ABSENT if it has none. Lent until the entity is released. */
int cg_entity_component(cg_handle entity, uint64_t component, cg_bytes *out, cg_error *error);
/* A property, as a handle that holds its bytes: CG_ABSENT if it is not set. */
int cg_property_get(cg_handle world, cg_str name, cg_handle *bytes, cg_error *error);
/* An object, as a handle that holds its bytes: CG_ABSENT if it is not stored. version may be NULL. */
int cg_object_get(cg_handle world, cg_bytes key, cg_handle *bytes, int64_t *version, cg_error *error);
/* Objects whose keys begin with a prefix, which are read as cg_cursor_next asks for them. */
int cg_object_list(cg_handle world, cg_bytes prefix, cg_handle *cursor, cg_error *error);
/* Records in a box (in blocks), as they are now. Takes the memory of all of them. */
int cg_records_in(cg_handle world, uint32_t dimension, const cg_box *blocks, cg_handle *cursor, cg_error *error);
/* A record: CG_ABSENT if it is not stored. */
int cg_record_get(cg_handle world, const uint8_t id[16], cg_handle *out, const cg_record **view, cg_error *error);
/* Properties whose names begin with a prefix, as they are now: key is the name. */
int cg_property_list(cg_handle world, cg_str prefix, cg_handle *cursor, cg_error *error);
/* Entities that belong to no chunk, such as players, as they are now. Those of kinds that the binding does not have are
 * left out. binding may be 0. Reads all entities of the world. */
int cg_entities_detached(cg_handle world, cg_handle binding, cg_handle *cursor, cg_error *error);
/* A row of a cursor, lent until the next call: of an object its key, bytes and version, of a property its key and bytes,
 * of a record its record, of an entity its entity. All else is 0. */
typedef struct { cg_bytes key, bytes; int64_t version; cg_record record; cg_entity entity; } cg_row;
/* The next rows, at most 1,024 and of objects about 16 MiB. n is 0 at the end. */
int cg_cursor_next(cg_handle cursor, cg_row *out, size_t cap, size_t *n, cg_error *error);

/* ---- Chunks by themselves, in numbers of the world ----------------------------------------------------------------- */

/* A cell of a chunk and a layer of it. */
typedef struct { uint8_t x, y, z, layer; } cg_cell;
typedef struct { uint64_t component; cg_cell at; uint32_t reserved; cg_bytes bytes; } cg_component;

/* A copy of a stored chunk: CG_ABSENT if it is not stored. version may be NULL. */
int cg_chunk_load(cg_handle world, uint32_t dimension, cg_pos chunk_at, cg_handle *chunk, uint64_t *version, cg_error *error);
/* A chunk with one block in each cell, to be filled and given to cg_tx_chunk. */
int cg_chunk_new(cg_handle world, uint64_t block, cg_handle *chunk, cg_error *error);
/* The blocks of layer 0, in an order. */
int cg_chunk_cells(cg_handle chunk, uint32_t order, uint64_t *ids, size_t count, cg_error *error);
/* Replaces all blocks of layer 0. Components of cells whose block changes get defaults, upper layers go. count is 4,096. */
int cg_chunk_set_cells(cg_handle chunk, uint32_t order, const uint64_t *ids, size_t count, cg_error *error);
/* CG_ABSENT if the cell has no such layer. */
int cg_chunk_block(cg_handle chunk, cg_cell at, uint64_t *id, cg_error *error);
/* Replaces the block of a layer; the layer above the top one is added. */
int cg_chunk_set_block(cg_handle chunk, cg_cell at, uint64_t id, cg_error *error);
/* A component of a block: CG_ABSENT if it has none. */
int cg_chunk_component(cg_handle chunk, cg_cell at, uint64_t component, cg_bytes *out, cg_error *error);
int cg_chunk_set_component(cg_handle chunk, cg_cell at, uint64_t component, cg_bytes bytes, cg_error *error);
/* All components. */
int cg_chunk_components(cg_handle chunk, const cg_component **all, size_t *count, cg_error *error);
/* Side data: CG_ABSENT if there is none. */
int cg_chunk_side(cg_handle chunk, uint64_t side, cg_bytes *out, cg_error *error);
/* bytes.ptr NULL removes the side data. */
int cg_chunk_set_side(cg_handle chunk, uint64_t side, cg_bytes bytes, cg_error *error);

/* ---- Queues: answers that a game fetches when it wants ------------------------------------------------------------- */

typedef struct {
    uint64_t tag;            /* as it was given */
    int32_t result;          /* CG_OK, CG_ABSENT, CG_UNCHANGED or an error */
    uint32_t flags;          /* of an error: CG_DONE_RETRYABLE, CG_DONE_HAS_PLACE */
    uint32_t dimension, reserved; /* with CG_DONE_HAS_PLACE: where */
    cg_pos chunk;
    cg_handle column;        /* of a load; release it */
    const cg_column *view;   /* lent until column is released */
    uint64_t commit;         /* of a commit; 0 if it is CG_UNCHANGED */
    cg_handle message;       /* of an error: its text; release it. Otherwise 0 */
} cg_done;

#define CG_DONE_RETRYABLE 1u
#define CG_DONE_HAS_PLACE 2u

/* A queue with room for capacity calls whose answers were not fetched. Only cg_queue_wait waits, and cg_release for calls
 * that have begun. */
int cg_queue_new(cg_handle world, uint32_t capacity, cg_handle *queue, cg_error *error);
/* Starts to load a column. CG_BUSY if the queue has no room. */
int cg_queue_load(cg_handle queue, cg_handle binding, const cg_column_at *at, uint64_t tag, cg_error *error);
/* Starts to commit a transaction, which is empty afterwards; after an error it keeps its writes, CG_BUSY as cg_queue_load.
 * A queue has two threads: its calls may be done in another order. Where the order counts, begin the next one when the
 * answer is there. Of an answer that is an error nothing was written, and its writes are gone. */
int cg_queue_commit(cg_handle queue, cg_handle tx, uint32_t durability, uint64_t tag, cg_error *error);
/* Forgets what has this tag and was not begun: its answer is CG_CLOSED. CG_ABSENT if there is none. */
int cg_queue_cancel(cg_handle queue, uint64_t tag);
/* Fetches answers, at least one if cap is not 0: waits up to timeout_ms for the first, with UINT32_MAX for ever. n is 0 if
 * none came. CG_CLOSED when the queue is released; answers that were not fetched are released with it. */
int cg_queue_wait(cg_handle queue, cg_done *out, size_t cap, size_t *n, uint32_t timeout_ms, cg_error *error);

#ifdef __cplusplus
}
#endif
#endif /* CHERRYGROVE_H */
