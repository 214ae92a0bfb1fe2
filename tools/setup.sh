#!/usr/bin/env bash
# setup.sh: installs the Debian 12 packages that are missing for building and testing Duet.
#
#   tools/setup.sh            what the build, the tests and the demo need
#   tools/setup.sh --check    prints what is missing; exit code 1 if anything is
#   tools/setup.sh --bench    also CAF, the peer of `duet-bench actors`
set -euo pipefail

packages=(
  # build
  g++ cmake ninja-build ccache pkg-config git
  libboost1.81-all-dev libboost-json1.81-dev libyaml-cpp-dev libssl-dev libpcre2-dev libhwy-dev
  # tests: the second compiler, the formatter, the template oracle
  clang-16 libclang-rt-16-dev clang-format python3 python3-jinja2
)
# tests: gets OpenAI's client and its Node.js; Debian's, unless there is one from elsewhere
command -v npm >/dev/null || packages+=(npm)

case "${1:-}" in
  ''|--check) ;;
  --bench) packages+=(libcaf-dev) ;;
  -h|--help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "setup.sh: unknown option '$1'; see tools/setup.sh --help" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "setup.sh: this is not a Debian system; install these yourself: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: nothing is missing"
  exit 0
fi
echo "setup: missing: ${missing[*]}"
[ "${1:-}" = --check ] && exit 1

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: run it as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "setup: installed ${#missing[@]} packages"
