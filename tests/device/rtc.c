/* SPDX-License-Identifier: BSD-3-Clause */
/* rtc.c - shmem.h under NVRTC: no file of the host's C library, no host pass.  Arguments: options of the compiler. */
#include <nvrtc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "#include <shmemx.h>\n"
    "extern \"C\" __global__ void k(int *d, int *s, long *w, uint64_t *sig)\n"
    "{\n"
    "    int peer = (shmem_my_pe() + 1) % shmem_n_pes();\n"
    "    shmem_int_put(d, s, 10, peer);\n"
    "    shmemx_int_put_signal_block(d, s, 100, sig, 1, SHMEM_SIGNAL_SET, peer);\n"
    "    shmemx_signal_wait_until_block(sig, SHMEM_CMP_GE, 1);\n"
    "    *w = shmem_long_atomic_fetch_add(w, 1, peer);\n"
    "    shmemx_barrier_all_block();\n"
    "    shmemx_int_sum_reduce_block(SHMEM_TEAM_WORLD, d, s, 100);\n"
    "}\n";

int main(int argc, char **argv)
{
    nvrtcProgram program;
    nvrtcResult result;
    size_t size = 0;
    char *text;

    if (nvrtcCreateProgram(&program, source, "k.cu", 0, NULL, NULL) != NVRTC_SUCCESS)
        return 1;
    result = nvrtcCompileProgram(program, argc - 1, (const char *const *)argv + 1);
    nvrtcGetProgramLogSize(program, &size);
    text = (char *)calloc(1, size + 1);
    nvrtcGetProgramLog(program, text);
    if (result != NVRTC_SUCCESS || strlen(text)) {
        fprintf(stderr, "%s\n", text);
        return 1;
    }
    nvrtcGetPTXSize(program, &size);
    text = (char *)calloc(1, size + 1);
    nvrtcGetPTX(program, text);
    /* The library finds the state by this name. */
    if (!strstr(text, " shmemi_dev_state[")) {
        fprintf(stderr, "no shmemi_dev_state in the PTX\n");
        return 1;
    }
    return 0;
}
