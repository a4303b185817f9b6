/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's uverbs character device, played: open files (contexts), the handles in them, commands and events. What is
 * copied from or to the application goes through uv_copy_in and uv_copy_out, so that a bad pointer is EFAULT and not a crash.
 */
#ifndef SOFTHCA_UVERBS_H
#define SOFTHCA_UVERBS_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "hca/objects.h"

/* ---- the file (file.c) ---- */

struct uv_context;

/* open("/dev/infiniband/uverbs<index>"): a file descriptor or -errno. */
int uv_open(unsigned index, int flags);
/* ioctl on a descriptor that may be ours: true when it was, then *ret_out is 0 or -errno. */
bool uv_ioctl(int fd, unsigned long request, void *arg, int *ret_out);
/* Is fd (or what it was duplicated from) one of ours? Looks at the inode; cheap enough for fstat and close. */
bool uv_owns(int fd);
/* The same, of which device; -1: not ours. */
int uv_device_of(int fd);
/* After a close of a descriptor that uv_owns said yes to: ends the context when no descriptor is left. */
void uv_closed(void);
/* Around and after a fork. */
void uv_fork_lock(void);
void uv_fork_unlock(void);
void uv_forked(void);

/* ---- copying (copy.c) ---- */

int uv_copy_in(void *dst, uint64_t user, size_t len);
int uv_copy_out(uint64_t user, const void *src, size_t len);

/* ---- objects (objects.c) ---- */

enum uv_type {
    UV_NONE,
    UV_PD,
    UV_CQ,
    UV_QP,
    UV_SRQ,
    UV_AH,
    UV_MR,
    UV_MW,
    UV_XRCD,
    UV_DEVX_OBJ,
    UV_UMEM,
    UV_UAR,
    UV_TYPES,
};

/* Result of a destroy for the object types that report how many events were delivered. */
struct uv_gone {
    uint32_t completion_events;
    uint32_t async_events;
};

struct uv_object {
    enum uv_type type;
    void *ptr;
};

struct uv_context {
    struct hca *hca;
    bool has_ucontext;           /* GET_CONTEXT was done */
    bool devx;                   /* DEVX was asked for at GET_CONTEXT */
    unsigned pins;               /* commands that have given the lock away for a moment */
    uint64_t dev, ino;           /* of the memfd that plays the device file */
    int memfd;                   /* our own descriptor of it, for mapping doorbell pages */
    struct hca_evfile *async;    /* the default async event file */
    struct uv_object *object;
    uint32_t nobjects;
    uint32_t next_uar_page;
};

/* 0 or -ENOMEM. */
int uv_object_add(struct uv_context *ctx, enum uv_type type, void *ptr, uint32_t *handle_out);
/* The object, or NULL with *err_out = -ENOENT (no such handle) or -EINVAL (another type). */
void *uv_object_get(struct uv_context *ctx, uint32_t handle, enum uv_type type, int *err_out);
int uv_object_destroy(struct uv_context *ctx, uint32_t handle, enum uv_type type, struct uv_gone *gone);
void uv_objects_destroy_all(struct uv_context *ctx);

/* An address handle: nothing but its attributes. */
struct uv_ah {
    struct hca_pd *pd;
};

/* A doorbell page as an object of a file. */
struct uv_uar {
    struct hca_uar *uar;
    void *map;
    int memfd;                   /* of its file, to give the page back */
    uint64_t offset;
};

/* ---- events (events.c) ---- */

enum uv_evkind { UV_EV_ASYNC, UV_EV_COMP, UV_EV_DEVX, UV_EV_DEVX_CMD };

/* A new event file: its descriptor for the application, or -errno. omit_data: DEVX files only. */
int uv_evfile_new(struct uv_context *ctx, enum uv_evkind kind, bool omit_data);
/* The file behind an application's descriptor, with a reference; NULL and *err_out = -EBADF or -EINVAL. */
struct hca_evfile *uv_evfile_get(int fd, enum uv_evkind kind, int *err_out);
struct hca_evfile *uv_evfile_ref(struct hca_evfile *file);
void uv_evfile_put(struct hca_evfile *file);
void uv_evfiles_close(struct uv_context *ctx);
void uv_evfiles_forked(void);

void uv_event_async(struct hca_evsource *source, enum ibv_event_type type);
void uv_event_completion(struct hca_cq *cq);
void uv_event_port(const struct hca *hca, enum ibv_event_type type);
void uv_event_device_fatal(const struct hca *hca);
/* Ends a source: unread records are taken back out of the queue; returns how many the application has read. */
uint32_t uv_event_retire(struct hca_evsource *source);
/* The records about CQ and QP numbers that DEVX subscriptions ask for. */
void uv_event_devx_qp(const struct hca_qp *qp, enum ibv_event_type type);
int uv_devx_subscribe(struct hca_evfile *file, uint64_t cookie, int redirect_fd, const uint16_t *types, unsigned n,
                      struct hca_cq *cq, struct hca_qp *qp);
void uv_devx_unsubscribe_object(const void *object);

/* ---- commands (ioctl.c, attr.c) ---- */

enum uv_attr_kind { UV_IN, UV_OUT, UV_HANDLE, UV_FD };
enum uv_attr_access { UV_READ, UV_NEW, UV_DESTROY };

enum { UV_MANDATORY = 1, UV_ZERO_TAIL = 2 };

struct uv_attr_spec {
    uint16_t id;
    uint8_t kind;                /* enum uv_attr_kind */
    uint8_t access;              /* enum uv_attr_access, for UV_HANDLE and UV_FD */
    uint8_t flags;
    uint8_t type;                /* enum uv_type of a handle */
    uint16_t min, max;           /* bytes of UV_IN and UV_OUT; max 0: no limit */
};

#define UV_ATTR_IN(id_, min_, max_, flags_) { .id = (id_), .kind = UV_IN, .flags = (flags_), .min = (min_), .max = (max_) }
#define UV_ATTR_IN_T(id_, type_, flags_) UV_ATTR_IN(id_, sizeof(type_), sizeof(type_), flags_)
#define UV_ATTR_OUT(id_, min_, flags_) { .id = (id_), .kind = UV_OUT, .flags = (flags_), .min = (min_) }
#define UV_ATTR_OBJ(id_, type_, access_, flags_) \
    { .id = (id_), .kind = UV_HANDLE, .type = (type_), .access = (access_), .flags = (flags_) }
#define UV_ATTR_FILE(id_, access_, flags_) { .id = (id_), .kind = UV_FD, .access = (access_), .flags = (flags_) }
#define UV_ATTR_UHW UV_ATTR_IN(UVERBS_ATTR_UHW_IN, 0, 0, 0), UV_ATTR_OUT(UVERBS_ATTR_UHW_OUT, 0, 0)

enum { UV_MAX_ATTRS = 32, UV_MAX_COMMAND = 4096 };

struct uv_bundle;

struct uv_method {
    uint16_t object, method;
    const struct uv_attr_spec *spec;
    uint16_t nspec;
    int (*handler)(struct uv_bundle *bundle);
};

#define UV_METHOD(object_, method_, spec_, handler_) { (object_), (method_), (spec_), sizeof(spec_) / sizeof *(spec_), (handler_) }

struct uv_bundle {
    struct uv_context *ctx;
    const struct uv_method *method;
    uint64_t user_attrs;         /* where the application keeps the attributes */
    struct ib_uverbs_attr attr[UV_MAX_ATTRS];
    const struct uv_attr_spec *spec[UV_MAX_ATTRS];   /* NULL: unknown and ignored */
    void *object[UV_MAX_ATTRS];  /* of UV_HANDLE with UV_READ */
    unsigned n;
};

extern const struct uv_method uv_methods_device[], uv_methods_verbs[], uv_methods_devx[];
extern const unsigned uv_nmethods_device, uv_nmethods_verbs, uv_nmethods_devx;

/* Checks the command against its method and looks handles up. 0 or the kernel's -errno. */
int uv_parse(struct uv_bundle *bundle, const struct ib_uverbs_ioctl_hdr *hdr, const struct ib_uverbs_attr *attrs);

bool uv_has(const struct uv_bundle *bundle, uint16_t id);
/* Bytes of an attribute, 0 when absent. */
size_t uv_len(const struct uv_bundle *bundle, uint16_t id);
/* The object of a UV_READ handle, NULL when absent. */
void *uv_obj(const struct uv_bundle *bundle, uint16_t id);
uint32_t uv_handle(const struct uv_bundle *bundle, uint16_t id);
int uv_fd(const struct uv_bundle *bundle, uint16_t id);
/* Copies min(len, given) bytes, zero-fills the rest; absent: all zero. 0 or -EFAULT. */
int uv_in(const struct uv_bundle *bundle, uint16_t id, void *dst, size_t len);
/* A number of up to 8 bytes; absent or unreadable: 0. */
uint64_t uv_num(const struct uv_bundle *bundle, uint16_t id);
/* Writes min(len, room), zero-fills the tail, marks the output valid; absent: nothing. 0 or -EFAULT. */
int uv_out(struct uv_bundle *bundle, uint16_t id, const void *src, size_t len);
int uv_out_u32(struct uv_bundle *bundle, uint16_t id, uint32_t value);
int uv_out_u64(struct uv_bundle *bundle, uint16_t id, uint64_t value);
/* Stores the number of a new object in its attribute. */
int uv_out_handle(struct uv_bundle *bundle, uint16_t id, uint32_t handle);
int uv_out_fd(struct uv_bundle *bundle, uint16_t id, int fd);

/* Legacy write() commands that travel in UVERBS_METHOD_INVOKE_WRITE (write_cmds.c). */
int uv_invoke_write(struct uv_bundle *bundle);
/* Those about queue pair attributes (qp_cmds.c). */
int uv_modify_qp(struct uv_bundle *bundle);
int uv_modify_qp_ex(struct uv_bundle *bundle);
int uv_query_qp(struct uv_bundle *bundle);

/* Helpers that several command files share (verbs_cmds.c). */
uint8_t uv_log2_up(uint32_t value);
/* Pins a ring and a doorbell record of 8 bytes that the library allocated; ring_len 0: no ring. */
int uv_pin(uint64_t ring_addr, uint64_t ring_len, uint64_t dbrec_addr, struct hca_buf *ring, struct hca_buf *dbrec);

#endif
