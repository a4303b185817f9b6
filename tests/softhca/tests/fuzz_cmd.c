/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random commands against the command parsers: legal ones with wrong pieces, random attributes, random firmware blobs. The
 * device must answer each with 0 or an errno of the kernel's, and still work at the end. Run it under softhca-run, best
 * with a library built with sanitizers. Arguments: seconds (default 5), seed (default from the clock).
 */
#include "cmd.h"

#include <infiniband/verbs.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

enum { BUFFER = 1 << 16, FILES = 4 };

static uint64_t state;
static uint8_t *buffer;
static int files[FILES];
static unsigned long ran, accepted;
static int strange;              /* an errno that no path of the kernel gives */

static uint32_t rnd(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

static uint32_t below(uint32_t n)
{
    return rnd() % n;
}

static const uint16_t methods[][2] = {
    { UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE },
    { UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT },
    { UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT },
    { UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT },
    { UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY },
    { UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE },
    { UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE },
    { UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY },
    { UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE },
    { UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY },
    { UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE },
    { UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY },
    { UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY },
    { UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY },
    { UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY },
    { UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR },
    { UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR },
    { UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY },
    { UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY },
    { MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC },
    { MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY },
    { MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG },
    { MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG },
    { MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER },
    { MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN },
    { MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT },
    { MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE },
    { MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY },
    { MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY },
    { MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY },
    { MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY },
};

static const uint16_t opcodes[] = { 0x100, 0x200, 0x203, 0x400, 0x402, 0x403, 0x500, 0x502, 0x503, 0x504, 0x505,
                                    0x506, 0x507, 0x50a, 0x50b, 0x50c, 0x50e, 0x710, 0x762, 0x800, 0x842, 0x90c };

/* Mostly places of our own buffer, now and then something that is not mapped. */
static uint64_t some_address(void)
{
    switch (below(12)) {
    case 0:
        return rnd();
    case 1:
        return (uintptr_t)buffer + BUFFER - below(64);
    case 2:
        return UINT64_MAX - below(4096);
    default:
        return (uintptr_t)buffer + (below(BUFFER / 2) & ~63u);
    }
}

static uint64_t some_number(void)
{
    switch (below(5)) {
    case 0:
        return rnd() | (uint64_t)rnd() << 32;
    case 1:
        return 1u << below(32);
    default:
        return below(20);
    }
}

/* A blob with plausible small fields here and there. */
static void fill(uint8_t *at, size_t len)
{
    memset(at, 0, len);
    for (unsigned n = below(24); n-- > 0;) {
        size_t pos = below((uint32_t)len) & ~3u;
        uint32_t value = below(4) ? below(64) : rnd();

        if (below(2))
            value = __builtin_bswap32(value);
        if (pos + 4 <= len)
            memcpy(at + pos, &value, 4);
    }
    for (unsigned n = below(4); n-- > 0;) {
        size_t pos = below((uint32_t)len) & ~7u;
        uint64_t address = some_address();

        if (pos + 8 <= len)
            memcpy(at + pos, &address, 8);
    }
}

static void run(union cmd *cmd)
{
    int fd = files[below(FILES)];
    int err = cmd_run(fd, cmd);

    ran++;
    accepted += !err;
    switch (err) {
    case 0:
    case EINVAL:
    case EFAULT:
    case ENOENT:
    case EBUSY:
    case EBADF:
    case ENOSPC:
    case ENOMEM:
    case ENODATA:
    case EAGAIN:
    case EOPNOTSUPP:
    case EPROTONOSUPPORT:
    case EREMOTEIO:
        break;
    default:
        strange = err;
    }
}

static void random_attributes(void)
{
    const uint16_t *method = methods[below(sizeof methods / sizeof *methods)];
    union cmd cmd;

    cmd_begin(&cmd, method[0], method[1]);
    for (unsigned n = below(14); n-- > 0;) {
        unsigned id = below(16) | (below(3) ? 0 : 1u << UVERBS_ID_NS_SHIFT);
        size_t len = below(3) ? below(9) : below(400);
        struct ib_uverbs_attr *attr = cmd_attr(&cmd, id, len, len > 8 ? some_address() : some_number());

        if (!below(10))
            attr->flags = (__u16)rnd();
        if (!below(30))
            attr->attr_data.reserved = (__u16)rnd();
    }
    run(&cmd);
}

static void write_command(void)
{
    uint32_t number = below(48) | (below(4) ? 0 : IB_USER_VERBS_CMD_FLAG_EXTENDED);
    size_t in_len = 16 + (below(160) & ~3u);
    uint8_t *in = buffer + BUFFER / 2 + 1024;
    union cmd cmd;

    if (number == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL)
        return;                  /* each makes a descriptor */
    fill(in, in_len);
    cmd_begin(&cmd, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
    cmd_ptr(&cmd, UVERBS_ATTR_WRITE_CMD, &(uint64_t){ number }, 8);
    cmd_ptr(&cmd, UVERBS_ATTR_CORE_IN, in, in_len);
    cmd_out(&cmd, UVERBS_ATTR_CORE_OUT, buffer + BUFFER / 2 + 2048, 8 + below(400));
    if (below(2))
        cmd_ptr(&cmd, UVERBS_ATTR_UHW_IN, in + 512, 8 + below(64));
    if (below(2))
        cmd_out(&cmd, UVERBS_ATTR_UHW_OUT, buffer + BUFFER / 2 + 4096, 8 + below(128));
    run(&cmd);
}

static void firmware_command(void)
{
    static const uint16_t which[][4] = {
        { MLX5_IB_METHOD_DEVX_OBJ_CREATE, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN,
          MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT },
        { MLX5_IB_METHOD_DEVX_OBJ_MODIFY, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN,
          MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT },
        { MLX5_IB_METHOD_DEVX_OBJ_QUERY, MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN,
          MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT },
    };
    const uint16_t *pick = which[below(3)];
    uint8_t *in = buffer + BUFFER / 2 + 8192;
    size_t in_len = below(6) ? 0x110 + below(64) : 16 + below(0x100);
    uint16_t opcode = htobe16(opcodes[below(sizeof opcodes / sizeof *opcodes)]);
    union cmd cmd;

    fill(in, in_len);
    memcpy(in, &opcode, sizeof opcode);
    cmd_begin(&cmd, MLX5_IB_OBJECT_DEVX_OBJ, pick[0]);
    cmd_handle(&cmd, pick[1], below(48));
    cmd_ptr(&cmd, pick[2], in, in_len);
    cmd_out(&cmd, pick[3], buffer + BUFFER / 2 + 12288, 16 + below(0x200));
    run(&cmd);
}

/* Objects for the others to trip over. */
static void useful_command(void)
{
    int fd = files[below(FILES)];
    union cmd cmd;
    uint32_t handle;

    switch (below(4)) {
    case 0:
        cmd_alloc_pd(fd, &handle);
        break;
    case 1:
        cmd_reg_mr(fd, below(8), buffer, 4096, (uintptr_t)buffer, below(16), &handle);
        break;
    case 2:
        cmd_begin(&cmd, MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG);
        cmd_handle(&cmd, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, 0);
        cmd_attr(&cmd, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, 8, (uintptr_t)buffer);
        cmd_attr(&cmd, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, 8, BUFFER / 2);
        cmd_attr(&cmd, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, 4, IBV_ACCESS_LOCAL_WRITE);
        cmd_out(&cmd, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, buffer + BUFFER / 2, 4);
        run(&cmd);
        break;
    default:
        cmd_begin(&cmd, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
        cmd_handle(&cmd, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0);
        cmd_attr(&cmd, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, 8, below(2));
        cmd_out(&cmd, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, buffer + BUFFER / 2, 8);
        cmd_out(&cmd, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, buffer + BUFFER / 2 + 8, 4);
        cmd_out(&cmd, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, buffer + BUFFER / 2 + 12, 4);
        run(&cmd);
    }
}

/* The raw header: lengths, counts, numbers. */
static void raw_command(void)
{
    union cmd cmd;

    for (size_t i = 0; i < sizeof cmd / 4; i++)
        ((uint32_t *)(void *)&cmd)[i] = below(3) ? 0 : rnd();
    cmd.hdr.length = (__u16)rnd();
    cmd.hdr.num_attrs = below(3) ? (__u16)below(40) : (__u16)rnd();
    if (below(2))
        cmd.hdr.length = (__u16)(sizeof cmd.hdr + cmd.hdr.num_attrs * sizeof(struct ib_uverbs_attr));
    if (cmd.hdr.num_attrs > CMD_MAX_ATTRS)
        cmd.hdr.length = (__u16)(1 + rnd() % 200);
    ioctl(files[below(FILES)], RDMA_VERBS_IOCTL, &cmd);
    ran++;
}

static void reopen(void)
{
    unsigned i = below(FILES);

    close(files[i]);
    files[i] = cmd_open_context();
}

static void one(void)
{
    switch (below(10)) {
    case 0:
    case 1:
    case 2:
        random_attributes();
        break;
    case 3:
    case 4:
        write_command();
        break;
    case 5:
    case 6:
        firmware_command();
        break;
    case 7:
    case 8:
        useful_command();
        break;
    default:
        raw_command();
        if (!below(100))
            reopen();
    }
}

int main(int argc, char **argv)
{
    time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) << 16 | (uint64_t)getpid();
    uint32_t pd;
    int fd;

    printf("# seed 0x%llx\n", (unsigned long long)seed);
    fflush(stdout);
    state = seed | 1;
    buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < FILES; i++) {
        files[i] = cmd_open_context();
        if (files[i] < 0 || buffer == MAP_FAILED) {
            printf("Bail out! no device: %s\n", strerror(errno));
            return 1;
        }
    }
    while (time(NULL) < end)
        one();
    tap_ok(ran > 1000 && accepted > 100, "%lu commands, %lu accepted", ran, accepted);
    tap_ok(!strange, "each errno is one that the kernel gives (%d)", strange);
    for (unsigned i = 0; i < FILES; i++)
        close(files[i]);
    fd = cmd_open_context();
    tap_ok(fd >= 0 && !cmd_alloc_pd(fd, &pd), "the device still works");
    return tap_done();
}
