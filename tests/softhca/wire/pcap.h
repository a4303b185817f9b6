/* SPDX-License-Identifier: BSD-3-Clause */
/* A capture file of the virtual wire, written by all processes of a job together. */
#ifndef SOFTHCA_WIRE_PCAP_H
#define SOFTHCA_WIRE_PCAP_H

#include <stddef.h>
#include <stdint.h>

/* Opens or creates the file; the first process writes the file header. Returns a descriptor or -errno. */
int pcap_open(const char *path);

/* Appends one IPv4 packet, given in two parts, with one write: records of several processes do not mix. */
void pcap_write(int fd, const uint8_t *head, size_t head_len, const uint8_t *body, size_t body_len);

#endif
