#!/bin/sh
# Writes the page of retryplan serve into a directory, as files for any web server: package retryplan computes in the
# browser, as WebAssembly. Run it in a checkout:
#
#	cmd/retryplan/page.sh public && python3 -m http.server --directory public
set -eu
mkdir -p "$1"
to=$(cd "$1" && pwd)
cd "$(dirname "$0")/internal"
cp web/assets/* plots/chart.css page/presets.json wasm/worker.js "$to"
cp wasm/ask.js "$to" # in place of that of the server
cp "$(go env GOROOT)/lib/wasm/wasm_exec.js" "$to"
GOOS=js GOARCH=wasm go build -trimpath -ldflags='-s -w' -o "$to/retryplan.wasm" ./wasm
