/* SPDX-License-Identifier: BSD-3-Clause */
/* error.c - what completion errors and refused firmware commands mean, and what a user can do about them. */
#include "verbs.h"

/* Syndromes of an mlx5 error completion (mlx5dv.h, MLX5_CQE_SYNDROME_*). */
static const struct shmemi_verbs_syndrome syndromes[] = {
    { 0x01, "local length error", "a request is longer than the port allows: please report this" },
    { 0x02, "local queue pair operation error", "a malformed work request: please report this" },
    { 0x04, "local protection error",
      "the local buffer is not registered memory: was it freed or unmapped while the operation was under way?" },
    { 0x05, "work request flushed",
      "the queue was already in error; the first error was overwritten: look for an earlier message of this or the other PE" },
    { 0x06, "memory window bind error", "please report this" },
    { 0x10, "bad response", "the peer's NIC answered with something else than was asked: check cables and firmware" },
    { 0x11, "local access error", "local memory could not be written: was it freed or unmapped while the operation was under way?" },
    { 0x12, "remote invalid request",
      "the peer's queue pair does not take this operation: do all PEs run the same Marrow and the same MARROW_TRANSPORT?" },
    { 0x13, "remote access error",
      "the address is outside of the peer's symmetric memory: check address, size and PE; MARROW_CHECK=1 finds such calls" },
    { 0x14, "remote operation error", "the peer's NIC could not carry it out: see the peer's messages and its kernel log" },
    { 0x15, "transport retry counter exceeded",
      "the peer does not answer: did its process or node die, or the link go down? For a slow or lossy network raise "
      "MARROW_IB_TIMEOUT or MARROW_IB_RETRY" },
    { 0x16, "receiver-not-ready retry counter exceeded", "the peer is overloaded: please report this" },
    { SHMEMI_VERBS_DEVICE_DEAD, "this PE's NIC has failed",
      "see its kernel log (dmesg); it may need a reset. MARROW_HCA_LIST=^DEVICE chooses another" },
    { 0x22, "aborted by the peer", "the peer's queue pair went into error: see the messages of that PE" },
};

static const struct shmemi_verbs_syndrome unknown_syndrome = {
    0, "unknown completion error", "see the NIC's documentation for the syndrome, and the kernel log"
};

const struct shmemi_verbs_syndrome *shmemi_verbs_syndrome(uint8_t code)
{
    for (size_t i = 0; i < sizeof syndromes / sizeof *syndromes; i++) {
        if (syndromes[i].code == code)
            return &syndromes[i];
    }
    return &unknown_syndrome;
}

uint8_t shmemi_verbs_wc_syndrome(int wc_status)
{
    switch (wc_status) {
    case IBV_WC_LOC_LEN_ERR:
        return 0x01;
    case IBV_WC_LOC_QP_OP_ERR:
        return 0x02;
    case IBV_WC_LOC_PROT_ERR:
        return 0x04;
    case IBV_WC_WR_FLUSH_ERR:
        return 0x05;
    case IBV_WC_MW_BIND_ERR:
        return 0x06;
    case IBV_WC_BAD_RESP_ERR:
        return 0x10;
    case IBV_WC_LOC_ACCESS_ERR:
        return 0x11;
    case IBV_WC_REM_INV_REQ_ERR:
        return 0x12;
    case IBV_WC_REM_ACCESS_ERR:
        return 0x13;
    case IBV_WC_REM_OP_ERR:
        return 0x14;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
        return 0x15;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return 0x16;
    case IBV_WC_REM_ABORT_ERR:
        return 0x22;
    default:
        return 0;
    }
}

/* Status of a refused firmware command. */
const char *shmemi_verbs_fw_status(uint8_t status)
{
    static const struct {
        uint8_t status;
        const char *text;
    } texts[] = {
        { 0x01, "internal error" },      { 0x02, "bad operation" },        { 0x03, "bad parameter" },
        { 0x04, "bad system state" },    { 0x05, "bad resource" },         { 0x06, "resource busy" },
        { 0x08, "limits exceeded" },     { 0x09, "bad resource state" },   { 0x0a, "bad index" },
        { 0x0f, "no resources left" },   { 0x10, "bad queue pair state" }, { 0x30, "bad packet" },
        { 0x40, "bad size" },            { 0x50, "bad input length" },     { 0x51, "bad output length" },
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i].status == status)
            return texts[i].text;
    }
    return "refused";
}
