/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes captures in the classic format with raw IPv4 packets (link type 101) and nanosecond stamps. */
#include "wire/pcap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PCAP_MAGIC_NS 0xa1b23c4du
#define LINKTYPE_RAW 101

struct file_header {
    uint32_t magic;
    uint16_t major, minor;
    uint32_t zone, accuracy, snap_len, link_type;
};

struct record_header {
    uint32_t seconds, nanoseconds, stored, original;
};

int pcap_open(const char *path)
{
    static const struct file_header header = { PCAP_MAGIC_NS, 2, 4, 0, 0, 65535, LINKTYPE_RAW };
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    struct stat st;
    int err = 0;

    if (fd < 0)
        return -errno;
    /* The lock lets exactly one process find the file empty. */
    if (flock(fd, LOCK_EX) || fstat(fd, &st))
        err = -errno;
    else if (st.st_size == 0 && write(fd, &header, sizeof(header)) != (ssize_t)sizeof(header))
        err = -EIO;
    flock(fd, LOCK_UN);
    if (err) {
        close(fd);
        return err;
    }
    return fd;
}

void pcap_write(int fd, const uint8_t *head, size_t head_len, const uint8_t *body, size_t body_len)
{
    struct record_header rec;
    struct timespec now;
    struct iovec iov[3] = {
        { &rec, sizeof(rec) },
        { (void *)(uintptr_t)head, head_len },
        { (void *)(uintptr_t)body, body_len },
    };

    clock_gettime(CLOCK_REALTIME, &now);
    rec.seconds = (uint32_t)now.tv_sec;
    rec.nanoseconds = (uint32_t)now.tv_nsec;
    rec.stored = rec.original = (uint32_t)(head_len + body_len);
    if (writev(fd, iov, 3) < 0)
        return; /* a full disk must not stop the traffic */
}
