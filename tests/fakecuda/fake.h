/* SPDX-License-Identifier: BSD-3-Clause */
/* fake.h - what the parts of the stand-in driver share. */
#ifndef FAKE_H
#define FAKE_H

#include "transports/cuda/driver.h"

#include <stdbool.h>

#define PUBLIC __attribute__((visibility("default")))

int cuInit(unsigned flags);
#define DECLARE(field, symbol, params) int field##_ params __asm__(symbol);
SHMEMI_CU_FUNCTIONS(DECLARE)

/* device.c */
extern char fake_contexts[16]; /* the context of device i is the address of element i */
extern void *fake_captured;
/* Is a stream being captured, by this thread or another, and has this thread not said that it minds itself? */
bool fake_capture_minds(void);
long fake_setting(const char *name, long otherwise);
void *fake_current(void);

/* fakecuda.c: may a copy touch these bytes? */
bool fake_range_ok(uint64_t at, size_t len);
/* Where the stand-in touches device memory, or memory of the host; *len: at most so many bytes on from there. */
void *fake_cpu(uint64_t at, size_t *len);

#define NOT_IN_CAPTURE                \
    do {                              \
        if (fake_capture_minds())     \
            return 900;               \
    } while (0)
#define RIGHT_STREAM                                            \
    do {                                                        \
        if (stream != fake_captured && fake_capture_minds())    \
            return 900;                                         \
    } while (0)

#define NEED_CONTEXT         \
    do {                     \
        if (!fake_current())      \
            return 201;      \
    } while (0)

#endif
