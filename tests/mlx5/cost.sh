#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# cost.sh - instructions of one put, ours, rdma-core's and UCX's, counted on the virtual NIC: ours takes fewer than either.
src=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
. "$src/tests/softhca/tests/clients.sh"
: "${COST:=${top_builddir:-.}/tests/mlx5/cost}"
need valgrind callgrind_annotate
if [[ ${SANITIZE_FLAGS-} == *sanitize* ]]; then
    echo "1..0 # SKIP valgrind does not run a sanitized build"
    exit 0
fi

# count METHOD: instructions of one put
count() {
    local n
    n=$(timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" valgrind --tool=callgrind --toggle-collect='measured_*' \
        --callgrind-out-file="$work/out.$1" "$COST" "$1" 2>&1 | sed -n 's/.*Collected : //p')
    echo $((${n:-0} / 40))
}

# Its own put, called by its own test program; 0 when that does not work.
count_ucx() {
    local total calls
    export UCX_NET_DEVICES=mlx5_0:1 UCX_RC_MLX5_SRQ_TOPO=list UCX_IB_PCI_RELAXED_ORDERING=off UCX_IB_MLX5_DEVX=n
    local test="ucx_perftest -p 23967 -d mlx5_0:1 -x rc_mlx5 -t put_lat -s 8 -n 50 -w 5"
    timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" $test > "$work/server" 2>&1 &
    sleep 3
    timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" valgrind --tool=callgrind --callgrind-out-file="$work/ucx" \
        ${test/-p/127.0.0.1 -p} > "$work/client" 2>&1
    wait
    total=$(callgrind_annotate --threshold=100 --inclusive=yes "$work/ucx" 2> /dev/null |
        sed -n '/:uct_rc_mlx5_ep_put_short /{s/^ *\([0-9,]*\).*/\1/;s/,//g;p;q}')
    # Whoever calls it says how often.
    calls=$(awk '/^cfn=\([0-9]+\)( uct_rc_mlx5_ep_put_short)?$/ { split($0, p, /[()]/)
            if ($0 ~ /put_short$/) id = p[2]
            hit = id != "" && p[2] == id; next }
        /^fn=.* uct_rc_mlx5_ep_put_short$/ { split($0, p, /[()]/); id = p[2] }
        hit && /^calls=/ { split($0, c, /[= ]/); n += c[2]; hit = 0 }
        END { print n + 0 }' "$work/ucx")
    [ "${calls:-0}" -gt 0 ] && echo $((${total:-0} / calls)) || echo 0
}

declare -A cost
for method in private deferred shared inline write verbs verbs-registered; do
    cost[$method]=$(count $method)
    echo "# $method: ${cost[$method]} instructions a put"
done
less() { # less NAME OURS THEIRS
    if [ "$2" -gt 0 ] && [ "$2" -lt "$3" ]; then ok "$1 ($2 < $3)"; else not_ok "$1 ($2, $3)"; fi
}
less "private put of 8 bytes: fewer than ibv_post_send" "${cost[private]}" "${cost[verbs]}"
less "private inline put of a length known at run time" "${cost[inline]}" "${cost[verbs]}"
less "shared put of 8 bytes" "${cost[shared]}" "${cost[verbs]}"
less "private put of registered memory" "${cost[write]}" "${cost[verbs-registered]}"
ucx=0
command -v ucx_perftest > /dev/null && ucx=$(count_ucx)
echo "# uct_ep_put_short: $ucx instructions a put"
if [ "$ucx" -eq 0 ]; then
    skip "private put: fewer than UCX" "its test program does not run here"
else
    less "private put of 8 bytes: fewer than UCX" "${cost[private]}" "$ucx"
    less "shared put of 8 bytes: fewer than UCX" "${cost[shared]}" "$ucx"
fi
plan
