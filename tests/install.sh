#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/install.sh CMAKE BUILD CC [CXX] - installs into a temporary folder, moves the folder, and
# builds programs and the examples against it: by find_package and by pkg-config, shared and static,
# in C and C++; and by the lines for it in the documentation.
set -u
cmake=$1 build=$2 cc=$3 cxx=${4:-}
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
log=$folder/log
failed=0
first=

fail() {
    echo "FAILED: $*"
    [ -s "$log" ] && tail -n 30 "$log"
    failed=1
}

quietly() { # COMMAND...
    "$@" >"$log" 2>&1 || fail "$*"
}

# All print the same versions and the same output of the model.
same() { # WHAT PROGRAM...
    what=$1
    shift
    line=$(LD_LIBRARY_PATH=$lib "$@" 2>&1) || fail "$what does not run: $line"
    [ -n "$first" ] || first=$line
    [ "$line" = "$first" ] || fail "$what prints '$line'; the first printed '$first'"
}

linked() { # WHAT PROGRAM: shared or not
    LD_LIBRARY_PATH=$lib ldd "$2" >"$log"
    case $1 in
    shared) grep -q "libtarn.so.$so .*$prefix" "$log" || fail "$2 does not use libtarn.so.$so" ;;
    static) ! grep -q libtarn "$log" || fail "$2 uses the shared library" ;;
    esac
}

"$cmake" --install "$build" --prefix "$folder/first" >"$log" 2>&1 || { fail install && exit 1; }
prefix=$folder/moved
mv "$folder/first" "$prefix"
lib=$(dirname "$(find "$prefix" -name libtarn.a)")

# ---- What is there ------------------------------------------------------------

for file in bin/tarn share/man/man1/tarn.1 share/man/man1/tarn-train.1 include/tarn/tarn.h \
    share/bash-completion/completions/tarn share/zsh/site-functions/_tarn \
    share/fish/vendor_completions.d/tarn.fish; do
    [ -s "$prefix/$file" ] || fail "$file is not installed"
done
for file in README.md docs/README.md docs/images.md examples/linear_attention.c \
    examples/stream_tokens.c examples/train_copy.c; do
    cmp "$here/../$file" "$prefix/share/doc/tarn/$file" || fail "$file is not installed"
done
[ "$(find "$prefix/share/doc/tarn/examples" -type f | wc -l)" -eq "$(find "$here/../examples" -name '*.c' | wc -l)" ] ||
    fail "not the examples: $(ls "$prefix/share/doc/tarn/examples")"
for model in "$here"/../models/*.safetensors; do
    cmp "$model" "$prefix/share/tarn/models/$(basename "$model")" || fail "$model is not installed"
done
"$prefix/bin/tarn" generate "$prefix/share/tarn/models/mnist.safetensors" -n 1 -o "$folder/digit.png" \
    >"$log" 2>&1 && [ -s "$folder/digit.png" ] || fail "the installed model draws nothing"
version=$("$prefix/bin/tarn" --version) && version=${version#tarn }
so=${version%.*}
[ "$(readlink "$lib/libtarn.so")" = "libtarn.so.$so" ] || fail "libtarn.so is no link to .$so"
[ "$(readlink "$lib/libtarn.so.$so")" = "libtarn.so.$version" ] || fail "no libtarn.so.$version"
objdump -p "$lib/libtarn.so" | grep -q "SONAME *libtarn.so.$so\$" || fail "the soname is no .$so"
quietly "$here/../tools/check_symbols.sh" "$lib/libtarn.so"
grep -rlI "$build" "$prefix" && fail "files of the installation name the build"

# ---- Headers, each alone ------------------------------------------------------

for header in "$prefix"/include/tarn/*.h; do
    quietly "$cc" -std=c99 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$prefix/include" \
        -x c "$header"
    [ -z "$cxx" ] || quietly "$cxx" -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
        -I"$prefix/include" -x c++ "$header"
done

# ---- By pkg-config ------------------------------------------------------------

flags() {
    PKG_CONFIG_PATH=$lib/pkgconfig pkg-config "$@" tarn
}

by_pkg_config() { # COMPILER SOURCE NAME
    # shellcheck disable=SC2046 # flags are words
    quietly "$1" "$here/consumer/$2" -o "$folder/$3" $(flags --cflags --libs)
    same "$3 by pkg-config" "$folder/$3"
    linked shared "$folder/$3"
    # shellcheck disable=SC2046
    quietly "$1" "$here/consumer/$2" -o "$folder/$3-static" $(flags --cflags --libs --static)
    same "$3 by pkg-config, static" "$folder/$3-static"
    linked static "$folder/$3-static"
}

[ "$(flags --modversion)" = "$version" ] || fail "pkg-config knows another version"
by_pkg_config "$cc" consume.c in_c
[ -z "$cxx" ] || by_pkg_config "$cxx" consume_cxx.cpp in_cxx

# ---- The examples, and the lines of the documentation -------------------------

runs() { # PROGRAM; all but one end within a second
    case $1 in
    *train_copy*) return ;;
    esac
    LD_LIBRARY_PATH=$lib "$1" >"$log" 2>&1 || fail "$1 does not run"
}

for example in linear_attention stream_tokens train_copy; do
    for kind in shared static; do
        program=$folder/$example-$kind
        # shellcheck disable=SC2046
        quietly "$cc" "$here/../examples/$example.c" -o "$program" \
            $(flags --cflags --libs $([ $kind = shared ] || echo --static))
        linked $kind "$program"
        runs "$program"
    done
done

# As a reader types them, where yours.c is an example. One line at least names an rpath, with which
# a program needs no LD_LIBRARY_PATH.
cp "$here/../examples/linear_attention.c" "$folder/yours.c"
cat "$here"/../README.md "$here"/../docs/*.md | grep '^cc .*pkg-config' >"$folder/lines"
for wanted in static rpath; do
    grep -q -e "$wanted" "$folder/lines" || fail "no line of the documentation links with $wanted"
done
while read -r line; do
    line=${line%%#*}
    rm -f "$folder/yours" "$folder/a.out"
    (cd "$folder" && PKG_CONFIG_PATH=$lib/pkgconfig sh -c "$cc ${line#cc }") >"$log" 2>&1 ||
        fail "$line"
    [ ! -e "$folder/a.out" ] || mv "$folder/a.out" "$folder/yours"
    case $line in
    *static*) linked static "$folder/yours" ;;
    *) linked shared "$folder/yours" ;;
    esac
    case $line in
    *static* | *rpath*) "$folder/yours" >"$log" 2>&1 || fail "not run: $line" ;;
    *) runs "$folder/yours" ;;
    esac
done <"$folder/lines"

# ---- By find_package ----------------------------------------------------------

by_find_package() { # LANGUAGE COMPILER
    quietly "$cmake" -S "$here/consumer" -B "$folder/$1" -DLANGUAGE="$1" \
        -DEXAMPLE="$here/../examples/linear_attention.c" \
        -DCMAKE_"$1"_COMPILER="$2" -DCMAKE_PREFIX_PATH="$prefix"
    quietly "$cmake" --build "$folder/$1"
    for kind in shared static; do
        same "$1 by find_package, $kind" "$folder/$1/$kind"
        linked $kind "$folder/$1/$kind"
    done
}

by_find_package C "$cc"
for kind in shared static; do
    runs "$folder/C/example_$kind"
done
[ -z "$cxx" ] || by_find_package CXX "$cxx"

# Another minor version is another library.
mkdir "$folder/older" && cat >"$folder/older/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(older LANGUAGES NONE)
find_package(tarn 0.0 REQUIRED)
END
"$cmake" -S "$folder/older" -B "$folder/older/build" -DCMAKE_PREFIX_PATH="$prefix" \
    >"$log" 2>&1 && fail "find_package(tarn 0.0) takes $version"

[ -n "$cxx" ] || echo "no C++ compiler: headers and library were tried in C only"
exit $failed
