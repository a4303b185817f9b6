/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves bytes between packets and memory: lists of data segments on our side, keys and addresses of a peer. */
#include "engine/engine.h"

#include <string.h>

enum { INLINE_BIT = 31, SEG = 16 };

/* A segment of a list, inline or pointer. */
struct seg {
    bool is_inline;
    uint32_t len;
    const uint8_t *data;
    uint32_t key;
    uint64_t va;
};

/* Reads the segment at *at and moves on. false: the list ends here. */
static bool next_seg(const uint8_t *segs, size_t bytes, size_t *at, struct seg *out)
{
    const uint8_t *p = segs + *at;
    uint32_t count;

    if (*at + 4 > bytes)
        return false;
    count = pkt_get32(p);
    out->is_inline = count >> INLINE_BIT;
    out->len = count & 0x7fffffffu;
    if (out->is_inline) {
        if (*at + 4 + out->len > bytes)
            return false;
        out->data = p + 4;
        *at += (4 + out->len + SEG - 1) & ~(size_t)(SEG - 1);
        return true;
    }
    if (*at + SEG > bytes)
        return false;
    out->key = pkt_get32(p + 4);
    out->va = pkt_get64(p + 8);
    *at += SEG;
    return out->key != HCA_INVALID_LKEY || out->len;
}

static bool map_local(struct eng_qp *q, const struct seg *s, uint32_t pos, uint32_t len, uint32_t need,
                      struct hca_span *spans, unsigned *n_out)
{
    struct hca_qp *qp = q->qp;
    /* The whole segment must be covered, as on hardware, not only the bytes of this packet. */
    enum hca_deny deny = hca_key_map(qp->hca, qp->pd, qp->qpn, s->key, s->va, s->len, need, spans, ENG_SPANS, n_out);

    if (!deny)
        deny = hca_key_map(qp->hca, qp->pd, qp->qpn, s->key, s->va + pos, len, need, spans, ENG_SPANS, n_out);
    else if (deny == HCA_DENY_SPANS)
        deny = hca_key_map(qp->hca, qp->pd, qp->qpn, s->key, s->va + pos, len, need, spans, ENG_SPANS, n_out);
    if (!deny)
        return true;
    q->eng->count.refused_key++;
    hca_log(HCA_LINT, "qp 0x%06x: local access refused: %s: lkey 0x%x address 0x%llx length %u%s", qp->qpn,
            hca_deny_name(deny), s->key, (unsigned long long)s->va, s->len, need ? " for writing" : "");
    return false;
}

static bool copy_spans(const struct hca_span *spans, unsigned n, uint8_t *out, const uint8_t *in)
{
    for (unsigned i = 0; i < n; i++) {
        int err = in ? mem_write(spans[i].mem, spans[i].off, in, spans[i].len)
                     : mem_read(spans[i].mem, spans[i].off, out, spans[i].len);

        if (err)
            return false;
        if (in)
            in += spans[i].len;
        else
            out += spans[i].len;
    }
    return true;
}

/* One walk for both directions: in is NULL when gathering. */
static enum eng_copy_result walk(struct eng_qp *q, const uint8_t *segs, size_t bytes, uint32_t pos, uint8_t *out,
                                 const uint8_t *in, uint32_t len)
{
    struct hca_span spans[ENG_SPANS];
    size_t at = 0;
    struct seg s;

    while (len && next_seg(segs, bytes, &at, &s)) {
        uint32_t take;
        unsigned n;

        if (pos >= s.len) {
            pos -= s.len;
            continue;
        }
        take = s.len - pos < len ? s.len - pos : len;
        if (s.is_inline) {
            if (in)
                return ENG_COPY_PROTECTION;
            memcpy(out, s.data + pos, take);
        } else if (!map_local(q, &s, pos, take, in ? IBV_ACCESS_LOCAL_WRITE : 0, spans, &n) ||
                   !copy_spans(spans, n, out, in)) {
            return ENG_COPY_PROTECTION;
        }
        if (in)
            in += take;
        else
            out += take;
        len -= take;
        pos = 0;
    }
    return len ? ENG_COPY_SHORT : ENG_COPY_OK;
}

enum eng_copy_result eng_gather(struct eng_qp *q, const uint8_t *segs, size_t bytes, uint32_t pos, uint8_t *out,
                                uint32_t len)
{
    return walk(q, segs, bytes, pos, out, NULL, len);
}

enum eng_copy_result eng_scatter(struct eng_qp *q, const uint8_t *segs, size_t bytes, uint32_t pos, const uint8_t *in,
                                 uint32_t len)
{
    return walk(q, segs, bytes, pos, NULL, in, len);
}

/* spans NULL: only checks. How many pieces a long message has does not matter then, each packet is mapped by itself. */
bool eng_remote_map(struct eng_qp *q, uint32_t rkey, uint64_t va, uint64_t len, uint32_t need, struct hca_span *spans,
                    unsigned *n_out)
{
    struct hca_qp *qp = q->qp;
    bool qp_allows = (qp->access & need) == need;
    enum hca_deny deny = HCA_DENY_ACCESS;

    *n_out = 0;
    if (q->eng->denies)
        return false;
    if (qp_allows)
        deny = hca_key_map(qp->hca, qp->pd, qp->qpn, rkey, va, len, need, spans, spans ? ENG_SPANS : 0, n_out);
    if (deny == HCA_OK || (deny == HCA_DENY_SPANS && !spans))
        return true;
    q->eng->count.refused_key++;
    hca_log(HCA_LINT, "qp 0x%06x: access of the peer refused: %s%s: rkey 0x%x address 0x%llx length %llu", qp->qpn,
            hca_deny_name(deny), qp_allows ? "" : " (queue pair)", rkey, (unsigned long long)va,
            (unsigned long long)len);
    return false;
}

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif

#ifdef UNDER_TSAN
/* Of its run-time part; no header declares them. */
void __tsan_ignore_thread_begin(void);
void __tsan_ignore_thread_end(void);

static bool other_process(const struct eng_qp *q)
{
    return q->peer_slot != q->eng->hca->id.slot;
}

void eng_remote_begin(const struct eng_qp *q)
{
    if (other_process(q))
        __tsan_ignore_thread_begin();
}

void eng_remote_end(const struct eng_qp *q)
{
    if (other_process(q))
        __tsan_ignore_thread_end();
}
#else
void eng_remote_begin(const struct eng_qp *q)
{
    (void)q;
}

void eng_remote_end(const struct eng_qp *q)
{
    (void)q;
}
#endif

static bool copy_remote(const struct eng_qp *q, const struct hca_span *spans, unsigned n, uint8_t *out, const uint8_t *in)
{
    bool done;

    eng_remote_begin(q);
    done = copy_spans(spans, n, out, in);
    eng_remote_end(q);
    return done;
}

bool eng_remote_write(struct eng_qp *q, uint32_t rkey, uint64_t va, const uint8_t *in, uint32_t len)
{
    struct hca_span spans[ENG_SPANS];
    unsigned n;

    return eng_remote_map(q, rkey, va, len, IBV_ACCESS_REMOTE_WRITE, spans, &n) && copy_remote(q, spans, n, NULL, in);
}

bool eng_remote_read(struct eng_qp *q, uint32_t rkey, uint64_t va, uint8_t *out, uint32_t len)
{
    struct hca_span spans[ENG_SPANS];
    unsigned n;

    return eng_remote_map(q, rkey, va, len, IBV_ACCESS_REMOTE_READ, spans, &n) && copy_remote(q, spans, n, out, NULL);
}
