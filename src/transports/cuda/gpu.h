/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu.h - one GPU as a place for symmetric memory: its context, the device heap and its sharing, copies, kernels.
 *
 * A process has one GPU: the device of the context that was current when CUDA came up, else its rank on the
 * node modulo the devices.  Functions give 0 or -errno and say the cause once, unless said otherwise.  They may be called by any
 * thread: each makes the context current for its own time.
 *
 * The device heap of a PE is `max` bytes of address space, which every PE of the node reserves for every PE of the
 * node; it is backed by chunks of memory, at the same offsets in all.  A chunk's owner hands its descriptor to
 * whoever asks at its door (door.c) and knows the secret.  Where the driver cannot share such chunks, the heap is one
 * allocation that never grows, shared by CUDA IPC.
 */
#ifndef SHMEMI_GPU_H
#define SHMEMI_GPU_H

#include "card.h"
#include "driver.h"

#include "shmem/device/state.h"
#include "transports/nic.h"

#include <stdbool.h>

#define SHMEMI_GPU_GRANULE ((size_t)2 << 20)

struct shmemi_gpu_chunk {
    struct shmemi_gpu_chunk *next;
    size_t off, len;
    uint64_t handle;
    bool mapped[]; /* by PE of the node */
};

struct shmemi_gpu {
    bool up;
    bool retained;   /* the context is the device's primary one, held by the library */
    bool registers;  /* host memory can be registered, under its own address */
    bool memops;     /* streams can write and await 64-bit words */
    bool dma_buf;    /* device memory can be exported as dma-bufs */
    int device, n_devices, sms, cc; /* cc: 90 for 9.0 */
    void *ctx;
    void *stream;    /* of the host's copies */
    enum shmemi_gpu_sharing sharing;
    int my_local, n_local;
    uint64_t va;     /* the reservation, or the heap's allocation; 0: none */
    size_t max;      /* of each PE's heap */
    uint64_t *base;  /* by PE of the node: offset 0 of its device heap here; 0: not reachable */
    uint64_t *opened; /* by PE of the node: what CUDA IPC has opened, or 0 */
    struct shmemi_gpu_chunk *chunks; /* own ones; also which of the peers' are mapped */
};

extern struct shmemi_gpu shmemi_gpu;

struct shmemi_gpu_conf {
    int my_local, n_local;
    size_t max;       /* address space of a heap */
    size_t fixed;     /* bytes of a heap that cannot grow */
    uint64_t door_timeout_ns;
};

/* ---- gpu.c ---- */

/* Opens the GPU, reserves the heap's addresses and fills `mine`.  `why`: the cause, which the caller tells. */
int shmemi_gpu_open(const struct shmemi_gpu_conf *conf, struct shmemi_gpu_card *mine, char *why, size_t len);
void shmemi_gpu_close(void);
/* Can this GPU load and store the memory of the one with that uuid?  atomics_out: also atomics. */
bool shmemi_gpu_reaches(const char uuid[16], bool *atomics_out);
/* Makes the context current and puts back what was. */
bool shmemi_gpu_enter(void);
void shmemi_gpu_leave(void);
/* Is a context current in this thread?  Does not load the driver. */
bool shmemi_gpu_has_context(void);
/* Logs "what: CUDA_ERROR_..." and gives the -errno for it; 0 for a good result. */
int shmemi_gpu_check(int result, const char *what);
/* Device memory (or managed memory) that the CPU should not touch: cudaMalloc, device heap. */
bool shmemi_gpu_is_device_pointer(const void *p);

/* ---- heap.c: the memory behind the device heap ---- */

int shmemi_gpu_heap_open(const struct shmemi_gpu_conf *conf, struct shmemi_gpu_card *mine);
void shmemi_gpu_heap_close(void);
/* Backs [off, off + len) of the own heap, zeroed on request.  Granules that are backed already stay as they are. */
int shmemi_gpu_back(size_t off, size_t len, bool zero);
/* Maps the chunks of PE `local` that this PE has too and has not mapped yet, in [off, off + len). */
int shmemi_gpu_import(int local, const struct shmemi_gpu_card *card, size_t off, size_t len);
/* Gives back the chunks that lie in [off, max), own and mapped ones.  Where the last one ends that remains. */
size_t shmemi_gpu_unback(size_t off);
/* A new descriptor of the own chunk that starts at `off`, or -1.  For the door. */
int shmemi_gpu_export(size_t off);

/* ---- door.c: hands chunks out ---- */

int shmemi_gpu_door_open(struct shmemi_gpu_card *mine, uint64_t timeout_ns);
void shmemi_gpu_door_close(void);
/* Asks PE `local` for its chunk at `off`.  Descriptor, or -errno; -ENOENT: it has none there. */
int shmemi_gpu_door_fetch(int local, const struct shmemi_gpu_card *card, size_t off);
/* What the door's thread does besides, about every 100 ms. */
void shmemi_gpu_door_also(void (*watch)(void));

/* ---- hostmem.c: host memory that kernels may use ---- */

/* Registers [base, base + len) of a region of `room` bytes, in pieces whose sizes double; what is registered already stays. */
int shmemi_gpu_register(uintptr_t base, size_t len, size_t room);
void shmemi_gpu_unregister_all(void);
/* Bytes from `addr` on, at most `len`, that a single copy may take. */
size_t shmemi_gpu_piece(uintptr_t addr, size_t len);

/* ---- nicmem.c: what a NIC and kernels share ---- */

/* Memory for a NIC's queues; `set` and `copy` say nothing when they fail: kernels may have ended their context. */
extern const struct shmemi_nic_memory shmemi_gpu_near_memory; /* of the GPU */
extern const struct shmemi_nic_memory shmemi_gpu_host_memory; /* of the host, pinned */
/* Maps a page of a NIC's registers for kernels.  why_out: how, or what was refused. */
int shmemi_gpu_map_registers(void *page, size_t bytes, uint64_t *at_out, const char **why_out);
void shmemi_gpu_unmap_registers(void *page);
/* This thread's copies do no harm to a capture that another thread is in. */
void shmemi_gpu_beside_captures(void);
/* A dma-buf of device memory, or -errno, said nowhere. */
int shmemi_gpu_range_export(uint64_t at, size_t bytes);

/* ---- image.c: the copies of the state that kernels read; module.h is the program's side ---- */

/* A module's copy.  -ENOENT: it has none, -EPROTO: of another layout. */
int shmemi_gpu_image_add_module(void *module);
/* Has a part of the program device code of ours? */
bool shmemi_gpu_image_any(void);
/* The state to come: written to every copy, also to those that register later. */
int shmemi_gpu_image_fill(const struct shmemi_dev_state *state);

/* ---- copy.c: what the host moves ---- */

/* Either side may be host or device memory.  wait: returns when the data is there; else at the next flush. */
int shmemi_gpu_copy(void *to, const void *from, size_t len, bool wait);
/* At most 16 bytes from host memory, not waited for; the value may change at once. */
int shmemi_gpu_copy_value(void *to, const void *value, size_t size);
/* Waits. */
int shmemi_gpu_copy2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height);
int shmemi_gpu_set(void *to, int value, size_t len);
/* Completes the copies that nobody waited for. */
int shmemi_gpu_flush(void);
/* Caller has the context current. */
int shmemi_gpu_copy_open(void);
void shmemi_gpu_copy_close(void);
/* On the caller's stream, of which NULL is one; captured into graphs as it is. */
int shmemi_gpu_copy_on(void *to, const void *from, size_t len, void *stream);
int shmemi_gpu_copy2d_on(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         void *stream);
int shmemi_gpu_stream_wait(void *stream);

#endif
