/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory keys: registered memory, indirect keys and windows, and the check that every access goes through. */
#include <stdlib.h>
#include <string.h>

#include "hca/objects.h"

/* Below lie values with a meaning of their own: 0x100 is "no key", 0x400 marks a repeated block in a list of keys. */
enum { FIRST_INDEX = 8, MAX_DEPTH = 4 };

#define SUPPORTED_ACCESS                                                                                                    \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND \
     | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB)

const char *hca_deny_name(enum hca_deny deny)
{
    static const char *const names[] = {
        [HCA_OK] = "allowed",
        [HCA_DENY_KEY] = "no such key",
        [HCA_DENY_PD] = "key belongs to another protection domain",
        [HCA_DENY_ACCESS] = "access flags do not allow it",
        [HCA_DENY_BOUNDS] = "outside the registered range",
        [HCA_DENY_FREE] = "key is in the free state",
        [HCA_DENY_SPANS] = "too many pieces",
    };

    return (unsigned)deny < sizeof names / sizeof *names ? names[deny] : "?";
}

/* Optional flags (relaxed ordering and the like) are always accepted, as the kernel does. */
int hca_access_check(uint32_t access)
{
    if (access & ~(uint32_t)(SUPPORTED_ACCESS | IBV_ACCESS_OPTIONAL_RANGE))
        return (access & IBV_ACCESS_ON_DEMAND) ? -EOPNOTSUPP : -EINVAL;
    if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && !(access & IBV_ACCESS_LOCAL_WRITE))
        return -EINVAL;
    return 0;
}

/* Indices are handed out in turn, so that a stale key meets "no such key" for as long as possible. */
static struct hca_key *key_alloc(struct hca *hca, struct hca_pd *pd, int variant)
{
    static uint32_t next = FIRST_INDEX;
    static uint8_t salt = 0x11;

    for (uint32_t tries = 0; tries < HCA_MAX_KEY; tries++) {
        uint32_t index = next;
        struct hca_key *key;

        next = next + 1 < HCA_MAX_KEY ? next + 1 : FIRST_INDEX;
        if (hca->key[index])
            continue;
        key = calloc(1, sizeof *key);
        if (!key)
            return NULL;
        key->key = index << 8 | (variant < 0 ? salt++ : (uint8_t)variant);
        key->pd = pd;
        pd->users++;
        hca->key[index] = key;
        return key;
    }
    return NULL;
}

static int attach(const struct hca_mr_attr *attr, struct hca_mem **out)
{
    bool writable = (attr->access & IBV_ACCESS_LOCAL_WRITE) != 0;
    struct hca_mem *mem;
    int err = 0;

    if (!attr->len || attr->addr + attr->len < attr->addr || attr->len >> 12 > UINT32_MAX)
        return -EINVAL;
    if (attr->dmabuf_fd < 0) {
        mem = hca_mem_get(attr->addr, attr->len, writable, &err);
    } else {
        mem = calloc(1, sizeof *mem);
        if (!mem)
            return -ENOMEM;
        err = mem_attach_dmabuf(mem, attr->dmabuf_fd, attr->addr, attr->len, attr->iova, writable);
        if (err)
            free(mem);
        else
            mem->refs = 1;
    }
    if (!err)
        *out = mem;
    return err;
}

int hca_mr_new(struct hca *hca, const struct hca_mr_attr *attr, struct hca_key **out)
{
    struct hca_mem *mem;
    struct hca_key *key;
    int err = hca_access_check(attr->access);

    if (err)
        return err;
    err = attach(attr, &mem);
    if (err)
        return err;
    key = key_alloc(hca, attr->pd, -1);
    if (!key) {
        hca_mem_put(mem);
        return -ENOMEM;
    }
    key->kind = HCA_KEY_MR;
    key->mem = mem;
    key->access = attr->access;
    key->zero_based = (attr->access & IBV_ACCESS_ZERO_BASED) != 0;
    key->iova = key->zero_based ? 0 : attr->iova;
    key->len = attr->len;
    *out = key;
    return 0;
}

int hca_mr_change(struct hca *hca, struct hca_key *mr, uint32_t change, const struct hca_mr_attr *attr)
{
    uint32_t access = change & IBV_REREG_MR_CHANGE_ACCESS ? attr->access : mr->access;
    int err = hca_access_check(access);

    if (err)
        return err;
    if (mr->windows)
        return -EBUSY;
    eng_key_gone(hca, mr);
    if (change & IBV_REREG_MR_CHANGE_TRANSLATION) {
        struct hca_mr_attr full = *attr;
        struct hca_mem *mem;

        full.access = access;
        full.dmabuf_fd = -1;
        err = attach(&full, &mem);
        if (err)
            return err;
        hca_mem_put(mr->mem);
        mr->mem = mem;
        mr->iova = attr->iova;
        mr->len = attr->len;
    }
    if (change & IBV_REREG_MR_CHANGE_PD) {
        mr->pd->users--;
        mr->pd = attr->pd;
        mr->pd->users++;
    }
    mr->access = access;
    return 0;
}

int hca_mkey_new(struct hca *hca, struct hca_pd *pd, uint32_t max_klm, uint8_t variant, struct hca_key **out)
{
    struct hca_key *key = key_alloc(hca, pd, variant);

    if (!key)
        return -ENOMEM;
    key->kind = HCA_KEY_INDIRECT;
    key->free = true;
    key->max_klm = max_klm;
    *out = key;
    return 0;
}

int hca_mw_new(struct hca *hca, struct hca_pd *pd, bool type2, struct hca_key **out)
{
    struct hca_key *key = key_alloc(hca, pd, -1);

    if (!key)
        return -ENOMEM;
    key->kind = HCA_KEY_MW;
    key->free = true;
    key->type2 = type2;
    key->max_klm = 1;
    *out = key;
    return 0;
}

/* Only HCA_KEY_MR counts its windows; a window that goes or is bound anew releases the region behind it. */
static void release_list(struct hca *hca, struct hca_key *key)
{
    if (key->kind == HCA_KEY_MW && key->nklm) {
        struct hca_key *mr = hca_key_find(hca, key->klm[0].key);

        if (mr && mr->windows)
            mr->windows--;
    }
    free(key->klm);
    free(key->stride);
    key->klm = NULL;
    key->stride = NULL;
    key->nklm = 0;
}

int hca_key_free(struct hca *hca, struct hca_key *key)
{
    if (key->windows)
        return -EBUSY;
    eng_key_gone(hca, key);
    release_list(hca, key);
    hca_mem_put(key->mem);
    key->pd->users--;
    hca->key[key->key >> 8] = NULL;
    free(key);
    return 0;
}

struct hca_key *hca_key_find(struct hca *hca, uint32_t key)
{
    struct hca_key *found = key >> 8 < HCA_MAX_KEY ? hca->key[key >> 8] : NULL;

    return found && found->key == key ? found : NULL;
}

int hca_key_set_list(struct hca *hca, struct hca_key *key, const struct hca_klm *klm, uint32_t n, const uint32_t *stride,
                     uint32_t repeat)
{
    struct hca_klm *list;
    uint32_t *strides = NULL;
    uint64_t block = 0;

    if (key->kind == HCA_KEY_MR || n > key->max_klm || (stride && !repeat))
        return -EINVAL;
    list = calloc(n ? n : 1, sizeof *list);
    if (stride)
        strides = calloc(n ? n : 1, sizeof *strides);
    if (!list || (stride && !strides)) {
        free(list);
        free(strides);
        return -ENOMEM;
    }
    eng_key_gone(hca, key);
    release_list(hca, key);
    for (uint32_t i = 0; i < n; i++) {
        list[i] = klm[i];
        block += klm[i].len;
        if (stride)
            strides[i] = stride[i];
    }
    key->klm = list;
    key->nklm = n;
    key->stride = strides;
    key->interleaved = stride != NULL;
    key->repeat = stride ? repeat : 1;
    key->block = block;
    if (key->kind == HCA_KEY_MW && n) {
        struct hca_key *mr = hca_key_find(hca, klm[0].key);

        if (mr)
            mr->windows++;
    }
    return 0;
}

int hca_key_invalidate(struct hca *hca, const struct hca_pd *pd, uint32_t qpn, uint32_t key_value)
{
    struct hca_key *key = hca_key_find(hca, key_value);

    if (!key || key->pd != pd || key->kind == HCA_KEY_MR)
        return -EINVAL;
    if (key->kind == HCA_KEY_MW && key->bound_qpn && key->bound_qpn != qpn)
        return -EINVAL;
    eng_key_gone(hca, key);
    if (key->kind == HCA_KEY_MW)
        release_list(hca, key);
    key->free = true;
    return 0;
}

struct walk {
    struct hca *hca;
    const struct hca_pd *pd;
    uint32_t qpn;
    struct hca_span *spans;
    unsigned max, n;
};

static enum hca_deny walk_key(struct walk *walk, uint32_t key_value, uint64_t va, uint64_t len, uint32_t need, int depth);

static enum hca_deny add_span(struct walk *walk, struct hca_mem *mem, uint64_t off, uint64_t len)
{
    if (walk->n == walk->max)
        return HCA_DENY_SPANS;
    walk->spans[walk->n++] = (struct hca_span){ .mem = mem, .off = off, .len = len };
    return HCA_OK;
}

/* Offset off of an indirect key lies in entry i of block b; entries repeat with a stride of their own. */
static enum hca_deny walk_list(struct walk *walk, const struct hca_key *key, uint64_t off, uint64_t len, uint32_t need, int depth)
{
    while (len) {
        uint64_t block = key->block ? off / key->block : 0, rest = key->block ? off % key->block : off, take;
        uint32_t i = 0;
        enum hca_deny deny;

        while (i < key->nklm && rest >= key->klm[i].len)
            rest -= key->klm[i++].len;
        if (i == key->nklm || block >= key->repeat)
            return HCA_DENY_BOUNDS;
        take = key->klm[i].len - rest < len ? key->klm[i].len - rest : len;
        deny = walk_key(walk, key->klm[i].key, key->klm[i].va + rest + (key->interleaved ? block * key->stride[i] : 0), take, need,
                        depth + 1);
        if (deny)
            return deny;
        off += take;
        len -= take;
    }
    return HCA_OK;
}

static enum hca_deny check_key(const struct walk *walk, const struct hca_key *key, uint64_t va, uint64_t len, uint32_t need)
{
    if (key->pd != walk->pd)
        return HCA_DENY_PD;
    if (key->free)
        return HCA_DENY_FREE;
    if (key->kind == HCA_KEY_MW && key->bound_qpn && key->bound_qpn != walk->qpn)
        return HCA_DENY_KEY;
    if ((key->access & need) != need)
        return HCA_DENY_ACCESS;
    if (va < key->iova || len > key->len || va - key->iova > key->len - len)
        return HCA_DENY_BOUNDS;
    return HCA_OK;
}

static enum hca_deny walk_key(struct walk *walk, uint32_t key_value, uint64_t va, uint64_t len, uint32_t need, int depth)
{
    const struct hca_key *key = hca_key_find(walk->hca, key_value);
    enum hca_deny deny;
    uint32_t inner = 0;

    if (!key || depth > MAX_DEPTH)
        return HCA_DENY_KEY;
    deny = check_key(walk, key, va, len, need);
    if (deny)
        return deny;
    if (key->kind == HCA_KEY_MR)
        return add_span(walk, key->mem, key->mem_off + (va - key->iova), len);
    /* The outer key says what the peer may do; the region behind it must only be writable for the device. */
    if (need & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC))
        inner = IBV_ACCESS_LOCAL_WRITE;
    if (key->kind == HCA_KEY_MW)
        return walk_key(walk, key->klm[0].key, key->klm[0].va + (va - key->iova), len, inner, depth + 1);
    return walk_list(walk, key, va - key->iova, len, inner, depth);
}

enum hca_deny hca_key_map(struct hca *hca, const struct hca_pd *pd, uint32_t qpn, uint32_t key, uint64_t va, uint64_t len,
                          uint32_t need, struct hca_span *spans_out, unsigned max, unsigned *n_out)
{
    struct walk walk = { .hca = hca, .pd = pd, .qpn = qpn, .spans = spans_out, .max = max };
    enum hca_deny deny = HCA_OK;

    if (len)
        deny = walk_key(&walk, key, va, len, need, 0);
    *n_out = deny ? 0 : walk.n;
    return deny;
}
