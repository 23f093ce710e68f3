#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/hardening.sh TARN LIBRARY - what the ELF headers of a release say: relocations are read-only
# before main() (RELRO, BIND_NOW), stacks are not executable and have canaries, calls of libc with
# sizes are checked (FORTIFY), and the program is position-independent.
set -u
command -v readelf >/dev/null || { echo "no readelf" && exit 77; }
failed=0

# has FILE WHAT PATTERN OPTIONS...: readelf OPTIONS FILE prints a line with PATTERN
has() {
    file=$1 what=$2 pattern=$3
    shift 3
    LC_ALL=C readelf -W "$@" "$file" | grep -Eq "$pattern" || { echo "$file: no $what" && failed=1; }
}

for file in "$@"; do
    readelf -h "$file" >/dev/null 2>&1 || { echo "$file: not an ELF file" && exit 77; }
    has "$file" 'GNU_RELRO segment' 'GNU_RELRO' --program-headers
    has "$file" 'BIND_NOW' 'BIND_NOW|FLAGS_1.*NOW' --dynamic
    has "$file" 'stack without execution' 'GNU_STACK.* RW +0x' --program-headers
    has "$file" 'stack protector' '__stack_chk_fail' --dyn-syms
    has "$file" 'FORTIFY_SOURCE' '__[a-z]+_chk(@|$)' --dyn-syms
    has "$file" 'position-independent code' 'Type: +DYN' --file-header
done
exit $failed
