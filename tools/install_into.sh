#!/bin/sh
# Install into an environment: by uv, five times as fast, else by pip, whose settings (a mirror, certificates) uv does not
# read.
#     tools/install_into.sh ENVIRONMENT REQUIREMENT...
environment=$1
shift
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check uv &&
  "$environment/bin/uv" pip install --quiet --python "$environment/bin/python" "$@" ||
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --use-pep517 "$@"
