/* SPDX-License-Identifier: BSD-3-Clause */
/* Reference-counted memory ranges, and the parts of them that rings and doorbell records are. */
#include <stdlib.h>
#include <string.h>

#include "hca/objects.h"

/* As the kernel does: what one process pins, through whatever device, is counted against its limit. */
static uint64_t pinned(void)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < HCA_MAX_DEVICES; i++)
        sum += hca_devices[i].pinned;
    return sum;
}

struct hca_mem *hca_mem_get(uint64_t addr, uint64_t len, bool writable, int *err_out)
{
    struct hca_mem *mem = calloc(1, sizeof *mem);

    if (!mem) {
        *err_out = -ENOMEM;
        return NULL;
    }
    if (hca_current->memlock && (pinned() > hca_current->memlock || len > hca_current->memlock - pinned()))
        *err_out = -ENOMEM;
    else
        *err_out = mem_attach(mem, addr, len, writable);
    if (*err_out) {
        free(mem);
        return NULL;
    }
    mem->refs = 1;
    mem->pinned = len;
    hca_current->pinned += len;
    return mem;
}

void hca_mem_put(struct hca_mem *mem)
{
    if (!mem || --mem->refs)
        return;
    hca_current->pinned -= mem->pinned;
    mem_detach(mem);
    free(mem);
}

int hca_buf_init(struct hca_buf *buf, struct hca_mem *mem, uint64_t off, uint64_t len, uint64_t align)
{
    if (len > mem->len || off > mem->len - len || ((mem->addr + off) & (align - 1)))
        return -EINVAL;
    buf->mem = mem;
    buf->off = off;
    buf->len = len;
    buf->host = mem->host ? mem->host + off : NULL;
    mem->refs++;
    return 0;
}

void hca_buf_fini(struct hca_buf *buf)
{
    hca_mem_put(buf->mem);
    memset(buf, 0, sizeof *buf);
}

int hca_buf_read(const struct hca_buf *buf, uint64_t off, void *dst, size_t len)
{
    if (!buf->host)
        return buf->mem->ops->read(buf->mem, buf->off + off, dst, len);
    memcpy(dst, buf->host + off, len);
    return 0;
}

int hca_buf_write(const struct hca_buf *buf, uint64_t off, const void *src, size_t len)
{
    if (!buf->host)
        return buf->mem->ops->write(buf->mem, buf->off + off, src, len);
    memcpy(buf->host + off, src, len);
    return 0;
}

/* Acquire: pairs with the release by which software publishes ring entries below the index that it stores here. */
uint32_t hca_dbrec_load(const struct hca_buf *dbrec, unsigned word)
{
    uint32_t value = 0;

    if (!dbrec->mem)
        return 0;
    if (dbrec->host)
        value = __atomic_load_n((uint32_t *)(void *)dbrec->host + word, __ATOMIC_ACQUIRE);
    else if (dbrec->mem->ops->read(dbrec->mem, dbrec->off + word * 4, &value, sizeof value))
        return 0;
    return be32toh(value);
}

void hca_dbrec_store(const struct hca_buf *dbrec, unsigned word, uint32_t value)
{
    value = htobe32(value);
    if (!dbrec->mem)
        return;
    if (dbrec->host)
        __atomic_store_n((uint32_t *)(void *)dbrec->host + word, value, __ATOMIC_RELEASE);
    else
        dbrec->mem->ops->write(dbrec->mem, dbrec->off + word * 4, &value, sizeof value);
}
