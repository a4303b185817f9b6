/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of an ioctl command: checked against the method's list as the kernel checks them, then read and written. */
#include <string.h>

#include "uverbs/uverbs.h"

static const struct uv_attr_spec *find_spec(const struct uv_method *method, uint16_t id)
{
    for (unsigned i = 0; i < method->nspec; i++)
        if (method->spec[i].id == id)
            return &method->spec[i];
    return NULL;
}

static int find(const struct uv_bundle *bundle, uint16_t id)
{
    for (unsigned i = 0; i < bundle->n; i++)
        if (bundle->spec[i] && bundle->attr[i].attr_id == id)
            return (int)i;
    return -1;
}

/* Bytes behind what we know must be zero: they would ask for something that we do not do. */
static int check_tail(const struct ib_uverbs_attr *attr, size_t known)
{
    uint8_t chunk[64];
    size_t pos = known;

    while (pos < attr->len) {
        size_t n = attr->len - pos < sizeof chunk ? attr->len - pos : sizeof chunk;

        if (uv_copy_in(chunk, attr->data + pos, n))
            return -EFAULT;
        for (size_t i = 0; i < n; i++)
            if (chunk[i])
                return -EOPNOTSUPP;
        pos += n;
    }
    return 0;
}

static int check_data(const struct ib_uverbs_attr *attr, const struct uv_attr_spec *spec)
{
    if (attr->attr_data.reserved)
        return -EINVAL;
    if (attr->len < spec->min || (spec->max && attr->len > spec->max && !(spec->flags & UV_ZERO_TAIL)))
        return -EINVAL;
    if (spec->kind == UV_IN && spec->max && attr->len > spec->max && attr->len > sizeof attr->data)
        return check_tail(attr, spec->max);
    return 0;
}

static int check_attr(struct uv_bundle *bundle, unsigned i)
{
    const struct uv_attr_spec *spec = bundle->spec[i];
    const struct ib_uverbs_attr *attr = &bundle->attr[i];
    int err = 0;

    switch (spec->kind) {
    case UV_HANDLE:
        if (attr->len || attr->attr_data.reserved)
            return -EINVAL;
        if (spec->access == UV_READ)
            bundle->object[i] = uv_object_get(bundle->ctx, (uint32_t)attr->data, spec->type, &err);
        return err;
    case UV_FD:
        if (attr->len || attr->attr_data.reserved)
            return -EINVAL;
        return spec->access == UV_READ && (attr->data_s64 < 0 || attr->data_s64 > INT32_MAX) ? -EBADF : 0;
    default:
        return check_data(attr, spec);
    }
}

int uv_parse(struct uv_bundle *bundle, const struct ib_uverbs_ioctl_hdr *hdr, const struct ib_uverbs_attr *attrs)
{
    bundle->n = hdr->num_attrs;
    for (unsigned i = 0; i < bundle->n; i++) {
        int err;

        bundle->attr[i] = attrs[i];
        if (attrs[i].flags & ~(UVERBS_ATTR_F_MANDATORY | UVERBS_ATTR_F_VALID_OUTPUT))
            return -EINVAL;
        bundle->spec[i] = find_spec(bundle->method, attrs[i].attr_id);
        if (!bundle->spec[i]) {
            if (attrs[i].flags & UVERBS_ATTR_F_MANDATORY)
                return -EPROTONOSUPPORT;
            continue;
        }
        if (find(bundle, attrs[i].attr_id) != (int)i)
            return -EINVAL;
        err = check_attr(bundle, i);
        if (err)
            return err;
    }
    for (unsigned k = 0; k < bundle->method->nspec; k++)
        if ((bundle->method->spec[k].flags & UV_MANDATORY) && find(bundle, bundle->method->spec[k].id) < 0)
            return -EINVAL;
    return 0;
}

bool uv_has(const struct uv_bundle *bundle, uint16_t id)
{
    return find(bundle, id) >= 0;
}

size_t uv_len(const struct uv_bundle *bundle, uint16_t id)
{
    int i = find(bundle, id);

    return i < 0 ? 0 : bundle->attr[i].len;
}

void *uv_obj(const struct uv_bundle *bundle, uint16_t id)
{
    int i = find(bundle, id);

    return i < 0 ? NULL : bundle->object[i];
}

uint32_t uv_handle(const struct uv_bundle *bundle, uint16_t id)
{
    int i = find(bundle, id);

    return i < 0 ? 0 : (uint32_t)bundle->attr[i].data;
}

int uv_fd(const struct uv_bundle *bundle, uint16_t id)
{
    int i = find(bundle, id);

    return i < 0 ? -1 : (int)bundle->attr[i].data_s64;
}

int uv_in(const struct uv_bundle *bundle, uint16_t id, void *dst, size_t len)
{
    int i = find(bundle, id);
    size_t n;

    memset(dst, 0, len);
    if (i < 0)
        return 0;
    n = bundle->attr[i].len < len ? bundle->attr[i].len : len;
    if (bundle->attr[i].len > sizeof bundle->attr[i].data)
        return uv_copy_in(dst, bundle->attr[i].data, n);
    memcpy(dst, &bundle->attr[i].data, n);
    return 0;
}

uint64_t uv_num(const struct uv_bundle *bundle, uint16_t id)
{
    uint64_t value = 0;

    return uv_in(bundle, id, &value, sizeof value) ? 0 : value;
}

/* Tells the application that attribute i was written. */
static int mark_valid(struct uv_bundle *bundle, int i)
{
    uint64_t at = bundle->user_attrs + (uint64_t)i * sizeof bundle->attr[i] + offsetof(struct ib_uverbs_attr, flags);

    bundle->attr[i].flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    return uv_copy_out(at, &bundle->attr[i].flags, sizeof bundle->attr[i].flags);
}

int uv_out(struct uv_bundle *bundle, uint16_t id, const void *src, size_t len)
{
    static const uint8_t zero[256];
    int i = find(bundle, id), err;
    size_t room, pos;

    if (i < 0)
        return 0;
    room = bundle->attr[i].len;
    pos = len < room ? len : room;
    err = uv_copy_out(bundle->attr[i].data, src, pos);
    while (!err && pos < room) {
        size_t n = room - pos < sizeof zero ? room - pos : sizeof zero;

        err = uv_copy_out(bundle->attr[i].data + pos, zero, n);
        pos += n;
    }
    return err ? err : mark_valid(bundle, i);
}

int uv_out_u32(struct uv_bundle *bundle, uint16_t id, uint32_t value)
{
    return uv_out(bundle, id, &value, sizeof value);
}

int uv_out_u64(struct uv_bundle *bundle, uint16_t id, uint64_t value)
{
    return uv_out(bundle, id, &value, sizeof value);
}

static int put_data(struct uv_bundle *bundle, uint16_t id, uint64_t value)
{
    int i = find(bundle, id);
    uint64_t at;

    if (i < 0)
        return -EINVAL;
    at = bundle->user_attrs + (uint64_t)i * sizeof bundle->attr[i] + offsetof(struct ib_uverbs_attr, data);
    bundle->attr[i].data = value;
    return uv_copy_out(at, &value, sizeof value);
}

int uv_out_handle(struct uv_bundle *bundle, uint16_t id, uint32_t handle)
{
    return put_data(bundle, id, handle);
}

int uv_out_fd(struct uv_bundle *bundle, uint16_t id, int fd)
{
    return put_data(bundle, id, (uint64_t)(int64_t)fd);
}
