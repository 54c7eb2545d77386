/* Worlds: opening, closing, and what is asked of a whole world. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

static int open_result(cg_str path, const cg_options *options) {
    cg_handle world = 0;
    int result = cg_world_open(path, options, &world, E);
    if (result == CG_OK)
        world_close(world);
    else
        EQUAL(0, world);
    return result;
}

TEST(each_mode_of_opening) {
    cg_options open = options_of(CG_OPEN), create = options_of(CG_CREATE), either = options_of(CG_OPEN_OR_CREATE),
               read = options_of(CG_OPEN_READ_ONLY);
    cg_str path = world_path("w");
    EXPECT(CG_NOT_FOUND, open_result(path, &open));
    EXPECT(CG_NOT_FOUND, open_result(path, &read));
    EXPECT(CG_NOT_FOUND, open_result(path, NULL));
    struct stat status;
    CHECK(stat(path.ptr, &status) != 0);
    OK(open_result(path, &either));
    OK(open_result(path, &either));
    OK(open_result(path, &open));
    OK(open_result(path, &read));
    OK(open_result(path, NULL));
    CHECK(open_result(path, &create) < 0);
    OK(open_result(path, &open));
    CHECK(mkdir(world_path("empty").ptr, 0700) == 0);
    OK(open_result(world_path("empty"), &create));
}

TEST(a_directory_of_something_else_is_left_alone) {
    cg_str path = world_path("other");
    CHECK(mkdir(path.ptr, 0700) == 0);
    char file[1100];
    snprintf(file, sizeof file, "%s/letter.txt", path.ptr);
    FILE *letter = fopen(file, "w");
    CHECK(letter != NULL);
    fputs("dear", letter);
    fclose(letter);
    cg_options create = options_of(CG_CREATE), either = options_of(CG_OPEN_OR_CREATE);
    CHECK(open_result(path, &create) < 0);
    CHECK(open_result(path, &either) < 0);
    CHECK(open_result(path, NULL) < 0);
    CHECK(rmdir(path.ptr) != 0 && unlink(file) == 0 && rmdir(path.ptr) == 0);
}

TEST(options_that_contradict_the_header) {
    cg_options options = options_of(CG_CREATE);
    options.mode = 4;
    EXPECT(CG_INVALID, open_result(world_path("w"), &options));
    options = options_of(CG_CREATE);
    options.durability = 6;
    EXPECT(CG_INVALID, open_result(world_path("w"), &options));
    options = options_of(CG_CREATE);
    options.on_damage = 2;
    EXPECT(CG_INVALID, open_result(world_path("w"), &options));
    options = options_of(CG_CREATE);
    options.reserved = 1;
    EXPECT(CG_INVALID, open_result(world_path("w"), &options));
    options = options_of(CG_CREATE);
    options.manifest_count = 1;
    EXPECT(CG_INVALID, open_result(world_path("w"), &options));
    cg_str manifest = str("{ this is no JSON");
    options.manifests = &manifest;
    CHECK(open_result(world_path("w"), &options) < 0);
    options = options_of(CG_CREATE);
    options.game = str("\xff\xfe");
    EXPECT(CG_INVALID, open_result(world_path("w"), &options));
    options = options_of(CG_CREATE);
    options.signature.len = 5;
    EXPECT(CG_INVALID, open_result(world_path("w"), &options));
    struct stat status;
    CHECK(stat(world_path("w").ptr, &status) != 0);
}

TEST(options_of_other_sizes) {
    struct {
        cg_options options;
        uint8_t more[32];
    } newer;
    memset(&newer, 0, sizeof newer);
    newer.options = options_of(CG_CREATE);
    newer.options.struct_size = 0;
    EXPECT(CG_INVALID, open_result(world_path("w"), &newer.options));
    newer.options.struct_size = sizeof newer;
    newer.more[31] = 1;
    EXPECT(CG_INVALID, open_result(world_path("w"), &newer.options));
    newer.more[31] = 0;
    OK(open_result(world_path("w"), &newer.options));
    newer.options.struct_size = 8; /* no version had one so small */
    EXPECT(CG_INVALID, open_result(world_path("v"), &newer.options));
    newer.options.struct_size = 4097;
    EXPECT(CG_INVALID, open_result(world_path("v"), &newer.options));
}

TEST(paths_that_are_none) {
    cg_options create = options_of(CG_CREATE);
    EXPECT(CG_INVALID, open_result(str(""), &create));
    EXPECT(CG_INVALID, open_result(str("/tmp/\xff\xfe"), &create));
    cg_str path = {NULL, 5};
    EXPECT(CG_INVALID, open_result(path, &create));
    path.ptr = "/tmp/a\0b";
    path.len = 8;
    CHECK(open_result(path, &create) < 0);
    CHECK(open_result(str("/proc/nowhere/world"), &create) < 0);
}

TEST(all_durabilities_keep_what_was_saved) {
    for (uint32_t durability = CG_DEFAULT; durability <= CG_SAFE_BATCH; durability++) {
        cg_handle world = world_open(CG_OPEN_OR_CREATE, durability);
        cg_handle binding = binding_of(world, 8);
        save_one(world, binding, overworld(world), durability, 0, 1 + durability);
        world_close(world);
    }
    cg_handle world = world_again();
    cg_handle binding = binding_of(world, 8);
    for (uint32_t durability = CG_DEFAULT; durability <= CG_SAFE_BATCH; durability++)
        EQUAL(1 + durability, stored_block(world, binding, overworld(world), 16 * durability, 0, 0));
    world_close(world);
}

TEST(a_world_that_is_open_is_busy) {
    cg_handle world = world_new();
    EXPECT(CG_BUSY, open_result(world_path("world"), NULL));
    world_close(world);
    OK(open_result(world_path("world"), NULL));
}

TEST(another_process_is_told_the_holder) {
    int ready[2], done[2];
    CHECK(pipe(ready) == 0 && pipe(done) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    char byte = 0;
    if (child == 0) {
        cg_handle world = world_new();
        if (write(ready[1], "x", 1) != 1) _exit(1);
        if (read(done[0], &byte, 1) != 1) _exit(1);
        world_close(world);
        exit(0);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    cg_error *error = E;
    EXPECT(CG_BUSY, open_result(world_path("world"), NULL));
    char holder[24];
    snprintf(holder, sizeof holder, "%ld", (long)child);
    CHECK(contains(bytes(error->message, error->message_len), holder));
    CHECK(write(done[1], "x", 1) == 1);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    OK(open_result(world_path("world"), NULL));
}

TEST(a_world_for_reading_takes_no_writes) {
    cg_handle world = world_new();
    cg_handle binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    save_one(world, binding, dim, 0, 0, 2);
    world_close(world);
    world = world_open(CG_OPEN_READ_ONLY, CG_DEFAULT);
    cg_world_info info;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    OK(cg_world_info_of(world, &info, E));
    EQUAL(1, info.read_only);
    binding = binding_of(world, 4);
    EQUAL(2, stored_block(world, binding, dim, 5, 5, 5));
    column *c = column_of(dim, 0, 0, 3);
    EXPECT(CG_READ_ONLY, cg_column_save(world, binding, &c->view, 0, NULL, E));
    EXPECT(CG_READ_ONLY, cg_column_submit(world, binding, &c->view, 0, E));
    cg_handle tx = 0;
    int result = cg_tx_new(world, &tx, E);
    if (result == CG_OK) {
        result = cg_tx_property(tx, str("game:rules"), text_bytes("x"), E);
        if (result == CG_OK) result = cg_tx_commit(tx, CG_DEFAULT, NULL, E);
        EQUAL(CG_OK, cg_release(tx));
    }
    EQUAL(CG_READ_ONLY, result);
    cg_name name = name_of("game:new", 0, 0);
    uint64_t id = 0;
    EXPECT(CG_READ_ONLY, cg_names_register(world, CG_BLOCKS, &name, 1, &id, E));
    world_close(world);
    free(c);
}

TEST(info_says_what_a_world_is) {
    cg_handle world = world_new();
    cg_world_info first, second;
    memset(&first, 0, sizeof first);
    first.struct_size = sizeof first;
    second = first;
    OK(cg_world_info_of(world, &first, E));
    EQUAL(CG_ABI_VERSION, first.abi_version);
    EQUAL(CG_PROCESS, first.durability);
    EQUAL(0, first.read_only);
    cg_handle binding = binding_of(world, 4);
    save_one(world, binding, overworld(world), 0, 0, 2);
    OK(cg_world_info_of(world, &second, E));
    CHECK(second.last_commit > first.last_commit);
    CHECK(memcmp(first.id, second.id, sizeof first.id) == 0);
    uint8_t none[16] = {0};
    CHECK(memcmp(first.id, none, sizeof none) != 0);
    second.struct_size = 0;
    EXPECT(CG_INVALID, cg_world_info_of(world, &second, E));
    EXPECT(CG_INVALID, cg_world_info_of(world, NULL, E));
    second.struct_size = 8; /* no version had one so small */
    EXPECT(CG_INVALID, cg_world_info_of(world, &second, E));
    struct {
        cg_world_info info;
        uint8_t more[8];
    } newer;
    memset(&newer, 0x5a, sizeof newer);
    newer.info.struct_size = sizeof newer;
    OK(cg_world_info_of(world, &newer.info, E));
    CHECK(memcmp(newer.info.id, first.id, sizeof first.id) == 0 && newer.more[0] == 0x5a);
    world_close(world);
}

TEST(usage_counts_bytes) {
    cg_handle world = world_new();
    cg_usage usage;
    memset(&usage, 0, sizeof usage);
    usage.struct_size = sizeof usage;
    OK(cg_world_usage(world, &usage, E));
    CHECK(usage.free_bytes > 0);
    CHECK(usage.bytes_on_disk > 0);
    usage.struct_size = 0;
    EXPECT(CG_INVALID, cg_world_usage(world, &usage, E));
    EXPECT(CG_INVALID, cg_world_usage(world, NULL, E));
    world_close(world);
}

TEST(flush_and_resume_of_a_sound_world) {
    cg_handle world = world_open(CG_CREATE, CG_FAST);
    cg_handle binding = binding_of(world, 4);
    save_one(world, binding, overworld(world), 0, 0, 2);
    OK(cg_world_flush(world, E));
    OK(cg_world_resume(world, E));
    save_one(world, binding, overworld(world), 1, 0, 3);
    OK(cg_world_flush(world, E));
    world_close(world);
}

static void checkpoint(int copied) {
    cg_handle world = world_new();
    cg_handle binding = binding_of(world, 4);
    uint32_t dim = overworld(world);
    save_one(world, binding, dim, 0, 0, 2);
    OK(cg_world_checkpoint(world, world_path("copy"), copied, E));
    CHECK(cg_world_checkpoint(world, world_path("copy"), copied, E) < 0);
    EXPECT(CG_INVALID, cg_world_checkpoint(world, str(""), copied, E));
    save_one(world, binding, dim, 0, 0, 3);
    cg_options options = options_of(CG_OPEN);
    cg_handle copy = world_with("copy", &options);
    cg_handle of_copy = binding_of(copy, 4);
    EQUAL(2, stored_block(copy, of_copy, dim, 0, 0, 0));
    EQUAL(3, stored_block(world, binding, dim, 0, 0, 0));
    world_close(copy);
    world_close(world);
}

TEST(a_copied_checkpoint_is_a_world) { checkpoint(1); }
TEST(a_linked_checkpoint_is_a_world) { checkpoint(0); }

TEST(verify_finds_nothing_in_a_sound_world) {
    cg_handle world = world_new();
    cg_handle binding = binding_of(world, 4);
    save_one(world, binding, overworld(world), 0, 0, 2);
    for (int deep = 0; deep <= 1; deep++) {
        cg_handle json = 0;
        OK(cg_world_verify(world, deep, &json, E));
        cg_bytes found;
        OK(cg_bytes_of(json, &found, E));
        CHECK(contains(found, "\"problems\":[]"));
        CHECK(contains(found, "\"rows\":"));
        EQUAL(CG_OK, cg_release(json));
    }
    EXPECT(CG_INVALID, cg_world_verify(world, 0, NULL, E));
    world_close(world);
}
