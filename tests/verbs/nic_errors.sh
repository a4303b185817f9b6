#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the NIC module says and does when something is wrong: settings, devices, memory, links, peers.
# shellcheck source=tests/softhca/tests/clients.sh
. "${top_srcdir:-.}/tests/softhca/tests/clients.sh"
fail=${top_builddir:-.}/tests/verbs/nic_fail
export MARROW_MODULE_DIR=${top_builddir:-.}/src/.libs

# says NAME SCENARIO PATTERN OPTIONS [VARIABLE=VALUE...]: nic_fail is content, and each line of PATTERN is found.
says() {
    local name=$1 scenario=$2 patterns=$3 options=$4 pattern good=1
    shift 4
    # shellcheck disable=SC2086 # options are several words
    timeout -k 5 "$CLIENT_LIMIT" env "$@" "$SOFTHCA_RUN" $options "$fail" "$scenario" > "$work/out" 2>&1 || good=0
    while read -r pattern; do
        grep -qE -- "$pattern" "$work/out" || { good=0; echo "# no line matches $pattern"; }
    done <<< "$patterns"
    if [ $good = 1 ]; then
        ok "$name"
    else
        not_ok "$name"
        show "$work/out"
    fi
}

# settings and devices
says "a device that is not there: what is" open "log 0 .*MARROW_HCA_LIST 'mlx5_7' leaves no device; here are: mlx5_0:1 \(active" "" MARROW_HCA_LIST=mlx5_7
says "a list that is none" open "log 0 .*'mlx5_0:x' in 'mlx5_0:x' is no device" "" MARROW_HCA_LIST=mlx5_0:x
says "the only device left out" open "log 0 .*'\^mlx5_0' leaves no device" "" MARROW_HCA_LIST=^mlx5_0
says "a list that fits" open "open: ibgda" "" MARROW_HCA_LIST=mlx5_3,mlx5_0:1
says "every port and its use" describe "port: mlx5_0 1 active InfiniBand 400000 Mbit/s ibgda, chosen the only one
describe: 0, 1 ports" ""
says "every port and its use: none" describe "port: mlx5_0 1 down .* the port is down
describe: -19, 1 ports" "--faults port=down"
if timeout 20 "$fail" open > "$work/out" 2>&1 && grep -q 'log 0 nic: no RDMA device can be opened here' "$work/out"; then
    ok "no device at all"
elif grep -q 'open: ' "$work/out"; then
    skip "no device at all" "this machine has one"
else
    not_ok "no device at all"
    show "$work/out"
fi
says "port down" open "log 0 .*no port can be used: mlx5_0:1 \(down, InfiniBand: the port is down" "--faults port=down"
says "no GID" open "log 0 .*mlx5_0 port 1: its GID table is empty: give its network interface an IP address" "--link eth --faults gids=none"
says "wrong GID index" open "log 0 .*mlx5_0 port 1 has no GID at index 5 \(MARROW_IB_GID_INDEX\)" "--link eth" MARROW_IB_GID_INDEX=5
says "memory refused" register "log 0 .*refuses to register 1048576 bytes .*Cannot allocate memory; the limit of locked memory \(ulimit -l\) is" "--faults memlock=600k"

# info NAME PATTERN OPTIONS [VARIABLE=VALUE...]: what shmem-info -t shows.
info() {
    local name=$1 pattern=$2 options=$3
    shift 3
    # shellcheck disable=SC2086 # options are several words
    if timeout -k 5 "$CLIENT_LIMIT" env "$@" "$SOFTHCA_RUN" $options "${top_builddir:-.}/src/tools/shmem-info" -t > "$work/out" 2>&1 &&
        grep -qE -- "$pattern" "$work/out"; then
        ok "$name"
    else
        not_ok "$name"
        show "$work/out"
    fi
}
info "shmem-info: the NIC that would be used" '^  ibgda +yes: .* through mlx5_0 port 1$' ""
info "shmem-info: by plain verbs" '^  proxy +yes: .* through mlx5_0 port 1$' "" MARROW_TRANSPORT=proxy
info "shmem-info: the ports" '^  \* mlx5_0:1 +Ethernet, active, 400 Gbit/s, ibgda: the only one' "--link eth"
info "shmem-info: why not" '^  ibgda, proxy no: no port can be used: mlx5_0:1 \(down' "--faults port=down"

# downgrades
says "not mlx5: said" open "log 1 .*not an mlx5 device; using plain verbs
open: proxy" "" NIC_FAIL_FAKE=plain
says "not mlx5, strict: refused" open "log 0 .*not an mlx5 device; .*MARROW_STRICT=1 forbids it
open: Operation not supported" "" NIC_FAIL_FAKE=plain MARROW_STRICT=1
says "not mlx5, ibgda asked for: refused" open "log 0 .*not an mlx5 device, which MARROW_TRANSPORT=ibgda asks for
open: No such device" "" NIC_FAIL_FAKE=plain MARROW_TRANSPORT=ibgda
says "DEVX refused: said" open "log 1 .*DEVX is refused \(Operation not supported\); using plain verbs
open: proxy" "" NIC_FAIL_FAKE=devx
says "DEVX refused, strict: refused" open "open: Operation not supported" "" NIC_FAIL_FAKE=devx MARROW_STRICT=1
says "DEVX refused, ibgda asked for: refused" open "log 0 .*DEVX is refused: .*MARROW_TRANSPORT=proxy does without
open: Operation not supported" "" NIC_FAIL_FAKE=devx MARROW_TRANSPORT=ibgda

# peers and links
says "no time to connect: it asks all the same" gone "has not answered 1 connection requests in 0 s" "" MARROW_CONNECT_TIMEOUT=0
says "a peer that has left" left "connect: Cannot send after transport endpoint shutdown after 0\.[0-9] s" ""
impatient=(MARROW_IB_TIMEOUT=10 MARROW_IB_RETRY=3)
for kind in ibgda proxy; do
    says "$kind: a peer that is gone" gone "log 0 .*mlx5_0 port 1: PE 1 \(mlx5_0 port 1, LID [0-9]*\) has not answered [0-9]+ connection requests in 2 s
connect: Connection timed out after [2-9]\." "" MARROW_CONNECT_TIMEOUT=2 MARROW_TRANSPORT=$kind
    says "$kind: a PE of another job" other-job "PE 1: log 1 .*messages of another job; they are ignored
connect: Connection timed out" "" MARROW_CONNECT_TIMEOUT=2 MARROW_TRANSPORT=$kind
    says "$kind: a peer is killed" killed "error: pe 1 syndrome 0x15 .*retry counter exceeded' operation 'RDMA write' heap offset 4096 .*did its process or node die
ended after [12]?[0-9]\.[0-9] s" "" "${impatient[@]}" MARROW_TRANSPORT=$kind
    says "$kind: behind the peer's memory" access "error: pe 1 syndrome 0x13 .*remote access error' operation 'RDMA write' heap offset 4194296 .*MARROW_CHECK=1" "" MARROW_TRANSPORT=$kind
    says "$kind: behind the peer's memory, more behind it" flushed "error: pe 1 syndrome 0x13 .*remote access error.* operation 'RDMA write' heap offset 4194296 " "" MARROW_TRANSPORT=$kind
    says "$kind: a peer is killed, much on its way" killed-busy "error: pe 1 syndrome 0x15 .*retry counter exceeded.* operation 'RDMA write' heap offset [0-9]+ .*did its process or node die
ended after [12]?[0-9]\.[0-9] s" "" "${impatient[@]}" MARROW_TRANSPORT=$kind
    says "$kind: queue pair error" failing "error: pe 1 syndrome 0x02 .*local queue pair operation error" "--faults qperr=20:0x02" MARROW_TRANSPORT=$kind
    says "$kind: link down for a while" blink "log 1 .*mlx5_0 port 1: the link is down
log 1 .*the link is up again
link: Success" "--faults linkdown=200ms+200ms" MARROW_TRANSPORT=$kind
    says "$kind: link down for good" failing "log 1 .*mlx5_0 port 1: the link is down
error: pe 1 syndrome 0x15" "--faults linkdown=300ms" "${impatient[@]}" MARROW_TRANSPORT=$kind
    says "$kind: the NIC itself dies" failing "log 0 .*mlx5_0 port 1: the device has failed
error: pe 1 syndrome 0x(ff|15)" "--faults die=200p" "${impatient[@]}" MARROW_TRANSPORT=$kind
    says "$kind: a child of fork keeps off" fork "log 0 .*child of the PE by fork
child: Operation not permitted" "" MARROW_TRANSPORT=$kind
done
plan
