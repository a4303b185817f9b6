#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# golden.sh - our work queue entries are, byte by byte, those of rdma-core; and the extended atomics, which rdma-core has no
# call for, those of UCX (under Open MPI's OpenSHMEM, and in its own test program).
src=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
. "$src/tests/softhca/tests/clients.sh"
: "${GOLDEN:=${top_builddir:-.}/tests/mlx5/golden}"

# take_over NAME STATUS POINTS: the TAP that a program has left in $work/out, of at least so many points
take_over() {
    local line points=0
    while read -r line; do
        case $line in
        "ok "*) ok "${line#* - }" ;;
        "not ok "*) not_ok "${line#* - }" ;;
        "# "*) echo "$line"; continue ;;
        *) continue ;;
        esac
        points=$((points + 1))
    done < "$work/out"
    if [ "$2" -ne 0 ] || [ $points -lt "$3" ]; then
        not_ok "$1: exit status $2 after $points points"
        show "$work/out" "$work/err"
    fi
}

for link in ib eth; do
    timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" --link $link "$GOLDEN" > "$work/out" 2> "$work/err"
    take_over "rdma-core, $link" $? 9
    grep -q 'lint:' "$work/err" && not_ok "the NIC has no complaint"
done

atomics() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_orte_tmpdir_base=$work
    export UCX_NET_DEVICES=mlx5_0:1 UCX_RC_MLX5_SRQ_TOPO=list UCX_IB_PCI_RELAXED_ORDERING=off
    export UCX_TLS=rc_mlx5,ud_mlx5,self UCX_IB_MLX5_DEVX=y SOFTHCA_TRACE_RAW=1
    for attempt in 1 2 3 4 5; do # Open MPI 4.1.6 dies in every second start
        rm -f "$work/trace"
        timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" --trace "$work/trace" /usr/bin/oshrun -n 2 --oversubscribe --bind-to none \
            --mca pml ucx --mca spml ucx --mca btl ^openib,ofi --mca memory ^patcher "$work/atomics" > "$work/out" 2>&1 &&
            return 0
        grep -q 'mca_memheap_modex_recv_all' "$work/out" || return 1
    done
    return 1
}

if ! /usr/bin/oshcc --showme:version 2> /dev/null | grep -q 'Open SHMEM'; then
    skip "extended atomics as UCX writes them" "/usr/bin/oshcc is not Open MPI's"
elif ! /usr/bin/oshcc -O1 -o "$work/atomics" "$src/tests/mlx5/golden_atomics.c" > "$work/out" 2>&1; then
    not_ok "golden_atomics.c compiles"
    show "$work/out"
elif ! atomics; then
    show "$work/out"
    skip "extended atomics as UCX writes them" "Open MPI's OpenSHMEM does not run here"
else
    # Open MPI's fetching forms of 4 bytes do not work: those from UCX's own tool.
    if command -v ucx_perftest > /dev/null; then
        for test in fadd swap cswap; do
            run_pair "--trace $work/trace" ucx_perftest -d mlx5_0:1 -x rc_mlx5 -t $test -s 4 -n 20 -w 2 ||
                show "$work/server" "$work/client"
        done
    fi
    "$GOLDEN" replay < "$work/trace" > "$work/out" 2> "$work/err"
    take_over "UCX" $? 10
fi
plan
