#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# autogen.sh - makes ./configure from configure.ac; needed after a git clone, not after unpacking a release.
set -e
cd "$(dirname "$0")"
for tool in autoreconf automake libtoolize; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "autogen.sh: $tool is missing: install autoconf, automake and libtool (./quickstart does)" >&2
        exit 1
    }
done
mkdir -p build-aux
exec autoreconf --install --force
