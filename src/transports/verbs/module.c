/* SPDX-License-Identifier: BSD-3-Clause */
/* module.c - the module's table: chooses and opens the NIC, and puts its parts together. */
#include "select.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool in_child;

static void child_of_fork(void)
{
    in_child = true;
}

bool shmemi_verbs_forked(void)
{
    return in_child;
}

/* ---- choice ---- */

/* "mlx5_0:1 (active, InfiniBand: left out by MARROW_HCA_LIST), ..." */
static const char *list_ports(const struct shmemi_verbs_port *ports, int n, char *buf, size_t len)
{
    size_t used = 0;

    buf[0] = '\0';
    for (int i = 0; i < n && used < len; i++) {
        const struct shmemi_verbs_port *p = &ports[i];

        used += (size_t)snprintf(buf + used, len - used, "%s%s:%d (%s, %s%s%s)", i ? ", " : "", p->device, p->port,
                                 shmemi_verbs_state_name(p->state),
                                 p->link == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand", p->why[0] ? ": " : "",
                                 p->why);
    }
    return buf;
}

/* The index of the port to use among the `n` of `ports`, after a message when there is none. */
static int choose(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n)
{
    const char *list = config->device_list ? config->device_list : "";
    char text[1200], bad[64];
    bool named, any = false;
    int chosen;

    if (n == 0) {
        shmemi_verbs_log(config, SHMEMI_VERBS_ERR,
                         "no RDMA device can be opened here: is there a NIC, is its kernel driver loaded, and is "
                         "/dev/infiniband visible to this user and container? (ibv_devices lists what there is)");
        return -ENODEV;
    }
    if (shmemi_verbs_list_apply(list, ports, n, &named, bad, sizeof bad)) {
        shmemi_verbs_log(config, SHMEMI_VERBS_ERR,
                         "MARROW_HCA_LIST: '%s' in '%s' is no device; write mlx5_0,mlx5_1:1, or ^mlx5_2 to leave one out",
                         bad, list);
        return -EINVAL;
    }
    for (int i = 0; i < n; i++)
        any = any || ports[i].listed;
    if (!any) {
        shmemi_verbs_log(config, SHMEMI_VERBS_ERR, "MARROW_HCA_LIST '%s' leaves no device; here are: %s", list,
                         list_ports(ports, n, text, sizeof text));
        return -EINVAL;
    }
    chosen = shmemi_verbs_select(config, ports, n, named, shmemi_verbs_topo_rank);
    if (chosen < 0)
        shmemi_verbs_log(config, SHMEMI_VERBS_ERR, "no port can be used: %s", list_ports(ports, n, text, sizeof text));
    return chosen;
}

static int describe(const struct shmemi_nic_config *config, void (*tell)(void *arg, const struct shmemi_nic_port *port),
                    void *arg)
{
    struct shmemi_verbs_port *ports = calloc(SHMEMI_VERBS_MAX_PORTS, sizeof *ports);
    struct ibv_device **list = NULL;
    int n = ports ? shmemi_verbs_ports(ports, SHMEMI_VERBS_MAX_PORTS, &list) : 0;
    int chosen = ports ? choose(config, ports, n) : -ENOMEM;

    for (int pass = 1; pass <= SHMEMI_NIC_RAILS + 1; pass++) { /* rails first */
        for (int i = 0; i < n; i++) {
            const struct shmemi_verbs_port *p = &ports[i];
            const struct shmemi_nic_port out = {
                .device = p->device, .port = p->port, .state = shmemi_verbs_state_name(p->state),
                .link = p->link == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand", .mbit = p->mbit,
                .kind = p->mlx5 && config->want != SHMEMI_NIC_VERBS ? SHMEMI_NIC_MLX5 : SHMEMI_NIC_VERBS,
                .rail = p->rail, .why = p->why
            };

            if (p->rail == (pass <= SHMEMI_NIC_RAILS ? pass : 0))
                tell(arg, &out);
        }
    }
    if (list)
        ibv_free_device_list(list);
    free(ports);
    return chosen < 0 ? chosen : 0;
}

/* ---- open ---- */

static int downgrade(const struct shmemi_nic_config *config, const char *device, int port, const char *why)
{
    shmemi_verbs_log(config, config->strict ? SHMEMI_VERBS_ERR : SHMEMI_VERBS_WARN,
                     SHMEMI_VERBS_AT ": %s; using plain verbs (MARROW_TRANSPORT=proxy), which costs more instructions an "
                                     "operation and keeps GPU kernels from posting%s",
                     device, port, why, config->strict ? "; MARROW_STRICT=1 forbids it" : "");
    return config->strict ? -EOPNOTSUPP : 0;
}

static int no_context(const struct shmemi_nic_config *config, const struct shmemi_verbs_port *p)
{
    int status = errno ? -errno : -EIO;

    shmemi_verbs_log(config, SHMEMI_VERBS_ERR, SHMEMI_VERBS_AT " cannot be opened: %s", p->device, p->port,
                     strerror(-status));
    return status;
}

static int open_plain(struct shmemi_verbs_nic *nic, const struct shmemi_verbs_port *p)
{
    errno = 0;
    nic->ctx = ibv_open_device(p->handle);
    return nic->ctx ? 0 : no_context(nic->config, p);
}

/* Opens the context as the kind needs it; *mlx5_out: queues of our own may work. */
static int open_context(struct shmemi_verbs_nic *nic, const struct shmemi_verbs_port *p, bool *mlx5_out)
{
    struct mlx5dv_context_attr attr = { .flags = MLX5DV_CONTEXT_FLAGS_DEVX };
    const struct shmemi_nic_config *config = nic->config;
    char why[160];
    int status;

    *mlx5_out = false;
    if (config->want == SHMEMI_NIC_VERBS)
        return open_plain(nic, p);
    if (!p->mlx5) {
        status = downgrade(config, p->device, p->port, "not an mlx5 device");
        return status ? status : open_plain(nic, p);
    }
    errno = 0;
    nic->ctx = mlx5dv_open_device(p->handle, &attr);
    *mlx5_out = nic->ctx != NULL;
    if (nic->ctx)
        return 0;
    status = errno ? -errno : -EIO;
    if (config->want == SHMEMI_NIC_MLX5) {
        shmemi_verbs_log(config, SHMEMI_VERBS_ERR,
                         SHMEMI_VERBS_AT ": DEVX is refused: %s; it needs a kernel with mlx5 DEVX, and in a virtual "
                                         "function or container the right to use it. MARROW_TRANSPORT=proxy does without",
                         p->device, p->port, strerror(-status));
        return status;
    }
    snprintf(why, sizeof why, "DEVX is refused (%s)", strerror(-status));
    status = downgrade(config, p->device, p->port, why);
    return status ? status : open_plain(nic, p);
}

static enum ibv_mtu mtu_code(int bytes, enum ibv_mtu most)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    if (bytes <= 0)
        return most;
    while (mtu < most && 256 << (mtu - IBV_MTU_256 + 1) <= bytes)
        mtu++;
    return mtu;
}

/* Ethernet has no other address than a GID; InfiniBand does without one inside a subnet. */
static int choose_gid(struct shmemi_verbs_nic *nic)
{
    int n = nic->port.gid_tbl_len > 0 ? nic->port.gid_tbl_len : 1, found, wanted = nic->config->gid_index;
    bool ethernet = nic->port.link_layer == IBV_LINK_LAYER_ETHERNET;
    struct ibv_gid_entry *table;
    ssize_t got;

    nic->gid_index = -1;
    if (!ethernet) {
        if (ibv_query_gid(nic->ctx, (uint8_t)nic->nic.port, wanted > 0 ? wanted : 0, &nic->gid) == 0)
            nic->gid_index = wanted > 0 ? wanted : 0;
        else if (wanted < 0)
            return 0;
    } else {
        table = calloc((size_t)n * nic->attr.orig_attr.phys_port_cnt, sizeof *table);
        if (!table)
            return -ENOMEM;
        got = ibv_query_gid_table(nic->ctx, table, (size_t)n * nic->attr.orig_attr.phys_port_cnt, 0);
        found = shmemi_verbs_gid_choose(table, got > 0 ? (int)got : 0, nic->nic.port, wanted);
        free(table);
        if (found >= 0 && ibv_query_gid(nic->ctx, (uint8_t)nic->nic.port, found, &nic->gid) == 0)
            nic->gid_index = found;
    }
    if (nic->gid_index >= 0)
        return 0;
    if (wanted >= 0)
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR,
                         SHMEMI_VERBS_AT " has no GID at index %d (MARROW_IB_GID_INDEX); -1 chooses one",
                         SHMEMI_VERBS_AT_ARGS(nic), wanted);
    else
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR,
                         SHMEMI_VERBS_AT ": its GID table is empty: give its network interface an IP address (ip addr add), "
                                         "or choose another port with MARROW_HCA_LIST",
                         SHMEMI_VERBS_AT_ARGS(nic));
    return -EADDRNOTAVAIL;
}

static int query(struct shmemi_verbs_nic *nic)
{
    int status = shmemi_verbs_status(ibv_query_device_ex(nic->ctx, NULL, &nic->attr));

    if (!status)
        status = shmemi_verbs_status(ibv_query_port(nic->ctx, (uint8_t)nic->nic.port, &nic->port));
    if (!status) {
        errno = 0;
        nic->pd = ibv_alloc_pd(nic->ctx);
        status = nic->pd ? 0 : errno ? -errno : -EIO;
    }
    if (status) {
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR, SHMEMI_VERBS_AT " does not answer: %s", SHMEMI_VERBS_AT_ARGS(nic),
                         strerror(-status));
        return status;
    }
    nic->mtu = mtu_code(nic->config->mtu, nic->port.active_mtu);
    nic->nic.atomics_global = nic->attr.orig_attr.atomic_cap == IBV_ATOMIC_GLOB;
    return choose_gid(nic);
}

static int open_kind(struct shmemi_verbs_nic *nic, bool mlx5)
{
    int status;

    if (!mlx5)
        return shmemi_proxy_open(nic);
    status = shmemi_ibgda_open(nic);
    if (status != -EOPNOTSUPP || nic->config->want == SHMEMI_NIC_MLX5)
        return status;
    status = downgrade(nic->config, nic->nic.device, nic->nic.port, "its queues cannot be driven directly");
    return status ? status : shmemi_proxy_open(nic);
}

static void close_rail(struct shmemi_verbs_nic *nic)
{
    shmemi_verbs_service_close(nic);
    shmemi_ibgda_close(nic);
    shmemi_proxy_close(nic);
    if (nic->pd && ibv_dealloc_pd(nic->pd))
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_DEBUG, SHMEMI_VERBS_AT ": memory is still registered at the end",
                         SHMEMI_VERBS_AT_ARGS(nic));
    if (nic->ctx)
        ibv_close_device(nic->ctx);
    pthread_mutex_destroy(&nic->lock);
    if (nic->nic.rail == 0)
        free(nic->peers);
    free(nic);
}

static void close_nic(struct shmemi_nic *home)
{
    if (in_child)
        return;
    for (int i = home->n_rails; i-- > 0;)
        close_rail(shmemi_verbs_of(home->rails[i]));
}

static int open_port(const struct shmemi_nic_config *config, const struct shmemi_verbs_port *p, struct shmemi_nic **nic_out)
{
    struct shmemi_verbs_nic *nic = calloc(1, sizeof *nic);
    bool mlx5 = false;
    int status;

    if (!nic)
        return -ENOMEM;
    pthread_mutex_init(&nic->lock, NULL);
    nic->config = nic->nic.config = config;
    snprintf(nic->nic.device, sizeof nic->nic.device, "%s", p->device);
    nic->nic.port = p->port;
    status = open_context(nic, p, &mlx5);
    if (!status)
        status = query(nic);
    if (!status)
        status = open_kind(nic, mlx5);
    if (!status)
        status = shmemi_verbs_service_open(nic);
    if (status) {
        close_rail(nic);
        return status;
    }
    shmemi_verbs_log(config, SHMEMI_VERBS_INFO, "using " SHMEMI_VERBS_AT " (%s) as %s%s%s", SHMEMI_VERBS_AT_ARGS(nic),
                     p->link == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand",
                     nic->nic.kind == SHMEMI_NIC_MLX5 ? "ibgda" : "proxy", p->why[0] ? ": " : "", p->why);
    *nic_out = &nic->nic;
    return 0;
}

/* ---- rails ---- */

static int left_out(const struct shmemi_nic_config *config, const char *device, int port, const char *why)
{
    shmemi_verbs_log(config, config->strict ? SHMEMI_VERBS_ERR : SHMEMI_VERBS_WARN,
                     SHMEMI_VERBS_AT " is left out as a rail: %s%s", device, port, why,
                     config->strict ? "; MARROW_STRICT=1 forbids it" : "");
    return config->strict ? -EOPNOTSUPP : 0;
}

void shmemi_verbs_rails_leave_out(struct shmemi_nic *home, int first)
{
    for (int i = first; i < home->n_rails; i++) {
        (void)left_out(home->config, home->rails[i]->device, home->rails[i]->port, "this PE's memory cannot be registered with it");
        close_rail(shmemi_verbs_of(home->rails[i]));
    }
    home->n_rails = first;
}

/* What the user has asked for by name or number, and does not get; -EOPNOTSUPP with MARROW_STRICT. */
static int say_missing(const struct shmemi_nic_config *config, const struct shmemi_verbs_port *ports, int n)
{
    int status = 0, rails = 0;
    char text[1200];

    if (config->rails == 1)
        return 0;
    for (int i = 0; i < n; i++) {
        bool other_port = false;

        rails += ports[i].rail > 0;
        for (int k = 0; k < n; k++)
            other_port = other_port || (k != i && !ports[k].out && strcmp(ports[k].device, ports[i].device) == 0);
        if (ports[i].named && ports[i].out && !other_port && !status)
            status = left_out(config, ports[i].device, ports[i].port, ports[i].why);
    }
    if (!status && rails < config->rails) {
        shmemi_verbs_log(config, config->strict ? SHMEMI_VERBS_ERR : SHMEMI_VERBS_WARN,
                         "MARROW_RAILS asks for %d devices, %d can be used%s: %s", config->rails, rails,
                         config->strict ? " (MARROW_STRICT=1 forbids less)" : "", list_ports(ports, n, text, sizeof text));
        status = config->strict ? -EOPNOTSUPP : 0;
    }
    return status;
}

/* The first one that opens is the home; its kind is that of all. */
static int add_rail(const struct shmemi_nic_config *config, const struct shmemi_verbs_port *p, bool only, struct shmemi_nic **home)
{
    struct shmemi_nic *nic = NULL;
    int status = open_port(config, p, &nic);

    if (status)
        return only || left_out(config, p->device, p->port, "it cannot be opened, see above") ? status : 0;
    if (*home && nic->kind != (*home)->kind) {
        close_rail(shmemi_verbs_of(nic));
        return left_out(config, p->device, p->port, "it cannot be driven as the first one is");
    }
    if (!*home)
        *home = nic;
    nic->rail = (*home)->n_rails;
    (*home)->rails[(*home)->n_rails++] = nic;
    return 0;
}

static int open_rails(const struct shmemi_nic_config *config, const struct shmemi_verbs_port *ports, int n,
                      struct shmemi_nic **home_out)
{
    struct shmemi_nic *home = NULL;
    int status = say_missing(config, ports, n), rails = 0;

    for (int i = 0; i < n; i++)
        rails += ports[i].rail > 0;
    for (int rail = 1; rail <= rails && !status; rail++) {
        for (int i = 0; i < n && !status; i++)
            if (ports[i].rail == rail)
                status = add_rail(config, &ports[i], rails == 1 || (rail == rails && !home), &home);
    }
    if (status && home)
        close_nic(home);
    else
        *home_out = home;
    return status;
}

static int open_nic(const struct shmemi_nic_config *config, struct shmemi_nic **nic_out)
{
    static bool watching_forks;
    struct shmemi_verbs_port *ports = calloc(SHMEMI_VERBS_MAX_PORTS, sizeof *ports);
    struct ibv_device **list = NULL;
    int n, status;

    if (!ports)
        return -ENOMEM;
    if (!watching_forks && pthread_atfork(NULL, NULL, child_of_fork) == 0)
        watching_forks = true;
    n = shmemi_verbs_ports(ports, SHMEMI_VERBS_MAX_PORTS, &list);
    status = choose(config, ports, n);
    if (status >= 0)
        status = open_rails(config, ports, n, nic_out);
    if (list)
        ibv_free_device_list(list);
    free(ports);
    return status;
}

/* ---- cards ---- */

/* What others must know of a rail. */
static void describe_self(struct shmemi_verbs_nic *nic)
{
    struct shmemi_verbs_address *a = &nic->own;
    int most = nic->attr.orig_attr.max_qp_rd_atom;

    a->magic = SHMEMI_VERBS_MAGIC;
    a->link = nic->port.link_layer;
    a->port = (uint8_t)nic->nic.port;
    a->mtu = (uint8_t)nic->mtu;
    a->rd_atomic = (uint8_t)(most > 64 ? 64 : most < 1 ? 1 : most);
    a->lid = nic->port.lid;
    a->global = nic->gid_index >= 0;
    a->rail = (uint8_t)nic->nic.rail;
    memcpy(a->gid, nic->gid.raw, sizeof a->gid);
    snprintf(a->device, sizeof a->device, "%.*s", (int)sizeof a->device - 1, nic->nic.device);
    shmemi_verbs_service_address(nic, a);
}

static void card(struct shmemi_nic *home, unsigned char out[SHMEMI_NIC_CARD_BYTES])
{
    _Static_assert(sizeof(struct shmemi_verbs_address) <= SHMEMI_NIC_CARD_BYTES, "an address fits into a card");
    for (int i = 0; i < home->n_rails; i++)
        describe_self(shmemi_verbs_of(home->rails[i]));
    memset(out, 0, SHMEMI_NIC_CARD_BYTES);
    memcpy(out, &shmemi_verbs_of(home)->own, sizeof(struct shmemi_verbs_address));
}

static int check_peer(struct shmemi_verbs_nic *nic, int pe)
{
    const struct shmemi_verbs_address *a = &nic->peers[pe];
    bool ethernet = nic->port.link_layer == IBV_LINK_LAYER_ETHERNET;
    char name[SHMEMI_VERBS_NAME_BYTES];

    if (a->magic != SHMEMI_VERBS_MAGIC) {
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR, "PE %d says nothing about its NIC: does it run the same Marrow?", pe);
        return -EPROTO;
    }
    if ((a->link == IBV_LINK_LAYER_ETHERNET) == ethernet)
        return 0;
    shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR,
                     SHMEMI_VERBS_AT " is %s, but %s is not: choose one kind for all PEs with MARROW_HCA_LIST",
                     SHMEMI_VERBS_AT_ARGS(nic), ethernet ? "Ethernet" : "InfiniBand",
                     shmemi_verbs_peer_name(nic, pe, name, sizeof name));
    return -EPROTO;
}

static int start(struct shmemi_nic *base, const unsigned char (*cards)[SHMEMI_NIC_CARD_BYTES])
{
    struct shmemi_verbs_nic *nic = shmemi_verbs_of(base);
    int n = nic->config->n_pes, status = 0;

    nic->peers = calloc((size_t)n, sizeof *nic->peers);
    if (!nic->peers)
        return -ENOMEM;
    for (int pe = 0; pe < n && !status; pe++) {
        memcpy(&nic->peers[pe], cards[pe], sizeof nic->peers[pe]);
        nic->peers[pe].device[sizeof nic->peers[pe].device - 1] = '\0';
        status = check_peer(nic, pe);
    }
    for (int i = 0; i < base->n_rails && !status; i++) {
        shmemi_verbs_of(base->rails[i])->peers = nic->peers;
        status = shmemi_verbs_service_start(shmemi_verbs_of(base->rails[i]));
    }
    return status;
}

/* The name is SHMEMI_NIC_SYMBOL. */
extern const struct shmemi_nic_module shmemi_nic_module;
__attribute__((visibility("default"))) const struct shmemi_nic_module shmemi_nic_module = {
    .abi = SHMEMI_NIC_ABI,
    .describe = describe,
    .open = open_nic,
    .close = close_nic,
    .mem_register = shmemi_verbs_mem_register,
    .mem_register_dmabuf = shmemi_verbs_mem_register_dmabuf,
    .mem_deregister = shmemi_verbs_mem_deregister,
    .card = card,
    .start = start,
    .rail_to = shmemi_verbs_queue_rail,
    .queue_open = shmemi_verbs_queue_open,
    .queue_close = shmemi_verbs_queue_close,
    .queue_error = shmemi_verbs_queue_error,
    .write = shmemi_proxy_write,
    .read = shmemi_proxy_read,
    .atomic = shmemi_proxy_atomic,
    .flush = shmemi_proxy_flush,
    .poll = shmemi_proxy_poll,
};
