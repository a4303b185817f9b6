/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes, guards and removes the folder of a job. */
#include "tools/jobdir.h"
#include "uverbs/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NAME_BYTES = 512, YOUNG_SECONDS = 60, HOLD_FD_MIN = 64, FD_LEAST = HOLD_FD_MIN + 16 };

/* In names and texts # is the number of a device, @ that plus 1, $ that plus 2 (one digit each). */
#define BUS "0000:c@:00.0"
#define PCI "sys/devices/pci0000:c0/" BUS "/"
#define IBDEV PCI "infiniband/mlx5_#/"
#define PORT IBDEV "ports/1/"
#define UVERBS PCI "infiniband_verbs/uverbs#/"

struct file {
    const char *name, *text;     /* text NULL: a folder */
};

/* A bus address that no host has: libpci reads the real list of devices. */
static const struct file common_files[] = {
    { "sys/class/infiniband_verbs/abi_version", "6\n" },
    { "sys/module/nvidia_peermem/version", "softhca\n" },
    { "sys/class/infiniband", NULL },
    { "sys/bus/pci/devices", NULL },
};

static const struct file device_files[] = {
    { PCI "vendor", "0x15b3\n" },
    { PCI "device", "0x1021\n" },
    { PCI "subsystem_vendor", "0x15b3\n" },
    { PCI "subsystem_device", "0x0041\n" },
    { PCI "modalias", "pci:v000015B3d00001021sv000015B3sd00000041bc02sc07i00\n" },
    { PCI "class", "0x020700\n" },
    { PCI "numa_node", "0\n" },
    { PCI "local_cpus", "ffffffff\n" },
    { PCI "local_cpulist", "0-31\n" },
    { PCI "max_link_speed", "32.0 GT/s PCIe\n" },
    { PCI "max_link_width", "16\n" },
    { PCI "current_link_speed", "32.0 GT/s PCIe\n" },
    { PCI "current_link_width", "16\n" },
    { IBDEV "node_type", "1: CA\n" },
    { IBDEV "fw_ver", "28.39.1002\n" },
    { IBDEV "hca_type", "MT4129\n" },
    { IBDEV "board_id", "SOFTHCA0000\n" },
    { IBDEV "node_desc", "softhca\n" },
    /* Placeholders: the library shows each process its own text. */
    { IBDEV "node_guid", "0000:0000:0000:0000\n" },
    { IBDEV "sys_image_guid", "0000:0000:0000:0000\n" },
    { PORT "lid", "0x0\n" },
    { PORT "gids/0", "0000:0000:0000:0000:0000:0000:0000:0000\n" },
    { PORT "state", "4: ACTIVE\n" },
    { PORT "phys_state", "5: LinkUp\n" },
    { PORT "rate", "400 Gb/sec (4X NDR)\n" },
    { PORT "sm_lid", "0x1\n" },
    { PORT "sm_sl", "0\n" },
    { PORT "lid_mask_count", "0\n" },
    { PORT "pkeys/0", "0xffff\n" },
    { UVERBS "ibdev", "mlx5_#\n" },
    { UVERBS "abi_version", "1\n" },
    { UVERBS "dev", "231:19$\n" }, /* minors from 192 on */
};

static const struct file ib_files[] = {
    { PORT "link_layer", "InfiniBand\n" },
    { PORT "cap_mask", "0x2250e848\n" },
    { PORT "gid_attrs/types/0", "IB/RoCE v1\n" },
};

static const struct file eth_files[] = {
    { PORT "link_layer", "Ethernet\n" },
    { PORT "cap_mask", "0x04010000\n" },
    { PORT "gid_attrs/types/0", "RoCE v2\n" },
    { PORT "gid_attrs/ndevs/0", "lo\n" },
};

static const struct file links[] = {
    { IBDEV "device", "../../" },
    { UVERBS "device", "../../" },
    { "sys/class/infiniband_verbs/uverbs#", "../../devices/pci0000:c0/" BUS "/infiniband_verbs/uverbs#" },
    { "sys/class/infiniband/mlx5_#", "../../devices/pci0000:c0/" BUS "/infiniband/mlx5_#" },
    { "sys/bus/pci/devices/" BUS, "../../../devices/pci0000:c0/" BUS },
};

static int make_parents(int root, const char *name)
{
    char part[NAME_BYTES];

    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
        if (mkdirat(root, part, 0755) && errno != EEXIST)
            return -1;
    }
    return 0;
}

static const char *expand(const char *text, unsigned device, char out[NAME_BYTES])
{
    size_t n = 0;

    for (; *text && n + 1 < NAME_BYTES; text++)
        out[n++] = *text == '#'   ? (char)('0' + device)
                   : *text == '@' ? (char)('1' + device)
                   : *text == '$' ? (char)('2' + device)
                                  : *text;
    out[n] = '\0';
    return out;
}

static int put_files(int root, unsigned device, const struct file *files, size_t n)
{
    char name[NAME_BYTES], text[NAME_BYTES];

    for (size_t i = 0; i < n; i++) {
        int fd;

        expand(files[i].name, device, name);
        if (make_parents(root, name))
            return -1;
        if (!files[i].text) {
            if (mkdirat(root, name, 0755) && errno != EEXIST)
                return -1;
            continue;
        }
        expand(files[i].text, device, text);
        fd = openat(root, name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0 || write(fd, text, strlen(text)) < 0)
            return -1;
        close(fd);
    }
    return 0;
}

static int put_links(int root, unsigned device)
{
    char name[NAME_BYTES], text[NAME_BYTES];

    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        expand(links[i].name, device, name);
        if (make_parents(root, name) || symlinkat(expand(links[i].text, device, text), root, name))
            return -1;
    }
    return 0;
}

static int fill(int root, bool eth, unsigned devices)
{
    int err = put_files(root, 0, common_files, sizeof common_files / sizeof *common_files);

    for (unsigned d = 0; !err && d < devices; d++) {
        err = put_files(root, d, device_files, sizeof device_files / sizeof *device_files);
        if (!err)
            err = eth ? put_files(root, d, eth_files, sizeof eth_files / sizeof *eth_files)
                      : put_files(root, d, ib_files, sizeof ib_files / sizeof *ib_files);
        if (!err)
            err = put_links(root, d);
    }
    return err;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    remove(path);
    return 0;
}

static void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *base_folder(void)
{
    const char *base = getenv("TMPDIR");

    return base && base[0] == '/' && strlen(base) < 128 ? base : "/tmp";
}

/* Waits until nobody in the job holds the pipe, then removes the folder. Dies with nothing but a kill -9. */
static void cleaner(const char *path, int lock_fd, int watch_fd)
{
    char byte;

    setsid();
    prctl(PR_SET_NAME, "softhca-clean");
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    if (dup2(lock_fd, 3) < 0 || dup2(watch_fd, 4) < 0)
        _exit(1);
    close(0);
    close(1);
    close(2);
    close_range(5, ~0u, 0);
    if (chdir("/"))
        _exit(1);
    while (read(4, &byte, 1) < 0 && errno == EINTR)
        ;
    remove_tree(path);
    _exit(0);
}

static int start_cleaner(struct jobdir *job, int lock_fd)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return -1;
    /* Both away from 3 and 4, which the cleaner uses; ours is inherited by the job. */
    job->hold_fd = fcntl(ends[1], F_DUPFD, HOLD_FD_MIN);
    ends[0] = fcntl(ends[0], F_DUPFD_CLOEXEC, HOLD_FD_MIN);
    close(ends[1]);
    if (job->hold_fd < 0 || ends[0] < 0)
        return -1;
    job->cleaner = fork();
    if (job->cleaner == 0) {
        close(job->hold_fd);
        cleaner(job->path, lock_fd, ends[0]);
    }
    close(ends[0]);
    return job->cleaner < 0 ? -1 : 0;
}

/* Asked before there is a folder: to remove it takes descriptors too, and a file too large is a signal. */
static bool limits_allow(void)
{
    struct rlimit limit;

    if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < FD_LEAST) {
        fprintf(stderr, "softhca-run: a process may open %llu files here (ulimit -n), and at least %d are needed\n",
                (unsigned long long)limit.rlim_cur, FD_LEAST);
        return false;
    }
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < (rlim_t)UV_FILE_BYTES) {
        fprintf(stderr, "softhca-run: a file may have %llu bytes here (ulimit -f), and a device's, which is sparse, has %llu\n",
                (unsigned long long)limit.rlim_cur, (unsigned long long)UV_FILE_BYTES);
        return false;
    }
    return true;
}

void jobdir_failed(const char *what)
{
    fprintf(stderr, "softhca-run: %s: %s%s\n", what, strerror(errno),
            errno == EAGAIN ? "; this user may have no more processes (ulimit -u)" : "");
}

int jobdir_make(struct jobdir *job, bool eth, unsigned devices)
{
    char lock_name[sizeof job->path + 8];
    int lock_fd, root, err;

    if (!limits_allow())
        return -1;
    snprintf(job->path, sizeof job->path, "%s/softhca-%u-XXXXXX", base_folder(), (unsigned)getuid());
    if (!mkdtemp(job->path)) {
        fprintf(stderr, "softhca-run: %s: %s\n", job->path, strerror(errno));
        return -1;
    }
    snprintf(lock_name, sizeof lock_name, "%s/lock", job->path);
    lock_fd = open(lock_name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    root = open(job->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    err = lock_fd < 0 || root < 0 || flock(lock_fd, LOCK_EX) || fill(root, eth, devices);
    if (!err) {
        lock_fd = fcntl(lock_fd, F_DUPFD_CLOEXEC, HOLD_FD_MIN);
        err = lock_fd < 0 || start_cleaner(job, lock_fd);
    }
    if (err) {
        jobdir_failed(job->path);
        remove_tree(job->path);
        return -1;
    }
    close(root);
    close(lock_fd);              /* the cleaner's copy keeps the lock */
    return 0;
}

static void sweep_one(const char *path)
{
    char lock_name[NAME_BYTES + 8];
    struct stat st;
    int fd;

    if (lstat(path, &st) || !S_ISDIR(st.st_mode) || st.st_uid != getuid() || time(NULL) - st.st_mtime < YOUNG_SECONDS)
        return;
    snprintf(lock_name, sizeof lock_name, "%s/lock", path);
    fd = open(lock_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 ? errno == ENOENT : !flock(fd, LOCK_EX | LOCK_NB))
        remove_tree(path);
    if (fd >= 0)
        close(fd);
}

void jobdir_sweep(void)
{
    char prefix[64], path[NAME_BYTES];
    struct dirent *entry;
    DIR *dir = opendir(base_folder());

    snprintf(prefix, sizeof prefix, "softhca-%u-", (unsigned)getuid());
    while (dir && (entry = readdir(dir))) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)))
            continue;
        snprintf(path, sizeof path, "%s/%.200s", base_folder(), entry->d_name);
        sweep_one(path);
    }
    if (dir)
        closedir(dir);
}
