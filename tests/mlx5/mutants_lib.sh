# SPDX-License-Identifier: BSD-3-Clause
# mutants_lib.sh - to be sourced: a stress test under ThreadSanitizer, and the same with one line of a header changed (TAP).
src=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
cc=${CC:-cc}
dir=$(mktemp -d "${TMPDIR:-/tmp}/marrow-mutants.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
points=0 failed=0

point() { # point STATUS NAME
    points=$((points + 1))
    if [ "$1" -eq 0 ]; then echo "ok $points - $2"; else failed=1; echo "not ok $points - $2"; fi
}

# A fixed layout of addresses is what the sanitizer of some systems cannot do without.
fixed="setarch -R"
$fixed true 2> /dev/null || fixed=

# run PROGRAM ARGS: 0 when it ends well and silently, 1 when a race was reported, 2 for anything else.
run() {
    local status
    TSAN_OPTIONS="halt_on_error=1 exitcode=66" timeout 200 $fixed "$@" > "$dir/out" 2>&1
    status=$?
    [ $status -eq 0 ] && return 0
    grep -q 'WARNING: ThreadSanitizer: data race' "$dir/out" && return 1
    return 2
}

echo 'int main(void) { return 0; }' > "$dir/try.c"
if ! $cc -fsanitize=thread "$dir/try.c" -o "$dir/try" 2> /dev/null || ! $fixed "$dir/try" 2> /dev/null; then
    echo "1..0 # SKIP ThreadSanitizer does not work here"
    exit 0
fi

# change FILE FROM TO: one line of a header changed, in a copy that is found first.
change() {
    local at="$dir/include/shmem/device"
    mkdir -p "$at"
    cp "$src"/include/shmem/device/*.h "$at"
    FROM=$2 TO=$3 awk 'BEGIN { from = ENVIRON["FROM"]; to = ENVIRON["TO"] }
        (i = index($0, from)) { $0 = substr($0, 1, i - 1) to substr($0, i + length(from)); n++ }
        { print }
        END { exit n != 1 }' "$src/include/shmem/device/$1" > "$at/$1" || {
        point 1 "$1 has exactly once: $2"
        return 1
    }
}
