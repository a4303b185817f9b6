# SPDX-License-Identifier: BSD-3-Clause
# shmemi_nvcc.m4 - CUDA's compiler, for the kernels inside the library, the device tests and the CUDA examples.
#
# NVCC, NVCC_GENCODE (machine code of each family of GPUs, and PTX for the others), NVCC_ARCH (one
# GPU's, for what is only compiled here), HAVE_NVCC.  A library that is built without it runs with GPUs all the same, but has
# no calls on streams.
AC_DEFUN([SHMEMI_NVCC], [
AC_ARG_WITH([nvcc],
    [AS_HELP_STRING([--with-nvcc@<:@=PROGRAM@:>@], [CUDA compiler @<:@default: if found@:>@])],
    [], [with_nvcc=check])
NVCC=
: ${NVCC_ARCH=-arch=sm_90}
shmemi_nvcc_says="left out (--without-nvcc)"
AS_CASE([$with_nvcc],
    [no], [],
    [yes|check], [AC_PATH_PROGS([NVCC], [nvcc], [], [$PATH$PATH_SEPARATOR${shmemi_cuda_dir:-/usr/local/cuda}/bin])
        shmemi_nvcc_says="left out (no nvcc found)"],
    [NVCC=$with_nvcc])
AS_IF([test -n "$NVCC"], [
    AC_MSG_CHECKING([whether $NVCC compiles device code of the kind used here])
    rm -rf conftest.nvcc
    mkdir conftest.nvcc
    cat > conftest.nvcc/try.cu <<_TRY
__global__ void try_it(unsigned *p)
{
    __nv_atomic_store_n(p, 1u, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_SYSTEM);
}
_TRY
    AS_IF([(cd conftest.nvcc && "$NVCC" $NVCC_ARCH -c try.cu -o try.o) >&AS_MESSAGE_LOG_FD 2>&1], [
        AC_MSG_RESULT([yes])
        AS_IF([test -z "$NVCC_GENCODE"], [
            for shmemi_sm in 80 90 100 120; do
                AS_IF(["$NVCC" --list-gpu-code 2>/dev/null | grep "^sm_$shmemi_sm@S|@" >/dev/null],
                    [NVCC_GENCODE="$NVCC_GENCODE -gencode arch=compute_$shmemi_sm,code=sm_$shmemi_sm"])
            done
            NVCC_GENCODE="$NVCC_GENCODE -gencode arch=compute_75,code=compute_75"
        ])
        AC_DEFINE([HAVE_NVCC], [1], [Define to 1 if the library's kernels are compiled into it.])
        shmemi_nvcc_says="yes, $NVCC"
    ], [
        AC_MSG_RESULT([no])
        AS_IF([test "$with_nvcc" != check],
            [AC_MSG_ERROR([--with-nvcc: $NVCC cannot compile for $NVCC_ARCH with __nv_atomic_store_n (CUDA 12.8 or later is needed; config.log has its words)])])
        shmemi_nvcc_says="left out ($NVCC is too old or does not work)"
        NVCC=
    ])
    rm -rf conftest.nvcc
])
AC_SUBST([NVCC])
AC_ARG_VAR([NVCC_GENCODE], [GPUs that the library's kernels are compiled for, as options of nvcc])
AC_ARG_VAR([NVCC_ARCH], [GPU that examples and device tests are compiled for, as an option of nvcc])
AM_CONDITIONAL([HAVE_NVCC], [test -n "$NVCC"])
])
