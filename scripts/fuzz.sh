#!/usr/bin/env bash
# Fuzzes every fuzz target of the module, one after the other.
#
#   scripts/fuzz.sh TIME     for instance 30s, or 10000x for a number of runs
#
# A target fails when it finds a failing input, which go then keeps under the package's
# testdata/fuzz/ so that the ordinary tests run it from then on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
time=${1:?usage: fuzz.sh TIME}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Only folders that hold a fuzz target are compiled.
folders=$(find . -path './.*' -prune -o -name '*_test.go' -exec grep -l '^func Fuzz' {} \; |
  sed 's|/[^/]*$||' | sort -u)
if [ -z "$folders" ]; then
  echo "fuzz: no fuzz targets"
  exit 0
fi

failed=0
for folder in $folders; do
  listed=$(go test -list '^Fuzz' "$folder")
  targets=$(grep '^Fuzz' <<<"$listed" || true)
  for target in $targets; do
    echo "fuzz: $folder $target for $time"
    if go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$folder" >"$log" 2>&1; then
      continue
    fi
    # At the end of its time go may report its own deadline as the target's failure
    # (golang/go#75804, seen up to Go 1.26). It is told from a finding by what is
    # missing: an input that fails is always written down.
    if grep -q '^ *context deadline exceeded$' "$log" && ! grep -Eq 'Failing input written|panic:|hung or terminated' "$log"; then
      echo "fuzz: $folder $target: stopped late, nothing found"
      continue
    fi
    cat "$log"
    failed=1
  done
done
exit $failed
