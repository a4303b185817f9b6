#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Nothing stays behind: after a normal end, after kill -9 of the launcher, of the command, of both; several jobs at once.
. "$(dirname "$0")/clients.sh"
need ibv_devinfo ibv_rc_pingpong
export TMPDIR=$work/tmp
mkdir "$TMPDIR"

jobs_started=

folders() {
    find "$TMPDIR" -maxdepth 1 -name 'softhca-*' | wc -l
}

# Waits until no job folder is left.
gone() {
    local end=$((SECONDS + 20))
    while [ $SECONDS -lt $end ]; do
        [ "$(folders)" -eq 0 ] && return 0
        sleep 0.1
    done
    echo "# left:"
    find "$TMPDIR" -maxdepth 1 | sed 's/^/# /'
    return 1
}

check() {
    local name=$1
    shift
    if "$@"; then
        ok "$name"
    else
        not_ok "$name"
    fi
}

# The process that a launcher started; the cleaner is the launcher's other child.
command_of() {
    local n pid
    for n in $(seq 100); do
        for pid in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
            if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = ibv_rc_pingpong ]; then
                echo "$pid"
                return 0
            fi
        done
        sleep 0.1
    done
    return 1
}

start_server() {
    "$SOFTHCA_RUN" ibv_rc_pingpong -p "$(free_port)" >"$work/server" 2>&1 &
    launcher=$!
    command=$(command_of "$launcher") || echo "# no server"
}

timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" ibv_devinfo >"$work/out" 2>&1
check "a job that ends by itself" gone
timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" false
check "exit status is the command's" test $? -eq 1
timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" no-such-program 2>"$work/out"
check "a command that does not exist gives 127" test $? -eq 127

start_server
check "a running job has a folder" test "$(folders)" -eq 1
kill -9 "$command"
wait "$launcher" 2>/dev/null
check "kill -9 of the command" gone

start_server
kill -9 "$launcher"
wait "$launcher" 2>/dev/null
check "kill -9 of the launcher" gone

start_server
kill -9 "$launcher" "$command"
wait "$launcher" 2>/dev/null
check "kill -9 of both" gone

start_server
kill -TERM "$launcher"
wait "$launcher"
check "SIGTERM to the launcher ends the command" test $? -eq 143
check "and leaves nothing" gone

for n in 1 2 3; do
    timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" ibv_devinfo >"$work/out.$n" 2>&1 &
    jobs_started="$jobs_started $!"
done
bad=0
for pid in $jobs_started; do
    wait "$pid" || bad=1
done
check "three jobs at once" test $bad -eq 0
check "they leave nothing" gone
(ulimit -n 12 && exec "$SOFTHCA_RUN" true) >"$work/out" 2>&1
check "too few descriptors: that is said" grep -q '12 files .*ulimit -n' "$work/out"
check "and nothing is left" gone
# From a copy: a build folder below /root cannot be reached without privileges.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$work"
    chmod 1777 "$TMPDIR"
    mkdir "$work/bin"
    cp "$SOFTHCA_RUN" "$work/bin/softhca-run"
    for library in "$(dirname "$SOFTHCA_RUN")"/{,.libs/}libsofthca.so; do
        [ ! -e "$library" ] || cp "$library" "$work/bin"
    done
    if timeout -k 5 "$CLIENT_LIMIT" setpriv --reuid 65534 --regid 65534 --clear-groups "$work/bin/softhca-run" ibv_devinfo >"$work/out" 2>&1; then
        ok "without privileges"
    else
        not_ok "without privileges"
        show "$work/out"
    fi
else
    skip "without privileges" "needs root and setpriv"
fi
plan
