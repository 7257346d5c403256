#!/usr/bin/env bash
# Fuzzes every fuzz target of the module, two at a time with one worker each.
#
#   scripts/fuzz.sh TIME [REST]
#
# TIME is for instance 30s, or 10000x for a number of runs. With REST, the targets other
# than those listed as outer get that instead.
#
# A target fails when it finds a failing input, which go then keeps under the package's
# testdata/fuzz/ so that the ordinary tests run it from then on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
time=${1:?usage: fuzz.sh TIME [REST]}
rest=${2:-$time}

# What reads bytes that others wrote, and what others read of ours.
outer='
./internal/anthropic FuzzDecodeMessages
./internal/claude FuzzSettings
./internal/hook FuzzDecode
./internal/openai FuzzDecodeChat
./internal/openai FuzzDecodeResponses
./internal/transcript FuzzParse
'

# fuzz FOLDER TARGET TIME
fuzz() {
  local log
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  # Without a bound, making one interesting input smaller may take all of a worker's time.
  if go test -run '^$' -fuzz "^$2\$" -fuzztime "$3" -fuzzminimizetime 100x -parallel 1 "$1" >"$log" 2>&1; then
    echo "fuzz: $1 $2 for $3: $(grep -Eo 'execs: [0-9]+' "$log" | tail -1)"
  # At the end of its time go may report its own deadline as the target's failure
  # (golang/go#75804, seen up to Go 1.26). It is told from a finding by what is
  # missing: an input that fails is always written down.
  elif grep -q '^ *context deadline exceeded$' "$log" && ! grep -Eq 'Failing input written|panic:|hung or terminated' "$log"; then
    echo "fuzz: $1 $2 for $3: stopped late, nothing found"
  else
    cat "$log"
    echo "fuzz: $1 $2 FAILED"
    return 1
  fi
}
export -f fuzz

targets=$(find . -path './.*' -prune -o -name '*_test.go' -exec grep -Ho '^func Fuzz[A-Za-z0-9_]*' {} \; |
  sed -E 's|/[^/]*:func | |' | sort -u)
long=$(grep -Fx "$outer" <<<"$targets" || true)
if [ "$(grep -c . <<<"$long")" != "$(grep -c . <<<"$outer")" ]; then
  echo "fuzz: a target listed in this script is not there" >&2
  exit 1
fi
short=$(grep -Fvx "$outer" <<<"$targets" || true)

{ sed "s|\$| $time|" <<<"$long"; sed "s|\$| $rest|" <<<"$short"; } |
  xargs -P 2 -L 1 bash -c 'fuzz "$@"' fuzz
