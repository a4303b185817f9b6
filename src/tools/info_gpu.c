/* SPDX-License-Identifier: BSD-3-Clause */
/* info_gpu.c - what shmem-info says of the GPUs: each one and what it can do, who reaches whom, the library's kernels. */
#include "info.h"

#include "transports/cuda/driver.h"
#include "transports/cuda/kernel.h"

#include <stdio.h>

static int attribute(int device, int which)
{
    int value = 0;

    return shmemi_cu.device_attribute(&value, which, device) == SHMEMI_CU_OK ? value : 0;
}

/* Where the text says so, the library does without: IPC for VMM, host copies for peer access. */
static void show_device(int index, int device)
{
    char name[96] = "?";
    size_t bytes = 0;
    int vmm = attribute(device, SHMEMI_CU_ATTR_VMM) && attribute(device, SHMEMI_CU_ATTR_POSIX_FD);
    int heap = attribute(device, SHMEMI_CU_ATTR_HOST_REGISTER) && attribute(device, SHMEMI_CU_ATTR_HOST_POINTER_SAME);

    shmemi_cu.device_name(name, sizeof name, device);
    shmemi_cu.device_memory(&bytes, device);
    printf("    %d: %s, %04x:%02x:%02x.0, compute capability %d.%d, %d multiprocessors, %.1f GiB\n", index, name,
           (unsigned)attribute(device, SHMEMI_CU_ATTR_PCI_DOMAIN), (unsigned)attribute(device, SHMEMI_CU_ATTR_PCI_BUS),
           (unsigned)attribute(device, SHMEMI_CU_ATTR_PCI_DEVICE), attribute(device, SHMEMI_CU_ATTR_MAJOR),
           attribute(device, SHMEMI_CU_ATTR_MINOR), attribute(device, SHMEMI_CU_ATTR_SMS),
           (double)bytes / ((size_t)1 << 30));
    printf("       device heap %s; dma-buf %s; RDMA of it %s\n",
           vmm ? "shared as descriptors, grows" : "shared by CUDA IPC, does not grow",
           attribute(device, SHMEMI_CU_ATTR_DMA_BUF) ? "yes" : "no", attribute(device, SHMEMI_CU_ATTR_RDMA_VMM) ? "yes" : "no");
    printf("       host heap usable from kernels %s; their atomics there are atomic with the CPU's: %s\n", heap ? "yes" : "no",
           attribute(device, SHMEMI_CU_ATTR_HOST_ATOMICS) ? "yes" : "no, but for jobs of several nodes");
}

static char reach(int from, int to)
{
    int can = 0, atomics = 0;

    if (from == to)
        return '.';
    shmemi_cu.can_access_peer(&can, from, to);
    shmemi_cu.p2p_attribute(&atomics, SHMEMI_CU_P2P_ATOMICS, from, to);
    return !can ? '-' : atomics ? 'A' : 'y';
}

static void show_peers(const int *devices, int n)
{
    printf("    peer access (row reaches column; A: with atomics, y: without, -: not)\n      ");
    for (int i = 0; i < n; i++)
        printf(" %2d", i);
    for (int i = 0; i < n; i++) {
        printf("\n    %2d", i);
        for (int j = 0; j < n; j++)
            printf("  %c", reach(devices[i], devices[j]));
    }
    printf("\n");
}

static void show_kernels(void)
{
    const char *archs;

    if (shmemi_kernels_built(&archs))
        printf("    the library's kernels (calls on streams, atomics and reductions on device memory): built with %s\n", archs);
    else
        printf("    the library's kernels: none, nvcc was not found when it was built\n"
               "               remedy: install the CUDA toolkit and build again (configure --with-nvcc)\n");
}

void shmemi_info_gpus(void)
{
    enum { MOST = 64 };
    int devices[MOST], n = 0, shown = 0, version = 0, status;
    char why[256];

    status = shmemi_cu_load(why, sizeof why);
    if (status) {
        printf("  cuda         no: %s\n", why);
        show_kernels();
        return;
    }
    shmemi_cu.driver_version(&version);
    shmemi_cu.device_count(&n);
    printf("  cuda         yes: %d GPU%s, driver for CUDA %d.%d\n", n, n == 1 ? "" : "s", version / 1000, version % 1000 / 10);
    for (int i = 0; i < n && shown < MOST; i++)
        if (shmemi_cu.device_get(&devices[shown], i) == SHMEMI_CU_OK) {
            show_device(i, devices[shown]);
            shown++;
        }
    if (shown > 1)
        show_peers(devices, shown);
    show_kernels();
}
