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
