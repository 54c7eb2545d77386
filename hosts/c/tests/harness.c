#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "harness.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CASES = 512, SECONDS_OF_A_CASE = 120 };

typedef struct {
    char name[128];
    test_function function;
} test_case;

static test_case cases[MAX_CASES];
static size_t case_count;
static char dir[512];
static _Thread_local cg_error last_error;

/* Blocks of the block cache of RocksDB, which is one for the process: the leak detector does not look through its table. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:rocksdb::BlockCreateContext::Create\n";
}

void test_register(const char *file, const char *name, test_function function) {
    if (case_count == MAX_CASES) abort();
    const char *slash = strrchr(file, '/');
    const char *base = slash ? slash + 1 : file;
    int stem = (int)strcspn(base, ".");
    test_case *added = &cases[case_count++];
    snprintf(added->name, sizeof added->name, "%.*s.%s", stem, base, name);
    added->function = function;
}

void test_fail(const char *file, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char text[2048];
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *slash = strrchr(file, '/');
    fprintf(stderr, "  %s:%d: %s\n", slash ? slash + 1 : file, line, text);
    fflush(NULL);
    _exit(1);
}

const char *test_dir(void) { return dir; }

cg_error *test_error(void) {
    memset(&last_error, 0, sizeof last_error);
    last_error.struct_size = sizeof last_error;
    return &last_error;
}

/* Whether bytes are UTF-8, up to shortest forms and surrogates. */
static int is_utf8(const char *text, size_t len) {
    for (size_t i = 0; i < len;) {
        unsigned char first = (unsigned char)text[i++];
        int rest = first < 0x80 ? 0 : first >= 0xf0 && first < 0xf8 ? 3 : first >= 0xe0 ? 2 : first >= 0xc2 ? 1 : -1;
        if (rest < 0 || first >= 0xf8) return 0;
        for (; rest > 0; rest--, i++)
            if (i >= len || ((unsigned char)text[i] & 0xc0) != 0x80) return 0;
    }
    return 1;
}

void test_expect(int expected, int found, const char *file, int line, const char *text) {
    const cg_error *error = &last_error;
    if (expected != found) {
        test_fail(file, line, "%s: expected %d, found %d: %.*s", text, expected, found, (int)error->message_len,
                  error->message);
    }
    if (found >= 0) {
        if (error->kind != 0 || error->message_len != 0) test_fail(file, line, "%s: an error without a failure", text);
        return;
    }
    if (error->struct_size != sizeof *error) test_fail(file, line, "%s: struct_size was changed", text);
    if (error->kind != found) test_fail(file, line, "%s: the error says %d, the result %d", text, error->kind, found);
    if (error->message_len == 0 || error->message_len > sizeof error->message)
        test_fail(file, line, "%s: a message of %u bytes", text, error->message_len);
    if (error->message_full_len < error->message_len) test_fail(file, line, "%s: the full length is shorter", text);
    if (!is_utf8(error->message, error->message_len)) test_fail(file, line, "%s: the message is not UTF-8", text);
    if (error->retryable > 1 || error->has_place > 1) test_fail(file, line, "%s: flags that are no flags", text);
}

void test_equal(int64_t expected, int64_t found, const char *file, int line, const char *text) {
    if (expected != found)
        test_fail(file, line, "%s: expected %lld, found %lld", text, (long long)expected, (long long)found);
}

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *place) {
    (void)status, (void)flag, (void)place;
    return remove(path);
}

static void make_dir(const char *name) {
    const char *root = getenv("TMPDIR");
    int len = snprintf(dir, sizeof dir, "%s/cg-%ld-%s", root && *root ? root : "/tmp", (long)getpid(), name);
    if (len < 0 || (size_t)len >= sizeof dir || mkdir(dir, 0700) != 0) {
        fprintf(stderr, "%s: %s\n", dir, strerror(errno));
        exit(2);
    }
}

static int run_in_child(const test_case *test) {
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) return -1;
    if (child == 0) {
        alarm(SECONDS_OF_A_CASE);
        test->function();
        exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        fprintf(stderr, "  %s\n", number == SIGALRM ? "it took too long" : strsignal(number));
    }
    return status;
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int is_chosen(const char *name, int argc, char **argv) {
    int any = 0;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') continue;
        any = 1;
        if (strncmp(name, argv[i], strlen(argv[i])) == 0) return 1;
    }
    return !any;
}

static int by_name(const void *left, const void *right) {
    return strcmp(((const test_case *)left)->name, ((const test_case *)right)->name);
}

int test_main(int argc, char **argv) {
    int list = 0, alone = 0, passed = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
        list |= strcmp(argv[i], "--list") == 0;
        alone |= strcmp(argv[i], "--no-fork") == 0;
    }
    qsort(cases, case_count, sizeof cases[0], by_name);
    for (size_t i = 0; i < case_count; i++) {
        const test_case *test = &cases[i];
        if (!is_chosen(test->name, argc, argv)) continue;
        if (list) {
            printf("%s\n", test->name);
            continue;
        }
        make_dir(test->name);
        int64_t start = now_ms();
        int status = 0;
        if (alone)
            test->function();
        else
            status = run_in_child(test);
        printf("%s %s (%lld ms)\n", status == 0 ? "ok    " : "FAILED", test->name, (long long)(now_ms() - start));
        fflush(stdout);
        nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        if (status == 0)
            passed++;
        else
            failed++;
    }
    if (!list) {
        if (passed + failed == 0) {
            fprintf(stderr, "no case has such a name; --list prints all\n");
            failed = 1;
        }
        printf("%d passed, %d failed\n", passed, failed);
    }
    return failed == 0 ? 0 : 1;
}
