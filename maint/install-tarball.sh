#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# install-tarball.sh - configures, builds and installs a `make dist` tarball on a machine that has no autotools.
#
#     maint/install-tarball.sh TARBALL WORK [configure option]...
#
# Leaves WORK/source, WORK/build and WORK/install; logs are WORK/configure.log and WORK/make.log.
set -eu

[ $# -ge 2 ] || { sed -n '3,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
tarball=$(readlink -f "$1")
work=$(mkdir -p "$2" && cd "$2" && pwd)
shift 2

cd "$work"
rm -rf source build unpack
mkdir unpack build
tar xf "$tarball" -C unpack
mv unpack/marrow-* source
rmdir unpack
cd build
../source/configure --prefix="$work/install" "$@" >"$work/configure.log" 2>&1 || {
    tail -n 20 "$work/configure.log"
    exit 1
}
sed -n '/^marrow /,$p' "$work/configure.log"
make -j"$(getconf _NPROCESSORS_ONLN)" install >"$work/make.log" 2>&1 || {
    grep -E 'error|\*\*\*' "$work/make.log" | head -n 20
    exit 1
}
