/* Saves and loads a column again and again: pairs N. The most memory of the last tenth must be that of the second one. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fixture.h"

enum { COLUMNS = 64, TENTHS = 10 };

static long resident_pages(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long size = 0, resident = 0;
    CHECK(file != NULL && fscanf(file, "%ld %ld", &size, &resident) == 2);
    fclose(file);
    return resident;
}

static int64_t count;

static void run(void) {
    cg_handle world = world_open(CG_CREATE, CG_BALANCED), binding = binding_of(world, 16);
    uint32_t dim = overworld(world), numbers[CELLS];
    column *c = column_of(dim, 0, 0, 0);
    long pages[TENTHS] = {0};
    for (int64_t i = 0; i < count; i++) {
        numbers[i % CELLS] = (uint32_t)(i / CELLS) % 16;
        if (i == 0)
            for (uint32_t j = 0; j < CELLS; j++) numbers[j] = j % 16;
        form f = {4, 64, CG_ORDER_YZX, 1};
        column_fill(c, 0, 0, numbers, f);
        c->view.x = i % COLUMNS;
        CHECK(cg_column_save(world, binding, &c->view, 0, NULL, E) >= 0);
        EQUAL(numbers[0], stored_block(world, binding, dim, c->view.x * 16, 0, 0));
        if (i % 100 == 0) {
            size_t tenth = (size_t)(i * TENTHS / count);
            long resident = resident_pages();
            if (resident > pages[tenth]) pages[tenth] = resident; /* it falls when the store writes its tables */
        }
    }
    for (size_t i = 0; i < TENTHS; i++) printf("  %ld KiB\n", pages[i] * (sysconf(_SC_PAGESIZE) / 1024));
    double growth = (double)pages[TENTHS - 1] / (double)pages[1] - 1;
    printf("%lld pairs, %+.2f %% from the second tenth to the last\n", (long long)count, growth * 100);
    /* Few pairs do not fill the memory that the world may use. */
    if (count >= 4000000 && growth > 0.02) test_fail(__FILE__, __LINE__, "memory grows");
    world_close(world);
    free(c);
}

int main(int argc, char **argv) {
    count = argc > 1 ? atoll(argv[1]) : 0;
    if (count < TENTHS) {
        fprintf(stderr, "usage: pairs N\n");
        return 2;
    }
    test_register(__FILE__, "all", run);
    char *none[] = {argv[0], (char *)"--no-fork", NULL};
    return test_main(2, none);
}
