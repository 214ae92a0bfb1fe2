#!/usr/bin/env bash
# demo.sh: installs what is missing, builds, serves both demo models on the emulated board, and asks both at the same time.
#
#   tools/demo.sh            asks, shows both answers side by side, and goes on serving on port 8000 until Ctrl-C
#   tools/demo.sh --once     ends after the answers; on a port of the system's choice
#   tools/demo.sh --port N   as the first, on another port
#
# Exit code 0 if everything went well, 1 if something failed, 2 for wrong use.
set -euo pipefail
cd "$(dirname "$0")/.."

once=
port=8000
case "${1:-}" in
  '') ;;
  --once) once=yes; port=0 ;;
  --port)
    port=${2:-}
    case "$port" in
      ''|*[!0-9]*) echo "demo.sh: --port wants a number, not '$port'" >&2; exit 2 ;;
    esac
    shift ;;
  -h|--help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "demo.sh: unknown option '$1'; see tools/demo.sh --help" >&2; exit 2 ;;
esac

[ $# -le 1 ] || { echo "demo.sh: unknown option '$2'; see tools/demo.sh --help" >&2; exit 2; }

tools/setup.sh
echo "demo: configuring and building (the first time takes some minutes)"
work=$(mktemp -d)
server=
finish() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server"; } || true
  rm -rf "$work"
}
trap finish EXIT
cmake --preset release >"$work/configure" 2>&1 || { cat "$work/configure" >&2; exit 1; }
cmake --build --preset release --target demo

bin=build/release/bin
export DUET_ADMIN_SOCKET=$work/admin
echo "demo: starting duet-server with config/demo.yaml: model-a (abacus) on chip 0, model-b (fable) on chip 1"
# Its own board, so that a demo beside a server does not wait for the same one.
# In a session of its own: Ctrl-C reaches this script alone, which then lets running answers finish.
setsid "$bin/duet-server" --config config/demo.yaml --port "$port" --port-file "$work/port" \
  --admin-socket "$DUET_ADMIN_SOCKET" --board "demo-$$" 2>"$work/log" &
server=$!
failed() {
  echo "demo.sh: $1; the server said:" >&2
  cat "$work/log" >&2
  exit 1
}
until [ -s "$work/port" ]; do
  kill -0 "$server" 2>/dev/null || failed "the server did not start"
  sleep 0.1
done
port=$(cat "$work/port")
"$bin/duet-ctl" wait || failed "the models did not become ready"
"$bin/duet-ctl" models
"$bin/duet-ctl" trace >/dev/null   # of the goldens; what comes now is the answers' own

echo "demo: asking both at the same time on http://127.0.0.1:$port/v1"
ask() {
  "$bin/duet-ctl" ask --address "127.0.0.1:$port" \
    "model-a=What is 47 + 385?" \
    "model-b=Tell me a story about a brave fox and a river." || failed "a model did not answer"
}
ask
# The sum is computed in three milliseconds; on a busy machine the chips' threads may just take turns.
tries=1
until "$bin/duet-ctl" trace --overlap; do
  [ "$tries" -lt 20 ] || failed "the chips took turns"
  tries=$((tries + 1))
  echo "demo: the machine is busy; asking again"
  ask >/dev/null
done

if [ -n "$once" ]; then
  kill "$server"
  wait "$server" || failed "the server did not end well"
  server=
  echo "demo: done"
  exit 0
fi
echo "demo: serving on http://127.0.0.1:$port/v1; its log is $work/log. Ctrl-C ends it. Try:"
echo "  build/release/bin/duet-ctl ask --address 127.0.0.1:$port \"model-a=What is 7 x 8?\""
echo "  build/release/bin/duet-ctl ps --socket $DUET_ADMIN_SOCKET"
wait "$server"
