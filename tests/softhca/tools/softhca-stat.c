/* SPDX-License-Identifier: BSD-3-Clause */
/* softhca-stat: asks the running virtual NICs of this user for their counters and prints them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "wire/wire_priv.h"

enum { ANSWER_BYTES = 16384, ANSWER_SECONDS = 2, EXIT_USAGE = 2 };

/* 0, or 1 when that NIC does not answer. */
static int ask(uint32_t slot)
{
    struct timeval limit = { ANSWER_SECONDS, 0 };
    struct ctl_msg msg = { .magic = CTL_MAGIC, .type = CTL_REPORT };
    char text[ANSWER_BYTES];
    int sock = ctl_connect(slot);
    ssize_t n = -1;

    if (sock < 0) {
        fprintf(stderr, "softhca-stat: slot %u: %s\n", slot, strerror(-sock));
        return 1;
    }
    /* The socket does not block, but a wait for an answer shall. */
    if (send(sock, &msg, sizeof(msg), MSG_NOSIGNAL) == (ssize_t)sizeof(msg) &&
        !setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) && !ctl_set_blocking(sock))
        n = recv(sock, text, sizeof(text), 0);
    close(sock);
    if (n <= 0) {
        fprintf(stderr, "softhca-stat: slot %u does not answer\n", slot);
        return 1;
    }
    fwrite(text, 1, (size_t)n, stdout);
    putchar('\n');
    return 0;
}

/* Slots are abstract sockets, and the kernel lists those. */
static int ask_all(void)
{
    FILE *list = fopen("/proc/net/unix", "r");
    bool seen[WIRE_MAX_SLOT + 1] = { false };
    char line[512];
    int answered = 0, found = 0;

    if (!list) {
        perror("softhca-stat: /proc/net/unix");
        return 1;
    }
    while (fgets(line, sizeof(line), list)) {
        const char *name = strstr(line, "@softhca.");
        unsigned long slot = name ? strtoul(name + strlen("@softhca."), NULL, 10) : 0;

        if (slot >= 1 && slot <= WIRE_MAX_SLOT)
            seen[slot] = true;
    }
    fclose(list);
    for (uint32_t slot = 1; slot <= WIRE_MAX_SLOT; slot++) {
        if (!seen[slot])
            continue;
        found++;
        answered += !ask(slot);
    }
    if (!found)
        fputs("softhca-stat: no virtual NIC is running\n", stderr);
    return !answered; /* a process that has opened no device does not answer */
}

int main(int argc, char **argv)
{
    int failed = 0;

    if (argc > 1 && argv[1][0] == '-') {
        fputs("usage: softhca-stat [slot ...]\nPrints the counters of the named, or of all, running virtual NICs.\n",
              stderr);
        return EXIT_USAGE;
    }
    if (argc == 1)
        return ask_all();
    for (int i = 1; i < argc; i++)
        failed += ask((uint32_t)strtoul(argv[i], NULL, 10));
    return failed != 0;
}
