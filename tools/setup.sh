#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/setup.sh build|demo|test|all|aarch64|speech|peers|web - installs missing packages; prints nothing if
# none is.
#
# With apt-get, missing packages are installed; elsewhere their Debian names are printed. Each row
# below is a package and a command that succeeds if it is installed, by whatever means.
set -eu

needed=
wished=

need() { # PACKAGE COMMAND...: required
    package=$1
    shift
    "$@" >/dev/null 2>&1 || needed="$needed $package"
}

wish() { # PACKAGE COMMAND...: optional
    package=$1
    shift
    "$@" >/dev/null 2>&1 || wished="$wished $package"
}

have() {
    command -v "$1"
}

header() {
    echo "#include <$1>" | cc -E -x c -
}

links() { # COMPILER FLAG
    echo 'int main(void) { return 0; }' | "$1" "$2" -x c - -o /dev/null
}

# Some distributions ship clang's sanitizers as a package named after its version, others with
# clang itself.
clang_runtime() {
    package=$(apt-cache depends clang 2>/dev/null |
        sed -n 's/.*Depends: clang-\([0-9][0-9]*\)$/libclang-rt-\1-dev/p')
    if offered "$package"; then echo "$package"; else echo clang; fi
}

offered() { # PACKAGE
    LC_ALL=C apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'
}

# As tests/python.sh looks for it.
python_tests() {
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import numpy, pytest' && return
    done
    return 1
}

numpy_python() {
    python3 -c 'import numpy' || /usr/bin/python3 -c 'import numpy'
}

# For the Python with NumPy.
mpi4py() {
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import numpy, mpi4py' && return
    done
    return 1
}

# Peers without a wheel are compiled.
python_headers() {
    python3 -c 'import os, sysconfig; open(os.path.join(sysconfig.get_path("include"), "Python.h"))'
}

# What web/build.sh and web/test.sh need, besides what web/tools.sh installs.
look_web() {
    wish python3-venv python3 -c 'import ensurepip, venv'
    wish nodejs have node
    wish npm have npm
    wish chromium have chromium
}

# A module of pkg-config for 64-bit ARM, beside this machine's.
arm64() { # MODULE
    [ -e "/usr/lib/aarch64-linux-gnu/pkgconfig/$1.pc" ]
}

look() { # build|demo|test|all|aarch64|speech|peers|web
    needed=
    wished=
    if [ "$1" = web ]; then
        need python3 have python3
        look_web
        return
    fi
    if [ "$1" = aarch64 ]; then # what the presets aarch64-gcc and aarch64-clang need
        wish gcc-aarch64-linux-gnu have aarch64-linux-gnu-gcc
        wish libc6-dev-arm64-cross [ -e /usr/aarch64-linux-gnu/include/stdio.h ]
        wish qemu-user have qemu-aarch64
        wish libjansson-dev:arm64 arm64 jansson
        wish libpng-dev:arm64 arm64 libpng
        wish zlib1g-dev:arm64 arm64 zlib
        wish libmd-dev:arm64 arm64 libmd
        wish libsndfile1-dev:arm64 arm64 sndfile
        wish libsoxr-dev:arm64 arm64 soxr
        wish libkissfft-dev:arm64 arm64 kissfft-float
        wish libcmocka-dev:arm64 arm64 cmocka
        return
    fi
    if [ "$1" = speech ]; then # what tools/make_speech.py and tools/join_speech.py need
        need python3 have python3
        need flite have flite
        wish espeak-ng have espeak-ng
        wish sox have sox
        wish python3-numpy numpy_python
        return
    fi
    need build-essential have cc
    need cmake have cmake
    need ninja-build have ninja
    need pkg-config have pkg-config
    need libjansson-dev header jansson.h
    need libpng-dev header png.h
    need zlib1g-dev header zlib.h
    need libmd-dev header sha2.h
    need libsndfile1-dev header sndfile.h
    need libsoxr-dev header soxr.h
    need libkissfft-dev pkg-config --exists kissfft-float
    wish libcurl4-openssl-dev header curl/curl.h
    wish libmicrohttpd-dev header microhttpd.h
    wish gnuplot-nox have gnuplot
    [ "$1" = build ] && return
    if [ "$1" = demo ]; then # what demo.sh can use
        wish espeak-ng have espeak-ng
        return
    fi
    if [ "$1" = peers ]; then # what bench/peers/run.sh needs
        need python3 have python3
        need python3-venv python3 -c 'import ensurepip, venv'
        wish python3-dev python_headers
        return
    fi
    need gcc have gcc
    need libcmocka-dev header cmocka.h
    need python3 have python3
    wish python3-numpy python_tests
    wish python3-pytest python_tests
    need clang have clang
    wish clang-format-14 tools/check_format.sh --find
    wish flite have flite
    wish espeak-ng have espeak-ng
    wish libopenmpi-dev have mpicc
    wish openmpi-bin have mpirun
    wish python3-mpi4py mpi4py
    [ "$1" = test ] && return
    wish curl have curl
    wish python3-venv python3 -c 'import ensurepip, venv'
    wish dpkg-dev have dpkg-shlibdeps
    wish lintian have lintian
    wish openssh-server [ -x /usr/sbin/sshd ]
    wish mpich have mpirun.mpich # beside Open MPI, which stays the default
    wish libmpich-dev have mpicc.mpich
    wish iproute2 [ -x /usr/sbin/ip -o -x /sbin/ip ]
    look_web
    wish cppcheck have cppcheck
    need "$(clang_runtime)" links clang -fsanitize=fuzzer-no-link,address,undefined
}

# Drops wishes that no source of packages can grant, so that they do not ask for an update at
# every run. Before the first update the sources are unknown.
drop_vain_wishes() {
    ls /var/lib/apt/lists/*Packages* >/dev/null 2>&1 || return 0
    granted=
    for package in $wished; do
        if offered "$package"; then granted="$granted $package"; fi
    done
    wished=$granted
}

stop() {
    echo "setup: $*" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Its packages are offered from the next update on.
add_arm64() {
    dpkg --print-foreign-architectures | grep -q '^arm64$' && return
    as_root dpkg --add-architecture arm64 && as_root apt-get update -qq >&2 || true
}

# Failures are ignored here: what is still missing is found by the second check.
apt_install() { # build|demo|test|all|aarch64|speech|peers|web
    [ "$1" != aarch64 ] || add_arm64
    drop_vain_wishes
    [ -n "$needed$wished" ] || return 0
    if [ "$(id -u)" != 0 ] && ! have sudo >/dev/null; then
        [ -n "$needed" ] || return 0
        stop "please run as root: apt-get install --no-install-recommends$needed$wished"
    fi
    echo "setup: installing$needed$wished" >&2
    as_root apt-get update -qq >&2 || true
    look "$1"
    drop_vain_wishes
    # shellcheck disable=SC2086 # the lists are words
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        $needed $wished >&2 || true
}

cd "$(dirname "$0")/.."
tier=${1:-build}
case $tier in
build | demo | test | all | aarch64 | speech | peers | web) ;;
*) stop "usage: tools/setup.sh build|demo|test|all|aarch64|speech|peers|web" ;;
esac

look "$tier"
if [ -n "$needed$wished" ] && have apt-get >/dev/null; then
    apt_install "$tier"
    look "$tier"
fi
[ -z "$needed" ] || stop "these packages are required (Debian names):$needed"
[ -z "$wished" ] || echo "setup: continuing without these optional packages (Debian names):$wished" >&2
case $tier in speech | web | aarch64) exit ;; esac

cmake --version | awk 'NR == 1 {
    split($3, v, ".")
    if (v[1] * 100 + v[2] >= 325) exit 0
    print "setup: cmake " $3 " is too old; tarn needs 3.25 or later: see https://cmake.org/download"
    exit 1
}' >&2
