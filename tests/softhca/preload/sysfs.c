/* SPDX-License-Identifier: BSD-3-Clause */
/* Path map: the parts of /sys that describe RDMA devices come from the folder that softhca-run made for this job. */
#include "preload/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "hca/objects.h"

enum { NODE_MAJOR = 231, NODE_MINOR = 192, GENERATED_BYTES = 64 };

#define NODE "/dev/infiniband/uverbs"

/* Bus addresses 0000:c1:00.0 and on, one a device, below a bridge that no host has. */
static const char *const mapped[] = {
    "/sys/class/infiniband",                       /* infiniband_verbs and the like begin with it too */
    "/sys/devices/pci0000:c0/",
    "/sys/bus/pci/devices/0000:c",
    "/sys/module/nvidia_peermem",                  /* GPU addresses can be registered: clients look here whether so */
};

static char root[PATH_MAX / 2];
static size_t root_len;
static bool ready;

void pre_init(void)
{
    char absolute[PATH_MAX];

    if (__atomic_exchange_n(&ready, true, __ATOMIC_RELAXED))
        return;
    hca_config_read();
    if (!hca_config.dir)
        return;
    /* readlink-free: softhca-run hands over a canonical absolute name. */
    snprintf(absolute, sizeof absolute, "%s", hca_config.dir);
    if (absolute[0] != '/' || strlen(absolute) >= sizeof root) {
        hca_log_line(HCA_LINT, "SOFTHCA_DIR must be a short absolute path; no device is offered");
        return;
    }
    memcpy(root, absolute, strlen(absolute) + 1);
    root_len = strlen(root);
}

/* The constructor of another library that opens a device may run before ours. */
bool pre_active(void)
{
    if (!__atomic_load_n(&ready, __ATOMIC_RELAXED))
        pre_init();
    return root_len != 0;
}

const char *pre_map(const char *path, char *buf)
{
    if (!pre_active() || !path || path[0] != '/')
        return path;
    for (size_t i = 0; i < sizeof mapped / sizeof *mapped; i++) {
        if (strncmp(path, mapped[i], strlen(mapped[i])))
            continue;
        if (snprintf(buf, PATH_MAX, "%s%s", root, path) < PATH_MAX)
            return buf;
    }
    return path;
}

void pre_unmap(char *path)
{
    if (pre_active() && !strncmp(path, root, root_len) && path[root_len] == '/')
        memmove(path, path + root_len, strlen(path + root_len) + 1);
}

/* A device's number; -1: there is no such device. */
static int device_number(const char *digit)
{
    unsigned n = (unsigned)(*digit - '0');

    return n < hca_config.devices ? (int)n : -1;
}

int pre_node(const char *path)
{
    size_t n = strlen(NODE);

    if (!pre_active() || !path || strncmp(path, NODE, n) || !path[n] || path[n + 1])
        return -1;
    return device_number(path + n);
}

void pre_node_stat(int device, struct stat *st)
{
    memset(st, 0, sizeof *st);
    st->st_mode = S_IFCHR | 0666;
    st->st_rdev = makedev(NODE_MAJOR, NODE_MINOR + (unsigned)device);
    st->st_nlink = 1;
    st->st_blksize = HCA_UAR_BYTES;
}

/* ---- generated files ---- */

static void gid_text(const struct hca *hca, char *text)
{
    static const uint8_t none[16];
    const uint8_t *gid = hca->no_gids ? none : hca->id.gid;
    int n = 0;

    for (int i = 0; i < 16; i += 2)
        n += snprintf(text + n, (size_t)(GENERATED_BYTES - n), "%s%02x%02x", i ? ":" : "", gid[i], gid[i + 1]);
    snprintf(text + n, (size_t)(GENERATED_BYTES - n), "\n");
}

static void guid_text(const struct hca *hca, char *text)
{
    uint64_t guid = hca->id.guid;

    snprintf(text, GENERATED_BYTES, "%04x:%04x:%04x:%04x\n", (unsigned)(guid >> 48), (unsigned)(guid >> 32 & 0xffff),
             (unsigned)(guid >> 16 & 0xffff), (unsigned)(guid & 0xffff));
}

static void lid_text(const struct hca *hca, char *text)
{
    snprintf(text, GENERATED_BYTES, "0x%x\n", hca_config.eth ? 0 : hca->id.lid);
}

static void state_text(const struct hca *hca, char *text)
{
    snprintf(text, GENERATED_BYTES, "%s\n", hca->link_up ? "4: ACTIVE" : "1: DOWN");
}

/* Each process of a job belongs to a virtual node; programs tell nodes apart by the boot identity of the kernel. */
static void boot_text(char *text)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    unsigned index;

    if (!rank)
        rank = getenv("PMIX_RANK");
    if (!rank)
        rank = getenv("PMI_RANK");
    index = rank ? (unsigned)strtoul(rank, NULL, 10) : hca_devices[0].id.slot;
    snprintf(text, GENERATED_BYTES, "50f7cca0-0000-4000-8000-%012x\n", index % hca_config.nodes);
}

static const struct {
    const char *tail;
    void (*text)(const struct hca *hca, char *text);
} generated[] = {
    { "node_guid", guid_text },  { "sys_image_guid", guid_text },  { "ports/1/lid", lid_text },
    { "ports/1/gids/0", gid_text }, { "ports/1/state", state_text },
};

static int text_file(const char *text)
{
    int fd = memfd_create("softhca-text", MFD_CLOEXEC);

    if (fd >= 0 && (write(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* The full name of what openat is asked for, when that may matter; false: certainly not ours. */
static bool full_name(int dirfd, const char *path, char *out)
{
    char link[32], base[PATH_MAX];
    ssize_t n;

    if (path[0] == '/')
        return snprintf(out, PATH_MAX, "%s", path) < PATH_MAX;
    if (dirfd == AT_FDCWD)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
    n = readlink(link, base, sizeof base - 1);
    if (n <= 0)
        return false;
    base[n] = 0;
    return !strncmp(base, root, root_len) && snprintf(out, PATH_MAX, "%s/%s", base, path) < PATH_MAX;
}

/* ".../infiniband/mlx5_<n>/<tail>" */
static int generated_file(const char *name)
{
    static const char folder[] = "/infiniband/mlx5_";
    const char *at = strstr(name, folder);
    char text[GENERATED_BYTES];
    int device = at ? device_number(at + strlen(folder)) : -1;

    if (device < 0 || at[strlen(folder) + 1] != '/')
        return -1;
    at += strlen(folder) + 2;
    for (size_t i = 0; i < sizeof generated / sizeof *generated; i++) {
        if (strcmp(at, generated[i].tail) || hca_device_identify((unsigned)device))
            continue;
        generated[i].text(&hca_devices[device], text);
        return text_file(text);
    }
    return -1;
}

int pre_open_generated(int dirfd, const char *path)
{
    char name[PATH_MAX], text[GENERATED_BYTES];
    int saved = errno, fd = -1;

    if (!pre_active() || !path)
        return -1;
    if (hca_config.nodes > 1 && !strcmp(path, "/proc/sys/kernel/random/boot_id")) {
        boot_text(text);
        return text_file(text);
    }
    if (path[0] == '/' && strncmp(path, "/sys/", 5))
        return -1;
    if (!full_name(dirfd, path, name)) {
        errno = saved;
        return -1;
    }
    fd = generated_file(name);
    errno = saved;
    return fd;
}
