/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open device files. A device file is a sparse memfd: mmap of doorbell pages, dup and passing it on work by themselves, and
 * its inode tells whether a descriptor is ours and which context it names.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "uverbs/file.h"
#include "uverbs/uverbs.h"

enum { MAX_CONTEXTS = 1024 };

/*
 * Open contexts. They change with the device lock and the table lock held; contexts end with the device lock held. The
 * table lock alone is enough to ask whether a descriptor is ours: the engine closes descriptors with the device lock held.
 */
static struct uv_context *context[MAX_CONTEXTS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned ncontexts;       /* atomic: lets fstat and close skip the look-up */

/* statx is not among the calls that preload/ replaces. */
bool uv_file_id(int fd, struct uv_file_id *out)
{
    struct statx st;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_TYPE, &st))
        return false;
    out->dev = makedev(st.stx_dev_major, st.stx_dev_minor);
    out->ino = st.stx_ino;
    return true;
}

/* The result stays valid while the device lock is held. */
static struct uv_context *find(int fd)
{
    struct uv_context *found = NULL;
    struct uv_file_id id;

    if (!__atomic_load_n(&ncontexts, __ATOMIC_ACQUIRE) || !uv_file_id(fd, &id))
        return NULL;
    pthread_mutex_lock(&table_lock);
    for (unsigned i = 0; i < MAX_CONTEXTS && !found; i++)
        if (context[i] && context[i]->ino == id.ino && context[i]->dev == id.dev)
            found = context[i];
    pthread_mutex_unlock(&table_lock);
    return found;
}

static void table_set(unsigned i, struct uv_context *ctx)
{
    pthread_mutex_lock(&table_lock);
    context[i] = ctx;
    pthread_mutex_unlock(&table_lock);
    __atomic_add_fetch(&ncontexts, ctx ? 1 : -1, __ATOMIC_RELEASE);
}

int uv_device_of(int fd)
{
    int saved = errno, index = -1;
    struct uv_file_id id;

    if (__atomic_load_n(&ncontexts, __ATOMIC_ACQUIRE) && uv_file_id(fd, &id)) {
        pthread_mutex_lock(&table_lock);
        for (unsigned i = 0; i < MAX_CONTEXTS && index < 0; i++)
            if (context[i] && context[i]->ino == id.ino && context[i]->dev == id.dev)
                index = (int)hca_index(context[i]->hca);
        pthread_mutex_unlock(&table_lock);
    }
    errno = saved;
    return index;
}

bool uv_owns(int fd)
{
    return uv_device_of(fd) >= 0;
}

/*
 * The page that mlx5dv_get_clock_info reads. Completion timestamps are CLOCK_MONOTONIC in nanoseconds, so one tick is one
 * nanosecond and the conversion never needs an update.
 */
static void fill_clock(struct uv_context *ctx)
{
    const off_t at = (off_t)(MLX5_IB_MMAP_CLOCK_INFO << UV_MMAP_CMD_SHIFT | MLX5_IB_CLOCK_INFO_V1) * HCA_UAR_BYTES;
    struct mlx5_ib_clock_info info;
    struct timespec wall;

    memset(&info, 0, sizeof info);
    clock_gettime(CLOCK_REALTIME, &wall);
    info.cycles = hca_now_ns();
    info.nsec = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
    info.mult = 1;
    info.mask = UINT64_MAX;
    info.overflow_period = 1000000000;
    if (pwrite(ctx->memfd, &info, sizeof info, at) != (ssize_t)sizeof info)
        hca_log(HCA_LINT, "clock page: %m");
}

static struct uv_context *context_new(int fd)
{
    struct uv_context *ctx = calloc(1, sizeof *ctx);
    struct uv_file_id id;

    if (!ctx || !uv_file_id(fd, &id)) {
        free(ctx);
        return NULL;
    }
    ctx->memfd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (ctx->memfd < 0) {
        free(ctx);
        return NULL;
    }
    ctx->hca = hca_current;
    ctx->dev = id.dev;
    ctx->ino = id.ino;
    ctx->next_uar_page = UV_UAR_FIRST_PAGE;
    fill_clock(ctx);
    return ctx;
}

int uv_open(unsigned index, int flags)
{
    int fd, err = hca_device_start(index);

    if (err)
        return err == -ENOMEM ? err : -EIO;
    fd = memfd_create("uverbs", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
    if (fd < 0 || ftruncate(fd, UV_FILE_BYTES)) {
        err = -errno;
        hca_log(HCA_LINT, "no file for the device: %m%s",
                err == -EFBIG ? "; the size of files is limited (ulimit -f), and this one is sparse, of 1 TiB" : "");
        if (fd >= 0)
            close(fd);
        return err;
    }
    hca_lock(&hca_devices[index]);
    err = -EMFILE;
    for (unsigned i = 0; i < MAX_CONTEXTS && err; i++) {
        struct uv_context *ctx;

        if (context[i])
            continue;
        ctx = context_new(fd);
        err = ctx ? 0 : -ENOMEM;
        if (err)
            break;
        table_set(i, ctx);
    }
    hca_unlock(hca_current);
    if (err)
        close(fd);
    return err ? err : fd;
}

static void context_end(struct uv_context *ctx)
{
    hca_current = ctx->hca;
    hca_log(HCA_INFO, "context closed, %u handles", ctx->nobjects);
    uv_objects_destroy_all(ctx);
    uv_evfiles_close(ctx);
    close(ctx->memfd);
    free(ctx);
}

/* One pass over our descriptors marks the contexts that somebody still holds. */
void uv_closed(void)
{
    bool held[MAX_CONTEXTS] = { false };
    struct dirent *entry;
    DIR *dir;

    hca_lock(hca_current);
    dir = opendir("/proc/self/fd");
    while (dir && (entry = readdir(dir))) {
        int fd = atoi(entry->d_name);
        const struct uv_context *ctx = entry->d_name[0] == '.' || fd == dirfd(dir) ? NULL : find(fd);

        for (unsigned i = 0; ctx && i < MAX_CONTEXTS; i++)
            if (context[i] == ctx && fd != ctx->memfd)
                held[i] = true;
    }
    for (unsigned i = 0; dir && i < MAX_CONTEXTS; i++) {
        struct uv_context *ctx = context[i];

        if (!ctx || held[i] || ctx->pins)
            continue;
        table_set(i, NULL);
        context_end(ctx);
    }
    if (dir)
        closedir(dir);
    hca_unlock(hca_current);
}

/* No thread may hold the table lock while the process is copied. */
void uv_fork_lock(void)
{
    pthread_mutex_lock(&table_lock);
}

void uv_fork_unlock(void)
{
    pthread_mutex_unlock(&table_lock);
}

/* Nothing is torn down: pages and queues belong to the parent, which goes on. */
void uv_forked(void)
{
    for (unsigned i = 0; i < MAX_CONTEXTS; i++) {
        struct uv_context *ctx = context[i];

        context[i] = NULL;
        if (ctx)
            close(ctx->memfd);
    }
    __atomic_store_n(&ncontexts, 0, __ATOMIC_RELEASE);
    uv_evfiles_forked();
}

struct uv_context *uv_context_at(unsigned i)
{
    return i < MAX_CONTEXTS ? context[i] : NULL;
}

bool uv_ioctl(int fd, unsigned long request, void *arg, int *ret_out)
{
    struct uv_context *ctx;

    if (request != RDMA_VERBS_IOCTL || !__atomic_load_n(&ncontexts, __ATOMIC_ACQUIRE))
        return false;
    hca_lock(hca_current);
    ctx = find(fd);
    if (ctx) {
        hca_current = ctx->hca;
        *ret_out = uv_command(ctx, (uintptr_t)arg);
    }
    hca_unlock(hca_current);
    if (ctx)
        eng_kick(hca_current);
    return ctx != NULL;
}
