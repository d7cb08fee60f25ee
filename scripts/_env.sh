# Sourced by the scripts beside it: goes to the repository root and keeps .venv up to date.
# PYTHON names the interpreter for a new .venv (default: python3). Versions are those of
# requirements/test.lock; LOCK names another constraints file, and LOCK= (empty) takes the newest.

set -eu
CDPATH='' cd -- "$(dirname -- "$0")/.."
lock=${LOCK-requirements/test.lock}

# ensure_env EXTRA: .venv exists, works, and holds the package with that extra.
ensure_env() {
    if ! .venv/bin/python -c 'import pip' >/dev/null 2>&1; then
        "${PYTHON:-python3}" -m venv --clear .venv
    fi
    stamp=.venv/.installed-$1
    checksum=$(cat pyproject.toml ${lock:+"$lock"} | cksum)
    if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$checksum" ]; then
        .venv/bin/python -m pip install -q --disable-pip-version-check --no-input \
            ${lock:+-c "$lock"} -e ".[$1]" </dev/null
        printf '%s\n' "$checksum" >"$stamp"
    fi
}
