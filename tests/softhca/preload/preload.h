/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of preload/ share: the map from system paths to the job's own tree. */
#ifndef SOFTHCA_PRELOAD_H
#define SOFTHCA_PRELOAD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Reads the environment. Without SOFTHCA_DIR nothing is replaced. */
void pre_init(void);
bool pre_active(void);

/* The path to use instead of path: either path itself or text put into buf (PATH_MAX bytes). */
const char *pre_map(const char *path, char *buf);
/* Undoes pre_map in the result of realpath. */
void pre_unmap(char *path);
/* Which device's node /dev/infiniband/uverbs<n> it is, or -1. */
int pre_node(const char *path);
void pre_node_stat(int device, struct stat *st);
/*
 * Files whose text differs from process to process (addresses of the port): a descriptor to read it from, -1 when path is
 * not one of them. dirfd as in openat.
 */
int pre_open_generated(int dirfd, const char *path);

#endif
