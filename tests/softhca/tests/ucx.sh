#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# UCX over the virtual NIC: its verbs transports, and its own mlx5 transports on verbs and on DEVX queue pairs.
. "$(dirname "$0")/clients.sh"
need ucx_perftest ucx_info

export UCX_NET_DEVICES=mlx5_0:1 UCX_WARN_UNUSED_ENV_VARS=n UCX_HANDLE_ERRORS=none
# UCX 1.13 wants a striding receive queue object for its shared queue unless told otherwise.
export UCX_RC_MLX5_SRQ_TOPO=list
# With relaxed ordering UCX 1.13 adds an offset to addresses for an indirect key that it does not make here.
export UCX_IB_PCI_RELAXED_ORDERING=off

# uct NAME-PREFIX LAUNCHER-OPTIONS TRANSPORT TESTS: tests on the transport itself
uct() {
    local test more
    for test in $4; do
        more=""
        [ "$test" = get ] && more="-D zcopy -s 100000" # UCX has no short get
        # shellcheck disable=SC2086 # several words
        pair "$1$3 $test" "$2" ucx_perftest -d mlx5_0:1 -x "$3" -t "$test" $more -n 100 -w 2
    done
}

# ucp NAME-PREFIX LAUNCHER-OPTIONS TRANSPORTS TESTS: through the protocol layer
ucp() {
    local test size
    for test in $4; do
        case $test in
        *fadd | *cswap) size=8 ;;
        *) size=4000 ;;
        esac
        UCX_TLS=$3 pair "$1ucp $test over $3" "$2" ucx_perftest -t "$test" -n 100 -w 2 -s $size
    done
}

uct "" "" rc_verbs "am_lat put_lat put_bw get fadd cswap"
uct "" "" ud_verbs "am_lat"
export UCX_IB_MLX5_DEVX=n
uct "verbs queue pairs: " "" rc_mlx5 "am_lat am_bw put_lat put_bw get fadd cswap"
uct "verbs queue pairs: " "" ud_mlx5 "am_lat"
export UCX_IB_MLX5_DEVX=y
uct "DEVX queue pairs: " "" rc_mlx5 "am_lat am_bw put_lat put_bw get fadd swap cswap"
unset UCX_IB_MLX5_DEVX
ucp "" "" rc_mlx5,ud_mlx5,self "tag_lat tag_bw ucp_put_lat ucp_put_bw ucp_get ucp_fadd ucp_cswap"
ucp "" "" rc_verbs,ud_verbs,self "tag_lat tag_bw ucp_put_lat ucp_get ucp_fadd"
uct "1 % loss: " "--faults loss=1%" rc_verbs "am_lat put_bw get fadd"
uct "1 % loss: " "--faults loss=1%" rc_mlx5 "am_lat put_bw get fadd cswap"
uct "1 % loss, over UDP: " "--faults loss=1% --wire udp" rc_mlx5 "am_lat put_bw get cswap"
plan
