#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# signals.sh - a put with signal is two work requests under one doorbell, with one completion, by our own queues and by
# plain verbs: read from the counters of the virtual NIC.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
nic=$build/tests/softhca/softhca-run
job=$build/tests/verbs/signal_job
[ -x "$nic" ] || skip_all "no virtual NIC"
export SHMEM_SYMMETRIC_SIZE=16M MARROW_IB_TIMEOUT=18
count=400

# counters TRANSPORT COUNT BYTES OP: doorbells, work requests and completions of the PE that had most of them to $bells, $wqes, $cqes.
counters() {
    MARROW_TRANSPORT=$1 go 100 "$nic" --stats "$oshrun" --nodes 2 -n 2 "$job" "$2" "$3" "$4"
    read -r bells wqes cqes < <(cat "$dir/out" "$dir/err" | awk '
        /^softhca slot/ { n++ }
        /^(doorbells|wqe_posted|cqe_written)/ { v[$1, n] = $2 }
        END { for (i = 1; i <= n; i++) if (v["wqe_posted", i] > v["wqe_posted", most]) most = i
              print v["doorbells", most] + 0, v["wqe_posted", most] + 0, v["cqe_written", most] + 0 }')
}

for transport in proxy ibgda; do
    for what in "8 set" "8 add" "1000 set" "1000 add" "20000 set" "20000 add"; do
        # shellcheck disable=SC2086
        counters $transport $count $what
        holds "$transport, $what: data and signal arrive" eval '[ "$status" = 0 ] && grep -q "^right" "$dir/out"'
        echo "# $count puts with signal: $bells doorbells, $wqes work requests, $cqes completions"
        # Start, end and waits make some of their own.
        holds "two requests, one doorbell, one completion each" \
            eval '[ $wqes -ge $((2 * count)) ] && [ $bells -le $((count * 3 / 2)) ] && [ $cqes -le $((count * 3 / 2)) ]'
    done
done
done_testing
