#!/bin/sh
# Run a command, and once more where it fails: an installation asks a registry, which may fail once.
#     tools/twice.sh COMMAND ARGUMENT...
"$@" && exit
echo "failed, tried again: $*" >&2
exec "$@"
