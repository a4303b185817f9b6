/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver.h - the part of the CUDA driver API that the library uses, as a table filled by dlopen.
 *
 * The types are declared here and not taken from cuda.h, so that the library builds the same on every machine;
 * tests/device/driver_abi.c compares them with cuda.h where that is installed.  Names, values and layouts are those of
 * the driver's binary interface, which NVIDIA keeps.
 */
#ifndef SHMEMI_CUDA_DRIVER_H
#define SHMEMI_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

enum shmemi_cu_result {
    SHMEMI_CU_OK = 0,
    SHMEMI_CU_INVALID_VALUE = 1,
    SHMEMI_CU_OUT_OF_MEMORY = 2,
    SHMEMI_CU_DEINITIALIZED = 4,
    SHMEMI_CU_NO_DEVICE = 100,
    SHMEMI_CU_NOT_FOUND = 500,
    SHMEMI_CU_NOT_READY = 600,
    SHMEMI_CU_PEER_ALREADY = 704,
    SHMEMI_CU_HOST_ALREADY_REGISTERED = 712,
    SHMEMI_CU_COOPERATIVE_TOO_LARGE = 720,
    SHMEMI_CU_NOT_SUPPORTED = 801,
};

enum shmemi_cu_attribute {
    SHMEMI_CU_ATTR_SMS = 16,
    SHMEMI_CU_ATTR_PCI_BUS = 33,
    SHMEMI_CU_ATTR_PCI_DEVICE = 34,
    SHMEMI_CU_ATTR_PCI_DOMAIN = 50,
    SHMEMI_CU_ATTR_MAJOR = 75,
    SHMEMI_CU_ATTR_MINOR = 76,
    SHMEMI_CU_ATTR_HOST_ATOMICS = 86,
    SHMEMI_CU_ATTR_HOST_POINTER_SAME = 91,
    SHMEMI_CU_ATTR_COOPERATIVE = 95,
    SHMEMI_CU_ATTR_HOST_REGISTER = 99,
    SHMEMI_CU_ATTR_VMM = 102,
    SHMEMI_CU_ATTR_POSIX_FD = 103,
    SHMEMI_CU_ATTR_RDMA_VMM = 110,
    SHMEMI_CU_ATTR_MEMOPS_64 = 122,
    SHMEMI_CU_ATTR_DMA_BUF = 124,
    SHMEMI_CU_ATTR_IPC_EVENTS = 125,
};

enum { SHMEMI_CU_P2P_ACCESS = 2, SHMEMI_CU_P2P_ATOMICS = 3 };
enum { SHMEMI_CU_POINTER_TYPE = 2, SHMEMI_CU_POINTER_MANAGED = 8, SHMEMI_CU_POINTER_ORDINAL = 9 };
enum { SHMEMI_CU_MEMORY_HOST = 1, SHMEMI_CU_MEMORY_DEVICE = 2, SHMEMI_CU_MEMORY_UNIFIED = 4 };
enum { SHMEMI_CU_REGISTER_PORTABLE = 1, SHMEMI_CU_REGISTER_MAPPED = 2, SHMEMI_CU_REGISTER_IO = 4 };
enum { SHMEMI_CU_HANDLE_DMA_BUF = 1 };
enum { SHMEMI_CU_CAPTURE_RELAXED = 2 };
enum { SHMEMI_CU_STREAM_NON_BLOCKING = 1 };
enum { SHMEMI_CU_WAIT_GEQ = 0, SHMEMI_CU_WAIT_EQ = 1 };
enum { SHMEMI_CU_PINNED = 1, SHMEMI_CU_HANDLE_FD = 1, SHMEMI_CU_AT_DEVICE = 1, SHMEMI_CU_READ_WRITE = 3 };
enum { SHMEMI_CU_GRANULARITY_MINIMUM = 0 };
enum { SHMEMI_CU_IPC_LAZY_PEER = 1 };

struct shmemi_cu_location {
    int type, id;
};

/* CUmemAllocationProp */
struct shmemi_cu_alloc_prop {
    int type, handle_types;
    struct shmemi_cu_location location;
    void *win32;
    struct {
        unsigned char compression, rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};

/* CUmemAccessDesc */
struct shmemi_cu_access {
    struct shmemi_cu_location location;
    int flags;
};

/* CUDA_MEMCPY2D */
struct shmemi_cu_copy2d {
    size_t src_x, src_y;
    int src_type;
    const void *src_host;
    uint64_t src_device;
    void *src_array;
    size_t src_pitch;
    size_t dst_x, dst_y;
    int dst_type;
    void *dst_host;
    uint64_t dst_device;
    void *dst_array;
    size_t dst_pitch;
    size_t width, height;
};

struct shmemi_cu_ipc_handle {
    char bytes[64];
};

struct shmemi_cu_uuid {
    char bytes[16];
};

/* X(field, symbol, parameters): every function returns a CUresult. */
#define SHMEMI_CU_FUNCTIONS(X)                                                                                          \
    X(init, "cuInit", (unsigned flags))                                                                                 \
    X(driver_version, "cuDriverGetVersion", (int *version))                                                             \
    X(error_name, "cuGetErrorName", (int error, const char **text))                                                     \
    X(device_count, "cuDeviceGetCount", (int *count))                                                                   \
    X(device_get, "cuDeviceGet", (int *device, int ordinal))                                                            \
    X(device_name, "cuDeviceGetName", (char *name, int len, int device))                                                \
    X(device_uuid, "cuDeviceGetUuid_v2", (struct shmemi_cu_uuid *uuid, int device))                                     \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))                                \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t *bytes, int device))                                                \
    X(can_access_peer, "cuDeviceCanAccessPeer", (int *can, int device, int peer))                                       \
    X(p2p_attribute, "cuDeviceGetP2PAttribute", (int *value, int attribute, int device, int peer))                      \
    X(primary_retain, "cuDevicePrimaryCtxRetain", (void **ctx, int device))                                             \
    X(primary_release, "cuDevicePrimaryCtxRelease_v2", (int device))                                                    \
    X(ctx_current, "cuCtxGetCurrent", (void **ctx))                                                                     \
    X(ctx_set, "cuCtxSetCurrent", (void *ctx))                                                                          \
    X(ctx_push, "cuCtxPushCurrent_v2", (void *ctx))                                                                     \
    X(ctx_pop, "cuCtxPopCurrent_v2", (void **ctx))                                                                      \
    X(ctx_device, "cuCtxGetDevice", (int *device))                                                                      \
    X(stream_create, "cuStreamCreate", (void **stream, unsigned flags))                                                 \
    X(stream_destroy, "cuStreamDestroy_v2", (void *stream))                                                             \
    X(stream_sync, "cuStreamSynchronize", (void *stream))                                                               \
    X(stream_query, "cuStreamQuery", (void *stream))                                                                    \
    X(stream_write64, "cuStreamWriteValue64_v2", (void *stream, uint64_t addr, uint64_t value, unsigned flags))         \
    X(stream_wait64, "cuStreamWaitValue64_v2", (void *stream, uint64_t addr, uint64_t value, unsigned flags))           \
    X(va_reserve, "cuMemAddressReserve", (uint64_t *ptr, size_t len, size_t align, uint64_t at, uint64_t flags))        \
    X(va_free, "cuMemAddressFree", (uint64_t ptr, size_t len))                                                          \
    X(mem_create, "cuMemCreate",                                                                                        \
      (uint64_t *handle, size_t len, const struct shmemi_cu_alloc_prop *prop, uint64_t flags))                          \
    X(mem_release, "cuMemRelease", (uint64_t handle))                                                                   \
    X(mem_map, "cuMemMap", (uint64_t ptr, size_t len, size_t off, uint64_t handle, uint64_t flags))                     \
    X(mem_unmap, "cuMemUnmap", (uint64_t ptr, size_t len))                                                              \
    X(mem_access, "cuMemSetAccess", (uint64_t ptr, size_t len, const struct shmemi_cu_access *desc, size_t n))          \
    X(mem_granularity, "cuMemGetAllocationGranularity",                                                                 \
      (size_t *out, const struct shmemi_cu_alloc_prop *prop, int option))                                               \
    X(mem_export, "cuMemExportToShareableHandle", (void *out, uint64_t handle, int type, uint64_t flags))               \
    X(mem_import, "cuMemImportFromShareableHandle", (uint64_t *handle, void *os_handle, int type))                      \
    X(mem_info, "cuMemGetInfo_v2", (size_t *free_out, size_t *total_out))                                               \
    X(mem_alloc, "cuMemAlloc_v2", (uint64_t *ptr, size_t len))                                                          \
    X(mem_free, "cuMemFree_v2", (uint64_t ptr))                                                                         \
    X(host_alloc, "cuMemHostAlloc", (void **ptr, size_t len, unsigned flags))                                           \
    X(host_free, "cuMemFreeHost", (void *ptr))                                                                          \
    X(host_register, "cuMemHostRegister_v2", (void *ptr, size_t len, unsigned flags))                                   \
    X(host_unregister, "cuMemHostUnregister", (void *ptr))                                                              \
    X(host_device_pointer, "cuMemHostGetDevicePointer_v2", (uint64_t *ptr, void *host, unsigned flags))                 \
    X(range_handle, "cuMemGetHandleForAddressRange",                                                                    \
      (void *handle, uint64_t ptr, size_t len, int type, uint64_t flags))                                               \
    X(capture_mode, "cuThreadExchangeStreamCaptureMode", (int *mode))                                                   \
    X(ipc_get, "cuIpcGetMemHandle", (struct shmemi_cu_ipc_handle *handle, uint64_t ptr))                                \
    X(ipc_open, "cuIpcOpenMemHandle_v2", (uint64_t *ptr, struct shmemi_cu_ipc_handle handle, unsigned flags))           \
    X(ipc_close, "cuIpcCloseMemHandle", (uint64_t ptr))                                                                 \
    X(pointer_attribute, "cuPointerGetAttribute", (void *value, int attribute, uint64_t ptr))                           \
    X(copy_async, "cuMemcpyAsync", (uint64_t to, uint64_t from, size_t len, void *stream))                              \
    X(copy2d_async, "cuMemcpy2DAsync_v2", (const struct shmemi_cu_copy2d *copy, void *stream))                          \
    X(set8_async, "cuMemsetD8Async", (uint64_t ptr, unsigned char value, size_t len, void *stream))                     \
    X(module_load, "cuModuleLoadData", (void **module, const void *image))                                              \
    X(module_unload, "cuModuleUnload", (void *module))                                                                  \
    X(module_function, "cuModuleGetFunction", (void **function, void *module, const char *name))                        \
    X(module_global, "cuModuleGetGlobal_v2", (uint64_t *ptr, size_t *len, void *module, const char *name))              \
    X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                                         \
      (int *blocks, void *function, int block_size, size_t shared))                                                     \
    X(launch, "cuLaunchKernel",                                                                                         \
      (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,                    \
       unsigned shared, void *stream, void **args, void **extra))                                                       \
    X(launch_cooperative, "cuLaunchCooperativeKernel",                                                                  \
      (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,                    \
       unsigned shared, void *stream, void **args))

struct shmemi_cu {
#define SHMEMI_CU_FIELD(field, symbol, params) int(*field) params;
    SHMEMI_CU_FUNCTIONS(SHMEMI_CU_FIELD)
#undef SHMEMI_CU_FIELD
};

extern struct shmemi_cu shmemi_cu; /* valid after shmemi_cu_load() gave 0 */

#define SHMEMI_CU_DRIVER_MIN 12000 /* CUDA 12.0 */

/*
 * Opens libcuda.so.1 and initialises it, once; later calls give the first one's result.  -ENOENT: no driver
 * library, -ENOSYS: it is too old, -ENODEV: no usable device.  `why` tells the cause in words.
 */
int shmemi_cu_load(char *why, size_t len);
/* Is the driver library loaded by the program already?  Does not load it. */
int shmemi_cu_present(void);
/* CUDA_ERROR_... of a result. */
const char *shmemi_cu_error(int result);

#endif
