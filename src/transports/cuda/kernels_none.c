/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels_none.c - in place of the kernels, for a build without nvcc. */
extern const void *const shmemi_kernels_image;
extern const char shmemi_kernels_archs[];

const void *const shmemi_kernels_image = 0;
const char shmemi_kernels_archs[] = "";
