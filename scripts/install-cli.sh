#!/usr/bin/env bash
# Installs the Claude Code CLIs that OCP is tested against into .cli/<version>/claude.
#
#   scripts/install-cli.sh                 every version in tools/cli/pins.txt
#   scripts/install-cli.sh VERSION...      these versions (unpinned ones with a warning)
#   scripts/install-cli.sh --paths         print VERSION=/absolute/path,... of the pinned ones
#   scripts/install-cli.sh --pin VERSION   print the lines that pin VERSION
#
# Only the package with this platform's binary is fetched, by npm, with no install
# scripts run. npm refuses a package that does not match its pin. A binary appears at
# its path only when it is complete and has answered --version, so an interrupted
# install is simply done again, and runs at the same time do not disturb each other.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
pins=$root/tools/cli/pins.txt
dest=$root/.cli
platforms="darwin-arm64 darwin-x64 linux-arm64 linux-arm64-musl linux-x64 linux-x64-musl"

lock=  # the lock this process holds, if any
tmp=   # the folder this process is installing into, if any

fail() {
  printf 'install-cli: %s\n' "$@" >&2
  exit 1
}

cleanup() {
  if [ -n "$tmp" ]; then rm -rf "$tmp"; fi
  if [ -n "$lock" ]; then rm -f "$lock"; fi
  tmp='' lock=''
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

platform() {
  local os arch
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) fail "no Claude Code package for $(uname -s); use Linux or macOS" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) arch=x64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "no Claude Code package for $(uname -m); use x86-64 or arm64" ;;
  esac
  if [ "$os" = linux ] && is_musl; then arch=$arch-musl; fi
  echo "$os-$arch"
}

is_musl() {
  # musl's ldd fails on --version, so its text is read first and judged after.
  local text
  text=$(ldd --version 2>&1 || true)
  case $text in *musl*) return 0 ;; *) return 1 ;; esac
}

pinned_versions() {
  awk '!/^#/ && NF && !seen[$1]++ { print $1 }' "$pins"
}

# pin VERSION PLATFORM prints the pinned integrity, or nothing.
pin() {
  awk -v v="$1" -v p="$2" '$1 == v && $2 == p { print $3; exit }' "$pins"
}

need_npm() {
  command -v npm >/dev/null 2>&1 || fail \
    "npm is needed to fetch the Claude Code CLI and was not found in PATH" \
    "install Node.js 18 or newer with npm, then run this again"
}

alive() { kill -0 "$1" 2>/dev/null; }

# acquire VERSION takes the version's lock: a link whose target is the owner's pid. A
# lock whose owner is gone is taken over. Losing that race costs a second download and
# nothing else, because each process installs into a folder of its own.
acquire() {
  local path=$dest/.lock-$1 owner told=
  until ln -s "$$" "$path" 2>/dev/null; do
    owner=$(readlink "$path" || true)
    if [ -z "$owner" ]; then
      # Released since, or the folder does not let us write.
      [ -w "$dest" ] || fail "cannot write to $dest"
    elif ! alive "$owner"; then
      rm -f "$path"
    elif [ -z "$told" ]; then
      echo "cli $1: waiting for the install by process $owner"
      told=yes
    fi
    sleep 0.2
  done
  lock=$path
}

# present VERSION RECORD reports whether what RECORD says is installed.
present() {
  [ -x "$dest/$1/claude" ] && [ "$(cat "$dest/$1/installed" 2>/dev/null)" = "$2" ]
}

install() {
  local version=$1 platform package integrity record log binary said
  case $version in
    [0-9]*.[0-9]*.[0-9]*) ;;
    *) fail "not a version: $version" ;;
  esac
  platform=$(platform)
  package=@anthropic-ai/claude-code-$platform
  integrity=$(pin "$version" "$platform")
  record="$package@$version ${integrity:-unpinned}"
  if present "$version" "$record"; then
    echo "cli $version: present"
    return
  fi
  need_npm
  mkdir -p "$dest"
  acquire "$version"
  if present "$version" "$record"; then
    echo "cli $version: present"
    cleanup
    return
  fi
  local old
  for old in "$dest/.tmp-$version-"*; do
    if [ -d "$old" ] && ! alive "${old##*-}"; then rm -rf "$old"; fi
  done

  echo "cli $version: installing (up to 400 MB on disk) ..."
  [ -n "$integrity" ] || echo "cli $version: not in tools/cli/pins.txt, so it is checked only against the registry's own checksum" >&2
  tmp=$dest/.tmp-$version-$$
  log=$tmp/npm.log
  rm -rf "$tmp"
  mkdir "$tmp"
  cat >"$tmp/package.json" <<JSON
{"name": "ocp-cli", "private": true, "dependencies": {"$package": "$version"}}
JSON
  local npm_command=install
  if [ -n "$integrity" ]; then
    npm_command=ci
    cat >"$tmp/package-lock.json" <<JSON
{
  "name": "ocp-cli",
  "lockfileVersion": 3,
  "requires": true,
  "packages": {
    "": {"name": "ocp-cli", "dependencies": {"$package": "$version"}},
    "node_modules/$package": {"version": "$version", "integrity": "$integrity"}
  }
}
JSON
  fi
  if ! (cd "$tmp" && npm "$npm_command" --ignore-scripts --no-audit --no-fund --no-update-notifier --package-lock) >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    fail "npm could not install $package@$version (its output is above)" \
      "EINTEGRITY: the package is not the one pinned in tools/cli/pins.txt; do not use it" \
      "ENOSPC: free 1 GB of disk; a network error: check the registry and proxy that npm is set to" \
      "then run this again"
  fi
  binary=$tmp/node_modules/$package/claude
  [ -x "$binary" ] || fail "$package@$version holds no program named claude"
  # The configuration folder is a throwaway so that nothing of the user's is touched.
  if ! said=$(CLAUDE_CONFIG_DIR=$tmp/config DISABLE_AUTOUPDATER=1 "$binary" --version 2>&1 </dev/null); then
    fail "claude $version does not run on this machine:" "$said"
  fi
  case $said in
    "$version "* | "$version") ;;
    *) fail "claude --version of $version answered: $said" ;;
  esac
  mkdir -p "$dest/$version"
  rm -f "$dest/$version/installed"
  mv -f "$binary" "$dest/$version/claude"
  echo "$record" >"$tmp/installed"
  mv -f "$tmp/installed" "$dest/$version/installed"
  cleanup
  echo "cli $version: installed"
}

paths() {
  local version list=
  for version in $(pinned_versions); do
    list=${list:+$list,}$version=$dest/$version/claude
  done
  echo "$list"
}

print_pins() {
  need_npm
  local version=$1 platform integrity
  for platform in $platforms; do
    integrity=$(npm view "@anthropic-ai/claude-code-$platform@$version" dist.integrity)
    [ -n "$integrity" ] || fail "npm knows no @anthropic-ai/claude-code-$platform@$version"
    printf '%-9s  %-16s  %s\n' "$version" "$platform" "$integrity"
  done
}

case ${1-} in
  --paths) paths ;;
  --pin)
    [ $# -eq 2 ] || fail "usage: install-cli.sh --pin VERSION"
    print_pins "$2"
    ;;
  -*) fail "unknown option $1; see the head of this script" ;;
  *)
    if [ $# -eq 0 ]; then
      # The versions are words without spaces, one a line.
      # shellcheck disable=SC2046
      set -- $(pinned_versions)
    fi
    [ $# -gt 0 ] || fail "no versions in tools/cli/pins.txt"
    for version in "$@"; do install "$version"; done
    ;;
esac
