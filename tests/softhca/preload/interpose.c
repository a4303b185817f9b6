/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libc calls that this library stands in front of, so that unmodified libibverbs and libmlx5 find a device: paths go
 * through the map of sysfs.c, the device node opens a file of uverbs/, its ioctl is a command. Hooks do not call each other:
 * a library that is preloaded before this one may pass the one on as the other, and would be asked again for ever.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/preload.h"
#include "uverbs/file.h"
#include "uverbs/uverbs.h"

#define HOOK __attribute__((visibility("default")))

#define HOOKED(X)                                                                                                           \
    X(open) X(open64) X(openat) X(openat64) X(fopen) X(fopen64) X(opendir) X(access) X(stat) X(lstat) X(fstat) X(readlink) \
    X(realpath) X(socket) X(close) X(ioctl)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    HOOKED(MEMBER)
#undef MEMBER
} real;

/*
 * Looked up when the library is loaded: dlsym allocates and frees, and callers may be where that is forbidden, such as a
 * sanitizer that writes a report. Constructors of other libraries may call us before our own, hence again at each use.
 */
#define REAL(name)                                                                                                         \
    do {                                                                                                                   \
        if (!__atomic_load_n(&real.name, __ATOMIC_RELAXED))                                                                 \
            __atomic_store_n(&real.name, (__typeof__(name) *)dlsym(RTLD_NEXT, #name), __ATOMIC_RELAXED);                    \
    } while (0)

/* Entry points of fortified and old binaries; no header declares them. */
HOOK int __open_2(const char *path, int flags);
HOOK int __open64_2(const char *path, int flags);
HOOK int __openat_2(int dirfd, const char *path, int flags);
HOOK int __openat64_2(int dirfd, const char *path, int flags);
HOOK int __xstat(int version, const char *path, struct stat *st);
HOOK int __xstat64(int version, const char *path, struct stat64 *st);
HOOK int __lxstat(int version, const char *path, struct stat *st);
HOOK int __lxstat64(int version, const char *path, struct stat64 *st);
HOOK int __fxstat(int version, int fd, struct stat *st);
HOOK int __fxstat64(int version, int fd, struct stat64 *st);
HOOK ssize_t __readlink_chk(const char *path, char *buf, size_t len, size_t room);
HOOK char *__realpath_chk(const char *path, char *out, size_t room);

__attribute__((constructor)) static void load(void)
{
#define LOOK_UP(name) REAL(name);
    HOOKED(LOOK_UP)
#undef LOOK_UP
    pre_init();
    if (pre_active())
        pthread_atfork(hca_fork_prepare, hca_fork_parent, hca_fork_child);
}

__attribute__((destructor)) static void unload(void)
{
    if (pre_active())
        hca_device_stop();
}

/* ---- open ---- */

static int open_node(int device, int flags)
{
    int fd = uv_open((unsigned)device, flags);

    if (fd < 0) {
        errno = -fd;
        return -1;
    }
    return fd;
}

/* What is ours, or -2: ask libc. */
static int open_ours(int dirfd, const char *path, int flags)
{
    int fd, device = pre_node(path);

    if (device >= 0)
        return open_node(device, flags);
    fd = (flags & O_ACCMODE) == O_RDONLY && !(flags & O_DIRECTORY) ? pre_open_generated(dirfd, path) : -1;
    return fd >= 0 ? fd : -2;
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

static int do_open(const char *path, int flags, mode_t mode)
{
    char buf[PATH_MAX];
    int fd = open_ours(AT_FDCWD, path, flags);

    REAL(open);
    return fd == -2 ? real.open(pre_map(path, buf), flags, mode) : fd;
}

HOOK int open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(flags, args);
    va_end(args);
    return do_open(path, flags, mode);
}

static int do_open64(const char *path, int flags, mode_t mode)
{
    char buf[PATH_MAX];
    int fd = open_ours(AT_FDCWD, path, flags);

    REAL(open64);
    return fd == -2 ? real.open64(pre_map(path, buf), flags, mode) : fd;
}

HOOK int open64(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(flags, args);
    va_end(args);
    return do_open64(path, flags, mode);
}

static int do_openat(int dirfd, const char *path, int flags, mode_t mode)
{
    char buf[PATH_MAX];
    int fd = open_ours(dirfd, path, flags);

    REAL(openat);
    return fd == -2 ? real.openat(dirfd, pre_map(path, buf), flags, mode) : fd;
}

HOOK int openat(int dirfd, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(flags, args);
    va_end(args);
    return do_openat(dirfd, path, flags, mode);
}

static int do_openat64(int dirfd, const char *path, int flags, mode_t mode)
{
    char buf[PATH_MAX];
    int fd = open_ours(dirfd, path, flags);

    REAL(openat64);
    return fd == -2 ? real.openat64(dirfd, pre_map(path, buf), flags, mode) : fd;
}

HOOK int openat64(int dirfd, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(flags, args);
    va_end(args);
    return do_openat64(dirfd, path, flags, mode);
}

int __open_2(const char *path, int flags)
{
    return do_open(path, flags, 0);
}

int __open64_2(const char *path, int flags)
{
    return do_open64(path, flags, 0);
}

int __openat_2(int dirfd, const char *path, int flags)
{
    return do_openat(dirfd, path, flags, 0);
}

int __openat64_2(int dirfd, const char *path, int flags)
{
    return do_openat64(dirfd, path, flags, 0);
}

static FILE *fopen_generated(const char *path, const char *mode)
{
    int fd = mode && mode[0] == 'r' ? pre_open_generated(AT_FDCWD, path) : -1;

    return fd < 0 ? NULL : fdopen(fd, "r");
}

HOOK FILE *fopen(const char *path, const char *mode)
{
    char buf[PATH_MAX];
    FILE *file;

    REAL(fopen);
    file = fopen_generated(path, mode);
    return file ? file : real.fopen(pre_map(path, buf), mode);
}

HOOK FILE *fopen64(const char *path, const char *mode)
{
    char buf[PATH_MAX];
    FILE *file;

    REAL(fopen64);
    file = fopen_generated(path, mode);
    return file ? file : real.fopen64(pre_map(path, buf), mode);
}

HOOK DIR *opendir(const char *path)
{
    char buf[PATH_MAX];

    REAL(opendir);
    return real.opendir(pre_map(path, buf));
}

/* ---- questions about files ---- */

HOOK int access(const char *path, int mode)
{
    char buf[PATH_MAX];

    REAL(access);
    return pre_node(path) >= 0 ? 0 : real.access(pre_map(path, buf), mode);
}

static int do_stat(const char *restrict path, struct stat *restrict st)
{
    char buf[PATH_MAX];
    int device = pre_node(path);

    REAL(stat);
    if (device >= 0) {
        pre_node_stat(device, st);
        return 0;
    }
    return real.stat(pre_map(path, buf), st);
}

static int do_lstat(const char *restrict path, struct stat *restrict st)
{
    char buf[PATH_MAX];
    int device = pre_node(path);

    REAL(lstat);
    if (device >= 0) {
        pre_node_stat(device, st);
        return 0;
    }
    return real.lstat(pre_map(path, buf), st);
}

static int do_fstat(int fd, struct stat *st)
{
    int ret, device;

    REAL(fstat);
    ret = real.fstat(fd, st);
    device = !ret && st->st_size == UV_FILE_BYTES ? uv_device_of(fd) : -1;
    if (device >= 0)
        pre_node_stat(device, st);
    return ret;
}

HOOK int stat(const char *restrict path, struct stat *restrict st)
{
    return do_stat(path, st);
}

HOOK int lstat(const char *restrict path, struct stat *restrict st)
{
    return do_lstat(path, st);
}

HOOK int fstat(int fd, struct stat *st)
{
    return do_fstat(fd, st);
}

/* On 64-bit systems the two structures are one. */
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "64-bit file sizes");

HOOK int stat64(const char *restrict path, struct stat64 *restrict st)
{
    return do_stat(path, (struct stat *)(void *)st);
}

HOOK int lstat64(const char *restrict path, struct stat64 *restrict st)
{
    return do_lstat(path, (struct stat *)(void *)st);
}

HOOK int fstat64(int fd, struct stat64 *st)
{
    return do_fstat(fd, (struct stat *)(void *)st);
}

int __xstat(int version, const char *path, struct stat *st)
{
    (void)version;
    return do_stat(path, st);
}

int __xstat64(int version, const char *path, struct stat64 *st)
{
    (void)version;
    return do_stat(path, (struct stat *)(void *)st);
}

int __lxstat(int version, const char *path, struct stat *st)
{
    (void)version;
    return do_lstat(path, st);
}

int __lxstat64(int version, const char *path, struct stat64 *st)
{
    (void)version;
    return do_lstat(path, (struct stat *)(void *)st);
}

int __fxstat(int version, int fd, struct stat *st)
{
    (void)version;
    return do_fstat(fd, st);
}

int __fxstat64(int version, int fd, struct stat64 *st)
{
    (void)version;
    return do_fstat(fd, (struct stat *)(void *)st);
}

static ssize_t do_readlink(const char *restrict path, char *restrict buf, size_t len)
{
    char mapped[PATH_MAX];

    REAL(readlink);
    return real.readlink(pre_map(path, mapped), buf, len);
}

HOOK ssize_t readlink(const char *restrict path, char *restrict buf, size_t len)
{
    return do_readlink(path, buf, len);
}

ssize_t __readlink_chk(const char *path, char *buf, size_t len, size_t room)
{
    if (len > room)
        abort();
    return do_readlink(path, buf, len);
}

static char *do_realpath(const char *restrict path, char *restrict out)
{
    char buf[PATH_MAX];
    const char *use = pre_map(path, buf);
    char *result;

    REAL(realpath);
    result = real.realpath(use, out);
    if (result && use != path)
        pre_unmap(result);
    return result;
}

HOOK char *realpath(const char *restrict path, char *restrict out)
{
    return do_realpath(path, out);
}

char *__realpath_chk(const char *path, char *out, size_t room)
{
    if (out && room < PATH_MAX)
        abort();
    return do_realpath(path, out);
}

/* ---- sockets, descriptors, commands ---- */

/* The verbs core of a running kernel would answer that it has no device, and /sys would not be looked at. */
HOOK int socket(int domain, int type, int protocol)
{
    REAL(socket);
    if (pre_active() && domain == AF_NETLINK && protocol == NETLINK_RDMA) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    return real.socket(domain, type, protocol);
}

HOOK int close(int fd)
{
    bool ours = pre_active() && uv_owns(fd);
    int ret;

    REAL(close);
    ret = real.close(fd);
    if (ours && !ret)
        uv_closed();
    return ret;
}

HOOK int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    void *arg;
    int ret;

    REAL(ioctl);
    va_start(args, request);
    arg = va_arg(args, void *);
    va_end(args);
    if (!pre_active() || !uv_ioctl(fd, request, arg, &ret))
        return real.ioctl(fd, request, arg);
    if (ret < 0) {
        errno = -ret;
        return -1;
    }
    return ret;
}
