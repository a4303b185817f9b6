/* SPDX-License-Identifier: BSD-3-Clause */
/* env.h - the environment variables of api/env.def, parsed once at init. */
#ifndef SHMEMI_ENV_H
#define SHMEMI_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* C types of the kinds. */
typedef bool shmemi_env_FLAG;
typedef size_t shmemi_env_SIZE;
typedef long shmemi_env_INT;
typedef uint64_t shmemi_env_SECONDS; /* nanoseconds once parsed */
typedef const char *shmemi_env_STRING;

struct shmemi_env {
#define SHMEMI_ENV(field, family, suffix, kind, dflt, category, help) shmemi_env_##kind field;
#include "../../api/env.def"
#undef SHMEMI_ENV
};

extern struct shmemi_env shmemi_env;

/* Reads every variable.  -EINVAL after a message that names the variable, its value and what was expected. */
int shmemi_env_parse(void);

/* Values that parse, but mean nothing: the same error. */
int shmemi_env_check(void);

/*
 * Says of every MARROW_ variable that is none of the library's, and of every SHMEM_ or SMA_ one that looks like one of its own,
 * that nothing reads it.  -EINVAL with MARROW_STRICT=1.
 */
int shmemi_env_check_names(void);

/* SHMEM_INFO: every variable with its value, default and help, by category. */
void shmemi_env_print(FILE *out);

/* Bytes of a size as the specification writes it (1.6, section 8): -EINVAL for text, a negative or too large number. */
int shmemi_parse_size(const char *text, size_t *out);

#endif
