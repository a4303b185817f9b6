/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topo.c - how far ports are from a GPU or from this process's CPUs, by hwloc (HWLOC_XMLFILE gives another machine's).
 *
 * From a GPU, nearest first: below the same PCIe switch, in the same PCIe tree, at the same host bridge, at the same
 * NUMA node, elsewhere.  From CPUs: all of them local to the device, some of them, none.
 */
#include "config.h"

#include "select.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#ifdef HAVE_HWLOC

#include <hwloc.h>

enum { CLASS = 1000, SWITCH_LEVELS = 2 };

static hwloc_obj_t pci_above(hwloc_obj_t o)
{
    while (o && o->type != HWLOC_OBJ_PCI_DEVICE)
        o = o->parent;
    return o;
}

static hwloc_obj_t find_device(hwloc_topology_t topo, const char *name)
{
    hwloc_obj_t o = NULL;

    while ((o = hwloc_get_next_osdev(topo, o))) {
        if (o->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS && o->name && strcmp(o->name, name) == 0)
            return o;
    }
    return NULL;
}

static int level(hwloc_obj_t o)
{
    int n = 0;

    for (; o; o = o->parent)
        n++;
    return n;
}

static int say(struct shmemi_verbs_port *p, int class, int hops, const char *text)
{
    p->far = class * CLASS + hops;
    snprintf(p->why, sizeof p->why, "%s", text);
    return 0;
}

static int far_from_pci(hwloc_topology_t topo, hwloc_obj_t gpu, hwloc_obj_t nic, struct shmemi_verbs_port *p)
{
    int up_gpu = 0, up_nic = 0;
    hwloc_obj_t a = gpu, b = nic;

    while (a != b) {
        bool a_up = level(a) >= level(b), b_up = level(b) >= level(a);

        if (a_up) {
            a = a->parent;
            up_gpu++;
        }
        if (b_up) {
            b = b->parent;
            up_nic++;
        }
    }
    if (a->type == HWLOC_OBJ_BRIDGE && a->attr->bridge.upstream_type != HWLOC_OBJ_BRIDGE_HOST) {
        if (up_gpu <= SWITCH_LEVELS && up_nic <= SWITCH_LEVELS)
            return say(p, 0, up_gpu + up_nic, "below the GPU's PCIe switch");
        return say(p, 1, up_gpu + up_nic, "in the GPU's PCIe tree");
    }
    if (a->type == HWLOC_OBJ_BRIDGE || a == gpu)
        return say(p, 2, 0, "at the GPU's host bridge");
    if (hwloc_bitmap_isequal(hwloc_get_non_io_ancestor_obj(topo, gpu)->nodeset,
                             hwloc_get_non_io_ancestor_obj(topo, nic)->nodeset))
        return say(p, 3, 0, "at the GPU's NUMA node");
    return say(p, 4, 0, "far from the GPU");
}

static int far_from_cpus(hwloc_topology_t topo, hwloc_const_bitmap_t cpus, hwloc_obj_t nic, struct shmemi_verbs_port *p)
{
    hwloc_const_bitmap_t local = hwloc_get_non_io_ancestor_obj(topo, nic)->cpuset;

    if (hwloc_bitmap_isincluded(cpus, local))
        return say(p, 0, 0, "near this PE's CPUs");
    if (hwloc_bitmap_intersects(cpus, local))
        return say(p, 1, 0, "near some of this PE's CPUs");
    return say(p, 2, 0, "far from this PE's CPUs");
}

/* What this thread may run on.  Not hwloc's own: that knows no binding in the topology of another machine. */
static int own_cpus(hwloc_bitmap_t out)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set))
        return -errno;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &set))
            hwloc_bitmap_set(out, (unsigned)i);
    }
    return 0;
}

/*
 * A PE bound to a part of the CPUs around the nearest devices takes the device that the place of that part says,
 * whatever order its launcher hands out CPUs in; -1 for one that may run on all of them.
 */
static int turn_by_place(hwloc_topology_t topo, hwloc_const_bitmap_t cpus, hwloc_obj_t nic)
{
    hwloc_const_bitmap_t local = hwloc_get_non_io_ancestor_obj(topo, nic)->cpuset;
    hwloc_obj_t pu = NULL;
    int weight = hwloc_bitmap_weight(cpus), before = 0;

    if (weight <= 0 || !hwloc_bitmap_isincluded(cpus, local) || hwloc_bitmap_isequal(cpus, local))
        return -1;
    while ((pu = hwloc_get_next_obj_inside_cpuset_by_type(topo, local, HWLOC_OBJ_PU, pu))) {
        if (hwloc_bitmap_isset(cpus, pu->os_index))
            return before / weight;
        before++;
    }
    return -1;
}

static int rank_all(hwloc_topology_t topo, const char *near_pci, hwloc_const_bitmap_t cpus, struct shmemi_verbs_port *ports,
                    int n)
{
    hwloc_obj_t gpu = near_pci && near_pci[0] ? hwloc_get_pcidev_by_busidstring(topo, near_pci) : NULL;
    hwloc_obj_t nearest = NULL;
    int least = -1;

    for (int i = 0; i < n; i++) {
        hwloc_obj_t nic = ports[i].out ? NULL : find_device(topo, ports[i].device);

        if (ports[i].out)
            continue;
        if (!nic)
            say(&ports[i], gpu ? 4 : 2, 0, "at an unknown place");
        else if (gpu && pci_above(nic))
            far_from_pci(topo, gpu, pci_above(nic), &ports[i]);
        else
            far_from_cpus(topo, cpus, nic, &ports[i]);
        if (nic && (least < 0 || ports[i].far < least)) {
            least = ports[i].far;
            nearest = nic;
        }
    }
    return gpu || !nearest ? -1 : turn_by_place(topo, cpus, nearest);
}

/* I/O objects are left out of a topology unless they are asked for. */
static int load(hwloc_topology_t *topo_out)
{
    if (hwloc_topology_init(topo_out))
        return -ENOMEM;
    if (hwloc_topology_set_io_types_filter(*topo_out, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) == 0
        && hwloc_topology_load(*topo_out) == 0)
        return 0;
    hwloc_topology_destroy(*topo_out);
    return -EIO;
}

int shmemi_verbs_topo_rank_cpus(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n,
                                const char *list)
{
    hwloc_bitmap_t cpus;
    hwloc_topology_t topo;
    int turn = -1;

    if (load(&topo)) {
        shmemi_verbs_log(config, SHMEMI_VERBS_WARN, "hwloc cannot read this machine's topology; NICs are taken in turn");
        return -1;
    }
    cpus = hwloc_bitmap_alloc();
    if (cpus && (list ? hwloc_bitmap_list_sscanf(cpus, list) : own_cpus(cpus)) == 0) {
        if (config->near_pci && config->near_pci[0] && !hwloc_get_pcidev_by_busidstring(topo, config->near_pci))
            shmemi_verbs_log(config, SHMEMI_VERBS_WARN, "hwloc knows no PCI device %s; the NIC nearest to the CPUs is used",
                             config->near_pci);
        turn = rank_all(topo, config->near_pci, cpus, ports, n);
    }
    hwloc_bitmap_free(cpus);
    hwloc_topology_destroy(topo);
    return turn;
}

#else

int shmemi_verbs_topo_rank_cpus(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n,
                                const char *list)
{
    (void)list;
    for (int i = 0; i < n; i++) {
        if (!ports[i].out)
            snprintf(ports[i].why, sizeof ports[i].why, "built without hwloc: all count as equally near");
    }
    shmemi_verbs_log(config, SHMEMI_VERBS_INFO, "built without hwloc: NICs are taken in turn");
    return -1;
}

#endif

int shmemi_verbs_topo_rank(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n)
{
    return shmemi_verbs_topo_rank_cpus(config, ports, n, NULL);
}
