#!/usr/bin/env bash
# demo.sh: installs what is missing, builds, and lets both demo models answer at the same time on the emulated board.
#
#   tools/demo.sh            runs the acceptance sequence, then asks both models
#   tools/demo.sh --once     the same; for scripts (there is no server yet that would go on)
#
# Exit code 0 if everything passed, 1 if something failed, 2 for wrong use.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  ''|--once) ;;
  -h|--help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "demo.sh: unknown option '$1'; see tools/demo.sh --help" >&2; exit 2 ;;
esac

tools/setup.sh
echo "demo: configuring and building (the first time takes some minutes)"
configure_log=$(mktemp)
trap 'rm -f "$configure_log"' EXIT
cmake --preset release >"$configure_log" 2>&1 || { cat "$configure_log" >&2; exit 1; }
cmake --build --preset release --target demo

build=build/release
echo "demo: two models on two chips; each device call in order"
"$build/bin/duet-accept" run "$build/demo-package" --trust "$build/demo-key.pub" \
  --ask "model-a=What is 47 + 385?" \
  --ask "model-b=Tell me a story about a brave fox and a river."
