/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of uverbs/ share about device files: where pages lie in them, and who is open. */
#ifndef SOFTHCA_UVERBS_FILE_H
#define SOFTHCA_UVERBS_FILE_H

#include "uverbs/uverbs.h"

enum {
    /* libmlx5 asks for special pages at page offset command << 8 | index; ours for doorbells begin far behind those. */
    UV_MMAP_CMD_SHIFT = 8,
    UV_UAR_FIRST_PAGE = 0x1000,
};

#define UV_FILE_BYTES ((off_t)1 << 40)

struct uv_file_id {
    uint64_t dev, ino;
};

bool uv_file_id(int fd, struct uv_file_id *out);
/* Context number i or NULL; device lock held. */
struct uv_context *uv_context_at(unsigned i);
/* One command; device lock held. 0 or -errno. */
int uv_command(struct uv_context *ctx, uint64_t user_hdr);

#endif
