#!/usr/bin/env bash
# Installs the JavaScript clients that OCP is tested with into e2e/clients/node_modules:
# those of e2e/clients/package-lock.json, with no install scripts run. npm refuses a
# package that does not match the lock file. The folder appears only when it is complete,
# so an interrupted install is simply done again.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
clients=$root/e2e/clients
modules=$clients/node_modules
tmp=$clients/.tmp-$$

fail() {
  printf 'install-clients: %s\n' "$@" >&2
  exit 1
}

trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# What is installed is known by its lock file and its platform.
want="$(uname -sm) $(cksum <"$clients/package-lock.json")"

present() { [ "$(cat "$modules/.installed" 2>/dev/null)" = "$want" ]; }

if present; then
  echo "clients: present"
  exit
fi
for program in node npm; do
  command -v "$program" >/dev/null 2>&1 || fail \
    "$program was not found in PATH" "install Node.js 20 or newer with npm, then run this again"
done
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] ||
  fail "node $(node --version) is too old for the clients; install 20 or newer"

echo "clients: installing (320 MB on disk) ..."
for old in "$clients"/.tmp-*; do
  if [ -d "$old" ] && ! kill -0 "${old##*-}" 2>/dev/null; then rm -rf "$old"; fi
done
mkdir "$tmp"
cp "$clients/package.json" "$clients/package-lock.json" "$tmp/"
if ! (cd "$tmp" && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier) >"$tmp/npm.log" 2>&1 </dev/null; then
  cat "$tmp/npm.log" >&2
  fail "npm could not install the clients (its output is above)" \
    "EINTEGRITY: a package is not the one of package-lock.json; do not use it" \
    "ENOSPC: free 1 GB of disk; a network error: check the registry and proxy that npm is set to" \
    "then run this again"
fi
if present; then exit; fi # by another process, meanwhile
echo "$want" >"$tmp/node_modules/.installed"
rm -rf "$modules"
mv "$tmp/node_modules" "$modules"
echo "clients: installed"
