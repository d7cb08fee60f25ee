# Sourced by the scripts beside it: goes to the repository root and keeps .venv up to date.
# PYTHON names the interpreter for a new .venv (default: python3). Versions are those of
# requirements/test.lock; LOCK names another constraints file, and LOCK= (empty) takes the newest.

set -eu
CDPATH='' cd -- "$(dirname -- "$0")/.."
lock=${LOCK-requirements/test.lock}

# ensure_env EXTRA [loud]: .venv exists, works, and holds the package with that extra; `loud` shows
# what is done.
ensure_env() {
    quiet=-q
    if [ "${2-}" = loud ]; then quiet=; fi
    if ! .venv/bin/python -c 'import pip' >/dev/null 2>&1; then
        if [ -z "$quiet" ]; then echo '* making a virtual environment in .venv'; fi
        "${PYTHON:-python3}" -m venv --clear .venv
    fi
    stamp=.venv/.installed-$1
    checksum=$(cat pyproject.toml ${lock:+"$lock"} | cksum)
    if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$checksum" ]; then
        if [ -z "$quiet" ]; then echo "* installing mercer[$1] and what it needs into .venv"; fi
        # shellcheck disable=SC2086 # nothing, or one word
        .venv/bin/python -m pip install $quiet --disable-pip-version-check --no-input \
            ${lock:+-c "$lock"} -e ".[$1]" </dev/null
        printf '%s\n' "$checksum" >"$stamp"
    fi
    # pip compiles what it copies; of an editable install every process would compile all modules
    .venv/bin/python -m compileall -q src || true
}
