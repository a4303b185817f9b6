/* SPDX-License-Identifier: BSD-3-Clause */
/* init.h - bringing the library up and down. */
#ifndef SHMEMI_INIT_H
#define SHMEMI_INIT_H

/* One more initialisation, counted.  0, or -errno after a message. */
int shmemi_init(int thread_level, const char *call);
void shmemi_finalize(const char *call);

#endif
