#!/bin/sh
# Bundles the locked libraries into ../static/vendor: run it after a change of package-lock.json. Needs Node.
set -eu
cd "$(dirname "$0")"
out=../static/vendor
npm ci --ignore-scripts --no-audit --no-fund
for name in preact codemirror dagre uplot; do
  npx --no-install esbuild "$name.entry.js" --bundle --minify --format=esm --target=es2022 --legal-comments=none \
    --outfile="$out/$name.js"
done
cp node_modules/uplot/dist/uPlot.min.css "$out/uplot.css"
node licences.mjs > "$out/licences.txt"
(cd "$out" && sha256sum ./*.js ./*.css ./licences.txt > ../../vendor/sha256sums.txt)
