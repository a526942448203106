#!/usr/bin/env bash
# Run the quickstart from start to end and leave what it shows in output/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash .ci/venv.sh notebook,io
mkdir -p output
cp notebooks/01_quickstart.ipynb output/
echo "Running notebooks/01_quickstart.ipynb (about a minute; installing takes another)"
nbconvert() { .venv/bin/python -m nbconvert --log-level ERROR "$@"; }
nbconvert --to notebook --execute --inplace output/01_quickstart.ipynb
nbconvert --to html --CoalesceStreamsPreprocessor.enabled=True output/01_quickstart.ipynb
echo "Done. Read it in a browser: $PWD/output/01_quickstart.html"
echo "The executed notebook:      $PWD/output/01_quickstart.ipynb"
