#!/bin/sh
# Builds the site into FOLDER: the packages of requirements.lock, the code, the static files.
# The Dockerfile runs it, and so does a test. Usage: deploy/container/build.sh FOLDER
set -eu
cd "$(dirname "$0")/../.."
folder=$1

mkdir -p "$folder"
python3 -m venv "$folder/.venv"
"$folder/.venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --require-hashes -r requirements.lock
cp -R manage.py accounts dynamo invoices locale locks outbox project sequences staff templates uploads "$folder"

cd "$folder"
# None of these values is kept: collectstatic reads the settings, which refuse to load without them.
DJANGO_SECRET_KEY="$(head -c 60 /dev/urandom | base64 | tr -d '\n')" DJANGO_ALLOWED_HOSTS=localhost AWS_REGION=none \
    .venv/bin/python manage.py collectstatic --no-input --verbosity 0
.venv/bin/python -m compileall -q accounts dynamo invoices locks outbox project sequences staff uploads
