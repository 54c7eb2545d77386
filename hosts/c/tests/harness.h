/* A harness of named cases. Each runs in a process of its own, so a crash, a hang or a leak is of one case. */
#ifndef HARNESS_H
#define HARNESS_H

#include <stddef.h>
#include <stdint.h>

#include "cherrygrove.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*test_function)(void);

/* Adds a case to those that test_main runs. Its name is that of the file, a dot, and that of the function. */
void test_register(const char *file, const char *name, test_function function);

#define TEST(name)                                                                                                     \
    static void name(void);                                                                                            \
    __attribute__((constructor)) static void register_##name(void) { test_register(__FILE__, #name, name); }           \
    static void name(void)

/* Runs the cases whose names begin with one of the arguments, or all. --list prints the names, and --no-fork runs all
 * in one process. */
int test_main(int argc, char **argv);

/* Ends the case as failed. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4), noreturn))
#endif
void test_fail(const char *file, int line, const char *format, ...);

/* A directory of the running case, which is removed after it. */
const char *test_dir(void);

/* An error of this thread, empty. */
cg_error *test_error(void);
/* Checks a result and the error that test_error gave last. */
void test_expect(int expected, int found, const char *file, int line, const char *text);
void test_equal(int64_t expected, int64_t found, const char *file, int line, const char *text);

#define E test_error()
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) test_fail(__FILE__, __LINE__, "%s", #condition);                                             \
    } while (0)
#define EQUAL(expected, found) test_equal((int64_t)(expected), (int64_t)(found), __FILE__, __LINE__, #found)
/* Checks that a call gives this result, and that its error says the same. The call must name E. */
#define EXPECT(result, call) test_expect(result, call, __FILE__, __LINE__, #call)
#define OK(call) EXPECT(CG_OK, call)

#ifdef __cplusplus
}
#endif
#endif
