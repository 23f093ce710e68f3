#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/serve.sh PROGRAM MAKE_MODELS MAKE_TONES - tarn serve, see serve_requests.py.
command -v python3 >/dev/null || { echo "no python3" && exit 77; }
exec python3 "$(dirname "$0")/serve_requests.py" "$@"
