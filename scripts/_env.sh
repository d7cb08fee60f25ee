# Sourced by the scripts beside it: goes to the repository root and keeps .venv up to date.
# PYTHON names the interpreter for a new .venv (default: python3).

set -eu
CDPATH='' cd -- "$(dirname -- "$0")/.."

# ensure_env EXTRA: .venv exists, works, and holds the package with that extra.
ensure_env() {
    if ! .venv/bin/python -c 'import pip' >/dev/null 2>&1; then
        "${PYTHON:-python3}" -m venv --clear .venv
    fi
    stamp=.venv/.installed-$1
    checksum=$(cksum <pyproject.toml)
    if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$checksum" ]; then
        .venv/bin/python -m pip install -q --disable-pip-version-check --no-input -e ".[$1]" </dev/null
        printf '%s\n' "$checksum" >"$stamp"
    fi
}
