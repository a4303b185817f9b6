/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * switch.c - an Ethernet switch in user space that joins network namespaces, with loss and delay on each cable.
 *
 *     switch FIFO RAILS PID...      devices eth0 and on, so many as RAILS says, in the network namespace of each PID, then
 *                                   `ready' on stdout; all eth0 are one network, all eth1 another
 *
 * It reads lines from FIFO: PORT loss PPM | PORT delay MICROSECONDS | PORT down 0|1, where PORT is the number of a PID,
 * counted from 0, for all its cables, NUMBER.RAIL for one of them, or `all'.
 * A frame meets the settings of the cable that it comes from and of the one it leaves by.  It ends with its parent.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { NICE = -15, MAX_PORTS = 32, MAX_FRAME = 65550, MAX_HELD = 65536, TABLE = 1024, BATCH = 32, HEADER = 14 };

struct port {
    int fd, host, rail;
    long loss, delay, down;
};

struct frame {
    struct frame *next;
    uint64_t due;
    int out;
    size_t len;
    unsigned char bytes[];
};

static struct port ports[MAX_PORTS];
static int n_ports, n_rails, n_held;
static struct frame *held; /* soonest first */
static struct {
    uint64_t mac;
    int port;
} learnt[TABLE];

static void die(const char *what)
{
    fprintf(stderr, "switch: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static bool lost(const struct port *p)
{
    static uint64_t state = 88172645463325252u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return p->down || (long)(state % 1000000) < p->loss;
}

/* A full receive queue of the device drops the frame, as a switch does. */
static void emit(int out, const unsigned char *bytes, size_t len)
{
    if (write(ports[out].fd, bytes, len) < 0)
        return;
}

static void hold(int out, const unsigned char *bytes, size_t len, uint64_t due)
{
    struct frame *f = n_held < MAX_HELD ? malloc(sizeof *f + len) : NULL, **at = &held;

    if (!f)
        return;
    while (*at && (*at)->due <= due)
        at = &(*at)->next;
    *f = (struct frame){ .next = *at, .due = due, .out = out, .len = len };
    memcpy(f->bytes, bytes, len);
    *at = f;
    n_held++;
}

static void pass(int in, int out, const unsigned char *bytes, size_t len)
{
    long delay = ports[in].delay + ports[out].delay;

    if (lost(&ports[in]) || lost(&ports[out]))
        return;
    if (delay > 0)
        hold(out, bytes, len, now_us() + (uint64_t)delay);
    else
        emit(out, bytes, len);
}

static unsigned place_of(uint64_t mac)
{
    unsigned at = (unsigned)(mac * 11400714819323198485u >> 54);

    for (int i = 0; i < TABLE && learnt[at].mac && learnt[at].mac != mac; i++)
        at = (at + 1) % TABLE;
    return at;
}

static uint64_t mac_at(const unsigned char *p)
{
    uint64_t mac = 0;

    for (int i = 0; i < 6; i++)
        mac = mac << 8 | p[i];
    return mac;
}

static void forward(int in, const unsigned char *bytes, size_t len)
{
    unsigned to = place_of(mac_at(bytes)), from = place_of(mac_at(bytes + 6));

    learnt[from].mac = mac_at(bytes + 6);
    learnt[from].port = in;
    if (!(bytes[0] & 1) && learnt[to].mac == mac_at(bytes)) {
        if (learnt[to].port != in)
            pass(in, learnt[to].port, bytes, len);
        return;
    }
    for (int out = 0; out < n_ports; out++)
        if (out != in && ports[out].rail == ports[in].rail)
            pass(in, out, bytes, len);
}

static void set(const char *who, const char *key, long value)
{
    bool all = strcmp(who, "all") == 0;
    int host = -1, rail = -1;

    if (!all && sscanf(who, "%d.%d", &host, &rail) < 1)
        fprintf(stderr, "switch: unknown port %s\n", who);
    for (int i = 0; i < n_ports; i++) {
        if (!all && (ports[i].host != host || (rail >= 0 && ports[i].rail != rail)))
            continue;
        if (!strcmp(key, "loss"))
            ports[i].loss = value;
        else if (!strcmp(key, "delay"))
            ports[i].delay = value;
        else if (!strcmp(key, "down"))
            ports[i].down = value;
        else
            fprintf(stderr, "switch: unknown setting %s\n", key);
    }
}

/* A line is written at once and is shorter than PIPE_BUF, so lines arrive whole. */
static void take_orders(int fifo)
{
    char text[4096], who[16], key[16];
    ssize_t n = read(fifo, text, sizeof text - 1);
    long value;

    if (n <= 0)
        return;
    text[n] = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (sscanf(line, "%15s %15s %ld", who, key, &value) == 3)
            set(who, key, value);
        else
            fprintf(stderr, "switch: cannot read: %s\n", line);
}

static int open_device(const char *pid, int rail)
{
    struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI };
    char path[64];
    int ns, fd;

    snprintf(request.ifr_name, sizeof request.ifr_name, "eth%d", rail);
    snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
    ns = open(path, O_RDONLY | O_CLOEXEC);
    if (ns < 0 || setns(ns, CLONE_NEWNET))
        die(path);
    close(ns);
    fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request))
        die("/dev/net/tun");
    return fd;
}

/* What has arrived at a port, a bounded number of frames; false when its host is gone. */
static bool serve(int in)
{
    static unsigned char frame[MAX_FRAME];

    for (int i = 0; i < BATCH; i++) {
        ssize_t n = read(ports[in].fd, frame, sizeof frame);

        if (n < 0)
            return errno == EAGAIN || errno == EIO || errno == EINTR; /* EIO: the device is down */
        if (n >= HEADER)
            forward(in, frame, (size_t)n);
    }
    return true;
}

static void release_held(void)
{
    uint64_t now = held ? now_us() : 0;

    while (held && held->due <= now) {
        struct frame *f = held;

        emit(f->out, f->bytes, f->len);
        held = f->next;
        n_held--;
        free(f);
    }
}

static void run(int fifo)
{
    struct pollfd fds[MAX_PORTS + 1] = { { .fd = fifo, .events = POLLIN } };

    for (int i = 0; i < n_ports; i++)
        fds[i + 1] = (struct pollfd){ .fd = ports[i].fd, .events = POLLIN };
    for (;;) {
        struct timespec rest = { 1, 0 };
        uint64_t now = now_us();

        if (held)
            rest = (struct timespec){ 0, held->due > now ? (long)(held->due - now) % 1000000 * 1000 : 0 };
        if (ppoll(fds, (nfds_t)n_ports + 1, &rest, NULL) < 0 && errno != EINTR)
            die("ppoll");
        if (fds[0].revents)
            take_orders(fifo);
        for (int i = 0; i < n_ports; i++)
            if (fds[i + 1].revents && (!serve(i) || fds[i + 1].revents & POLLNVAL))
                fds[i + 1].fd = -1;
        release_held();
    }
}

/*
 * All hosts wait for the switch, so it goes before them, as their NICs do (softhca's claim_processor says why by the class and
 * not by a nice value): each step of srun is a session of its own.  May be refused.
 */
static void claim_processor(void)
{
    const struct sched_param lowest = { .sched_priority = sched_get_priority_min(SCHED_RR) };

    if (sched_setscheduler(0, SCHED_RR, &lowest))
        setpriority(PRIO_PROCESS, 0, NICE);
}

int main(int argc, char **argv)
{
    int fifo;

    n_rails = argc > 3 ? atoi(argv[2]) : 0;
    if (n_rails < 1 || n_rails > MAX_PORTS || (argc - 3) * n_rails > MAX_PORTS) {
        fprintf(stderr, "usage: switch FIFO RAILS PID...    at most %d devices\n", MAX_PORTS);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    claim_processor();
    fifo = open(argv[1], O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fifo < 0)
        die(argv[1]);
    for (int host = 0; host < argc - 3; host++)
        for (int rail = 0; rail < n_rails; rail++)
            ports[n_ports++] = (struct port){ .fd = open_device(argv[host + 3], rail), .host = host, .rail = rail };
    puts("ready");
    fflush(stdout);
    run(fifo);
    return 0;
}
