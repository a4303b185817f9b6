/* SPDX-License-Identifier: BSD-3-Clause */
/* The one ioctl of the device: header checks, look-up of the method, call. */
#include <string.h>

#include "uverbs/file.h"
#include "uverbs/uverbs.h"

static const struct uv_method *find_method(uint16_t object, uint16_t method)
{
    const struct {
        const struct uv_method *list;
        unsigned n;
    } tables[] = {
        { uv_methods_device, uv_nmethods_device },
        { uv_methods_verbs, uv_nmethods_verbs },
        { uv_methods_devx, uv_nmethods_devx },
    };

    for (unsigned t = 0; t < sizeof tables / sizeof *tables; t++)
        for (unsigned i = 0; i < tables[t].n; i++)
            if (tables[t].list[i].object == object && tables[t].list[i].method == method)
                return &tables[t].list[i];
    return NULL;
}

/* GET_CONTEXT and the probe for write() commands are all that a file without a context accepts. */
static bool allowed_without_context(const struct uv_method *method)
{
    return method->object == UVERBS_OBJECT_DEVICE
           && (method->method == UVERBS_METHOD_GET_CONTEXT || method->method == UVERBS_METHOD_INVOKE_WRITE
               || method->method == UVERBS_METHOD_QUERY_CONTEXT);
}

/* What is left to do with a dead device: the driver lets every destroy succeed, and refuses all else. */
static bool allowed_when_dead(const struct uv_method *method)
{
    return method->spec[0].access == UV_DESTROY && method->spec[0].type != UV_NONE;
}

static int run(struct uv_context *ctx, const struct ib_uverbs_ioctl_hdr *hdr, uint64_t user_hdr)
{
    struct uv_bundle bundle;
    int err;

    memset(&bundle, 0, sizeof bundle);
    bundle.ctx = ctx;
    bundle.user_attrs = user_hdr + sizeof *hdr;
    bundle.method = find_method(hdr->object_id, hdr->method_id);
    if (!bundle.method)
        return -EPROTONOSUPPORT;
    if (hca_current->dead && !allowed_when_dead(bundle.method))
        return -EIO;
    if (hdr->num_attrs > UV_MAX_ATTRS)
        return -EINVAL;
    if (!ctx->has_ucontext && !allowed_without_context(bundle.method))
        return -EINVAL;
    err = uv_parse(&bundle, hdr, hdr->attrs);
    return err ? err : bundle.method->handler(&bundle);
}

int uv_command(struct uv_context *ctx, uint64_t user_hdr)
{
    union {
        struct ib_uverbs_ioctl_hdr hdr;
        uint8_t bytes[UV_MAX_COMMAND];
    } command;
    const size_t head = sizeof command.hdr;
    int err;

    if (uv_copy_in(&command, user_hdr, head))
        return -EFAULT;
    if (command.hdr.length > sizeof command
        || command.hdr.length != head + command.hdr.num_attrs * sizeof(struct ib_uverbs_attr))
        return -EINVAL;
    if (command.hdr.reserved1 || command.hdr.reserved2)
        return -EPROTONOSUPPORT;
    if (uv_copy_in(command.bytes + head, user_hdr + head, command.hdr.length - head))
        return -EFAULT;
    if (command.hdr.driver_id != RDMA_DRIVER_MLX5)
        return -EINVAL;
    err = run(ctx, &command.hdr, user_hdr);
    hca_log(err ? HCA_INFO : HCA_CMD, "command %#x.%#x: %s", command.hdr.object_id, command.hdr.method_id,
            err ? strerror(-err) : "ok");
    return err;
}
