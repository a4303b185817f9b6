# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# setup.sh - what ./quickstart and ./runtests share: distribution packages, configure, make, install.
#
# Sourced with $top set to the source tree.  Sets nothing else of its caller but through the
# functions; details of each step go to $log, which is shown when the step fails.

me=${0##*/}
build=$top/build
log=$build/$me.log

say() { printf '%s: %s\n' "$me" "$*"; }
die() {
    printf '%s: %s\n' "$me" "$*" >&2
    exit 1
}

have() { command -v "$1" > /dev/null 2>&1; }

# package_there PACKAGE: known to dpkg as installed.
package_there() {
    have dpkg-query && dpkg-query -W -f '${db:Status-Status}' "$1" 2> /dev/null | grep -qx installed
}

# Every need: a test that says whether it is met, and the package of Debian and Ubuntu that meets it.
needs_to_build() {
    have gcc || echo gcc
    have g++ || echo g++
    [ -e /usr/include/stdio.h ] || echo libc6-dev
    have make || echo make
    have pkg-config || echo pkg-config
    if [ ! -x "$top/configure" ] || [ -e "$top/.git" ]; then
        have autoreconf || echo autoconf
        have automake || echo automake
        have libtoolize || echo libtool
    fi
    # For PEs of different nodes, and which NIC is near.
    [ -e /usr/include/infiniband/mlx5dv.h ] || echo libibverbs-dev
    [ -e /usr/include/hwloc.h ] || echo libhwloc-dev
    package_there libpmix-dev || pkg-config --exists pmix 2> /dev/null || echo libpmix-dev
}

needs_to_test() {
    package_there check || pkg-config --exists check 2> /dev/null || echo check
    have mpirun || echo openmpi-bin
    have mpicc || echo libopenmpi-dev
    have xz || echo xz-utils
    # The virtual NIC is proved by these programs that nobody here wrote.
    have ibv_rc_pingpong || echo ibverbs-utils
    have ib_write_bw || echo perftest
    have ucx_perftest || echo ucx-utils
    have tshark || echo tshark
    have setpriv || echo util-linux
    # Pretended hosts, and Slurm over them.
    [ -x /usr/sbin/ip ] || [ -x /sbin/ip ] || echo iproute2
    have srun || echo slurm-client
    [ -x /usr/sbin/slurmctld ] || echo slurmctld
    [ -x /usr/sbin/slurmd ] || echo slurmd
    [ -x /usr/sbin/munged ] || echo munge
    /usr/bin/python3 -c 'import pyverbs.device' 2> /dev/null || echo python3-pyverbs
    [ -e /usr/share/doc/rdma-core/tests ] || echo rdma-core
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo -n "$@" # -n: never asks
    fi
}

# install_packages PACKAGE...: nothing to do for none; says what to do by hand where it cannot.
install_packages() {
    [ $# -gt 0 ] || return 0
    say "missing packages: $*"
    have apt-get || die "there is no apt-get here: install what provides these, then run me again"
    if [ "$(id -u)" != 0 ]; then
        have sudo || die "I am not root and there is no sudo. As root, then run me again:
    apt-get update && apt-get install --no-install-recommends $*"
        sudo -n true 2> /dev/null || die "sudo asks for a password or refuses, and I never ask. Run me again after:
    sudo apt-get update && sudo apt-get install --no-install-recommends $*"
    fi
    say "installing them (apt-get update, apt-get install)"
    step as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update ||
        die "apt-get update failed: is there a network? By hand: apt-get install $*"
    step as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y -o Dpkg::Use-Pty=0 install --no-install-recommends "$@" ||
        die "apt-get install failed: is there a network? By hand: apt-get install $*"
}

# step COMMAND...: runs it with its output in the log; on failure shows the end of that.
step() {
    {
        printf '\n$'
        printf ' %q' "$@"
        printf '\n'
    } >> "$log"
    "$@" >> "$log" 2>&1 < /dev/null && return 0
    printf -- '---- the end of %s:\n' "$log" >&2
    tail -n 25 "$log" >&2
    printf -- '----\n' >&2
    return 1
}

jobs_here() { nproc 2> /dev/null || echo 2; }

# set_up PREFIX PACKAGES...: packages, configure where needed, make, make install.
set_up() {
    local prefix=$1 want began=$SECONDS
    shift
    # Autoconf and libtool say so much later, after all packages are installed.
    case $top in
    *[[:space:]]*) die "configure takes no path with a blank in it: move or clone me to another folder than '$top'" ;;
    esac
    case $prefix in
    *[[:space:]]*) die "make install takes no path with a blank in it: choose another --prefix than '$prefix'" ;;
    esac
    mkdir -p "$build" || die "cannot make $build"
    : > "$log" || die "cannot write $log"
    install_packages "$@"

    if [ ! -x "$top/configure" ]; then
        say "making configure"
        (cd "$top" && step ./autogen.sh) || die "autogen.sh failed"
    fi
    # Configure again for another prefix, after new packages, or when the last time did not finish.
    want="prefix $prefix"
    if [ $# -gt 0 ] || [ ! -e "$build/Makefile" ] || [ "$(cat "$build/.set-up" 2> /dev/null)" != "$want" ]; then
        say "configuring in $build"
        rm -f "$build/.set-up"
        (cd "$build" && step "$top/configure" --prefix="$prefix") || die "configure failed"
        printf '%s\n' "$want" > "$build/.set-up"
        sed -n '/^marrow .* for /,$p' "$log"
    fi
    say "building: some minutes without a word; what make says goes to $log"
    step make -C "$build" -j"$(jobs_here)" || die "the build failed"
    step make -C "$build" install || die "make install failed"
    say "built and installed in $prefix ($((SECONDS - began)) s)"
}
