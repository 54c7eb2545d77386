/* Kills a process that saves, again and again, and checks after each kill that all acknowledged saves are there.
 *
 *   kills N             N kills; every acknowledged save must be there
 *   kills N --control   the same with saves that are acknowledged before they are committed: a loss must be found
 *
 * A save moves an entity from one column to another and gives both columns the number of the save. So a save that is
 * stored in part, a lost one and a doubled entity are all seen. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

enum { COLUMNS = 16, BLOCKS = 4000, MOB = 1 };

typedef struct {
    uint32_t from, to;
} plan;

/* The columns of a save: each moves the entity to the next place. */
static plan plan_of(uint32_t save) {
    plan p;
    p.from = (save * 7) % COLUMNS;
    p.to = ((save + 1) * 7) % COLUMNS;
    return p;
}

static void pause_us(long us) {
    struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

/* The number of a save as blocks: the world keeps it exactly, in two cells. */
static column *column_with(uint32_t dim, uint32_t x, uint32_t save) {
    static uint32_t numbers[CELLS];
    numbers[0] = save % BLOCKS;
    numbers[1] = save / BLOCKS % BLOCKS;
    column *c = column_of(dim, x, 0, 0);
    column_fill(c, 0, 0, numbers, plain());
    return c;
}

static uint32_t save_in(const cg_column *view) { return block_in(view, 0, 0, 1) * BLOCKS + block_in(view, 0, 0, 0); }

/* Saves until it is killed. Writes the number of each save to the pipe, after its commit or before it. */
static void save_for_ever(uint32_t first, int acknowledged, int early) {
    cg_handle world = world_open(CG_OPEN_OR_CREATE, CG_PROCESS), binding = binding_of(world, BLOCKS), tx = 0;
    uint32_t dim = overworld(world);
    OK(cg_tx_new(world, &tx, E));
    for (uint32_t save = first;; save++) {
        plan p = plan_of(save);
        column *from = column_with(dim, p.from, save), *to = column_with(dim, p.to, save);
        cg_entity mob = entity_of(MOB, 0, dim, pos(p.to * 16 + 3, 3, 3), "wanderer");
        OK(cg_tx_column(tx, binding, &from->view, 0, E));
        to->view.entities = &mob;
        to->view.entity_count = 1;
        OK(cg_tx_column(tx, binding, &to->view, 0, E));
        if (early && write(acknowledged, &save, sizeof save) != (ssize_t)sizeof save) _exit(2);
        if (early) pause_us(2000);
        OK(cg_tx_commit(tx, CG_DEFAULT, NULL, E));
        if (!early && write(acknowledged, &save, sizeof save) != (ssize_t)sizeof save) _exit(2);
        free(from);
        free(to);
    }
}

/* Starts the saver, kills it after a while, and returns the last save that it acknowledged. */
static uint32_t run_and_kill(uint32_t first, long us, int early) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(ends[0]);
        save_for_ever(first, ends[1], early);
        _exit(2);
    }
    close(ends[1]);
    uint32_t last = first - 1, number = 0;
    CHECK(read(ends[0], &number, sizeof number) == (ssize_t)sizeof number); /* the world is open and saves */
    last = number;
    pause_us(us);
    CHECK(kill(child, SIGKILL) == 0);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    while (read(ends[0], &number, sizeof number) == (ssize_t)sizeof number) {
        CHECK(number == last + 1);
        last = number;
    }
    close(ends[0]);
    return last;
}

/* What is wrong with the world after a kill, or NULL. `found` is the newest save in it. */
static const char *look(uint32_t acknowledged, uint32_t *found) {
    static uint32_t saves[COLUMNS];
    size_t mobs = 0;
    uint32_t mob_at = COLUMNS;
    memset(saves, 0, sizeof saves);
    *found = 0;
    cg_handle world = world_open(CG_OPEN, CG_PROCESS), binding = binding_of(world, BLOCKS);
    uint32_t dim = overworld(world);
    for (uint32_t x = 0; x < COLUMNS; x++) {
        cg_column_at at = at_of(dim, x, 0, 0, 3);
        cg_handle out = 0;
        const cg_column *view = NULL;
        int result = cg_column_load(world, binding, &at, &out, &view, E);
        if (result == CG_ABSENT) continue;
        EXPECT(CG_OK, result);
        saves[x] = save_in(view);
        if (saves[x] > *found) *found = saves[x];
        for (size_t i = 0; i < view->entity_count; i++) {
            mobs++;
            mob_at = x;
        }
        EQUAL(CG_OK, cg_release(out));
    }
    world_close(world);
    if (*found < acknowledged) return "an acknowledged save is lost";
    if (*found > acknowledged + 1) return "there is a save that was not begun";
    if (*found == 0) return mobs == 0 ? NULL : "an entity without a save";
    if (mobs != 1) return mobs == 0 ? "the entity is lost" : "the entity is doubled";
    if (mob_at != plan_of(*found).to) return "the entity is not where the newest save has it";
    for (uint32_t save = *found; save > 0 && save + COLUMNS > *found; save--) {
        plan p = plan_of(save);
        /* A later save may have written the columns of this one again. */
        if (saves[p.from] < save || saves[p.to] < save) return "a save is stored in part";
    }
    return NULL;
}

static int kill_again_and_again(int kills, int early) {
    uint32_t stored = 0;
    int losses = 0;
    unsigned int seed = 12345;
    for (int i = 0; i < kills; i++) {
        seed = seed * 1103515245u + 12345u;
        uint32_t last = run_and_kill(stored + 1, (long)(seed >> 8 & 0xffff) * 2 % 60000, early);
        const char *wrong = look(last, &stored);
        if (wrong == NULL) continue;
        losses++;
        if (!early) fprintf(stderr, "kill %d: %s (acknowledged %u, stored %u)\n", i, wrong, last, stored);
    }
    printf("%d kills, %u saves, %d losses%s\n", kills, stored, losses, early ? " in the control" : "");
    if (early ? losses == 0 : losses != 0) {
        fprintf(stderr, early ? "the control lost nothing, so this test proves nothing\n" : "saves were lost\n");
        return 1;
    }
    return 0;
}

static int chosen_kills, chosen_control;

static void run(void) {
    if (kill_again_and_again(chosen_kills, chosen_control) != 0) test_fail(__FILE__, __LINE__, "see above");
}

int main(int argc, char **argv) {
    chosen_kills = argc > 1 ? atoi(argv[1]) : 10;
    chosen_control = argc > 2 && strcmp(argv[2], "--control") == 0;
    if (chosen_kills <= 0) {
        fprintf(stderr, "usage: kills N [--control]\n");
        return 2;
    }
    test_register(__FILE__, chosen_control ? "control" : "all", run);
    char *none[] = {argv[0], (char *)"--no-fork", NULL};
    return test_main(2, none);
}
