# Shared by scripts/perf-check and scripts/test: running a child so that a signal reaches it, and
# nothing that was started outlives the script. The script defines `cleanup`.

child=

# Runs a command and waits for it; a trap can run meanwhile, which it cannot beside a foreground child.
run() {
    local code=0
    # A script's background children ignore Ctrl-C unless told otherwise, and theirs do too.
    (trap - INT QUIT && exec "$@") </dev/null &
    child=$!
    wait "$child" || code=$?
    child=
    return "$code"
}

# Ends what `run` runs. Ctrl-C at a terminal has reached it already, so it gets time to end by itself.
end_child() { # SECONDS
    [ -n "$child" ] || return 0
    local waited=0
    while [ "$waited" -lt "$(($1 * 10))" ] && kill -0 "$child" 2>/dev/null; do
        sleep 0.1
        waited=$((waited + 1))
    done
    kill -TERM "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
    child=
}

# A second signal while tidying up is ignored: it would leave the server behind.
trap 'trap "" INT TERM HUP; end_child 3; exit 130' INT
trap 'trap "" INT TERM HUP; end_child 0; exit 143' TERM
trap 'trap "" INT TERM HUP; end_child 0; exit 129' HUP
trap 'code=$?; trap "" INT TERM HUP; cleanup; exit $code' EXIT
