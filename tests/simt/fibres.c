/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes as fibres of one thread, and the scheduler that picks one at random at every point where they may
 * change. */
#include "simt_priv.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

enum { STACK_BYTES = 128 << 10, GUARD_BYTES = 4096 };

/* ---- AddressSanitizer wants to know of other stacks ---- */

void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size) __attribute__((weak));
void __sanitizer_finish_switch_fiber(void *save, const void **bottom, size_t *size) __attribute__((weak));

void __asan_unpoison_memory_region(const volatile void *from, size_t size) __attribute__((weak));

/* Stacks are left in the middle of calls, whose red zones would still be marked for whatever comes to lie there. */
static void unmark(const void *from, size_t size)
{
    if (__asan_unpoison_memory_region)
        __asan_unpoison_memory_region(from, size);
}

static __thread const void *main_bottom;
static __thread size_t main_size;

static void leave_for(const void *bottom, size_t size, void **save)
{
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(save, bottom, size);
}

static void arrived(void *save, const void **bottom, size_t *size)
{
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(save, bottom, size);
}

/* ---- the change of stacks ---- */

static void fibre_main(void);

#if defined(__x86_64__)

/* Keeps what a called function has to keep, on the old stack, and goes on with the new one. */
void simt_switch(void **save_sp, void *sp);
__asm__(".text\n"
        ".type simt_switch, @function\n"
        "simt_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size simt_switch, .-simt_switch\n");

static void prepare(struct lane *lane)
{
    uintptr_t *top = (uintptr_t *)((char *)lane->stack + GUARD_BYTES + STACK_BYTES);

    *--top = 0;
    *--top = (uintptr_t)fibre_main; /* entered with the stack as a call leaves it */
    for (int i = 0; i < 6; i++)
        *--top = 0;
    lane->sp = top;
}

#else

/* sp is a ucontext here. */
static void simt_switch(void **save_sp, void *sp)
{
    ucontext_t here;

    *save_sp = &here;
    swapcontext(&here, sp);
}

static void prepare(struct lane *lane)
{
    ucontext_t *c = (ucontext_t *)((char *)lane->stack + GUARD_BYTES);

    getcontext(c);
    c->uc_stack.ss_sp = c + 1;
    c->uc_stack.ss_size = STACK_BYTES - sizeof *c;
    c->uc_link = NULL;
    makecontext(c, fibre_main, 0);
    lane->sp = c;
}

#endif

static void to_scheduler(struct lane *lane)
{
    void *save = NULL;

    leave_for(main_bottom, main_size, lane->state == LANE_ENDED ? NULL : &save);
    simt_switch(&lane->sp, lane->launch->sp);
    arrived(save, NULL, NULL);
}

static void fibre_main(void)
{
    struct lane *lane = simt_self();

    arrived(NULL, &main_bottom, &main_size);
    lane->launch->kernel(lane->launch->arg);
    simt_lane_ended(lane);
    to_scheduler(lane);
}

/* ---- states ---- */

static void add_ready(struct lane *lane)
{
    struct launch *l = lane->launch;

    if (lane->in_ready)
        return;
    lane->in_ready = true;
    lane->ready_at = l->n_ready;
    l->ready[l->n_ready++] = lane;
}

static void drop_ready(struct lane *lane)
{
    struct launch *l = lane->launch;
    struct lane *last = l->ready[--l->n_ready];

    lane->in_ready = false;
    l->ready[lane->ready_at] = last;
    last->ready_at = lane->ready_at;
}

void simt_fibre_sleep(struct lane *lane)
{
    lane->launch->pauses = 0;
    to_scheduler(lane);
}

void simt_fibre_wake(struct lane *lane)
{
    lane->state = LANE_READY;
    add_ready(lane);
}

void simt_fibre_pause(struct lane *lane)
{
    struct launch *l = lane->launch;
    struct timespec nap = { 0, 20000 };

    /* All spin: what they wait for may have to come from another process. */
    if (++l->pauses % l->n_ready == 0)
        sched_yield();
    if (l->pauses > 4000ull * l->n_ready)
        nanosleep(&nap, NULL);
    to_scheduler(lane);
}

void simt_fibre_step(struct lane *lane)
{
    if (simt_random(&lane->launch->random) % 4 == 0)
        to_scheduler(lane);
}

void simt_fibre_fail(struct lane *lane, int error, const char *what)
{
    simt_complain(lane->launch, what);
    lane->launch->error = error;
    to_scheduler(lane);
    abort();
}

/* ---- the scheduler ---- */

/* Lanes of one warp that still run may yet come to the same active mask call. */
static bool others_run(const struct lane *lane)
{
    for (uint32_t i = 0; i < 32; i++)
        if (lane->warp->lane[i] && lane->warp->lane[i]->state == LANE_READY)
            return true;
    return false;
}

static void run(struct launch *l, struct lane *lane)
{
    void *save = NULL;

    simt_set_self(lane);
    leave_for((char *)lane->stack + GUARD_BYTES, STACK_BYTES, &save);
    simt_switch(&l->sp, lane->sp);
    arrived(save, NULL, NULL);
    simt_set_self(NULL);
    if (lane->state == LANE_AT_WARP || lane->state == LANE_AT_BLOCK || lane->state == LANE_ENDED)
        drop_ready(lane);
    if (lane->state == LANE_ENDED) {
        l->live--;
        l->pauses = 0;
    }
}

static int schedule(struct launch *l)
{
    for (uint32_t turn = 1; l->live && !l->error; turn++) {
        struct lane *lane;

        if (l->n_ready == 0) {
            simt_complain(l, "deadlock");
            return -EDEADLK;
        }
        if (turn % 1024 == 0 && simt_now_ns() > l->deadline_ns) {
            simt_complain(l, "lanes still spin when the time is up");
            return -ETIMEDOUT;
        }
        lane = l->ready[simt_random(&l->random) % l->n_ready];
        if (lane->state == LANE_AT_ACTIVE) {
            if (simt_random(&l->random) % 16 && others_run(lane))
                continue;
            simt_release_active(lane, simt_random(&l->random) % 4 != 0);
        }
        run(l, lane);
    }
    return l->error;
}

int simt_run_fibres(struct launch *l)
{
    size_t bytes = STACK_BYTES + GUARD_BYTES;
    char *stacks =
        mmap(NULL, bytes * l->n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct lane *outer = simt_self();
    int rc;

    if (stacks == MAP_FAILED || outer)
        abort();
    unmark(stacks, bytes * l->n);
    for (uint32_t i = 0; i < l->n; i++) {
        l->lanes[i].stack = stacks + bytes * i;
        mprotect(l->lanes[i].stack, GUARD_BYTES, PROT_NONE);
        prepare(&l->lanes[i]);
        add_ready(&l->lanes[i]);
    }
    rc = schedule(l);
    unmark(stacks, bytes * l->n);
    munmap(stacks, bytes * l->n);
    return rc;
}
