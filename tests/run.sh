#!/usr/bin/env bash
# Check everything: lint, format, types, the tests, and the docs with their notebooks.
#
#     bash tests/run.sh             all of it, each check even where an earlier one failed
#     bash tests/run.sh lint docs   only these; the names are those of the functions below
#     bash tests/run.sh slow benchmarks   what takes longer: training with three seeds, and whether the benchmarks run
#     bash tests/run.sh interop    on real environments: Gymnasium, gymnax, brax, jumanji, navix; installs what they need
#
# The tests hold the floors (which module may import which), the doctests of the package, README and docs, and run
# every notebook that the docs do not run. PYTEST_ADDOPTS adds options to pytest, PYTHON names the
# interpreter to make .venv with.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

lint() { .venv/bin/ruff check; }
format() { .venv/bin/ruff format --check; }
types() { .venv/bin/mypy; }
make_docs() { .venv/bin/sphinx-build -E -q -W --keep-going -n -b html docs docs/_build/html; }
docs() {
    wait "$docs_made" && made=0 || made=$?
    cat "$docs_log"
    return $made
}
# The docs run the notebooks, strictly, so where they are made the tests do not run them again. They use one core, and are
# made beside all other checks.
tests() {
    .venv/bin/python -m pytest -n logical --maxprocesses 4 \
        ${docs_made:+--deselect=tests/test_notebooks.py::test_notebook_runs}
}
slow() { .venv/bin/python -m pytest -m slow; }
interop() { bash .ci/venv.sh all,interop && .venv/bin/python -m pytest -m interop; }
benchmarks() { .venv/bin/python -m pytest -m benchmark; }

bash .ci/venv.sh all || exit 1
[ $# -gt 0 ] || set -- lint format types tests docs
results=()
docs_made=
status=0
if [[ " $* " = *" docs "* ]]; then
    docs_log=$(mktemp)
    trap 'rm -f "$docs_log"' EXIT
    make_docs > "$docs_log" 2>&1 &
    docs_made=$!
fi
for check in "$@"; do
    printf '\n== %s\n' "$check"
    start=$SECONDS
    if "$check"; then outcome=ok; else outcome=FAILED status=1; fi
    results+=("$(printf '%-10s %-7s %4d s' "$check" "$outcome" $((SECONDS - start)))")
done
printf '\n'
printf '%s\n' "${results[@]}"
exit $status
