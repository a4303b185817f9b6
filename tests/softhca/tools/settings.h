/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the library will be able to read what the environment says, asked before there is a job. */
#ifndef SOFTHCA_TOOLS_SETTINGS_H
#define SOFTHCA_TOOLS_SETTINGS_H

#include <stdbool.h>

/* Says on stderr which of SOFTHCA_* it could not read, and what it has to be. */
bool settings_good(void);

#endif
