#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/test_foreign_wheel.sh WHEEL FOLDER - tests a wheel for aarch64 on another machine: by
# qemu-user, with Debian's Python and PyPI's NumPy of that system, unpacked in FOLDER. Nobody has to
# be root. Exit status 77: Debian's archive or PyPI cannot be reached.
set -eu
[ $# -eq 2 ] || { echo "usage: tools/test_foreign_wheel.sh WHEEL FOLDER" >&2 && exit 2; }
wheel=$(realpath "$1")
tests=$(cd "$(dirname "$0")/../bindings/python/tests" && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)

# Packages and all that they depend on, of one architecture, unpacked in a folder.
unpack() { # ARCHITECTURE FOLDER PACKAGE...
    architecture=$1
    root=$2
    shift 2
    apt=$folder/apt-$architecture
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/parts" "$root"
    : >"$apt/status"
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
        "http://deb.debian.org/debian $suite main" >"$apt/sources.list"
    cat >"$apt/conf" <<END
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "$apt/parts";
Dir::State::Lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
Debug::NoLocking "true";
END
    APT_CONFIG=$apt/conf apt-get -q update &&
        APT_CONFIG=$apt/conf apt-get -q -y --no-install-recommends --download-only install "$@"
    for package in "$apt"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$root"
    done
}

if [ ! -e "$folder/complete" ]; then
    {
        unpack arm64 "$folder/root" python3-minimal libpython3-stdlib python3-pytest &&
            unpack "$(dpkg --print-architecture)" "$folder/qemu" qemu-user-static &&
            pip install -q --target "$folder/numpy" --platform manylinux2014_aarch64 \
                --python-version 3.11 --only-binary :all: numpy
    } >"$folder/log" 2>&1 || {
        cat "$folder/log" >&2
        echo "Debian's packages for arm64 or NumPy's wheel cannot be fetched"
        exit 77
    }
    touch "$folder/complete"
fi

rm -rf "$folder/wheel"
pip install -q --no-deps --target "$folder/wheel" --platform "$(basename "$wheel" .whl |
    sed 's/.*-py3-none-//; s/\..*//')" --only-binary :all: "$wheel"
run() { # PROGRAM ARGUMENT...
    "$folder/qemu/usr/bin/qemu-aarch64-static" -L "$folder/root" "$@"
}
export PYTHONPATH="$folder/wheel:$folder/numpy:$folder/root/usr/lib/python3/dist-packages"
export PYTHONHOME="$folder/root/usr" PYTHONDONTWRITEBYTECODE=1
unset TARN_LIBRARY
python=$folder/root/usr/bin/python3.11

run "$python" -c 'import platform, tarn
assert platform.machine() == "aarch64"
print("tarn", tarn.__version__, tarn.cpus()[0], tarn.matmul_backend())'
run "$folder/wheel/tarn/bin/tarn" --version
# Not those that start this Python again: the kernel of this machine cannot.
cd "$tests"
run "$python" -m pytest -q -p no:cacheprovider test_attention.py test_data.py test_model.py \
    test_train.py -k "not module and not outside and not forked and not programs"
