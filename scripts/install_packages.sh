#!/usr/bin/env bash
# Installs the Debian packages that warmpath needs; does nothing, quickly, when they are there.
#
# usage: scripts/install_packages.sh [run|test|bench|fuzz]...     default: run
#   run    what building and running takes
#   test   also what the tests take (GoogleTest, Node.js, Python venv)
#   bench  also what the benches compare with (nginx, valgrind)
#   fuzz   also clang with libFuzzer (docs/fuzzing.md)
# Knows Debian 12 (bookworm) and 13 (trixie). Needs root, or a user with sudo.
set -euo pipefail

die() { echo "install_packages: $*" >&2; exit 1; }

[ "$(uname -s)" = Linux ] && [ "$(uname -m)" = x86_64 ] || die "warmpath runs on Linux x86-64; this is $(uname -s) $(uname -m)"
[ -r /etc/os-release ] || die "no /etc/os-release: only Debian 12 and 13 are known"
# shellcheck disable=SC1091
. /etc/os-release
case "${VERSION_CODENAME:-}" in
  bookworm) boost=1.81 clang=14 ;;
  trixie) boost=1.83 clang=19 ;;
  *) die "this is ${PRETTY_NAME:-an unknown system}; only Debian 12 (bookworm) and 13 (trixie) are known. Install the packages listed in this script by hand, then use cmake --preset release" ;;
esac

packages=(
  g++ cmake ninja-build ccache pkg-config git ca-certificates
  "libboost$boost-dev" "libboost-json$boost-dev" "libboost-url$boost-dev" "libboost-context$boost-dev"
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libxxhash-dev libyaml-cpp-dev libsimdjson-dev libssl-dev libpcre2-dev libutf8proc-dev libspdlog-dev libfmt-dev libcli11-dev prometheus-cpp-dev
  python3 python3-pip
)
for set in "${@:-run}"; do
  case "$set" in
    run) ;;
    test) packages+=(libgtest-dev libgmock-dev python3-venv nodejs npm) ;;
    bench) packages+=(nginx-light valgrind python3-venv) ;;
    fuzz) packages+=(clang "libclang-rt-$clang-dev") ;;
    *) die "unknown set '$set'; the sets are run, test, bench and fuzz" ;;
  esac
done

# A tool that is already on the PATH (a newer CMake, a Node.js of one's own) is not installed over.
provided() {
  case "$1" in
    nodejs) command -v node ;;
    npm | cmake | ccache | git | python3) command -v "$1" ;;
    ninja-build) command -v ninja ;;
    python3-pip) python3 -m pip --version ;;
    python3-venv) python3 -c 'import venv, ensurepip' ;;
    *) false ;;
  esac >/dev/null 2>&1
}

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || provided "$package" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || die "these packages are missing and need root or sudo to install: ${missing[*]}"
  as_root=(sudo)
fi
echo "== installing ${#missing[@]} Debian packages: ${missing[*]}"
# Another apt at work holds the lists lock, which apt-get update does not wait for.
for attempt in 1 2 3 4 5 6; do
  "${as_root[@]}" apt-get update -qq && break
  [ "$attempt" -lt 6 ] || die "apt-get update failed"
  sleep 5
done
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "${missing[@]}" >/dev/null ||
  die "apt-get install failed; run it by hand to see why: apt-get install ${missing[*]}"
