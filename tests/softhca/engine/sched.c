/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's thread: looks for doorbells and packets, gives each queue pair its turn, runs timers, naps. */
#define _GNU_SOURCE
#include "engine/engine.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    TURN = 32,                   /* packets of one queue pair in a round */
    RX_BUDGET = 128,
    TIMER_NS = 500000,
    SPIN_ROUNDS = 20,            /* empty rounds before the first nap */
    SPIN_ROUNDS_UDP = 2,         /* fewer: each is a system call, and a packet ends a nap by itself */
    NAP_NS = 20000,
    LONG_NAP_NS = 1000000,
    NAP_PART = 16,               /* of the silence so far: how late a doorbell may be seen */
    CONTROL_EVERY = 64,
    SLICE_NS = 100000,
    NICE = -15,
    DRAIN_MS = 20,
    TIMEOUT_SCALE = 8,
    REGISTERS = 5,               /* two doorbell registers a page, each with two halves used in turn, and before them */
    BARE = 0,                    /* that of queues without a doorbell record */
};
static const uint16_t register_at[REGISTERS] = { 0x600, 0x800, 0x900, 0xa00, 0xb00 };

/* First retransmission when faults lose packets, when a full socket buffer may, and when nothing gets lost. */
#define RTO_FAULTS_NS 4000000ull
#define RTO_UDP_NS 20000000ull
#define RTO_SHM_NS 50000000ull

void eng_activate(struct eng_qp *q)
{
    if (q->is_active)
        return;
    q->is_active = true;
    hca_list_add(&q->eng->active, &q->active);
}

bool eng_link_open(const struct eng *e)
{
    return e->hca->link_up && !e->hca->dead;
}

/* ---- packets ---- */

static void packet(void *ctx, uint32_t src_slot, const uint8_t *bytes, size_t len)
{
    struct eng *e = ctx;
    struct hca_qp *qp;
    struct eng_qp *q;
    struct pkt p;

    if (!eng_link_open(e)) {
        e->count.link_drops++;
        return;
    }
    if (pkt_parse(bytes, len, &p)) {
        e->count.rx_malformed++;
        return;
    }
    hca_log(HCA_PKT, "from slot %u: %s to qp 0x%06x, psn %u, %u bytes", src_slot, pkt_op_name(p.op), p.dqpn, p.psn,
            p.payload_len);
    qp = hca_qp_find(e->hca, p.dqpn);
    q = qp ? ENG_OF(qp) : NULL;
    if (!q || (qp->type == HCA_UD) != (PKT_TRANSPORT(p.op) == PKT_UD) ||
        (qp->type == HCA_UC) != (PKT_TRANSPORT(p.op) == PKT_UC)) {
        e->count.rx_no_qp++;
        return;
    }
    if (qp->type == HCA_UD) {
        eng_ud_packet(q, &p, src_slot);
        return;
    }
    if (src_slot != q->peer_slot) {
        e->count.rx_wrong_peer++;
        return;
    }
    if (qp->type == HCA_UC)
        eng_uc_packet(q, &p);
    else if (p.ext & PKT_IS_RESPONSE)
        eng_response_packet(q, &p);
    else
        eng_request_packet(q, &p);
}

/* ---- doorbells ---- */

static void ring(struct eng_qp *q, uint64_t value)
{
    uint32_t delay = q->eng->faults.doorbell_us;

    if (q->qp->bare && value)
        eng_note_bell(q, value);
    if (!delay) {
        eng_doorbell(q, value);
        return;
    }
    if (!q->doorbell_due)
        q->doorbell_due = q->eng->now + delay * 1000ull;
    q->eng->any_delayed = true;
}

static const char *wrong_register(const struct hca_qp *named, const struct hca_uar *uar, bool bare)
{
    if (!named)
        return "does not exist";
    if (named->uar != uar)
        return "rings on another page";
    if (named->bare == bare)
        return NULL;
    return bare ? "has a doorbell record, so its register is another" : "has no doorbell record, so its register is another";
}

static void ring_page(struct eng *e, struct hca_uar *uar, uint64_t value, bool bare)
{
    uint32_t qpn = be32toh((uint32_t)(value >> 32)) >> 8;
    struct hca_qp *named = hca_qp_find(e->hca, qpn);
    const char *wrong = wrong_register(named, uar, bare);

    if (wrong) {
        e->count.lint++;
        hca_log(HCA_LINT, "lint: doorbell at 0x%x of page %u names qp 0x%06x, which %s", bare ? 0x600 : 0x800, uar->page_id, qpn,
                wrong);
    }
    /* A second doorbell may have overwritten the first before anyone looked, so every queue pair of the page is asked. */
    for (struct hca_list *l = uar->qps.next; l != &uar->qps; l = l->next) {
        struct hca_qp *qp = hca_container(l, struct hca_qp, uar_link);

        if (qp->eng)
            ring(ENG_OF(qp), qp == named && !wrong ? value : 0);
    }
}

unsigned eng_scan_pages(struct eng *e)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < e->hca->uar_top; i++) {
        struct hca_uar *uar = &e->hca->uar[i];

        if (!uar->used || uar->qps.next == &uar->qps)
            continue;
        for (unsigned k = 0; k < REGISTERS; k++) {
            uint64_t *reg = (uint64_t *)(void *)(uar->page + register_at[k]);
            uint64_t value;

            if (!__atomic_load_n(reg, __ATOMIC_RELAXED))
                continue;
            value = __atomic_exchange_n(reg, 0, __ATOMIC_ACQUIRE); /* pairs with software's doorbell store */
            if (!e->start_ns)
                e->start_ns = e->now;
            e->count.doorbells++;
            ring_page(e, uar, value, k == BARE);
            n++;
        }
    }
    return n;
}

/* Without strictness the records are polled: hides a missing doorbell. */
static unsigned scan_records(struct eng *e)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < e->hca->qp_top; i++) {
        struct hca_qp *qp = e->hca->qp[i];

        if (!qp || !qp->eng || !qp->sq_entries || qp->bare || qp->state != IBV_QPS_RTS ||
            (uint16_t)hca_dbrec_load(&qp->dbrec, 1) == ENG_OF(qp)->producer)
            continue;
        ring(ENG_OF(qp), 0);
        n++;
    }
    return n;
}

static void ring_delayed(struct eng *e)
{
    e->any_delayed = false;
    for (uint32_t i = 0; i < e->hca->qp_top; i++) {
        struct eng_qp *q = e->hca->qp[i] ? ENG_OF(e->hca->qp[i]) : NULL;

        if (!q || !q->doorbell_due)
            continue;
        if (e->now < q->doorbell_due) {
            e->any_delayed = true;
            continue;
        }
        q->doorbell_due = 0;
        eng_doorbell(q, 0);
    }
}

/* ---- faults of the whole device ---- */

static bool reached(const struct eng *e, const struct fault_when *w)
{
    if (w->packets)
        return wire_stats(e->wire)->tx_packets >= w->packets;
    return w->ns && e->start_ns && e->now - e->start_ns >= w->ns;
}

static void device_faults(struct eng *e)
{
    if (!e->hca->dead && reached(e, &e->faults.die))
        hca_die(e->hca);
    e->denies = e->denies || reached(e, &e->faults.deny);
    if (!e->link_fault_done && reached(e, &e->faults.link_down)) {
        e->link_fault_done = true;
        e->link_up_ns = e->faults.link_down_ns ? e->now + e->faults.link_down_ns : 0;
        hca_port_set(e->hca, false);
    }
    if (e->link_up_ns && e->now >= e->link_up_ns) {
        e->link_up_ns = 0;
        hca_port_set(e->hca, true);
    }
}

/* ---- rounds ---- */

static void timers(struct eng *e)
{
    e->last_timers = e->now;
    device_faults(e);
    for (uint32_t i = 0; i < e->hca->qp_top; i++) {
        struct eng_qp *q = e->hca->qp[i] ? ENG_OF(e->hca->qp[i]) : NULL;

        if (!q)
            continue;
        eng_requester_timer(q);
        if (eng_flush_due(q))
            eng_flush(q);
    }
}

static void check_arms(struct eng *e)
{
    for (uint32_t i = 0; i < e->hca->cq_top; i++)
        if (e->hca->cq[i])
            hca_cq_check_arm(e->hca->cq[i]);
}

/* One turn for each queue pair that has something to do; a turn is short, so that all of them go on. */
static unsigned run_active(struct eng *e)
{
    struct hca_list *end = e->active.prev;
    unsigned n = 0;

    for (struct hca_list *l = e->active.next, *next; l != &e->active; l = next) {
        struct eng_qp *q = hca_container(l, struct eng_qp, active);
        bool last = l == end;

        next = l->next;
        n += eng_respond(q, TURN);
        n += eng_requester(q, TURN);
        if (q->rsp_head == q->rsp_tail && eng_requester_idle(q)) {
            q->is_active = false;
            hca_list_del(l);
        }
        if (last)
            break;
    }
    return n;
}

static unsigned round_once(struct eng *e)
{
    unsigned n;

    e->now = hca_now_ns();
    if (e->hca->dead)
        return 0;
    n = hca_config.lenient ? scan_records(e) : eng_scan_pages(e);
    if (e->any_delayed)
        ring_delayed(e);
    if (!e->undisturbed)
        n += wire_poll(e->wire, RX_BUDGET);
    n += run_active(e);
    wire_flush(e->wire);
    if (e->now - e->last_timers >= TIMER_NS)
        timers(e);
    if (!n || !(e->rounds & 15))
        check_arms(e);
    if ((!n && !e->undisturbed) || !(e->rounds++ % CONTROL_EVERY))
        wire_control(e->wire);
    if (!n && eng_trace_on())
        eng_trace_flush();
    return n;
}

static void nap(struct eng *e)
{
    uint64_t ns = (e->now - e->busy_ns) / NAP_PART;

    e->undisturbed = false;
    if (++e->idle <= e->spin)
        sched_yield();
    else
        e->undisturbed = !wire_wait(e->wire, ns < NAP_NS ? NAP_NS : ns < LONG_NAP_NS ? ns : LONG_NAP_NS);
}

/* struct sched_attr of the kernel, as far as fair scheduling knows it; runtime is the wanted time slice. */
struct slice_attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static bool set_slice(int nice)
{
    const struct slice_attr attr = { .size = sizeof(attr), .policy = SCHED_OTHER, .nice = nice, .runtime = SLICE_NS };

    return !syscall(SYS_sched_setattr, 0, &attr, 0);
}

/*
 * Clients spin; without a better claim to the processor each doorbell would wait for the end of their time slice.  A real
 * NIC has processors of its own, and the real-time class is as near as a thread comes to that: nice values count only among
 * the threads of a session (sched_autogroup), and what has a nice value draws its session's share to its own processor.
 */
static void claim_processor(void)
{
    const struct sched_param lowest = { .sched_priority = sched_get_priority_min(SCHED_RR) };

    prctl(PR_SET_NAME, "softhca");
    prctl(PR_SET_TIMERSLACK, 1000);
    if (!sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest))
        return;
    if (!set_slice(NICE) && !set_slice(0))
        return; /* an older kernel: slower, not wrong */
}

static void *engine_thread(void *arg)
{
    struct eng *e = arg;

    claim_processor();
    while (!__atomic_load_n(&e->stop, __ATOMIC_ACQUIRE)) {
        unsigned n;

        hca_lock_engine(e->hca);
        n = round_once(e);
        hca_unlock_engine(e->hca);
        if (n) {
            e->idle = 0;
            e->undisturbed = false;
            e->busy_ns = e->now;
        } else {
            nap(e);
        }
    }
    return NULL;
}

/* ---- start and end ---- */

static void identify(struct hca *hca, uint32_t slot)
{
    struct hca_identity *id = &hca->id;

    id->slot = slot;
    id->lid = (uint16_t)slot;
    id->ipv4_be = htobe32(wire_ipv4(((struct eng *)hca->eng)->wire, slot));
    id->guid = 0x0002c90300000000ull | slot;
    memset(id->gid, 0, sizeof(id->gid));
    if (hca_config.eth) {
        id->gid[10] = id->gid[11] = 0xff;
        memcpy(id->gid + 12, &id->ipv4_be, 4);
    } else {
        id->gid[0] = 0xfe;
        id->gid[1] = 0x80;
        pkt_put64(id->gid + 8, id->guid);
    }
}

static int open_wire(struct eng *e)
{
    const struct wire_config config = { hca_config.wire, hca_config.pcap, hca_config.net[hca_index(e->hca)], &e->faults };
    const struct wire_handlers handlers = { packet, eng_report, e };
    int err = wire_open(&e->wire, &config, &handlers);

    if (err)
        hca_log(HCA_LINT, "wire %s: %s", hca_config.wire ? hca_config.wire : "shm", strerror(-err));
    return err;
}

int eng_open(struct hca *hca)
{
    struct eng *e = calloc(1, sizeof(*e));
    const char *bad = "";
    bool udp;
    int err;

    if (!e)
        return -ENOMEM;
    e->hca = hca;
    hca_list_init(&e->active);
    err = fault_parse(&e->faults, hca_config.faults[hca_index(hca)], hca_config.seed, &bad);
    if (err)
        hca_log(HCA_LINT, "SOFTHCA_FAULTS: cannot read '%s'", bad);
    else
        err = open_wire(e);
    if (err) {
        free(e);
        return err;
    }
    e->window = wire_window(e->wire);
    e->timeout_scale = TIMEOUT_SCALE;
    udp = !strcmp(wire_kind(e->wire), "udp");
    e->spin = udp ? SPIN_ROUNDS_UDP : SPIN_ROUNDS;
    e->rto_ns = udp ? RTO_UDP_NS : RTO_SHM_NS;
    if (e->faults.any_packet || e->faults.link_down.ns || e->faults.link_down.packets)
        e->rto_ns = RTO_FAULTS_NS;
    eng_trace_open(hca_config.trace);
    hca->eng = e;
    identify(hca, wire_slot(e->wire));
    hca->link_up = !e->faults.port_down;
    wire_set_link(e->wire, hca->link_up);
    hca->no_gids = e->faults.no_gids;
    hca->memlock = e->faults.memlock;
    hca->uar_most = e->faults.pages;
    return 0;
}

int eng_start(struct hca *hca)
{
    struct eng *e = hca->eng;
    sigset_t all, old;
    int err;

    /* The application's signals are for its own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    err = -pthread_create(&e->thread, NULL, engine_thread, e);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    e->running = !err;
    if (err)
        hca_log(HCA_LINT, "no thread for the device: %s%s", strerror(-err),
                err == -EAGAIN   ? "; is the number of processes limited too low (ulimit -u)?"
                : err == -EINVAL ? "; a process that has left its PID namespace (unshare -p without -f) can start none"
                                 : "");
    return err;
}

/* A peer may still wait for the acknowledgement of what it sent last. */
static void drain(struct eng *e)
{
    for (int ms = 0; ms < DRAIN_MS; ms++) {
        bool busy;

        hca_lock(e->hca);
        busy = e->active.next != &e->active || wire_pending(e->wire);
        hca_unlock(e->hca);
        if (!busy)
            return;
        usleep(1000);
    }
}

void eng_stop(struct hca *hca)
{
    struct eng *e = hca->eng;
    char text[8192];

    if (!e)
        return;
    if (e->running) {
        drain(e);
        __atomic_store_n(&e->stop, true, __ATOMIC_RELEASE);
        wire_wake(e->wire);
        pthread_join(e->thread, NULL);
        e->running = false;
    }
    if (hca_config.stats && eng_report(e, text, sizeof(text)))
        fputs(text, stderr);
    hca_lock(hca);
    eng_trace_close();
    hca_unlock(hca);
    wire_close(e->wire);
    hca->eng = NULL;
    free(e);
}

void eng_forked(struct hca *hca)
{
    struct eng *e = hca->eng;

    if (!e)
        return;
    wire_abandon(e->wire); /* the thread does not exist here */
    hca->eng = NULL;
    free(e);
}

void eng_port_changed(struct hca *hca)
{
    struct eng *e = hca->eng;

    if (hca->dead)
        hca_log(HCA_INFO, "the NIC is dead");
    else
        hca_log(HCA_INFO, "link is %s", hca->link_up ? "up" : "down");
    if (!e)
        return;
    wire_set_link(e->wire, eng_link_open(e));
    if (eng_link_open(e))
        for (uint32_t i = 0; i < hca->qp_top; i++)
            if (hca->qp[i] && hca->qp[i]->eng)
                eng_activate(ENG_OF(hca->qp[i]));
}

void eng_kick(struct hca *hca)
{
    struct eng *e = hca->eng;

    if (e && e->wire)
        wire_wake(e->wire);
}
