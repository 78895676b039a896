#!/bin/sh
# Install packages of Debian, as root: tools/install_debian.sh PACKAGE...
set -e
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
