/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes bit fields of firmware command layouts. */
#include "fw/prm.h"

uint64_t prm_get(const void *base, uint32_t field)
{
    const uint8_t *bytes = base;
    uint64_t value = 0;

    for (uint32_t bit = PRM_OFFSET(field); bit < PRM_OFFSET(field) + PRM_WIDTH(field); bit++)
        value = value << 1 | (bytes[bit >> 3] >> (7 - (bit & 7)) & 1);
    return value;
}

void prm_set(void *base, uint32_t field, uint64_t value)
{
    uint8_t *bytes = base;

    for (uint32_t bit = PRM_OFFSET(field) + PRM_WIDTH(field); bit-- > PRM_OFFSET(field); value >>= 1) {
        uint8_t mask = (uint8_t)(0x80 >> (bit & 7));

        if (value & 1)
            bytes[bit >> 3] |= mask;
        else
            bytes[bit >> 3] &= (uint8_t)~mask;
    }
}
