/* SPDX-License-Identifier: BSD-3-Clause */
/* Firmware command that makes memory keys: indirect ones, which UMR work requests or the command itself fill with a list. */
#include <stdlib.h>
#include <string.h>

#include "fw/fw.h"

static uint32_t access_of(const uint8_t *mkc)
{
    return (prm_get(mkc, MKC_LW) ? IBV_ACCESS_LOCAL_WRITE : 0) | (prm_get(mkc, MKC_RR) ? IBV_ACCESS_REMOTE_READ : 0)
           | (prm_get(mkc, MKC_RW) ? IBV_ACCESS_REMOTE_WRITE : 0) | (prm_get(mkc, MKC_A) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

/* The list behind the command: 16 bytes an entry: length, key, address. */
static int read_list(const struct fw_cmd *cmd, struct hca_key *key, uint32_t n)
{
    struct hca_klm *klm;
    int err;

    if (cmd->in_len < CREATE_MKEY_LIST + (uint64_t)n * 16)
        return -EINVAL;
    klm = calloc(n, sizeof *klm);
    if (!klm)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *entry = cmd->in + CREATE_MKEY_LIST + (size_t)i * 16;

        klm[i].len = (uint32_t)prm_get(entry, PRM(0, 32));
        klm[i].key = (uint32_t)prm_get(entry, PRM(32, 32));
        klm[i].va = prm_get(entry, PRM(64, 64));
    }
    err = hca_key_set_list(hca_current, key, klm, n, NULL, 1);
    free(klm);
    return err;
}

int fw_create_mkey(const struct fw_cmd *cmd, struct fw_object *obj)
{
    const uint8_t *mkc = cmd->in + CREATE_MKEY_CONTEXT;
    uint32_t mode, room, n;
    struct hca_pd *pd;
    struct hca_key *key;

    if (cmd->in_len < CREATE_MKEY_BYTES)
        return fw_fail(cmd, STATUS_BAD_INPUT_LEN, 0x40001, "input too short");
    mode = (uint32_t)(prm_get(mkc, MKC_ACCESS_MODE_HIGH) << 2 | prm_get(mkc, MKC_ACCESS_MODE_LOW));
    room = (uint32_t)prm_get(mkc, MKC_OCTWORDS);
    pd = hca_pd_find(hca_current, (uint32_t)prm_get(mkc, MKC_PD));
    if (!pd)
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x40002, "no such protection domain");
    if (mode != ACCESS_MODE_KLMS || prm_get(mkc, MKC_BSF_EN))
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x40003, "only indirect keys over a list, without signatures");
    if (!room || room > FW_MAX_KLM)
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x40004, "length of the list");
    if (hca_mkey_new(hca_current, pd, room, (uint8_t)prm_get(mkc, MKC_KEY_LOW), &key))
        return fw_fail(cmd, STATUS_NO_RES, 0x40005, "no memory key left");
    key->access = access_of(mkc);
    key->iova = prm_get(mkc, MKC_START_ADDR);
    key->len = prm_get(mkc, MKC_LENGTH64) ? UINT64_MAX : prm_get(mkc, MKC_LEN);
    key->free = prm_get(mkc, MKC_FREE);
    n = cmd->in_len >= CREATE_MKEY_LIST ? (uint32_t)prm_get(cmd->in, CREATE_MKEY_ACTUAL_OCTWORDS) : 0;
    if (n && (n > room || read_list(cmd, key, n))) {
        hca_key_free(hca_current, key);
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x40006, "list is longer than the command or the key");
    }
    obj->kind = FW_MKEY;
    obj->number = key->key >> 8;
    obj->ptr = key;
    prm_set(cmd->out, OUT_NUMBER, key->key >> 8);
    hca_log(HCA_INFO, "mkey 0x%x: indirect, %u entries", key->key, room);
    return 0;
}
