#!/usr/bin/env bash
# Make .venv in the repository's root, unless it is there, and install trajlab into it with the extras named.
#
#     bash .ci/venv.sh test,docs
#
# PYTHON names the interpreter to make it with (3.11 or newer); otherwise the first such one on the PATH is taken.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
extras=$1

find_python() {
    local name
    for name in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    echo "trajlab needs Python 3.11 or newer: none found (tried ${PYTHON:-python3, python3.13 to 3.11, python}). Set PYTHON." >&2
    return 1
}

if [ ! -x .venv/bin/python ]; then
    python=$(find_python)
    echo "Making .venv with $("$python" --version)"
    "$python" -m venv .venv
fi

# Asking pip takes seconds and a network: skip it while nothing that it would read has changed.
stamp=.venv/.trajlab-$(cat pyproject.toml - <<< "$PWD $extras" | cksum | tr ' ' '-')
if [ ! -e "$stamp" ]; then
    echo "Installing trajlab[$extras] into .venv"
    .venv/bin/python -m pip install -qq --disable-pip-version-check --editable ".[$extras]"
    touch "$stamp"
fi
