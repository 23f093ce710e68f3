#!/bin/sh
# SPDX-License-Identifier: MIT
# ./test.sh [--all] - all checks and tests that a change must pass; --all adds the slow ones.
# TARN_DATA is a folder with the real data sets; without it, tests that need them are skipped.
set -eu
cd "$(dirname "$0")"

# Together under 10 minutes on 2 cores.
default_stages() {
    stage "format" tools/check_format.sh
    stage "rooms" tools/check_rooms.sh
    stage "mutations still apply" tools/mutate.sh --check
    stage "links of the documentation" tools/check_links.py
    stage "names in the documentation" tools/check_names.py
    stage "results page" tools/paper_results.py --check
    stage "release-gcc: build" build release-gcc
    stage "reference pages" tools/make_reference.py --check build/release-gcc/tarn
    stage "release-gcc: tests" tests release-gcc
    stage "release-gcc: tests, TARN_CPU=portable" tests_forced_portable release-gcc
    stage "release-gcc: exported symbols" tools/check_symbols.sh build/release-gcc/libtarn.so
    stage "release-clang: build" build release-clang
    stage "release-clang: tests" tests_again release-clang
    stage "portable: build" build portable
    stage "portable: tests" tests_again portable
    stage "sanitizers: build" build sanitizers
    stage "sanitizers: tests" tests sanitizers
}

long_stages() {
    stage "sanitizers-clang: build" build sanitizers-clang
    stage "sanitizers-clang: tests" tests sanitizers-clang
    stage "sanitizer-memory: build" build sanitizer-memory
    stage "sanitizer-memory: tests" tests sanitizer-memory
    stage "sanitizer-thread: build" build sanitizer-thread
    stage "sanitizer-thread: tests" tests sanitizer-thread
    for analyzer in cppcheck gcc clang; do
        stage "static analysis by $analyzer" tools/analyze.py "$analyzer"
    done
    stage "fuzz: build" build fuzz
    for fuzzer in fuzz/*.c; do
        [ -e "$fuzzer" ] || continue
        name=$(basename "$fuzzer" .c)
        stage "fuzz: $name, 60 s" tools/fuzz.sh --seconds 60 "$name"
    done
    stage "serve: other clients, connections, leaks" serve_long
    stage "every I/O call fails" build/release-gcc/tests/test_io_errors all
    stage "every call of every command fails" every_fault release-gcc
    stage "every call of the server fails" every_serve_fault release-gcc
    stage "every loss of power" every_power_loss release-gcc
    stage "1,000 x kill -9" python3 tests/kills.py build/release-gcc/tarn 1000
    stage "200 MPI processes killed" sh tests/cli_mpi.sh build/release-gcc/tarn 200
    stage "MPICH: the same files, and failures" sh tests/mpich.sh build/release-gcc/tarn
    stage "four hosts on links of 1 Gbit/s and 1 ms" tests/shaped_links.sh build/release-gcc/tarn
    stage "a million steps with int8 weights" build/release-gcc/tests/test_generate_int8 all
    for compiler in gcc clang; do
        stage "aarch64-$compiler: build" build_aarch64 "$compiler"
        stage "aarch64-$compiler: tests under qemu-user" tests/aarch64.sh "build/aarch64-$compiler" \
            build/release-gcc/tarn
    done
    stage "package: build" build package
    stage "package: Debian packages" packages
    stage "notebooks" tools/run_notebooks.sh
    stage "Python with torch and fast_transformers" tests/python_torch.sh build/release-gcc
    stage "Python wheel" tools/make_wheel.sh
    stage "Python wheel: aarch64, under qemu-user" tools/make_wheel.sh --system aarch64
    stage "WebAssembly and the page" web/test.sh
    stage "mutations are caught" tools/mutate.sh
}

build() { # PRESET
    cmake --preset "$1" && cmake --build --preset "$1"
}

# Cross-compiled, with what tests/aarch64.sh runs.
build_aarch64() { # gcc|clang
    command -v aarch64-linux-gnu-gcc && command -v qemu-aarch64 &&
        [ -e /usr/lib/aarch64-linux-gnu/pkgconfig/cmocka.pc ] ||
        { echo "tools/setup.sh aarch64 has not been run" && return 77; }
    cmake --preset "aarch64-$1"
    # shellcheck disable=SC2046 # the list is words
    cmake --build --preset "aarch64-$1" --target tarn_program $(tests/aarch64.sh --list)
}

tests() { # PRESET
    ctest --preset "$1" -j "$cores"
}

# Without the tests labelled `once`.
tests_again() { # PRESET
    ctest --preset "$1" -j "$cores" -LE once
}

# Only the tests labelled `cpu`; the others do not depend on the instruction set.
tests_forced_portable() { # PRESET
    TARN_CPU=portable ctest --preset "$1" -j "$cores" -L cpu -LE once
}

serve_long() {
    python3 tests/serve_long.py build/release-gcc/tarn build/release-gcc/tests/make_models \
        build/release-gcc/tests/make_tones
}

# Without the checks of the maintainer's address.
packages() {
    command -v dpkg-shlibdeps || { echo "dpkg-shlibdeps is not installed" && return 77; }
    rm -f build/package/*.deb
    cpack --preset package
    command -v lintian || return 0
    whose=bogus-mail-host,bogus-mail-host-in-debian-changelog
    lintian --allow-root --fail-on error --suppress-tags "$whose" build/package/*.deb
}

every_fault() { # PRESET
    built=build/$1
    python3 tests/faults.py "$built/tarn" "$built/tests/make_models" "$built/tests/make_tones" \
        "$built/tests/faults.so" --all
}

every_serve_fault() { # PRESET
    python3 tests/serve_faults.py "build/$1/tarn" "build/$1/tests/make_models" \
        "build/$1/tests/faults.so" --all
}

every_power_loss() { # PRESET
    python3 tests/power_loss.py "build/$1/tarn" "build/$1/tests/faults.so" --all
}

# Shows the output of a stage if it fails. Exit status 77 means skipped; the last line says why.
stage() { # TITLE COMMAND...
    title=$1
    shift
    printf '%-46s' "$title"
    begin=$(date +%s)
    status=0
    "$@" >"$log" 2>&1 || status=$?
    took=$(($(date +%s) - begin))
    case $status in
    0)
        printf '%4d s\n' "$took"
        grep -E '^[0-9]+ (runs|states|kills|findings)' "$log" | sed 's/^/    /'
        passed=$((passed + 1))
        ;;
    77)
        printf 'skipped: %s\n' "$(tail -n 1 "$log")"
        skipped=$((skipped + 1))
        ;;
    *)
        printf 'FAILED\n\n'
        cat "$log"
        printf '\ntest.sh: FAILED at "%s"\n' "$title"
        exit 1
        ;;
    esac
}

all=false
case $# in
0) ;;
1) [ "$1" = --all ] && all=true ;;
esac
if [ $# -gt 1 ] || { [ $# -eq 1 ] && ! $all; }; then
    echo "usage: ./test.sh [--all]" >&2
    exit 2
fi

if $all; then tools/setup.sh all && tools/setup.sh aarch64; else tools/setup.sh test; fi
cores=$(getconf _NPROCESSORS_ONLN)
passed=0
skipped=0
start=$(date +%s)
mkdir -p build
log=build/test.log

[ -n "${TARN_DATA:-}" ] || echo "TARN_DATA is not set: tests on real data are skipped"
default_stages
if $all; then long_stages; fi
echo "test.sh: passed, $passed stages in $(($(date +%s) - start)) s, $skipped skipped"
