/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat.h - what shmem-perf needs from an OpenSHMEM library, by the version that
 * its header states: the same source is compiled against other libraries
 * of version 1.4 and later, to compare them.
 */
#ifndef PERF_COMPAT_H
#define PERF_COMPAT_H

#include <shmem.h>

#define PERF_SHMEM_AT_LEAST(major, minor) \
    (SHMEM_MAJOR_VERSION > (major) || (SHMEM_MAJOR_VERSION == (major) && SHMEM_MINOR_VERSION >= (minor)))

/* Collectives on teams, put-with-signal, non-blocking atomics: 1.5.  Scans: 1.6. */
#if PERF_SHMEM_AT_LEAST(1, 5)
#define PERF_HAVE_15 1
#else
#define PERF_HAVE_15 0
#endif
#if PERF_SHMEM_AT_LEAST(1, 6)
#define PERF_HAVE_16 1
#else
#define PERF_HAVE_16 0
#endif

#endif
