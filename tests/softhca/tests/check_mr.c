/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a memory key lets through and what not: device addresses, bounds, access flags, protection domains, dma-buf. Each
 * refused access leaves memory as it was. Run it under softhca-run.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include "loop.h"

enum { PAGE = 4096, AT = 64 };

static const uint64_t pattern = 0x0123456789abcdefull;

/* One 8-byte operation on a fresh pair of queue pairs; the status of its completion, or -1. */
static int operate(enum ibv_wr_opcode opcode, uint64_t remote, uint32_t rkey, void *local, uint32_t lkey)
{
    struct ibv_sge sge = { (uintptr_t)local, 8, lkey };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode }, *bad;
    struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };
    struct pair p;
    int got = 0;

    make_pair(&p, DEPTH, false);
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = rkey;
    if (ibv_post_send(p.a, &wr, &bad))
        die("post_send");
    for (int ms = 0; ms < WAIT_MS && got == 0; ms++) {
        got = ibv_poll_cq(p.cq, 1, &wc);
        if (!got)
            usleep(1000);
    }
    if (ibv_destroy_qp(p.a) || ibv_destroy_qp(p.b) || ibv_destroy_cq(p.cq))
        die("destroy");
    return got == 1 ? (int)wc.status : -1;
}

static void expect(int status, enum ibv_wc_status want, const void *memory, bool changed, const char *what)
{
    uint64_t value;

    memcpy(&value, memory, sizeof value);
    tap_ok(status == (int)want && (value == pattern) == changed, "%s: %s", what,
           status < 0 ? "no completion" : ibv_wc_status_str((enum ibv_wc_status)status));
    memset((void *)(uintptr_t)memory, 0, sizeof value);
}

static struct ibv_mr *reg(struct ibv_pd *domain, void *addr, size_t len, uint64_t iova, int access)
{
    struct ibv_mr *made = ibv_reg_mr_iova(domain, addr, len, iova, access);

    if (!made)
        die("registration");
    return made;
}

/* Writes the pattern from the common buffer. */
static int put(uint64_t remote, uint32_t rkey)
{
    memcpy(buffer, &pattern, sizeof pattern);
    return operate(IBV_WR_RDMA_WRITE, remote, rkey, buffer, mr->lkey);
}

static void addresses(uint8_t *target)
{
    const uint64_t iova = 0x70000000000ull;
    struct ibv_mr *m = reg(pd, target, PAGE, iova, ACCESS);

    expect(put(iova + AT, m->rkey), IBV_WC_SUCCESS, target + AT, true, "write at a device address of its own");
    expect(put((uintptr_t)target + AT, m->rkey), IBV_WC_REM_ACCESS_ERR, target + AT, false, "write at the host address of it");
    expect(put(iova + PAGE - 8, m->rkey), IBV_WC_SUCCESS, target + PAGE - 8, true, "write of the last bytes");
    expect(put(iova + PAGE - 7, m->rkey), IBV_WC_REM_ACCESS_ERR, target + PAGE - 8, false, "write past the end");
    expect(put(iova - 1, m->rkey), IBV_WC_REM_ACCESS_ERR, target, false, "write before the start");
    expect(put(UINT64_MAX - 3, m->rkey), IBV_WC_REM_ACCESS_ERR, target, false, "write that wraps around");
    ibv_dereg_mr(m);
}

static void flags(uint8_t *target)
{
    struct ibv_mr *m = reg(pd, target, PAGE, (uintptr_t)target, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    uint64_t at = (uintptr_t)target + AT;

    expect(put(at, m->rkey), IBV_WC_REM_ACCESS_ERR, target + AT, false, "write without remote write access");
    memcpy(target + AT, &pattern, sizeof pattern);
    expect(operate(IBV_WR_RDMA_READ, at, m->rkey, buffer + AT, mr->lkey), IBV_WC_REM_ACCESS_ERR, buffer + AT, false,
           "read that the queue pair does not allow");
    ibv_dereg_mr(m);
    m = reg(pd, target, PAGE, (uintptr_t)target, 0);
    expect(operate(IBV_WR_RDMA_WRITE, (uintptr_t)buffer + AT, mr->rkey, target + AT, m->lkey), IBV_WC_SUCCESS, buffer + AT, true,
           "write out of memory that the device may only read");
    ibv_dereg_mr(m);
    expect(operate(IBV_WR_RDMA_WRITE, (uintptr_t)buffer + AT, mr->rkey, target + AT, 0x12345), IBV_WC_LOC_PROT_ERR, buffer + AT,
           false, "write with a local key that does not exist");
    memset(target, 0, PAGE);
}

static void domains(uint8_t *target)
{
    struct ibv_pd *other = ibv_alloc_pd(ctx);
    struct ibv_mr *m;

    if (!other)
        die("protection domain");
    m = reg(other, target, PAGE, (uintptr_t)target, ACCESS);
    expect(put((uintptr_t)target + AT, m->rkey), IBV_WC_REM_ACCESS_ERR, target + AT, false, "write into another protection domain");
    expect(operate(IBV_WR_RDMA_WRITE, (uintptr_t)buffer + AT, mr->rkey, target, m->lkey), IBV_WC_LOC_PROT_ERR, buffer + AT, false,
           "write out of another protection domain");
    ibv_dereg_mr(m);
    ibv_dealloc_pd(other);
}

static void changes(uint8_t *target)
{
    struct ibv_mr *m = reg(pd, target, PAGE, (uintptr_t)target, IBV_ACCESS_LOCAL_WRITE);
    uint32_t old;

    expect(put((uintptr_t)target + AT, m->rkey), IBV_WC_REM_ACCESS_ERR, target + AT, false, "before access is widened");
    tap_ok(!ibv_rereg_mr(m, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS), "registration is changed");
    expect(put((uintptr_t)target + AT, m->rkey), IBV_WC_SUCCESS, target + AT, true, "after access is widened");
    old = m->rkey;
    ibv_dereg_mr(m);
    expect(put((uintptr_t)target + AT, old), IBV_WC_REM_ACCESS_ERR, target + AT, false, "after the registration ended");
}

/* A memfd stands for an exporter whose buffers can be mapped. */
static void dma_buf(void)
{
    const uint64_t iova = 0x60000000000ull;
    int fd = memfd_create("buffer", MFD_CLOEXEC);
    uint8_t *seen;
    struct ibv_mr *m;

    if (fd < 0 || ftruncate(fd, 4 * PAGE))
        die("memfd");
    seen = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    m = ibv_reg_dmabuf_mr(pd, PAGE, 2 * PAGE, iova, fd, ACCESS);
    if (!tap_ok(m != NULL, "registration of a dma-buf"))
        return;
    close(fd);
    expect(put(iova + AT, m->rkey), IBV_WC_SUCCESS, seen + PAGE + AT, true, "write into it");
    expect(put(iova + 2 * PAGE, m->rkey), IBV_WC_REM_ACCESS_ERR, seen + 3 * PAGE, false, "write past the registered part");
    tap_ok(!ibv_dereg_mr(m), "its end");
    errno = 0;
    tap_ok(!ibv_reg_dmabuf_mr(pd, 0, PAGE, iova, -1, ACCESS) && errno == EBADF, "no descriptor: EBADF");
    errno = 0;
    tap_ok(!ibv_reg_dmabuf_mr(pd, 1, PAGE, iova, 0, ACCESS) && errno == EINVAL, "offsets in the page differ: EINVAL");
}

/* A heap of which little is used, registered as a whole: nothing of it is allocated by that, so it takes no time. */
static void sparse(void)
{
    const size_t len = (size_t)256 << 20, most = 1 << 20;
    int fd = memfd_create("heap", MFD_CLOEXEC);
    struct stat st;
    uint8_t *heap;
    struct ibv_mr *m;

    if (fd < 0 || ftruncate(fd, (off_t)len))
        die("memfd");
    heap = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (heap == MAP_FAILED)
        die("mmap");
    m = reg(pd, heap, len, (uintptr_t)heap, ACCESS);
    tap_ok(!fstat(fd, &st) && (size_t)st.st_blocks * 512 <= most, "%zu MiB registered: %zu KiB of them allocated", len >> 20,
           (size_t)st.st_blocks / 2);
    expect(put((uintptr_t)heap + len - 8, m->rkey), IBV_WC_SUCCESS, heap + len - 8, true, "write of its last bytes");
    ibv_dereg_mr(m);
    if (munmap(heap + len / 2, PAGE))
        die("munmap");
    errno = 0;
    tap_ok(!ibv_reg_mr(pd, heap, len, ACCESS) && errno == EFAULT, "a page in the middle is not mapped: EFAULT");
    munmap(heap, len);
    close(fd);
}

int main(void)
{
    uint8_t *target;

    open_device();
    target = aligned_alloc(PAGE, PAGE);
    if (!target)
        die("memory");
    memset(target, 0, PAGE);
    memset(buffer, 0, BYTES);
    addresses(target);
    flags(target);
    domains(target);
    changes(target);
    dma_buf();
    sparse();
    return tap_done();
}
