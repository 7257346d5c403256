#!/usr/bin/env bash
# Installs the programs that tests use and that are not Go or npm packages.
#
#   scripts/install-debian.sh PROGRAM...     for instance: tmux haproxy chromium
#
# A program that is in PATH is left alone. The others are installed as Debian packages,
# which takes root or sudo. Elsewhere it says what to install and fails.
set -euo pipefail

fail() {
  printf 'install-debian: %s\n' "$@" >&2
  exit 1
}

# package PROGRAM prints the name of the package that holds it.
package() {
  case $1 in
    groff) echo groff-base ;;
    systemd-analyze) echo systemd ;;
    *) echo "$1" ;;
  esac
}

missing=()
for program in "$@"; do
  command -v "$program" >/dev/null 2>&1 || [ -x "/usr/sbin/$program" ] || missing+=("$(package "$program")")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null 2>&1 || fail "install these as root: ${missing[*]}"
  as_root=(sudo -n)
fi
command -v apt-get >/dev/null 2>&1 || fail "there is no apt-get here; install these yourself: ${missing[*]}"

export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The package lists of a fresh machine may be empty or too old to be served still.
{ "${as_root[@]}" apt-get update -q &&
  "${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 || {
  cat "$log" >&2
  fail "could not install: ${missing[*]}"
}
echo "installed: ${missing[*]}"
