#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/wheel_libraries.sh COMPILER SYSTEM FOLDER - the libraries that tarn needs, as static
# libraries in FOLDER/lib with headers and pkg-config files, from Debian's source packages, by
# COMPILER for a SYSTEM such as x86_64 or aarch64. The wheel has them inside, so that it needs
# nothing but the C library, as old a one as COMPILER builds for.
#
# Needs cmake, ninja, make and dpkg-source, and Debian's archive for the sources, which apt
# verifies. Licences are copied to FOLDER/licences.
set -eu
[ $# -eq 3 ] || { echo "usage: tools/wheel_libraries.sh COMPILER SYSTEM FOLDER" >&2 && exit 2; }
compiler=$1
system=$2
mkdir -p "$3/licences" "$3/build"
folder=$(cd "$3" && pwd)
sources=$(mkdir -p "$(dirname "$folder")/sources" && cd "$(dirname "$folder")/sources" && pwd)
packages="zlib libpng1.6 libmd jansson kissfft libsoxr libogg flac libvorbis opus libsndfile"

# apt with lists of its own: the machine's need not have sources, and nobody has to be root.
download() { # SUITE...
    mkdir -p "$sources/apt/lists/partial" "$sources/apt/cache/archives/partial"
    for one in "$@"; do
        archive=debian
        case $one in *-security) archive=debian-security ;; esac
        echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
            "http://deb.debian.org/$archive $one main"
    done >"$sources/apt/sources.list"
    cat >"$sources/apt/conf" <<END
Dir::Etc::SourceList "$sources/apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$sources/apt/lists";
Dir::Cache "$sources/apt/cache";
END
    (
        export APT_CONFIG="$sources/apt/conf"
        cd "$sources"
        rm -f ./*.dsc
        apt-get -q update && apt-get -q source --download-only $packages
    )
}

# Some mirrors have no complete archive of security updates.
fetch() {
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    download "$suite" "$suite-security" || download "$suite"
}

unpack() { # PACKAGE; its folder becomes $source
    source=$sources/$1
    [ -d "$source" ] || dpkg-source --no-check -x "$sources"/"$1"_*.dsc "$source" >/dev/null
    cp "$source/debian/copyright" "$folder/licences/$1"
}

is_made() { # PACKAGE
    [ -e "$folder/build/$1.made" ]
}

by_cmake() { # PACKAGE OPTIONS...
    is_made "$1" && return
    unpack "$1"
    build=$folder/build/$1
    stamp=$build.made
    shift
    cmake -S "$source" -B "$build" -G Ninja -DCMAKE_C_COMPILER="$compiler" \
        -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$system" -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_INSTALL_PREFIX="$folder" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$folder" \
        -DCMAKE_FIND_ROOT_PATH="$folder" -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY \
        -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY \
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_POLICY_VERSION_MINIMUM=3.5 \
        -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF -Wno-dev "$@"
    cmake --build "$build"
    cmake --install "$build"
    touch "$stamp"
}

by_configure() { # PACKAGE OPTIONS...
    is_made "$1" && return
    unpack "$1"
    build=$folder/build/$1
    stamp=$build.made
    rm -rf "$build"
    cp -a "$source" "$build"
    shift
    (cd "$build" && CC=$compiler CFLAGS="-O2 -fPIC" ./configure --prefix="$folder" "$@" &&
        make && make install)
    touch "$stamp"
}

fetch
export PKG_CONFIG_LIBDIR="$folder/lib/pkgconfig"
by_configure zlib --static
by_cmake libpng1.6 -DPNG_SHARED=OFF -DPNG_TESTS=OFF -DPNG_EXECUTABLES=OFF
by_configure libmd --host="$system-linux-gnu" --disable-shared --with-pic
by_cmake jansson -DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF -DJANSSON_WITHOUT_TESTS=ON
by_cmake kissfft -DKISSFFT_STATIC=ON -DKISSFFT_TEST=OFF -DKISSFFT_TOOLS=OFF
by_cmake libsoxr -DBUILD_TESTS=OFF -DWITH_OPENMP=OFF
by_cmake libogg -DINSTALL_DOCS=OFF
by_cmake flac -DBUILD_CXXLIBS=OFF -DBUILD_PROGRAMS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_DOCS=OFF \
    -DINSTALL_MANPAGES=OFF
by_cmake libvorbis
by_configure opus --host="$system-linux-gnu" --disable-shared --with-pic --disable-doc \
    --disable-extra-programs --disable-stack-protector
by_cmake libsndfile -DBUILD_PROGRAMS=OFF -DBUILD_EXAMPLES=OFF -DENABLE_MPEG=OFF \
    -DENABLE_EXTERNAL_LIBS=ON -DENABLE_CPACK=OFF -DINSTALL_MANPAGES=OFF
