#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# tarball.sh - a release holds what git tracks, no file less, and nothing else but what autotools make (TAP).
set -u

build=${top_builddir:?} src=${top_srcdir:?}
if ! tracked=$(git -C "$src" ls-files 2> /dev/null) || ! grep -qx configure.ac <<< "$tracked"; then
    echo "1..0 # SKIP not a git checkout"
    exit 0
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/marrow-tarball.XXXXXX") || exit 1
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# MAKE's own variables must not leak into this make; the folder's name is relative to the build folder.
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "${MAKE:-make}" -C "$build" distdir \
    distdir="$(realpath --relative-to="$build" "$work")/tree" > "$work/out" 2>&1 < /dev/null || {
    sed 's/^/# /' "$work/out"
    echo "Bail out! make distdir failed"
    exit 1
}
sort <<< "$tracked" > "$work/git"
(cd "$work/tree" && find . -type f | sed 's,^\./,,' | sort) > "$work/release"
made='^(Makefile\.in|aclocal\.m4|config\.h\.in|configure|build-aux/.*|m4/(libtool|lt.*)\.m4)$'

failed=0
# verdict N NAME: passes when standard input is empty.
verdict() {
    local found
    found=$(cat)
    [ -z "$found" ] && { echo "ok $1 - $2"; return; }
    printf '%s\n' "$found" | sed 's/^/# /'
    echo "not ok $1 - $2"
    failed=1
}
verdict 1 "every tracked file is in the release" < <(comm -23 "$work/git" "$work/release")
verdict 2 "nothing else is, but what autotools make" < <(comm -13 "$work/git" "$work/release" | grep -vE "$made")
echo 1..2
exit "$failed"
