/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * module.cu - a kernel compiled at run time by NVRTC, loaded by the driver API and made known by shmemx_module_init: it puts,
 * adds and meets the other PEs.
 *
 *     oshrun -n N module OPTION...        options of the run-time compiler: -I of Marrow's headers
 */
#include <shmem.h>
#include <shmemx.h>

#include <cuda.h>
#include <cuda_runtime.h>
#include <nvrtc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <vector>

static const char source[] = "#include <shmemx.h>\n"
                             "extern \"C\" __global__ void turn(int *inbox, long *count)\n"
                             "{\n"
                             "    int me = shmem_my_pe(), n = shmem_n_pes();\n"
                             "    if (threadIdx.x == 0) {\n"
                             "        shmem_int_p(inbox, me + 41, (me + 1) % n);\n"
                             "        shmem_long_atomic_add(count, me + 1, 0);\n"
                             "    }\n"
                             "    shmemx_barrier_all_block();\n"
                             "}\n";

static void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "module: PE %d: %s failed\n", shmem_my_pe(), what);
    shmem_global_exit(1);
}

static CUmodule compile(int argc, char **argv)
{
    std::vector<const char *> options(argv + 1, argv + argc);
    std::string arch = "--gpu-architecture=sm_", log, image;
    cudaDeviceProp properties;
    nvrtcProgram program;
    nvrtcResult result;
    CUmodule module;
    size_t size;
    int device;

    must(cudaGetDevice(&device) == cudaSuccess && cudaGetDeviceProperties(&properties, device) == cudaSuccess, "the device");
    arch += std::to_string(properties.major * 10 + properties.minor);
    options.push_back(arch.c_str());
    must(nvrtcCreateProgram(&program, source, "turn.cu", 0, NULL, NULL) == NVRTC_SUCCESS, "nvrtcCreateProgram");
    result = nvrtcCompileProgram(program, (int)options.size(), options.data());
    nvrtcGetProgramLogSize(program, &size);
    log.resize(size);
    nvrtcGetProgramLog(program, &log[0]);
    if (result != NVRTC_SUCCESS)
        fprintf(stderr, "%s\n", log.c_str());
    must(result == NVRTC_SUCCESS, "nvrtcCompileProgram");
    must(nvrtcGetCUBINSize(program, &size) == NVRTC_SUCCESS, "nvrtcGetCUBINSize");
    image.resize(size);
    nvrtcGetCUBIN(program, &image[0]);
    must(cuModuleLoadData(&module, image.data()) == CUDA_SUCCESS, "cuModuleLoadData");
    return module;
}

int main(int argc, char **argv)
{
    static int bad, all_bad;
    int me, n, got = 0, *inbox;
    long *count, sum = 0;
    CUmodule module;
    CUfunction turn;

    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    inbox = (int *)shmemx_calloc_device(1, sizeof *inbox);
    count = (long *)shmemx_calloc_device(1, sizeof *count);
    must(inbox && count, "shmemx_calloc_device");
    module = compile(argc, argv);
    must(shmemx_module_init(module) == 0, "shmemx_module_init");
    must(cuModuleGetFunction(&turn, module, "turn") == CUDA_SUCCESS, "cuModuleGetFunction");
    for (int round = 0; round < 10; round++) {
        void *args[] = { &inbox, &count };

        must(cuLaunchKernel(turn, 1, 1, 1, 64, 1, 1, 0, NULL, args, NULL) == CUDA_SUCCESS, "cuLaunchKernel");
        must(cudaDeviceSynchronize() == cudaSuccess, "the kernel");
    }
    must(cudaMemcpy(&got, inbox, sizeof got, cudaMemcpyDeviceToHost) == cudaSuccess, "cudaMemcpy");
    must(cudaMemcpy(&sum, count, sizeof sum, cudaMemcpyDeviceToHost) == cudaSuccess, "cudaMemcpy");
    bad = got != (me + n - 1) % n + 41 || (me == 0 && sum != 10L * n * (n + 1) / 2);
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &all_bad, &bad, 1);
    if (me == 0)
        printf("module: %d PEs: %s\n", n, all_bad ? "WRONG" : "all values right");
    shmem_finalize();
    return all_bad != 0;
}
