#!/bin/sh
# Says what nobody but its owner may remove: the store with all objects, the keys of the mesh and the volumes of Pods.
set -e

case "$1" in purge | 0) ;; *) exit 0 ;; esac

if [ -d "${DPKG_ROOT:-}/var/lib/keelson" ]; then
	echo "keelson: /var/lib/keelson is kept: store, certificates, images and volumes of the mesh. Remove it by hand."
fi
