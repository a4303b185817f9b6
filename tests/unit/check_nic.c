/* SPDX-License-Identifier: BSD-3-Clause */
/* check_nic.c - which NIC and which of its addresses are chosen, and the words for errors; no device is needed. */
#include "config.h"

#include "transports/ibgda/prm.h"
#include "transports/verbs/select.h"

#include <check.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool log_on(int level)
{
    (void)level;
    return false;
}

static void log_line(int level, const char *component, const char *fmt, ...)
{
    (void)level;
    (void)component;
    (void)fmt;
}

static struct shmemi_nic_config config_of(int my_local, enum shmemi_nic_kind want)
{
    struct shmemi_nic_config c = { .my_local = my_local, .want = want, .log_on = log_on, .log = log_line };

    return c;
}

static struct shmemi_verbs_port port_of(const char *name, int number)
{
    struct shmemi_verbs_port p = { .port = number, .state = IBV_PORT_ACTIVE, .link = IBV_LINK_LAYER_INFINIBAND,
                                   .mbit = 400000, .mlx5 = true, .listed = true };

    snprintf(p.device, sizeof p.device, "%s", name);
    return p;
}

/* ---- lists ---- */

static const struct {
    const char *list;
    int status;
    bool named;
    const char *in; /* which of a:1 a:2 b:1 c:1 it lets in */
} lists[] = {
    { "", 0, false, "1111" },         { "a", 0, true, "1100" },       { "a:2,c", 0, true, "0101" },
    { "^b", 0, false, "1101" },       { "^a:1,c", 0, false, "0110" }, { "nope", 0, true, "0000" },
    { "a:3", 0, true, "0000" },       { "b,", 0, true, "0010" },      { NULL, 0, false, "1111" },
    { "a:x", -EINVAL, false, NULL },  { ":1", -EINVAL, false, NULL }, { "a:0", -EINVAL, false, NULL },
    { "b,,a", -EINVAL, false, NULL }, { "a:1x", -EINVAL, false, NULL },
};

START_TEST(lists_let_in_what_they_say)
{
    struct shmemi_verbs_port ports[4] = { port_of("a", 1), port_of("a", 2), port_of("b", 1), port_of("c", 1) };
    char bad[64];
    bool named;

    ck_assert_int_eq(shmemi_verbs_list_apply(lists[_i].list, ports, 4, &named, bad, sizeof bad), lists[_i].status);
    for (int i = 0; i < 4 && !lists[_i].status; i++)
        ck_assert_msg(ports[i].listed == (lists[_i].in[i] == '1'), "%s: %d", lists[_i].list, i);
    if (!lists[_i].status)
        ck_assert(named == lists[_i].named);
}
END_TEST

/* ---- choice ---- */

static int all_equal(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n)
{
    (void)config;
    for (int i = 0; i < n; i++)
        ports[i].far = 0;
    return -1;
}

static int last_is_near(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n)
{
    (void)config;
    for (int i = 0; i < n; i++)
        ports[i].far = n - i;
    return -1;
}

static int turn_one(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n)
{
    all_equal(config, ports, n);
    return 1;
}

START_TEST(equally_near_ports_go_round)
{
    struct shmemi_verbs_port ports[3];

    for (int local = 0; local < 7; local++) {
        struct shmemi_nic_config c = config_of(local, SHMEMI_NIC_AUTO);

        c.rails = 1;
        for (int i = 0; i < 3; i++)
            ports[i] = port_of(&"abc"[i], 1);
        ck_assert_int_eq(shmemi_verbs_select(&c, ports, 3, false, all_equal), local % 3);
        ck_assert_int_eq(shmemi_verbs_select(&c, ports, 3, false, last_is_near), 2);
        ck_assert_int_eq(shmemi_verbs_select(&c, ports, 3, false, turn_one), 1);
        ck_assert(ports[1].rail == 1 && !ports[0].rail && !ports[2].rail);
    }
}
END_TEST

static int middle_is_far(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n)
{
    (void)config;
    for (int i = 0; i < n; i++)
        ports[i].far = i == n / 2;
    return -1;
}

START_TEST(rails_are_the_nearest_ones)
{
    struct shmemi_verbs_port p[3];

    for (int pe = 0; pe < 6; pe++) {
        struct shmemi_nic_config c = config_of(pe % 2, SHMEMI_NIC_AUTO);

        c.my_pe = pe;
        c.n_local = 2;
        for (int i = 0; i < 3; i++)
            p[i] = port_of(&"abc"[i], 1);
        /* All that are as near as the home, which goes round by PE and node. */
        ck_assert_int_eq(shmemi_verbs_select(&c, p, 3, false, middle_is_far), (pe % 2 + pe / 2) % 2 ? 2 : 0);
        ck_assert_int_eq(p[0].rail + p[2].rail, 3);
        ck_assert_int_eq(p[1].rail, 0);
        /* So many, the far one last. */
        c.rails = 3;
        shmemi_verbs_select(&c, p, 3, false, middle_is_far);
        ck_assert_int_eq(p[0].rail + p[2].rail, 3);
        ck_assert_int_eq(p[1].rail, 3);
        c.rails = 2;
        shmemi_verbs_select(&c, p, 3, false, last_is_near);
        ck_assert(p[2].rail == 1 && p[1].rail == 2 && !p[0].rail);
        /* What is out is no rail, however many are asked for. */
        p[2].state = IBV_PORT_DOWN;
        c.rails = 4;
        shmemi_verbs_select(&c, p, 3, false, all_equal);
        ck_assert(p[0].rail + p[1].rail == 3 && !p[2].rail);
    }
}
END_TEST

static struct shmemi_verbs_address address_of(const char *device, uint8_t link, uint8_t net, uint8_t host)
{
    struct shmemi_verbs_address a = { .link = link, .port = 1, .global = 1 };

    snprintf(a.device, sizeof a.device, "%s", device);
    if (link == IBV_LINK_LAYER_ETHERNET) {
        a.gid[10] = a.gid[11] = 0xff;
        a.gid[12] = 10;
        a.gid[14] = net;
    } else {
        a.gid[0] = 0xfe;
        a.gid[7] = net;
    }
    a.gid[15] = host;
    return a;
}

START_TEST(the_rail_to_a_peer)
{
    static const uint8_t links[] = { IBV_LINK_LAYER_ETHERNET, IBV_LINK_LAYER_INFINIBAND };

    for (int l = 0; l < 2; l++) {
        struct shmemi_verbs_address a = address_of("a", links[l], 1, 1), b = address_of("b", links[l], 2, 1);
        struct shmemi_verbs_address c = address_of("c", links[l], 1, 1), to = address_of("b", links[l], 1, 2);
        const struct shmemi_verbs_address *apart[] = { &a, &b }, *together[] = { &a, &c }, *named[] = { &b, &a, &c };
        int used[2] = { 0, 0 };

        /* The network before the name; without either, peers take turns. */
        ck_assert(shmemi_verbs_same_network(&a, &to) && !shmemi_verbs_same_network(&b, &to));
        for (int pe = 0; pe < 8; pe++) {
            ck_assert_int_eq(shmemi_verbs_rail_to(apart, 2, &to, pe), 0);
            used[shmemi_verbs_rail_to(together, 2, &to, pe)]++;
        }
        ck_assert(used[0] == 4 && used[1] == 4);
        to = address_of("c", links[l], 1, 2);
        for (int pe = 0; pe < 8; pe++)
            ck_assert_int_eq(shmemi_verbs_rail_to(named, 3, &to, pe), 2);
    }
}
END_TEST

START_TEST(what_cannot_be_used_is_left_out)
{
    struct shmemi_nic_config c = config_of(0, SHMEMI_NIC_AUTO);
    struct shmemi_verbs_port ports[5];

    for (int i = 0; i < 5; i++)
        ports[i] = port_of(&"abcde"[i], 1);
    ports[0].state = IBV_PORT_DOWN;
    ports[1].iwarp = true;
    ports[2].listed = false;
    ports[3].state = IBV_PORT_INIT;
    ck_assert_int_eq(shmemi_verbs_select(&c, ports, 5, false, all_equal), 4);
    ck_assert_ptr_nonnull(strstr(ports[0].why, "down"));
    ck_assert_ptr_nonnull(strstr(ports[1].why, "iWARP"));
    ck_assert_ptr_nonnull(strstr(ports[2].why, "MARROW_HCA_LIST"));
    ck_assert_ptr_nonnull(strstr(ports[3].why, "subnet manager"));
    ports[4].state = IBV_PORT_DOWN;
    ck_assert_int_eq(shmemi_verbs_select(&c, ports, 5, false, all_equal), -ENODEV);
}
END_TEST

START_TEST(one_kind_of_link_and_no_slow_port)
{
    struct shmemi_nic_config c = config_of(0, SHMEMI_NIC_AUTO), plain = config_of(0, SHMEMI_NIC_VERBS);
    struct shmemi_verbs_port ports[3] = { port_of("eth", 1), port_of("slow", 1), port_of("ib", 1) };

    ports[0].link = IBV_LINK_LAYER_ETHERNET;
    ports[1].mbit = 10000;
    ck_assert_int_eq(shmemi_verbs_select(&c, ports, 3, false, all_equal), 2);
    ck_assert_ptr_nonnull(strstr(ports[0].why, "InfiniBand is here too"));
    ck_assert_ptr_nonnull(strstr(ports[1].why, "half as fast"));
    /* Named by the user: however slow it is. */
    ck_assert_int_eq(shmemi_verbs_select(&c, ports, 2, true, all_equal), 1);
    /* Not mlx5: only where nothing else is, or plain verbs are asked for. */
    ports[2].mlx5 = false;
    ports[1].mbit = 400000;
    ck_assert_int_eq(shmemi_verbs_select(&c, ports, 3, false, last_is_near), 1);
    ck_assert_int_eq(shmemi_verbs_select(&plain, ports, 3, false, last_is_near), 2);
    c.want = SHMEMI_NIC_MLX5;
    ck_assert_int_eq(shmemi_verbs_select(&c, ports + 2, 1, false, all_equal), -ENODEV);
    ck_assert_ptr_nonnull(strstr(ports[2].why, "ibgda"));
}
END_TEST

/* ---- distance, on made-up machines ---- */

#ifdef HAVE_HWLOC

/*
 * Two sockets of four CPUs; on each a host bridge with a switch of one GPU and one NIC and, at a root port beside it, a
 * second NIC.  Buses: GPU 13 and 33, NICs 14, 1a and 34, 3a (mlx5_0 to mlx5_3).
 */
static int serial;

static void open_object(FILE *f, const char *type, const char *rest)
{
    fprintf(f, "<object type=\"%s\" gp_index=\"%d\" %s>\n", type, ++serial, rest);
}

static void close_objects(FILE *f, int n)
{
    while (n-- > 0)
        fputs("</object>\n", f);
}

static void sets(FILE *f, const char *type, int index, unsigned cpus, unsigned nodes, const char *more)
{
    char rest[400];

    snprintf(rest, sizeof rest,
             "os_index=\"%d\" cpuset=\"0x%08x\" complete_cpuset=\"0x%08x\" nodeset=\"0x%08x\" complete_nodeset=\"0x%08x\" %s",
             index, cpus, cpus, nodes, nodes, more);
    open_object(f, type, rest);
}

static void bridge(FILE *f, int bus, int first, int last, int depth)
{
    char rest[300];

    if (depth == 0)
        snprintf(rest, sizeof rest, "bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[%02x-%02x]\"", first, last);
    else
        snprintf(rest, sizeof rest,
                 "bridge_type=\"1-1\" depth=\"%d\" bridge_pci=\"0000:[%02x-%02x]\" pci_busid=\"0000:%02x:00.0\" "
                 "pci_type=\"0604 [1000:c030] [1000:a096] b0\" pci_link_speed=\"63.0\"",
                 depth, first, last, bus);
    open_object(f, "Bridge", rest);
}

static void device(FILE *f, int bus, int nic)
{
    char rest[200];

    snprintf(rest, sizeof rest, "pci_busid=\"0000:%02x:00.0\" pci_type=\"%s a1\" pci_link_speed=\"63.0\"", bus,
             nic < 0 ? "0302 [10de:2330] [10de:16c1]" : "0207 [15b3:1021] [15b3:0041]");
    open_object(f, "PCIDev", rest);
    if (nic >= 0) {
        snprintf(rest, sizeof rest, "name=\"mlx5_%d\" osdev_type=\"3\"", nic);
        open_object(f, "OSDev", rest);
        close_objects(f, 1);
    }
    close_objects(f, 1);
}

static void socket_io(FILE *f, int s)
{
    int base = 0x10 + 0x20 * s;

    bridge(f, 0, base, base + 0xf, 0);
    bridge(f, base, base + 1, base + 6, 1);     /* root port */
    bridge(f, base + 1, base + 2, base + 6, 2); /* switch, upstream */
    bridge(f, base + 2, base + 3, base + 3, 3);
    device(f, base + 3, -1);
    close_objects(f, 1);
    bridge(f, base + 2, base + 4, base + 4, 3);
    device(f, base + 4, 2 * s);
    close_objects(f, 3);
    bridge(f, base, base + 0xa, base + 0xa, 1);
    device(f, base + 0xa, 2 * s + 1);
    close_objects(f, 2);
}

static void write_machine(FILE *f)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n", f);
    sets(f, "Machine", 0, 0xff, 3, "allowed_cpuset=\"0x000000ff\" allowed_nodeset=\"0x00000003\"");
    for (int s = 0; s < 2; s++) {
        sets(f, "Package", s, 0xfu << 4 * s, 1u << s, "");
        sets(f, "NUMANode", s, 0xfu << 4 * s, 1u << s, "local_memory=\"1073741824\"");
        close_objects(f, 1);
        for (int c = 4 * s; c < 4 * s + 4; c++) {
            sets(f, "Core", c, 1u << c, 1u << s, "");
            sets(f, "PU", c, 1u << c, 1u << s, "");
            close_objects(f, 2);
        }
        socket_io(f, s);
        close_objects(f, 1);
    }
    close_objects(f, 1);
    fputs("<support name=\"discovery.pu\"/><support name=\"discovery.numa\"/>\n</topology>\n", f);
}

static const char *rank_cpus; /* whose CPUs */

static int rank(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n)
{
    return shmemi_verbs_topo_rank_cpus(config, ports, n, rank_cpus);
}

static const struct {
    const char *gpu, *cpus;
    int my_local;
    const char *down; /* a port that is not active */
    const char *want, *why;
} nearest[] = {
    { "0000:13:00.0", "0-7", 0, "", "mlx5_0", "below the GPU's PCIe switch" },
    { "0000:33:00.0", "0-7", 0, "", "mlx5_2", "below the GPU's PCIe switch" },
    { "33:00.0", "0-7", 1, "", "mlx5_2", "below the GPU's PCIe switch" },
    { "0000:33:00.0", "0-7", 0, "mlx5_2", "mlx5_3", "at the GPU's host bridge" },
    { NULL, "0-3", 0, "", "mlx5_0", "near this PE's CPUs" },
    { NULL, "0-3", 1, "", "mlx5_1", "near this PE's CPUs" },
    { NULL, "4-7", 0, "", "mlx5_2", "near this PE's CPUs" },
    { NULL, "4-7", 3, "", "mlx5_3", "near this PE's CPUs" },
    /* Bound to one CPU each: by its place, not by the number of the PE. */
    { NULL, "4", 7, "", "mlx5_2", "near this PE's CPUs" },
    { NULL, "5", 0, "", "mlx5_3", "near this PE's CPUs" },
    { NULL, "6", 1, "", "mlx5_2", "near this PE's CPUs" },
    /* Not bound: all equally near. */
    { NULL, "0-7", 0, "", "mlx5_0", "near some of this PE's CPUs" },
    { NULL, "0-7", 2, "", "mlx5_2", "near some of this PE's CPUs" },
    { NULL, "0-7", 6, "", "mlx5_2", "near some of this PE's CPUs" },
    /* A GPU that hwloc does not know: as for the CPUs. */
    { "0000:77:00.0", "4-7", 0, "", "mlx5_2", "near this PE's CPUs" },
};

START_TEST(the_nearest_port_is_chosen)
{
    struct shmemi_nic_config c = config_of(nearest[_i].my_local, SHMEMI_NIC_AUTO);
    struct shmemi_verbs_port ports[4];
    char path[] = "/tmp/marrow-topo.XXXXXX";
    int fd = mkstemp(path), chosen;
    FILE *f = fdopen(fd, "w");

    write_machine(f);
    fclose(f);
    setenv("HWLOC_XMLFILE", path, 1);
    for (int i = 0; i < 4; i++) {
        ports[i] = port_of("mlx5_0", 1);
        ports[i].device[5] = (char)('0' + i);
        if (strcmp(ports[i].device, nearest[_i].down) == 0)
            ports[i].state = IBV_PORT_DOWN;
    }
    c.near_pci = nearest[_i].gpu;
    rank_cpus = nearest[_i].cpus;
    chosen = shmemi_verbs_select(&c, ports, 4, false, rank);
    unlink(path);
    ck_assert_int_ge(chosen, 0);
    ck_assert_str_eq(ports[chosen].device, nearest[_i].want);
    ck_assert_str_eq(ports[chosen].why, nearest[_i].why);
}
END_TEST

#endif

/* ---- addresses ---- */

static struct ibv_gid_entry gid_of(uint32_t index, uint32_t port, uint32_t type, uint8_t first, bool ipv4)
{
    struct ibv_gid_entry e = { .gid_index = index, .port_num = port, .gid_type = type };

    e.gid.raw[0] = first;
    e.gid.raw[15] = 7;
    if (first == 0xfe)
        e.gid.raw[1] = 0x80;
    if (ipv4)
        e.gid.raw[10] = e.gid.raw[11] = 0xff;
    return e;
}

START_TEST(the_best_gid_is_chosen)
{
    const struct ibv_gid_entry table[] = {
        gid_of(0, 1, IBV_GID_TYPE_ROCE_V1, 0xfe, false), gid_of(1, 1, IBV_GID_TYPE_ROCE_V2, 0xfe, false),
        gid_of(2, 2, IBV_GID_TYPE_ROCE_V2, 0, true),     gid_of(3, 1, IBV_GID_TYPE_ROCE_V2, 0x20, false),
        gid_of(4, 1, IBV_GID_TYPE_ROCE_V1, 0, true),     gid_of(5, 1, IBV_GID_TYPE_ROCE_V2, 0, true),
    };

    ck_assert_int_eq(shmemi_verbs_gid_choose(table, 6, 1, -1), 5); /* v2, IPv4 */
    ck_assert_int_eq(shmemi_verbs_gid_choose(table, 5, 1, -1), 3); /* v2, IPv6 */
    ck_assert_int_eq(shmemi_verbs_gid_choose(table, 3, 1, -1), 1); /* v2, link-local */
    ck_assert_int_eq(shmemi_verbs_gid_choose(table, 1, 1, -1), 0); /* v1 */
    ck_assert_int_eq(shmemi_verbs_gid_choose(table, 6, 2, -1), 2); /* the other port */
    ck_assert_int_eq(shmemi_verbs_gid_choose(table, 6, 1, 4), 4);  /* asked for */
    ck_assert_int_eq(shmemi_verbs_gid_choose(table, 6, 1, 2), -ENOENT);
    ck_assert_int_eq(shmemi_verbs_gid_choose(table, 0, 1, -1), -ENOENT);
}
END_TEST

/* ---- words ---- */

START_TEST(every_syndrome_has_words)
{
    static const uint8_t known[] = { 1, 2, 4, 5, 6, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x22, SHMEMI_VERBS_DEVICE_DEAD };
    const char *unknown = shmemi_verbs_syndrome(0x77)->what;

    for (size_t i = 0; i < sizeof known; i++) {
        const struct shmemi_verbs_syndrome *s = shmemi_verbs_syndrome(known[i]);

        ck_assert_int_eq(s->code, known[i]);
        ck_assert_str_ne(s->what, unknown);
        ck_assert_int_gt((int)strlen(s->advice), 0);
    }
    ck_assert_int_eq(shmemi_verbs_wc_syndrome(IBV_WC_RETRY_EXC_ERR), 0x15);
    ck_assert_int_eq(shmemi_verbs_wc_syndrome(IBV_WC_REM_ACCESS_ERR), 0x13);
    ck_assert_int_eq(shmemi_verbs_wc_syndrome(IBV_WC_WR_FLUSH_ERR), 0x05);
}
END_TEST

/* Fields of all widths, at every alignment: what is set is read, and nothing beside it changes. */
START_TEST(command_fields_are_exact)
{
    uint8_t bytes[32], want[32];

    for (unsigned width = 1; width <= 64; width++) {
        for (unsigned bit = 3; bit < 40; bit++) {
            const struct shmemi_prm_field f = { (uint16_t)bit, (uint16_t)width };
            uint64_t value = 0xa5c3f00d12345678ull >> (64 - width) | 1;

            memset(bytes, 0xff, sizeof bytes);
            memset(want, 0xff, sizeof want);
            shmemi_prm_set(bytes, f, value);
            for (unsigned i = 0; i < width; i++) {
                if (!(value >> (width - 1 - i) & 1))
                    want[(bit + i) / 8] &= (uint8_t)~(0x80 >> (bit + i) % 8);
            }
            ck_assert_mem_eq(bytes, want, sizeof bytes);
            ck_assert(shmemi_prm_get(bytes, f) == value);
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("nic");
    TCase *tc = tcase_create("nic");
    SRunner *sr;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, lists_let_in_what_they_say, 0, (int)(sizeof lists / sizeof lists[0]));
    tcase_add_test(tc, equally_near_ports_go_round);
    tcase_add_test(tc, rails_are_the_nearest_ones);
    tcase_add_test(tc, the_rail_to_a_peer);
    tcase_add_test(tc, what_cannot_be_used_is_left_out);
    tcase_add_test(tc, one_kind_of_link_and_no_slow_port);
#ifdef HAVE_HWLOC
    tcase_add_loop_test(tc, the_nearest_port_is_chosen, 0, (int)(sizeof nearest / sizeof nearest[0]));
#endif
    tcase_add_test(tc, the_best_gid_is_chosen);
    tcase_add_test(tc, every_syndrome_has_words);
    tcase_add_test(tc, command_fields_are_exact);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? 1 : 0;
}
