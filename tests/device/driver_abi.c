/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver_abi.c - compares what driver.h declares of the CUDA driver's binary interface with cuda.h: layouts and values when this
 * is compiled, the names of the functions, which carry versions, when it runs (TAP).
 *
 * run: n=1 launch=bare
 * nodes: no one process
 */
#include "config.h"
#include "transports/cuda/driver.h"

#include <stdio.h>
#include <string.h>

#ifdef HAVE_CUDA

#include <cuda.h>

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(theirs), "size of " #theirs)
#define SAME_PLACE(ours, a, theirs, b)                                                                                     \
    _Static_assert(offsetof(struct ours, a) == offsetof(theirs, b) && sizeof(((struct ours *)0)->a) == sizeof(((theirs *)0)->b), \
                   #theirs "." #b)
#define SAME_VALUE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME_SIZE(shmemi_cu_location, CUmemLocation);
SAME_PLACE(shmemi_cu_location, type, CUmemLocation, type);
SAME_PLACE(shmemi_cu_location, id, CUmemLocation, id);

SAME_SIZE(shmemi_cu_alloc_prop, CUmemAllocationProp);
SAME_PLACE(shmemi_cu_alloc_prop, type, CUmemAllocationProp, type);
SAME_PLACE(shmemi_cu_alloc_prop, handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_PLACE(shmemi_cu_alloc_prop, location, CUmemAllocationProp, location);
SAME_PLACE(shmemi_cu_alloc_prop, win32, CUmemAllocationProp, win32HandleMetaData);
SAME_PLACE(shmemi_cu_alloc_prop, flags.compression, CUmemAllocationProp, allocFlags.compressionType);
SAME_PLACE(shmemi_cu_alloc_prop, flags.rdma, CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
SAME_PLACE(shmemi_cu_alloc_prop, flags.usage, CUmemAllocationProp, allocFlags.usage);
SAME_PLACE(shmemi_cu_alloc_prop, flags.reserved, CUmemAllocationProp, allocFlags.reserved);

SAME_SIZE(shmemi_cu_access, CUmemAccessDesc);
SAME_PLACE(shmemi_cu_access, location, CUmemAccessDesc, location);
SAME_PLACE(shmemi_cu_access, flags, CUmemAccessDesc, flags);

SAME_SIZE(shmemi_cu_copy2d, CUDA_MEMCPY2D);
SAME_PLACE(shmemi_cu_copy2d, src_x, CUDA_MEMCPY2D, srcXInBytes);
SAME_PLACE(shmemi_cu_copy2d, src_y, CUDA_MEMCPY2D, srcY);
SAME_PLACE(shmemi_cu_copy2d, src_type, CUDA_MEMCPY2D, srcMemoryType);
SAME_PLACE(shmemi_cu_copy2d, src_host, CUDA_MEMCPY2D, srcHost);
SAME_PLACE(shmemi_cu_copy2d, src_device, CUDA_MEMCPY2D, srcDevice);
SAME_PLACE(shmemi_cu_copy2d, src_array, CUDA_MEMCPY2D, srcArray);
SAME_PLACE(shmemi_cu_copy2d, src_pitch, CUDA_MEMCPY2D, srcPitch);
SAME_PLACE(shmemi_cu_copy2d, dst_x, CUDA_MEMCPY2D, dstXInBytes);
SAME_PLACE(shmemi_cu_copy2d, dst_y, CUDA_MEMCPY2D, dstY);
SAME_PLACE(shmemi_cu_copy2d, dst_type, CUDA_MEMCPY2D, dstMemoryType);
SAME_PLACE(shmemi_cu_copy2d, dst_host, CUDA_MEMCPY2D, dstHost);
SAME_PLACE(shmemi_cu_copy2d, dst_device, CUDA_MEMCPY2D, dstDevice);
SAME_PLACE(shmemi_cu_copy2d, dst_array, CUDA_MEMCPY2D, dstArray);
SAME_PLACE(shmemi_cu_copy2d, dst_pitch, CUDA_MEMCPY2D, dstPitch);
SAME_PLACE(shmemi_cu_copy2d, width, CUDA_MEMCPY2D, WidthInBytes);
SAME_PLACE(shmemi_cu_copy2d, height, CUDA_MEMCPY2D, Height);

SAME_SIZE(shmemi_cu_ipc_handle, CUipcMemHandle);
SAME_SIZE(shmemi_cu_uuid, CUuuid);
_Static_assert(sizeof(CUdeviceptr) == sizeof(uint64_t) && sizeof(CUmemGenericAllocationHandle) == sizeof(uint64_t), "64-bit");
_Static_assert(sizeof(CUresult) == sizeof(int) && sizeof(CUdevice) == sizeof(int), "int");

SAME_VALUE(SHMEMI_CU_OK, CUDA_SUCCESS);
SAME_VALUE(SHMEMI_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME_VALUE(SHMEMI_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME_VALUE(SHMEMI_CU_DEINITIALIZED, CUDA_ERROR_DEINITIALIZED);
SAME_VALUE(SHMEMI_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME_VALUE(SHMEMI_CU_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME_VALUE(SHMEMI_CU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME_VALUE(SHMEMI_CU_PEER_ALREADY, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME_VALUE(SHMEMI_CU_HOST_ALREADY_REGISTERED, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME_VALUE(SHMEMI_CU_COOPERATIVE_TOO_LARGE, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
SAME_VALUE(SHMEMI_CU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);

SAME_VALUE(SHMEMI_CU_ATTR_SMS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_VALUE(SHMEMI_CU_ATTR_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_VALUE(SHMEMI_CU_ATTR_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_VALUE(SHMEMI_CU_ATTR_PCI_BUS, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
SAME_VALUE(SHMEMI_CU_ATTR_PCI_DEVICE, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
SAME_VALUE(SHMEMI_CU_ATTR_PCI_DOMAIN, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
SAME_VALUE(SHMEMI_CU_ATTR_HOST_POINTER_SAME, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
SAME_VALUE(SHMEMI_CU_ATTR_COOPERATIVE, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
SAME_VALUE(SHMEMI_CU_ATTR_HOST_REGISTER, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
SAME_VALUE(SHMEMI_CU_ATTR_VMM, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME_VALUE(SHMEMI_CU_ATTR_POSIX_FD, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME_VALUE(SHMEMI_CU_ATTR_RDMA_VMM, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
SAME_VALUE(SHMEMI_CU_ATTR_MEMOPS_64, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
SAME_VALUE(SHMEMI_CU_ATTR_DMA_BUF, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
SAME_VALUE(SHMEMI_CU_ATTR_IPC_EVENTS, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED);

SAME_VALUE(SHMEMI_CU_P2P_ACCESS, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED);
SAME_VALUE(SHMEMI_CU_P2P_ATOMICS, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED);
SAME_VALUE(SHMEMI_CU_POINTER_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME_VALUE(SHMEMI_CU_POINTER_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME_VALUE(SHMEMI_CU_POINTER_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME_VALUE(SHMEMI_CU_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME_VALUE(SHMEMI_CU_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME_VALUE(SHMEMI_CU_MEMORY_UNIFIED, CU_MEMORYTYPE_UNIFIED);
SAME_VALUE(SHMEMI_CU_REGISTER_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
SAME_VALUE(SHMEMI_CU_REGISTER_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME_VALUE(SHMEMI_CU_REGISTER_MAPPED, CU_MEMHOSTREGISTER_DEVICEMAP);
SAME_VALUE(SHMEMI_CU_REGISTER_MAPPED, CU_MEMHOSTALLOC_DEVICEMAP);
SAME_VALUE(SHMEMI_CU_REGISTER_IO, CU_MEMHOSTREGISTER_IOMEMORY);
SAME_VALUE(SHMEMI_CU_HANDLE_DMA_BUF, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
SAME_VALUE(SHMEMI_CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME_VALUE(SHMEMI_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME_VALUE(SHMEMI_CU_WAIT_GEQ, CU_STREAM_WAIT_VALUE_GEQ);
SAME_VALUE(SHMEMI_CU_WAIT_EQ, CU_STREAM_WAIT_VALUE_EQ);
SAME_VALUE(SHMEMI_CU_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME_VALUE(SHMEMI_CU_HANDLE_FD, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME_VALUE(SHMEMI_CU_AT_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_VALUE(SHMEMI_CU_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME_VALUE(SHMEMI_CU_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME_VALUE(SHMEMI_CU_IPC_LAZY_PEER, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);

/* cuda.h renames functions to the versions whose parameters it declares. */
#define TEXT(name) #name
#define NAME(name) TEXT(name)

static const char *const theirs[] = {
    NAME(cuInit), NAME(cuDriverGetVersion), NAME(cuGetErrorName), NAME(cuDeviceGetCount), NAME(cuDeviceGet),
    NAME(cuDeviceGetName), "cuDeviceGetUuid_v2", NAME(cuDeviceGetAttribute), NAME(cuDeviceTotalMem),
    NAME(cuDeviceCanAccessPeer), NAME(cuDeviceGetP2PAttribute), NAME(cuDevicePrimaryCtxRetain),
    NAME(cuDevicePrimaryCtxRelease), NAME(cuCtxGetCurrent), NAME(cuCtxSetCurrent), NAME(cuCtxPushCurrent),
    NAME(cuCtxPopCurrent), NAME(cuCtxGetDevice), NAME(cuStreamCreate), NAME(cuStreamDestroy), NAME(cuStreamSynchronize),
    NAME(cuStreamQuery), NAME(cuStreamWriteValue64), NAME(cuStreamWaitValue64), NAME(cuMemAddressReserve),
    NAME(cuMemAddressFree), NAME(cuMemCreate), NAME(cuMemRelease), NAME(cuMemMap), NAME(cuMemUnmap), NAME(cuMemSetAccess),
    NAME(cuMemGetAllocationGranularity), NAME(cuMemExportToShareableHandle), NAME(cuMemImportFromShareableHandle),
    NAME(cuMemGetInfo), NAME(cuMemAlloc), NAME(cuMemFree), NAME(cuMemHostAlloc), NAME(cuMemFreeHost),
    NAME(cuMemHostRegister), NAME(cuMemHostUnregister), NAME(cuMemHostGetDevicePointer),
    NAME(cuMemGetHandleForAddressRange), NAME(cuThreadExchangeStreamCaptureMode), NAME(cuIpcGetMemHandle), NAME(cuIpcOpenMemHandle),
    NAME(cuIpcCloseMemHandle), NAME(cuPointerGetAttribute), NAME(cuMemcpyAsync), NAME(cuMemcpy2DAsync),
    NAME(cuMemsetD8Async), NAME(cuModuleLoadData), NAME(cuModuleUnload), NAME(cuModuleGetFunction), NAME(cuModuleGetGlobal),
    NAME(cuOccupancyMaxActiveBlocksPerMultiprocessor), NAME(cuLaunchKernel), NAME(cuLaunchCooperativeKernel),
};

static int known(const char *symbol)
{
    for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++)
        if (!strcmp(theirs[i], symbol))
            return 1;
    printf("# cuda.h has another version of %s\n", symbol);
    return 0;
}

int main(void)
{
    int good = 1;

#define CHECK(field, symbol, params) good &= known(symbol);
    SHMEMI_CU_FUNCTIONS(CHECK)
    printf("ok 1 - layouts and values are those of cuda.h\n%sok 2 - names of functions are those of cuda.h\n1..2\n",
           good ? "" : "not ");
    return !good;
}

#else

int main(void)
{
    printf("1..0 # SKIP built without cuda.h\n");
    return 0;
}

#endif
