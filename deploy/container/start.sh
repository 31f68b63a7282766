#!/bin/sh
# Starts the server in the folder that build.sh made. Options as in docs/deployment.md, except the address.
set -eu
metrics=$(mktemp -d)
export PROMETHEUS_MULTIPROC_DIR="$metrics"
exec .venv/bin/granian --interface wsgi --host "${HOST:-0.0.0.0}" --port "${PORT:-8000}" \
    --workers "${WORKERS:-2}" --blocking-threads 128 --backpressure 512 \
    --http 1 --http1-header-read-timeout 10000 \
    --respawn-failed-workers --workers-kill-timeout 20 \
    project.wsgi:application
