/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uct_post.c - an 8-byte put posted by UCX: uct_ep_put_short from one endpoint to another of the same process.
 *
 *     uct_post rc_mlx5 | rc_verbs
 */
#include "measured.h"

#include <uct/api/uct.h>

#include <time.h>

enum { BYTES = 4096, WAIT_S = 60 };

static uct_iface_h iface;
static uct_worker_h worker;
static uct_md_h md;
static uct_component_h component;
static uct_ep_h ep, peer;
static char *memory;
static uint64_t value = 42;
static uct_rkey_bundle_t rkey;

static void ok(ucs_status_t status, const char *what)
{
    if (status == UCS_OK)
        return;
    fprintf(stderr, "post-cost: %s: %s\n", what, ucs_status_string(status));
    exit(1);
}

/* Opens the memory domain that has this transport.  The list of components stays: `component` points into it. */
static void open_md(const char *transport, uct_tl_resource_desc_t *found)
{
    uct_component_h *components;
    unsigned n;

    ok(uct_query_components(&components, &n), "components");
    for (unsigned i = 0; i < n && !md; i++) {
        uct_component_attr_t attr = { .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT };
        uct_md_resource_desc_t mds[16];
        uct_md_config_t *config;
        uct_tl_resource_desc_t *tls;
        unsigned n_tls;

        ok(uct_component_query(components[i], &attr), "component");
        if (strcmp(attr.name, "ib") != 0 || !attr.md_resource_count || attr.md_resource_count > 16)
            continue;
        attr = (uct_component_attr_t){ .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES, .md_resources = mds };
        ok(uct_component_query(components[i], &attr), "memory domains");
        component = components[i];
        ok(uct_md_config_read(component, NULL, NULL, &config), "configuration");
        ok(uct_md_open(component, mds[0].md_name, config, &md), "memory domain");
        uct_config_release(config);
        ok(uct_md_query_tl_resources(md, &tls, &n_tls), "transports");
        for (unsigned t = 0; t < n_tls; t++)
            if (!strcmp(tls[t].tl_name, transport))
                *found = tls[t];
        uct_release_tl_resource_list(tls);
    }
    if (!md || !found->tl_name[0])
        die("UCX offers no such transport here");
}

static void open_iface(const uct_tl_resource_desc_t *tl)
{
    uct_iface_params_t params = { .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE,
                                  .open_mode = UCT_IFACE_OPEN_MODE_DEVICE };
    uct_iface_config_t *config;
    ucs_async_context_t *async;

    ok(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async), "async context");
    ok(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker), "worker");
    params.mode.device.tl_name = tl->tl_name;
    params.mode.device.dev_name = tl->dev_name;
    ok(uct_md_iface_config_read(md, tl->tl_name, NULL, NULL, &config), "interface configuration");
    ok(uct_iface_open(md, worker, &params, config, &iface), "interface");
    uct_config_release(config);
    uct_iface_progress_enable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
}

static void connect_eps(void)
{
    uct_ep_params_t params = { .field_mask = UCT_EP_PARAM_FIELD_IFACE, .iface = iface };
    uct_iface_attr_t attr;
    uct_device_addr_t *device;
    uct_ep_addr_t *a, *b;

    ok(uct_iface_query(iface, &attr), "attributes");
    device = calloc(1, attr.device_addr_len + 1);
    a = calloc(1, attr.ep_addr_len + 1);
    b = calloc(1, attr.ep_addr_len + 1);
    if (!device || !a || !b)
        die("no memory");
    ok(uct_iface_get_device_address(iface, device), "device address");
    ok(uct_ep_create(&params, &ep), "endpoint");
    ok(uct_ep_create(&params, &peer), "endpoint");
    ok(uct_ep_get_address(ep, a), "address");
    ok(uct_ep_get_address(peer, b), "address");
    ok(uct_ep_connect_to_ep(ep, device, b), "connect");
    ok(uct_ep_connect_to_ep(peer, device, a), "connect");
    free(device);
    free(a);
    free(b);
}

static void open_memory(void)
{
    uct_md_attr_t attr;
    uct_mem_h memh;
    void *packed;

    memory = aligned_alloc(4096, BYTES);
    if (!memory)
        die("no memory");
    memset(memory, 0, BYTES);
    ok(uct_md_query(md, &attr), "memory domain");
    ok(uct_md_mem_reg(md, memory, BYTES, UCT_MD_MEM_ACCESS_ALL, &memh), "registration");
    packed = calloc(1, attr.rkey_packed_size + 1);
    if (!packed)
        die("no memory");
    ok(uct_md_mkey_pack(md, memh, packed), "key");
    ok(uct_rkey_unpack(component, packed, &rkey), "key");
    free(packed);
}

static void put_short(void)
{
    if (uct_ep_put_short(ep, &value, 8, (uintptr_t)memory, rkey.rkey) != UCS_OK)
        die("uct_ep_put_short");
}

static void drain(void)
{
    time_t limit = time(NULL) + WAIT_S;

    while (uct_ep_flush(ep, 0, NULL) != UCS_OK) {
        uct_worker_progress(worker);
        if (time(NULL) > limit)
            die("no completion");
    }
}

int main(int argc, char **argv)
{
    uct_tl_resource_desc_t tl = { .tl_name = "" };

    open_md(argc > 1 ? argv[1] : "", &tl);
    open_iface(&tl);
    open_memory();
    connect_eps();
    measure(put_short, drain);
    if (memcmp(memory, &value, 8) != 0)
        die("the value did not arrive");
    return 0;
}
