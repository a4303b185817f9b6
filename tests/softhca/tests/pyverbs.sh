#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rdma-core's own tests, as the distribution packages them, over the virtual NIC. What a module skips for want of a
# capability counts as run; a module fails when any of its tests fails.
. "$(dirname "$0")/clients.sh"
need python3
: "${RDMA_CORE_TESTS:=/usr/share/doc/rdma-core/tests}"
: "${PYTHON:=/usr/bin/python3}"

if ! "$PYTHON" -c 'import pyverbs.device' 2>/dev/null; then
    echo "1..0 # SKIP python3-pyverbs is not installed"
    exit 0
fi
if [ ! -e "$RDMA_CORE_TESTS/run_tests.py" ]; then
    echo "1..0 # SKIP the tests of rdma-core are not in $RDMA_CORE_TESTS"
    exit 0
fi
mkdir "$work/tests"
cp "$RDMA_CORE_TESTS"/*.py* "$work/tests"
gunzip -q "$work"/tests/*.gz 2>/dev/null

modules="test_addr test_atomic test_cq test_cq_events test_cqex test_device test_fork test_mlx5_cq test_mlx5_devx
    test_mlx5_huge_page test_mlx5_mkey test_mlx5_query_port test_mlx5_raw_wqe test_mlx5_timestamp test_mlx5_uar
    test_mlx5_udp_sport test_mr test_parent_domain test_pd test_qp test_qpex test_relaxed_ordering test_shared_pd
    test_flow test_mlx5_dc test_mlx5_dm_ops test_mlx5_flow test_mlx5_lag_affinity test_mlx5_pp test_mlx5_sched
    test_mlx5_var test_odp test_rss_traffic test_tag_matching"
passed=0

# A module's last lines say how many tests ran and how many were skipped; count prints one of those numbers.
count() {
    sed -nE "s/.*$1([0-9]+).*/\\1/p" "$work/out" | tail -n 1
}

module() {
    local name=$1 options=$2 ran skipped
    # shellcheck disable=SC2086 # options are several words
    (cd "$work" && timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" $options "$PYTHON" tests/run_tests.py --dev mlx5_0 -v "tests.$name") \
        >"$work/out" 2>&1
    local status=$?
    ran=$(count 'Ran ')
    skipped=$(count 'skipped=')
    if [ $status -eq 0 ] && [ -n "$ran" ]; then
        passed=$((passed + ran - ${skipped:-0}))
        ok "$name $options: $ran run, ${skipped:-0} skipped"
    else
        not_ok "$name $options"
        show "$work/out"
    fi
}

for name in $modules; do
    [ -e "$work/tests/$name.py" ] && module "$name" ""
done
for name in test_addr test_cq_events test_qp test_qpex test_mlx5_devx test_mlx5_raw_wqe test_atomic; do
    [ -e "$work/tests/$name.py" ] && module "$name" "--link eth"
done
# Only those whose traffic is reliable.
for name in test_mlx5_devx test_mlx5_raw_wqe test_mlx5_mkey test_atomic; do
    [ -e "$work/tests/$name.py" ] && module "$name" "--faults loss=1%"
done
echo "# $passed tests passed"
plan
