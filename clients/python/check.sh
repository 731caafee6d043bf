#!/usr/bin/env bash
# check.sh [FOLDER [wheel]]: builds the Python package into FOLDER (default dist/python), and unless only the wheel
# is wanted, tests it against a real cluster with the oldest supported Python, a newer one and the newest: each of
# them that is installed, pyenv's too; with CI set none may be missing. PYTHONS names other interpreters. Tools
# come from PyPI, once, into the cache.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
package=$PWD/clients/python
out=$(realpath -m "${1:-dist/python}")
cache=$PWD/node_modules/.cache/python
tools=(build mypy ruff)
test_tools=(pytest nbclient nbformat ipykernel)

# $(interpreter python3.9) prints the program of that name that works: the one of PATH, else pyenv's newest.
interpreter() {
  local candidate
  for candidate in "$1" $(printf '%s\n' "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/"$1" | sort -rV); do
    if "$candidate" -c 'import sys, venv; assert sys.version_info >= (3, 9)' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "python: $1 is missing" >&2
  [ -z "${CI:-}" ]
}

found=()
for name in ${PYTHONS:-python3.9 python3.11 python3.13}; do
  python=$(interpreter "$name")
  [ -z "$python" ] || found+=("$python")
done
if [ ${#found[@]} = 0 ]; then
  python=$(interpreter python3)
  [ -n "$python" ] || { echo "python: skipped, Python 3.9 or newer is missing" >&2; exit 0; }
  found=("$python")
fi

# $(venv PYTHON NAME PACKAGES…) prints the folder of a virtual environment with these packages.
venv() {
  local python=$1 folder=$cache/$2
  shift 2
  if [ ! -e "$folder/complete" ]; then
    rm -rf "$folder"
    "$python" -m venv "$folder"
    [ $# = 0 ] || "$folder/bin/pip" install -q --disable-pip-version-check "$@" >&2
    touch "$folder/complete"
  fi
  echo "$folder"
}

newest=${found[-1]}
cd "$package"
if [ "${2:-}" = wheel ]; then
  build=$(venv "$newest" build build)
  rm -rf "$out"
  "$build/bin/python" -m build -o "$out" . > /dev/null
  ls "$out"/*.whl
  exit 0
fi
check=$(venv "$newest" check "${tools[@]}")
"$check/bin/ruff" check -q .
"$check/bin/ruff" format -q --check .
"$check/bin/mypy" --no-error-summary
rm -rf "$out"
"$check/bin/python" -m build -o "$out" . > /dev/null
wheel=$(echo "$out"/*.whl)

for python in "${found[@]}"; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  # The wheel brings no other package.
  clean=$(mktemp -d)
  "$python" -m venv "$clean"
  "$clean/bin/pip" install -q --disable-pip-version-check --no-index "$wheel"
  others=$("$clean/bin/pip" list --disable-pip-version-check --format=freeze | grep -Eiv '^(headroom-client|pip|setuptools|wheel)==' || true)
  (cd / && "$clean/bin/python" -c 'import headroom_client; headroom_client.Client(environment={})')
  rm -rf "$clean"
  [ -z "$others" ] || { echo "python: the wheel brings $others" >&2; exit 1; }
  folder=$(venv "$python" "test-$version" "${test_tools[@]}")
  "$folder/bin/pip" install -q --disable-pip-version-check --no-deps --force-reinstall "$wheel"
  echo "== Python $version"
  "$folder/bin/pytest" -q -p no:cacheprovider
done
ls -l "$out"
