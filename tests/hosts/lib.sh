# SPDX-License-Identifier: BSD-3-Clause
# lib.sh - what tests on pretended hosts share: the script runs again as the command of `hosts run', with the points of
# tests/launch/lib.sh.
# shellcheck shell=bash

# on_hosts N SCRIPT: continues SCRIPT on N hosts; returns in the process that is on them.
on_hosts() {
    local why
    [ -z "${HOSTS:-}" ] || return 0
    export HOSTS_SWITCH=${top_builddir:?run by make check}/tests/hosts/switch
    why=$(bash "${top_srcdir:?}/tests/hosts/hosts" check) || { echo "1..0 # SKIP ${why:-no hosts}"; exit 0; }
    exec bash "$top_srcdir/tests/hosts/hosts" run "$1" bash "$2"
}

# The NIC of a process on such a host: as many devices as the host has cables.
# shellcheck disable=SC2034
nic=("${top_builddir:?}/tests/softhca/softhca-run" --wire udp --link eth --devices "${MARROW_TEST_RAILS:-1}" --net 10.77.0.0,10.78.0.0)

# jobs_on N SCRIPT: on_hosts, for a script whose jobs use the NIC; then the points are there, and $slurm says whether srun works.
jobs_on() {
    [ "${MPIRUN:-no}" != no ] || { echo "1..0 # SKIP no mpirun"; exit 0; }
    [ "${MARROW_HAVE_PMIX:-yes}" = yes ] || { echo "1..0 # SKIP built without PMIx"; exit 0; }
    [ -x "${nic[0]}" ] || { echo "1..0 # SKIP no virtual NIC"; exit 0; }
    on_hosts "$1" "$2"
    . "$top_srcdir/tests/launch/lib.sh"
    slurm=no
    if command -v srun > /dev/null && "$HOSTS" slurm; then slurm=yes; fi
}

# across LAUNCHER NODES TRANSPORT COMMAND...: four PEs with the script's ${settings[@]}.
across() {
    local how=$1 nodes=$2 transport=$3
    local -a line=("$HOSTS" mpirun -n 4 --map-by "ppr:$((4 / $2)):node")
    shift 3
    [ "$how" = mpirun ] || line=(srun --mpi=pmix -N "$nodes" --ntasks-per-node=$((4 / nodes)))
    # shellcheck disable=SC2154
    go 150 "${line[@]}" env "${settings[@]}" "MARROW_TRANSPORT=$transport" "${nic[@]}" "$@"
}
