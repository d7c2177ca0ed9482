#!/bin/sh
# Shows that the README's commands work for a stranger: clones the project into an empty directory, with
# HOME and every cache empty, and runs the set-up twice, then the targets given (for example: demo test).
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
git clone --quiet "$source" "$place/clone"
mkdir "$place/home"
cd "$place/clone"
stranger() {
    env -u XDG_CACHE_HOME -u KSQL_CACHE_DIR -u PIP_CACHE_DIR -u VIRTUAL_ENV HOME="$place/home" "$@"
}
for target in setup setup "$@"; do
    began=$(date +%s)
    stranger make --no-print-directory "$target"
    echo "fresh: make $target took $(($(date +%s) - began)) s"
done
