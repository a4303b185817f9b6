/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmem_watch.c - looks, ten times a second, at the record that kernels leave in host memory: waits that last and
 * errors.  A kernel cannot print or end the job, and the thread that launched it may be in cudaStreamSynchronize.
 */
#include "devmem.h"

#include "env.h"
#include "log.h"
#include "net.h"
#include "transports/cuda/gpu.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static struct {
    struct shmemi_dev_report *report;
    uint64_t since_ns, said_ns; /* of the wait that is under way; 0: none */
    struct shmemi_dev_report last;
} it;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

const char *shmemi_devmem_call_name(uint64_t call)
{
    static const char *const names[] = {
        [SHMEMI_CALL_NONE] = "a kernel",
#define NAME(name, text) [SHMEMI_CALL_##name] = text,
        SHMEMI_DEV_CALLS(NAME)
#undef NAME
    };

    return call < SHMEMI_CALL_LAST ? names[call] : "a kernel";
}

static const char *comparison(int cmp)
{
    static const char *const names[] = {
        [SHMEM_CMP_EQ] = "equal to", [SHMEM_CMP_NE] = "other than", [SHMEM_CMP_GT] = "more than",
        [SHMEM_CMP_LE] = "at most",  [SHMEM_CMP_LT] = "less than",  [SHMEM_CMP_GE] = "at least",
    };

    return cmp >= SHMEM_CMP_EQ && cmp <= SHMEM_CMP_GE ? names[cmp] : "as wanted, compared with";
}

/* What a kernel waits for, in words. */
static void describe(const struct shmemi_dev_report *r, char *buf, size_t len)
{
    char who[80] = "";

    if (r->pe >= 0)
        snprintf(who, sizeof who, "PE %d: ", r->pe);
    else if (r->pe <= SHMEMI_DEV_SPEAKER(0))
        snprintf(who, sizeof who, "PE %d or one for which it speaks: ", SHMEMI_DEV_SPEAKER(r->pe));
    snprintf(buf, len, "%sthe word at %#llx to be %s %lld; it is %lld", who, (unsigned long long)r->addr, comparison(r->cmp),
             (long long)r->want, (long long)r->value);
}

/* Kernels report after this long a wait; the rest of the time is measured here. */
uint64_t shmemi_devmem_watch_after(void)
{
    uint64_t hang = shmemi_env.hang_report, timeout = shmemi_env.timeout;

    if (!hang || (timeout && timeout < hang))
        return timeout;
    return hang;
}

static void look_at_wait(void)
{
    struct shmemi_dev_report r;
    uint64_t now = now_ns(), waited;
    char what[200];

    if (!SHMEMI_LD_ACQ(&it.report->waiting)) { /* pairs with the kernel's release */
        it.since_ns = 0;
        return;
    }
    memcpy(&r, it.report, sizeof r);
    if (!it.since_ns || r.addr != it.last.addr || r.want != it.last.want || r.since_ns != it.last.since_ns) {
        it.since_ns = now;
        it.said_ns = 0;
    }
    it.last = r;
    waited = now - it.since_ns + shmemi_devmem_watch_after();
    describe(&r, what, sizeof what);
    if (shmemi_env.timeout && waited >= shmemi_env.timeout)
        shmemi_fatal(shmemi_devmem_call_name(r.call), "in a kernel: gave up after %.1f s waiting for %s (MARROW_TIMEOUT)",
                     (double)waited / 1e9, what);
    if (shmemi_env.hang_report && (!it.said_ns || now - it.said_ns > shmemi_env.hang_report)) {
        it.said_ns = now;
        shmemi_warn(shmemi_devmem_call_name(r.call), "in a kernel: has waited %.0f s for %s (MARROW_HANG_REPORT sets when this is said)",
                    (double)waited / 1e9, what);
    }
}

SHMEMI_NORETURN static void tell_error(uint32_t error)
{
    const uint64_t *a = it.report->error_args;
    const char *call = shmemi_devmem_call_name(a[0]);
    unsigned long long addr = a[1], len = a[2];
    int pe = (int)a[3];

    switch (error) {
    case SHMEMI_DEV_BAD_PE:
        shmemi_fatal(call, "in a kernel: PE %lld is out of range: there are PEs 0 to %lld", (long long)a[1], (long long)a[2] - 1);
    case SHMEMI_DEV_BAD_ADDRESS:
        shmemi_fatal(call, "in a kernel: address %#llx (%llu bytes, PE %d) is neither in the symmetric heap [%p, %p) nor in the "
                     "device heap [%p, %p)", addr, len, pe, (void *)shmemi.heap_base,
                     (void *)(shmemi.heap_base + shmemi.heap_len), (void *)shmemi.dheap_base,
                     (void *)(shmemi.dheap_base + shmemi.dheap_len));
    case SHMEMI_DEV_BAD_RANGE:
        shmemi_fatal(call, "in a kernel: %llu bytes at %#llx for PE %d run past the end of the heap", len, addr, pe);
    case SHMEMI_DEV_MISALIGNED:
        shmemi_fatal(call, "in a kernel: address %#llx is not aligned to %llu bytes, as an atomic access must be", addr, len);
    case SHMEMI_DEV_UNREACHABLE:
        if (pe >= 0 && pe < shmemi.n_pes && shmemi.node_of[pe] != shmemi.node_of[shmemi.my_pe])
            shmemi_fatal(call, "in a kernel: PE %d is on another node, and %s (shmem_device(7))", pe,
                         shmemi_devmem_has_nic() ? "this kernel was compiled with -DSHMEMX_NO_DEVICE_NIC, or that PE's NIC has not "
                                                   "registered the memory (that PE has said so)"
                                                 : "there is no NIC for kernels (MARROW_LOG=info says why)");
        shmemi_fatal(call, "in a kernel: memory of PE %d at %#llx cannot be reached from this GPU", pe, addr);
    case SHMEMI_DEV_BAD_TEAM: shmemi_fatal(call, "in a kernel: team handle %#llx is not valid", addr);
    case SHMEMI_DEV_BAD_CTX: shmemi_fatal(call, "in a kernel: context %#llx does not exist", addr);
    case SHMEMI_DEV_NIC: shmemi_net_dev_failed(a[3], a[2], addr, call);
    default: shmemi_fatal(call, "in a kernel: bad argument %lld (error %u)", (long long)a[1], error);
    }
}

void shmemi_devmem_look(void)
{
    uint32_t error = SHMEMI_LD_ACQ(&it.report->error); /* pairs with the kernel's release */

    if (shmemi.node && SHMEMI_LD_ACQ(&shmemi.node->ending))
        SHMEMI_ST_REL(&it.report->stop, 1u);
    if (error) {
        /* A kernel whose work request has failed waits for this: while it lives its queue can be read. */
        if (error != SHMEMI_DEV_NIC)
            SHMEMI_ST_REL(&it.report->stop, 1u);
        tell_error(error);
    }
    look_at_wait();
}

void shmemi_devmem_watch_by(struct shmemi_dev_report *report)
{
    memset(&it, 0, sizeof it);
    it.report = report;
}

void shmemi_devmem_watch(struct shmemi_dev_report *report)
{
    shmemi_devmem_watch_by(report);
    shmemi_gpu_door_also(shmemi_devmem_look);
}
