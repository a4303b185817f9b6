/* SPDX-License-Identifier: BSD-3-Clause */
/* rtc.h - what NVRTC lacks of <stddef.h> and <stdint.h>; SHMEM_NO_STDINT, defined before, leaves it to the program. */
#ifndef SHMEM_DEVICE_RTC_H
#define SHMEM_DEVICE_RTC_H

#if defined(__CUDACC_RTC__) && !defined(SHMEM_NO_STDINT)
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef unsigned long uintptr_t;
typedef long ptrdiff_t;
#define SIZE_MAX ((size_t)-1)
#define UINT64_MAX ((uint64_t)-1)
#ifndef NULL
#define NULL 0
#endif
#endif

#endif
