#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# asan.sh - programs with AddressSanitizer and the ordinary library: they run, and it still finds their errors (TAP).
set -u

build=${top_builddir:?} src=${top_srcdir:?}
if [ -n "${SANITIZE_FLAGS-}" ]; then
    echo "1..0 # SKIP the library has sanitizers of its own"
    exit 0
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/marrow-asan.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
points=0 failed=0
export ASAN_OPTIONS=detect_leaks=0

# verdict STATUS NAME
verdict() {
    points=$((points + 1))
    if [ "$1" = 0 ]; then
        echo "ok $points - $2"
    else
        sed 's/^/# /' "$work/out"
        echo "not ok $points - $2"
        failed=1
    fi
}

run() { timeout -k 5 60 "$build/src/tools/oshrun" -n "$@" > "$work/out" 2>&1 < /dev/null; }

for cc in gcc clang; do
    echo 'int main(void) { return 0; }' > "$work/try.c"
    if ! "$cc" -fsanitize=address "$work/try.c" -o "$work/try" > /dev/null 2>&1 || ! "$work/try"; then
        points=$((points + 1))
        echo "ok $points - $cc # SKIP no AddressSanitizer here"
        continue
    fi
    "$cc" -O1 -g -w -fsanitize=address -I"$src/include" -I"$build/include" "$src/tests/build/asan_program.c" -o "$work/program" \
        -L"$build/src/.libs" -lmarrow -Wl,-rpath,"$build/src/.libs" > "$work/out" 2>&1
    verdict $? "$cc compiles"
    run 2 "$work/program"
    verdict $? "$cc: 2 PEs"
    ! run 1 "$work/program" store && grep -q 'AddressSanitizer: global-buffer-overflow' "$work/out"
    verdict $? "$cc: a store behind a static array is found"
    ! run 1 "$work/program" put && grep -q 'AddressSanitizer: global-buffer-overflow' "$work/out"
    verdict $? "$cc: a put from behind a static array is found"
    ! run 1 "$work/program" free && grep -q 'AddressSanitizer: attempting free' "$work/out"
    verdict $? "$cc: a wrong free is found"
done
echo "1..$points"
exit "$failed"
