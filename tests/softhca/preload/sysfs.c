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

static const char *const mapped[] = {
    "/sys/class/infiniband",                       /* infiniband_verbs and the like begin with it too */
    "/sys/devices/pci0000:c0/0000:c1:00.0",
    "/sys/bus/pci/devices/0000:c1:00.0",
    "/sys/module/nvidia_peermem",                  /* GPU addresses can be registered: clients look here whether so */
};

static char root[PATH_MAX / 2];
static size_t root_len;

void pre_init(void)
{
    char absolute[PATH_MAX];

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

bool pre_active(void)
{
    return root_len != 0;
}

const char *pre_map(const char *path, char *buf)
{
    if (!root_len || !path || path[0] != '/')
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
    if (root_len && !strncmp(path, root, root_len) && path[root_len] == '/')
        memmove(path, path + root_len, strlen(path + root_len) + 1);
}

bool pre_is_node(const char *path)
{
    return root_len && path && !strcmp(path, PRE_DEVICE_NODE);
}

void pre_node_stat(struct stat *st)
{
    memset(st, 0, sizeof *st);
    st->st_mode = S_IFCHR | 0666;
    st->st_rdev = makedev(NODE_MAJOR, NODE_MINOR);
    st->st_nlink = 1;
    st->st_blksize = HCA_UAR_BYTES;
}

/* ---- generated files ---- */

static void gid_text(char *text)
{
    static const uint8_t none[16];
    const uint8_t *gid = hca_device.no_gids ? none : hca_device.id.gid;
    int n = 0;

    for (int i = 0; i < 16; i += 2)
        n += snprintf(text + n, (size_t)(GENERATED_BYTES - n), "%s%02x%02x", i ? ":" : "", gid[i], gid[i + 1]);
    snprintf(text + n, (size_t)(GENERATED_BYTES - n), "\n");
}

static void guid_text(char *text)
{
    uint64_t guid = hca_device.id.guid;

    snprintf(text, GENERATED_BYTES, "%04x:%04x:%04x:%04x\n", (unsigned)(guid >> 48), (unsigned)(guid >> 32 & 0xffff),
             (unsigned)(guid >> 16 & 0xffff), (unsigned)(guid & 0xffff));
}

static void lid_text(char *text)
{
    snprintf(text, GENERATED_BYTES, "0x%x\n", hca_config.eth ? 0 : hca_device.id.lid);
}

static void state_text(char *text)
{
    snprintf(text, GENERATED_BYTES, "%s\n", hca_device.link_up ? "4: ACTIVE" : "1: DOWN");
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
    index = rank ? (unsigned)strtoul(rank, NULL, 10) : hca_device.id.slot;
    snprintf(text, GENERATED_BYTES, "50f7cca0-0000-4000-8000-%012x\n", index % hca_config.nodes);
}

static const struct {
    const char *tail;
    void (*text)(char *text);
} generated[] = {
    { "/infiniband/mlx5_0/node_guid", guid_text },   { "/infiniband/mlx5_0/sys_image_guid", guid_text },
    { "/infiniband/mlx5_0/ports/1/lid", lid_text },  { "/infiniband/mlx5_0/ports/1/gids/0", gid_text },
    { "/infiniband/mlx5_0/ports/1/state", state_text },
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

static bool ends_with(const char *path, const char *tail)
{
    size_t n = strlen(path), t = strlen(tail);

    return n >= t && !strcmp(path + n - t, tail);
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

int pre_open_generated(int dirfd, const char *path)
{
    char name[PATH_MAX], text[GENERATED_BYTES];
    int saved = errno, fd = -1;

    if (!root_len || !path)
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
    for (size_t i = 0; i < sizeof generated / sizeof *generated; i++) {
        if (!ends_with(name, generated[i].tail) || hca_device_identify())
            continue;
        generated[i].text(text);
        fd = text_file(text);
        break;
    }
    errno = saved;
    return fd;
}
