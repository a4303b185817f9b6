# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by the scripts that run foreign clients: TAP, pairs of server and client, bounded and without leftovers.
# SOFTHCA_RUN names the launcher. CLIENT_LIMIT bounds each run in seconds.

: "${SOFTHCA_RUN:=${top_builddir:-.}/tests/softhca/softhca-run}"
: "${CLIENT_LIMIT:=120}"
tap_number=0
tap_failed=0
if ! command -v "$SOFTHCA_RUN" >/dev/null 2>&1; then
    echo "Bail out! SOFTHCA_RUN ($SOFTHCA_RUN) is not a program"
    exit 99
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/softhca-test.XXXXXX") || exit 99

finish() {
    local pid
    for pid in $(jobs -p); do
        kill "$pid" 2>/dev/null
    done
    wait
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 143' TERM INT

need() {
    local program
    for program in "$@"; do
        if ! command -v "$program" >/dev/null 2>&1; then
            echo "1..0 # SKIP $program is not installed"
            exit 0
        fi
    done
}

ok() {
    tap_number=$((tap_number + 1))
    echo "ok $tap_number - $*"
}

not_ok() {
    tap_number=$((tap_number + 1))
    tap_failed=$((tap_failed + 1))
    echo "not ok $tap_number - $*"
}

skip() {
    tap_number=$((tap_number + 1))
    echo "ok $tap_number - $1 # SKIP $2"
}

# The plan comes last: its number is known then.
plan() {
    echo "1..$tap_number"
    [ "$tap_failed" -eq 0 ] && [ "$tap_number" -gt 0 ]
}

show() {
    local file
    for file in "$@"; do
        sed "s|^|# $(basename "$file"): |" "$file" | tail -n 25
    done
}

# A TCP port that nobody listens on; two tests that ask at once could get the same one, so a run is tried again.
free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 12000))
        listening "$port" || break
    done
    echo "$port"
}

listening() {
    local hex
    hex=$(printf ':%04X' "$1")
    grep -qsE "^ *[0-9]+: [0-9A-F]+$hex [0-9A-F]+:0000 0A" /proc/net/tcp /proc/net/tcp6
}

wait_listening() {
    local n
    for n in $(seq 300); do
        listening "$1" && return 0
        kill -0 "$2" 2>/dev/null || return 1
        sleep 0.1
    done
    echo "# nobody listens on port $1 after $n checks"
    return 1
}

# run_pair LAUNCHER-OPTIONS COMMAND...: server and client, each a job of its own, joined by a TCP port given with -p.
# Leaves their output in $work/server and $work/client. Fails as well when the NIC complained about an entry.
run_pair() {
    local options=$1 port server
    shift
    port=$(free_port)
    # shellcheck disable=SC2086 # options are several words
    timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" $options "$@" -p "$port" >"$work/server" 2>&1 &
    server=$!
    if ! wait_listening "$port" "$server"; then
        kill "$server" 2>/dev/null
        wait "$server"
        : >"$work/client"
        return 1
    fi
    # shellcheck disable=SC2086
    timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" $options "$@" -p "$port" 127.0.0.1 >"$work/client" 2>&1
    local client_status=$?
    wait "$server"
    local server_status=$?
    [ $client_status -eq 0 ] && [ $server_status -eq 0 ] && ! grep -q 'lint:' "$work/server" "$work/client"
}

# pair NAME LAUNCHER-OPTIONS COMMAND...
pair() {
    local name=$1
    shift
    if run_pair "$@"; then
        ok "$name"
    else
        not_ok "$name"
        show "$work/server" "$work/client"
    fi
}
