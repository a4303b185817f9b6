/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data.c - moves the executable's .data and .bss onto shared memory and back.
 *
 * Between copying the pages and mapping the copy over them, a store by another thread of this process would
 * be lost; init is therefore documented to come before threads that write global variables.  The library's own
 * data and libc's live in other objects and are not touched.
 *
 * A forked child gets its private copy of the data back: the parent copies in its fork handler, so the
 * child sees what fork promises, and the child's later stores do not reach the parent or any peer.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "data.h"

#include "log.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE ((uintptr_t)4096)

static struct {
    uintptr_t base;
    size_t len;
    int fd;
    off_t off;
    void *fork_copy; /* between the handlers before and after fork */
} shared = { .fd = -1 };

struct span {
    uintptr_t start, end;
};

/* Widens the span by one writable segment, less the part that is read-only after relocation. */
static void add_segment(struct span *s, uintptr_t start, uintptr_t end, uintptr_t relro_start, uintptr_t relro_end)
{
    if (relro_start >= start && relro_start < end && relro_end > start)
        start = relro_end;
    start &= ~(PAGE - 1);
    end = (end + PAGE - 1) & ~(PAGE - 1);
    if (start >= end)
        return;
    if (s->end == 0 || end - start > s->end - s->start) {
        /* Segments that touch are one span; else the larger one counts. */
        if (s->end == start)
            start = s->start;
        *s = (struct span){ start, end };
    } else if (s->end == start) {
        s->end = end;
    }
}

/* dl_iterate_phdr gives the executable first. */
static int executable_span(struct dl_phdr_info *info, size_t size, void *arg)
{
    uintptr_t relro_start = 0, relro_end = 0;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
            relro_start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            relro_end = (relro_start + info->dlpi_phdr[i].p_memsz) & ~(PAGE - 1);
        }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + p->p_vaddr;

        if (p->p_type == PT_LOAD && (p->p_flags & (PF_W | PF_X)) == PF_W && p->p_memsz)
            add_segment(arg, start, start + p->p_memsz, relro_start, relro_end);
    }
    return 1;
}

void shmemi_data_find(uintptr_t *base_out, size_t *len_out)
{
    struct span s = { 0, 0 };

    dl_iterate_phdr(executable_span, &s);
    *base_out = s.start;
    *len_out = s.end - s.start;
}

/* Pages are read and copied by these. */
typedef uint64_t __attribute__((may_alias)) word;

/* Not memcmp(), which AddressSanitizer replaces: a page may hold the gaps that it keeps between variables. */
__attribute__((no_sanitize_address)) static bool all_zero(const char *page)
{
    const word *w = (const word *)page;

    for (size_t i = 0; i < PAGE / sizeof *w; i++)
        if (w[i])
            return false;
    return true;
}

/* Is the page in memory or swapped out?  Yes when the kernel does not say. */
static bool page_is_used(int pagemap, uintptr_t page)
{
    uint64_t entry;

    if (pagemap < 0 || pread(pagemap, &entry, sizeof entry, (off_t)(page / PAGE * sizeof entry)) != (ssize_t)sizeof entry)
        return true;
    return entry >> 62 != 0;
}

/*
 * Copies pages that hold anything; the rest stay holes.  Runs of unused .bss pages are skipped without touching them, so
 * a huge static array costs little.
 */
static int copy_to_file(uintptr_t base, size_t len, int fd, off_t off)
{
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    int rc = 0;

    for (size_t at = 0; at < len && !rc; at += PAGE) {
        const char *page = (const char *)(base + at);

        if (!page_is_used(pagemap, base + at) || all_zero(page))
            continue;
        /* By number: AddressSanitizer's pwrite refuses to read the gaps that it keeps between variables. */
        if (syscall(SYS_pwrite64, fd, page, (size_t)PAGE, off + (off_t)at) != (long)PAGE)
            rc = errno ? -errno : -ENOSPC;
    }
    if (pagemap >= 0)
        close(pagemap);
    return rc;
}

/* Whole pages; not memcpy() for the same reason as in all_zero(). */
__attribute__((no_sanitize_address)) static void copy_pages(void *to, const void *from, size_t len)
{
    word *t = to;
    const word *f = from;

    for (size_t i = 0; i < len / sizeof *t; i++)
        t[i] = f[i];
}

/* A private copy of the shared data at some other address; holes stay untouched.  NULL: no memory. */
static void *private_copy(void)
{
    char *copy = mmap(NULL, shared.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    off_t end = shared.off + (off_t)shared.len, at = shared.off;

    if (copy == MAP_FAILED)
        return NULL;
    while (at < end && (at = lseek(shared.fd, at, SEEK_DATA)) >= 0 && at < end) {
        off_t hole = lseek(shared.fd, at, SEEK_HOLE);

        if (hole < 0 || hole > end)
            hole = end;
        copy_pages(copy + (at - shared.off), (const char *)shared.base + (at - shared.off), (size_t)(hole - at));
        at = hole;
    }
    return copy;
}

static void move_over(void *copy)
{
    /* Cannot fail for want of memory: source and target exist already. */
    if (mremap(copy, shared.len, shared.len, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)shared.base) == MAP_FAILED)
        shmemi_err("data", "cannot give the static data back to the process: %m");
}

static void before_fork(void)
{
    if (shared.len)
        shared.fork_copy = private_copy();
}

static void after_fork_parent(void)
{
    if (shared.fork_copy)
        munmap(shared.fork_copy, shared.len);
    shared.fork_copy = NULL;
}

static void after_fork_child(void)
{
    if (shared.fork_copy)
        move_over(shared.fork_copy);
    shared.fork_copy = NULL;
    shared.len = 0;
}

int shmemi_data_share(uintptr_t base, size_t len, int fd, off_t off)
{
    static bool handlers;
    int rc = copy_to_file(base, len, fd, off);

    if (rc) {
        errno = -rc;
        shmemi_err("data", "cannot copy %zu bytes of static data to shared memory: %m", len);
        return rc;
    }
    if (mmap((void *)base, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, off) == MAP_FAILED) {
        rc = -errno;
        shmemi_err("data", "cannot map static data [%p, %p) shared: %m", (void *)base, (void *)(base + len));
        return rc;
    }
    shared.base = base;
    shared.len = len;
    shared.fd = fd;
    shared.off = off;
    if (!handlers)
        handlers = pthread_atfork(before_fork, after_fork_parent, after_fork_child) == 0;
    return 0;
}

void shmemi_data_unshare(void)
{
    void *copy;

    if (!shared.len)
        return;
    copy = private_copy();
    if (copy)
        move_over(copy);
    else
        shmemi_err("data", "no memory for a private copy of the static data: it stays shared");
    shared.len = 0;
    shared.fd = -1;
}
