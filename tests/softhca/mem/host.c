/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that the CPU can reach, and the way to memory that it cannot. */
#define _GNU_SOURCE
#include "mem/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define LARGE (1 << 20)

/* Whether one byte at addr can be read; asks the kernel, so that a bad address gives an error and not a signal. */
static bool readable(uint64_t addr)
{
    char byte;
    struct iovec mine = { &byte, 1 }, theirs = { (void *)(uintptr_t)addr, 1 };

    return process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0) == 1;
}

/* A large range by the kernel's list of mappings, since a look at each page would also allocate each. */
static int probe_mappings(uint64_t addr, uint64_t end)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned long from, to;
    char *line = NULL;
    size_t size = 0;
    char readable;

    if (!maps)
        return 0; /* a sandbox forbids the question: trust the caller */
    while (addr < end && getline(&line, &size, maps) > 0) {
        if (sscanf(line, "%lx-%lx %c", &from, &to, &readable) != 3 || to <= addr)
            continue;
        if (from > addr || readable != 'r')
            break;
        addr = to;
    }
    free(line);
    fclose(maps);
    return addr < end ? -EFAULT : 0;
}

/* Each page is looked at: a real kernel pins them all at registration and refuses when one is missing. */
static int probe(uint64_t addr, uint64_t len)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t at = addr & ~(page - 1), end = addr + len;
    struct iovec theirs[64];
    char bytes[64];

    if (len > LARGE)
        return probe_mappings(addr, end);
    while (at < end) {
        struct iovec mine = { bytes, 0 };
        unsigned n = 0;

        for (; n < 64 && at < end; at += page)
            theirs[n++] = (struct iovec){ (void *)(uintptr_t)at, 1 };
        mine.iov_len = n;
        if (process_vm_readv(getpid(), &mine, 1, theirs, n, 0) == (ssize_t)n)
            continue;
        if (errno == EPERM || errno == ENOSYS)
            return 0; /* a sandbox forbids the question: trust the caller */
        return -EFAULT;
    }
    return 0;
}

int mem_attach(struct hca_mem *mem, uint64_t addr, uint64_t len, bool writable)
{
    int cuda;

    (void)writable;
    memset(mem, 0, sizeof(*mem));
    mem->addr = addr;
    mem->len = len;
    if (addr + len < addr)
        return -EFAULT;
    cuda = mem_cuda_attach(mem, addr, len);
    if (cuda)
        return cuda < 0 ? cuda : 0;
    mem->host = (uint8_t *)(uintptr_t)addr;
    return len ? probe(addr, len) : 0;
}

static void unmap(struct hca_mem *mem)
{
    munmap(mem->priv, mem->len + (mem->addr & 4095));
}

static const struct hca_mem_ops mapped_ops = { .name = "dmabuf", .detach = unmap };

int mem_attach_dmabuf(struct hca_mem *mem, int fd, uint64_t off, uint64_t len, uint64_t iova, bool writable)
{
    uint64_t slack = off & 4095;
    struct stat st;
    void *p;
    int cuda;

    memset(mem, 0, sizeof(*mem));
    if (!len || off + len < off)
        return -EINVAL;
    if (fstat(fd, &st))
        return -EBADF;
    mem->addr = off;
    mem->len = len;
    /* A GPU's dma-buf cannot be mapped by the CPU, but its address is usually the one that the client wants as iova. */
    cuda = mem_cuda_attach(mem, iova, len);
    if (cuda > 0 || cuda == -ENOMEM)
        return cuda > 0 ? 0 : cuda;
    p = mmap(NULL, len + slack, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, (off_t)(off - slack));
    if (p == MAP_FAILED)
        return -EOPNOTSUPP;
    mem->host = (uint8_t *)p + slack;
    mem->priv = p;
    mem->ops = &mapped_ops;
    if (!readable((uint64_t)(uintptr_t)mem->host)) {
        unmap(mem);
        return -EINVAL;
    }
    return 0;
}

void mem_detach(struct hca_mem *mem)
{
    if (mem->ops && mem->ops->detach)
        mem->ops->detach(mem);
}

int mem_read(struct hca_mem *mem, uint64_t off, void *dst, size_t len)
{
    if (!mem->host)
        return mem->ops->read(mem, off, dst, len);
    memcpy(dst, mem->host + off, len);
    return 0;
}

int mem_write(struct hca_mem *mem, uint64_t off, const void *src, size_t len)
{
    uint8_t *dst = mem->host + off;

    if (!mem->host)
        return mem->ops->write(mem, off, src, len);
    if (len == 8 && !((uintptr_t)dst & 7)) {
        uint64_t v;

        memcpy(&v, src, sizeof(v));
        __atomic_store_n((uint64_t *)(void *)dst, v, __ATOMIC_RELEASE);
    } else if (len == 4 && !((uintptr_t)dst & 3)) {
        uint32_t v;

        memcpy(&v, src, sizeof(v));
        __atomic_store_n((uint32_t *)(void *)dst, v, __ATOMIC_RELEASE);
    } else {
        memcpy(dst, src, len);
    }
    return 0;
}

/* Adds field by field: `boundary` has a bit set where a field ends, a carry out of that bit is dropped. */
static uint64_t add_fields(uint64_t a, uint64_t b, uint64_t boundary)
{
    /* Without the fields' top bits no carry can cross a boundary; those bits are then added without carry. */
    uint64_t low = (a & ~boundary) + (b & ~boundary);

    return low ^ ((a ^ b) & boundary);
}

bool mem_atomic_apply(const struct mem_atomic *op, uint64_t old, uint64_t *new_out)
{
    if (!op->compare_swap) {
        *new_out = add_fields(old, op->swap_add, op->boundary);
        return true;
    }
    if ((old ^ op->compare) & op->compare_mask)
        return false;
    *new_out = (old & ~op->swap_mask) | (op->swap_add & op->swap_mask);
    return true;
}

static int atomic_remote(struct hca_mem *mem, uint64_t off, const struct mem_atomic *op, uint64_t *old_out)
{
    uint64_t old64 = 0, new64;
    uint32_t half;
    int err;

    /* Not atomic towards the GPU's own threads: what a NIC without PCIe atomics does. */
    if (op->size == 8) {
        err = mem->ops->read(mem, off, &old64, 8);
    } else {
        err = mem->ops->read(mem, off, &half, 4);
        old64 = half;
    }
    if (err)
        return err;
    *old_out = old64;
    if (!mem_atomic_apply(op, old64, &new64))
        return 0;
    half = (uint32_t)new64;
    return op->size == 8 ? mem->ops->write(mem, off, &new64, 8) : mem->ops->write(mem, off, &half, 4);
}

int mem_atomic(struct hca_mem *mem, uint64_t off, const struct mem_atomic *op, uint64_t *old_out)
{
    void *at = mem->host + off;
    uint64_t old64, new64;
    uint32_t old32;

    if (!mem->host)
        return atomic_remote(mem, off, op, old_out);
    if (op->size == 8) {
        old64 = __atomic_load_n((uint64_t *)at, __ATOMIC_ACQUIRE);
        while (mem_atomic_apply(op, old64, &new64) &&
               !__atomic_compare_exchange_n((uint64_t *)at, &old64, new64, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
            ;
        *old_out = old64;
        return 0;
    }
    old32 = __atomic_load_n((uint32_t *)at, __ATOMIC_ACQUIRE);
    while (mem_atomic_apply(op, old32, &new64) &&
           !__atomic_compare_exchange_n((uint32_t *)at, &old32, (uint32_t)new64, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_ACQUIRE))
        ;
    *old_out = old32;
    return 0;
}
