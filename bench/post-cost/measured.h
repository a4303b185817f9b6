/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measured.h - the frame of a program whose one call callgrind counts: WARM posts, then COUNT posts from inside
 * measured_post, on which post-cost.sh toggles the collection.
 */
#ifndef MEASURED_H
#define MEASURED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM = 64, COUNT = 256, DRAIN_EVERY = 16 };

static void die(const char *what)
{
    fprintf(stderr, "post-cost: %s\n", what);
    exit(1);
}

void measured_post(void (*post)(void)) __attribute__((noinline, noclone));
void measured_post(void (*post)(void))
{
    post();
    __asm__ volatile("" ::: "memory"); /* no tail call: its return ends the collection */
}

/* `drain` waits until the queue is empty, so that no post meets a full one. */
static void measure(void (*post)(void), void (*drain)(void))
{
    for (int i = 0; i < WARM + COUNT; i++) {
        if (i < WARM)
            post();
        else
            measured_post(post);
        if (i % DRAIN_EVERY == DRAIN_EVERY - 1)
            drain();
    }
}

#endif
