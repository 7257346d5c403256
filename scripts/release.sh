#!/usr/bin/env bash
# Builds what is released into dist/: an archive for each system, and SHA256SUMS.
#
#   scripts/release.sh            build into dist/
#   scripts/release.sh --check    build twice, here and from a copy at another path, and compare
#
# The version is VERSION, or what git says of the commit. The same commit, Go and version
# give the same bytes. Nothing is fetched: `go mod download` must have been run once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  printf 'release: %s\n' "$@" >&2
  exit 1
}

tar --version 2>/dev/null | grep -q 'GNU tar' || fail "GNU tar is needed, for archives that are the same each time"
version=${VERSION:-$(git describe --tags --always --dirty)} || fail "give a VERSION, since git knows none"
[[ $version =~ ^[A-Za-z0-9][A-Za-z0-9.+_-]*$ ]] || fail "VERSION: $version cannot be part of a file's name"
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} || fail "give a SOURCE_DATE_EPOCH, since git knows none"
export CGO_ENABLED=0 GOPROXY=off GOTOOLCHAIN=local

# build OUT OS ARCH
build() {
  GOOS=$2 GOARCH=$3 go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.released=$version" -o "$1" ./cmd/ocp ||
    fail "could not build for $2/$3; if modules are missing, run: go mod download"
}

# release FOLDER
release() {
  local dist=$1 work system name
  work=$(mktemp -d)
  mkdir -p "$dist"
  build "$work/here" "$(go env GOHOSTOS)" "$(go env GOHOSTARCH)"
  "$work/here" man >"$work/ocp.1"
  for system in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
    name=ocp-$version-${system%/*}-${system#*/}
    build "$work/$name/bin/ocp" "${system%/*}" "${system#*/}"
    scripts/share.sh "$work/$name/share" "$work/ocp.1"
    mkdir "$work/$name/docs" "$work/$name/deploy"
    cp docs/*.md "$work/$name/docs/"
    cp -R deploy/systemd deploy/launchd deploy/haproxy deploy/grafana deploy/prometheus deploy/Containerfile "$work/$name/deploy/"
    cp LICENSE README.md "$work/$name/"
    chmod -R u=rwX,go=rX "$work/$name"
    tar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --format=ustar -C "$work" -cf - "$name" |
      gzip -9n >"$dist/$name.tar.gz"
  done
  (cd "$dist" && sha256sum "ocp-$version-"*.tar.gz >SHA256SUMS)
  rm -rf "$work"
}

case ${1:-} in
  '')
    rm -rf dist
    release dist
    cat dist/SHA256SUMS
    ;;
  --check)
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    release "$copy/first"
    mkdir "$copy/elsewhere"
    git ls-files -z | tar --null -T - -cf - | tar -C "$copy/elsewhere" -xf -
    (export VERSION=$version SOURCE_DATE_EPOCH=$epoch; cd "$copy/elsewhere" && scripts/release.sh >/dev/null)
    cmp "$copy/first/SHA256SUMS" "$copy/elsewhere/dist/SHA256SUMS" || fail "two builds of one commit differ"
    echo "release: the same bytes twice"
    cat "$copy/first/SHA256SUMS"
    ;;
  *) fail "unknown argument: $1" ;;
esac
