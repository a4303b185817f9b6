/* SPDX-License-Identifier: BSD-3-Clause */
/* served.c - the answering side of connections: made once a request, remembered, freed at the goodbye. */
#include "service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BUCKETS = 64 };

static size_t bucket(const struct shmemi_verbs_service *s, int pe, uint64_t nonce)
{
    return (size_t)((nonce ^ (uint64_t)pe * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull >> 32) & (s->n_buckets - 1);
}

static struct shmemi_verbs_served *find(const struct shmemi_verbs_service *s, int pe, uint64_t nonce)
{
    struct shmemi_verbs_served *c = s->n_buckets ? s->table[bucket(s, pe, nonce)] : NULL;

    while (c && (c->pe != pe || c->nonce != nonce))
        c = c->next;
    return c;
}

/* Keeps lists short; where memory is short, longer lists do too. */
static void widen(struct shmemi_verbs_service *s)
{
    size_t old_n = s->n_buckets, n = old_n ? old_n * 2 : FIRST_BUCKETS;
    struct shmemi_verbs_served **old = s->table, **table = calloc(n, sizeof(struct shmemi_verbs_served *));

    if (!table)
        return;
    s->table = table;
    s->n_buckets = n;
    for (size_t i = 0; i < old_n; i++) {
        while (old[i]) {
            struct shmemi_verbs_served *c = old[i];
            size_t b = bucket(s, c->pe, c->nonce);

            old[i] = c->next;
            c->next = table[b];
            table[b] = c;
        }
    }
    free(old);
}

static struct shmemi_verbs_served *add(struct shmemi_verbs_service *s, int pe, uint64_t nonce)
{
    struct shmemi_verbs_served *c = calloc(1, sizeof *c);
    size_t b;

    if (s->n_served >= s->n_buckets)
        widen(s);
    if (!c || !s->n_buckets) {
        free(c);
        return NULL;
    }
    b = bucket(s, pe, nonce);
    c->pe = pe;
    c->nonce = nonce;
    c->next = s->table[b];
    s->table[b] = c;
    s->n_served++;
    return c;
}

static void forget(struct shmemi_verbs_service *s, struct shmemi_verbs_served *c)
{
    struct shmemi_verbs_served **at = &s->table[bucket(s, c->pe, c->nonce)];

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    s->n_served--;
    free(c);
}

static void answer(struct shmemi_verbs_service *s, const struct shmemi_verbs_message *m, struct shmemi_verbs_message *out)
{
    *out = *m;
    out->type = SHMEMI_VERBS_ANSWER;
    out->from = s->nic->config->my_pe;
    out->to = m->from;
    out->kind = s->nic->nic.kind;
    out->qpn = 0;
}

void shmemi_verbs_serve_connect(struct shmemi_verbs_service *s, const struct shmemi_verbs_message *m)
{
    const struct shmemi_verbs_end peer = { .pe = m->from, .address = &m->origin, .qpn = m->qpn, .psn = m->psn };
    struct shmemi_verbs_served *c = find(s, m->from, m->nonce);
    struct shmemi_verbs_message no_memory;
    int ignored = 0;

    if (c && c->closed)
        return;
    if (!c) {
        c = add(s, m->from, m->nonce);
        if (!c) {
            answer(s, m, &no_memory);
            no_memory.status = -ENOMEM;
            shmemi_verbs_datagram_send(s, &m->origin, &no_memory, &ignored);
            return;
        }
        answer(s, m, &c->answer);
        c->answer.status = s->nic->kind->accept(s->nic, &peer, &c->responder, &c->answer.qpn);
        shmemi_verbs_log(s->nic->config, SHMEMI_VERBS_DEBUG, "queue pair 0x%x answers PE %d's 0x%x", c->answer.qpn, m->from,
                         m->qpn);
    }
    /* A lost answer is asked for again. */
    shmemi_verbs_datagram_send(s, &m->origin, &c->answer, &ignored);
}

void shmemi_verbs_serve_bye(struct shmemi_verbs_service *s, const struct shmemi_verbs_message *m)
{
    struct shmemi_verbs_served *c = find(s, m->from, m->nonce), **oldest;
    struct shmemi_verbs_message gone = *m;
    int ignored = 0;

    if (!c)
        c = add(s, m->from, m->nonce); /* its request is late, or was never needed */
    if (c && !c->closed) {
        if (c->responder)
            s->nic->kind->drop(s->nic, c->responder);
        c->responder = NULL;
        c->closed = true;
        oldest = &s->closed[s->n_closed++ % SHMEMI_VERBS_CLOSED_KEPT];
        if (*oldest)
            forget(s, *oldest);
        *oldest = c;
    }
    gone.type = SHMEMI_VERBS_GONE;
    gone.from = m->to;
    gone.to = m->from;
    shmemi_verbs_datagram_send(s, &m->origin, &gone, &ignored);
}

void shmemi_verbs_served_free(struct shmemi_verbs_service *s)
{
    for (size_t i = 0; i < s->n_buckets; i++) {
        while (s->table[i]) {
            struct shmemi_verbs_served *c = s->table[i];

            s->table[i] = c->next;
            if (c->responder)
                s->nic->kind->drop(s->nic, c->responder);
            free(c);
        }
    }
    free(s->table);
    s->table = NULL;
    s->n_buckets = 0;
}
