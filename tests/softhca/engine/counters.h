/* SPDX-License-Identifier: BSD-3-Clause */
/* What the engine counts; one list for the struct, the report at exit and softhca-stat. */
#ifndef SOFTHCA_ENGINE_COUNTERS_H
#define SOFTHCA_ENGINE_COUNTERS_H

#include <stdint.h>

#define ENG_COUNTERS(X)                                                                                                \
    X(doorbells, "doorbell registers seen written")                                                                    \
    X(bare_doorbells, "doorbells of queues without a record")                                                          \
    X(wqe_posted, "send WQEs fetched")                                                                                 \
    X(wqe_executed, "send WQEs carried out")                                                                           \
    X(wqe_failed, "send WQEs completed with an error of their own")                                                    \
    X(wqe_flushed, "WQEs flushed from queues in error")                                                                \
    X(recv_consumed, "receive WQEs used")                                                                              \
    X(cqe_written, "completions written")                                                                              \
    X(cqe_lost, "completions lost by overrun")                                                                         \
    X(writes, "RDMA writes received")                                                                                  \
    X(reads, "RDMA reads served")                                                                                      \
    X(atomics, "atomics carried out")                                                                                  \
    X(sends, "messages received into receive WQEs")                                                                    \
    X(lint, "complaints about WQEs, records and doorbells")                                                            \
    X(refused_key, "accesses refused: key, domain, bounds or rights")                                                  \
    X(rx_malformed, "packets dropped: do not parse")                                                                   \
    X(rx_no_qp, "packets dropped: no such queue pair")                                                                 \
    X(rx_wrong_state, "packets dropped: queue pair state")                                                             \
    X(rx_wrong_peer, "packets dropped: not from the connected peer")                                                   \
    X(rx_bad_length, "packets dropped: length does not fit the message")                                               \
    X(rx_stale, "responses dropped: not awaited")                                                                      \
    X(rx_bad_qkey, "datagrams dropped: wrong Q_Key")                                                                   \
    X(rx_no_recv, "datagrams and unreliable messages dropped: no receive WQE")                                         \
    X(duplicates, "requests received again")                                                                           \
    X(out_of_sequence, "requests dropped: sequence gap")                                                               \
    X(replays, "atomics answered from the replay cache")                                                               \
    X(naks_sent, "negative acknowledgements sent")                                                                     \
    X(rnr_sent, "receiver-not-ready answers sent")                                                                     \
    X(rnr_waits, "waits after receiver-not-ready")                                                                     \
    X(retransmits, "times a requester went back")                                                                      \
    X(timeouts, "times because of a timer")                                                                            \
    X(link_drops, "packets dropped: link down")

struct eng_counters {
#define X(name, text) uint64_t name;
    ENG_COUNTERS(X)
#undef X
};

#endif
