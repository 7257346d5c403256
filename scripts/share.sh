#!/usr/bin/env bash
# Puts the completions and the man page where a prefix has them.
#
#   scripts/share.sh FOLDER MANPAGE     FOLDER is PREFIX/share
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
share=${1:?usage: share.sh FOLDER MANPAGE}
page=${2:?usage: share.sh FOLDER MANPAGE}
mkdir -p "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
cp "$page" "$share/man/man1/ocp.1"
cp "$here/cmd/ocp/completion/ocp.bash" "$share/bash-completion/completions/ocp"
cp "$here/cmd/ocp/completion/_ocp" "$share/zsh/site-functions/_ocp"
cp "$here/cmd/ocp/completion/ocp.fish" "$share/fish/vendor_completions.d/ocp.fish"
