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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE ((uintptr_t)4096)
#define AT_ONCE 512 /* pages that the kernel is asked about */
#define COPY_BYTES ((size_t)1 << 30) /* one call moves less than 2 GiB */

static struct {
    pthread_mutex_t lock; /* threads that fork at the same time take turns at fork_copy */
    uintptr_t base;
    size_t len;
    int fd;
    dev_t dev; /* what fd was at first: a program may close descriptors that it does not know */
    ino_t ino;
    off_t off;
    void *fork_copy; /* between the handlers before and after fork */
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

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

/* FNV-1a: to tell executables apart, not to withstand anybody. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *b = bytes;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ b[i]) * 0x100000001b3ull;
    return hash;
}

/* The linker's note of the executable's contents, if it made one. */
static int executable_build_id(struct dl_phdr_info *info, size_t size, void *arg)
{
    uint64_t *hash = arg;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + p->p_vaddr, end = at + p->p_memsz;

        while (p->p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
            uintptr_t name = at + sizeof *note, desc = name + ((note->n_namesz + 3u) & ~3u);

            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp((const void *)name, "GNU", 4))
                *hash = hash_bytes(*hash, (const void *)desc, note->n_descsz);
            at = desc + ((note->n_descsz + 3u) & ~3u);
        }
    }
    return 1;
}

uint64_t shmemi_data_identity(void)
{
    const uint64_t none = 0xcbf29ce484222325ull;
    uint64_t hash = none;
    struct stat st;

    dl_iterate_phdr(executable_build_id, &hash);
    if (hash == none && !stat("/proc/self/exe", &st)) {
        hash = hash_bytes(hash, &st.st_dev, sizeof st.st_dev);
        hash = hash_bytes(hash, &st.st_ino, sizeof st.st_ino);
    }
    return hash;
}

typedef uint64_t __attribute__((may_alias)) word;

/*
 * Whole pages of the program's variables are read here.  In a program built with AddressSanitizer they hold
 * forbidden zones, and the C library's functions are its guards: so a plain loop, and a bare system call to write.
 */
__attribute__((no_sanitize("address", "thread")))
static bool all_zero(const char *page)
{
    const word *w = (const word *)page;

    for (size_t i = 0; i < PAGE / sizeof *w; i++)
        if (w[i])
            return false;
    return true;
}

/*
 * Finds out which of the `n` pages from `page` on are in memory or swapped out, in bits of entry 63 and 62: all of
 * them when the kernel does not say.
 */
static void find_used(int pagemap, uintptr_t page, uint64_t *entries, size_t n)
{
    size_t bytes = n * sizeof *entries;

    if (pagemap < 0 ||
        syscall(SYS_pread64, pagemap, entries, bytes, (off_t)(page / PAGE * sizeof *entries)) != (long)bytes)
        memset(entries, 0xff, bytes);
}

/*
 * Copies pages that hold anything; the rest stay holes.  Runs of unused .bss pages are skipped without touching them, so
 * a huge static array costs little.
 */
static int copy_to_file(uintptr_t base, size_t len, int fd, off_t off)
{
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    uint64_t entries[AT_ONCE];
    int rc = 0;

    for (size_t at = 0; at < len && !rc; at += PAGE) {
        const char *page = (const char *)(base + at);
        size_t i = at / PAGE % AT_ONCE, left = (len - at) / PAGE;

        if (i == 0)
            find_used(pagemap, base + at, entries, left < AT_ONCE ? left : AT_ONCE);
        if (entries[i] >> 62 == 0 || all_zero(page))
            continue;
        /* By number: AddressSanitizer's pwrite refuses to read the gaps that it keeps between variables. */
        if (syscall(SYS_pwrite64, fd, page, (size_t)PAGE, off + (off_t)at) != (long)PAGE)
            rc = errno ? -errno : -ENOSPC;
    }
    if (pagemap >= 0)
        close(pagemap);
    return rc;
}

/* Reads the bytes [at, end) of the shared file to where they belong in the copy. */
static int read_range(char *copy, off_t at, off_t end)
{
    while (at < end) {
        size_t len = (size_t)(end - at) < COPY_BYTES ? (size_t)(end - at) : COPY_BYTES;
        ssize_t n = pread(shared.fd, copy + (at - shared.off), len, at);

        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        at += n;
    }
    return 0;
}

static bool file_is_ours(void)
{
    struct stat st;

    return fstat(shared.fd, &st) == 0 && st.st_dev == shared.dev && st.st_ino == shared.ino;
}

/* Without the file nothing tells the holes: every page is looked at. */
__attribute__((no_sanitize("address", "thread")))
static void read_pages(char *copy)
{
    for (size_t at = 0; at < shared.len; at += PAGE) {
        const word *from = (const word *)(shared.base + at);
        volatile word *to = (volatile word *)(copy + at); /* or the compiler calls memcpy */

        if (all_zero((const char *)from))
            continue;
        for (size_t i = 0; i < PAGE / sizeof *from; i++)
            to[i] = from[i];
    }
}

/* A private copy of the shared data at some other address; holes stay untouched.  NULL: no memory. */
static void *private_copy(void)
{
    char *copy = mmap(NULL, shared.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    off_t end = shared.off + (off_t)shared.len, at = shared.off;

    if (copy == MAP_FAILED)
        return NULL;
    if (!file_is_ours()) {
        read_pages(copy);
        return copy;
    }
    while (at < end && (at = lseek(shared.fd, at, SEEK_DATA)) >= 0 && at < end) {
        off_t hole = lseek(shared.fd, at, SEEK_HOLE);

        if (hole < 0 || hole > end)
            hole = end;
        if (read_range(copy, at, hole)) {
            munmap(copy, shared.len);
            return NULL;
        }
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
    pthread_mutex_lock(&shared.lock);
    if (!shared.len)
        return;
    shared.fork_copy = private_copy();
    if (!shared.fork_copy)
        shmemi_err("data", "fork: no memory for a copy of %zu bytes of static data: the child shares them", shared.len);
}

static void after_fork_parent(void)
{
    if (shared.fork_copy)
        munmap(shared.fork_copy, shared.len);
    shared.fork_copy = NULL;
    pthread_mutex_unlock(&shared.lock);
}

static void after_fork_child(void)
{
    if (shared.fork_copy)
        move_over(shared.fork_copy);
    shared.fork_copy = NULL;
    shared.len = 0;
    pthread_mutex_unlock(&shared.lock);
}

int shmemi_data_share(uintptr_t base, size_t len, int fd, off_t off)
{
    static bool handlers;
    struct stat st = { 0 };
    int rc = fstat(fd, &st) ? -errno : copy_to_file(base, len, fd, off);

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
    pthread_mutex_lock(&shared.lock);
    shared.base = base;
    shared.len = len;
    shared.fd = fd;
    shared.dev = st.st_dev;
    shared.ino = st.st_ino;
    shared.off = off;
    pthread_mutex_unlock(&shared.lock);
    if (!handlers)
        handlers = pthread_atfork(before_fork, after_fork_parent, after_fork_child) == 0;
    return 0;
}

void shmemi_data_unshare(void)
{
    void *copy;

    if (!shared.len)
        return;
    pthread_mutex_lock(&shared.lock);
    copy = private_copy();
    if (copy)
        move_over(copy);
    else
        shmemi_err("data", "no memory for a private copy of the static data: it stays shared");
    shared.len = 0;
    shared.fd = -1;
    pthread_mutex_unlock(&shared.lock);
}
