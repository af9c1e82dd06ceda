#!/bin/sh
# Refuses to remove the programs while a mesh needs them. They alone can end it: without them its units would start what
# is not there, and its Pods would run on with nobody to stop them.
set -e

# Debian says remove, RPM how many of the package will be left: at an upgrade the mesh goes on with the programs that
# follow.
case "$1" in remove | 0) ;; *) exit 0 ;; esac

programs=/usr/lib/keelson/bin
# dpkg may look after another root than its own.
root=${DPKG_ROOT:-}
needed=$(
	for unit in "$root"/etc/systemd/system/keelson-*.service; do
		if grep -qs "^ExecStart=$programs/" "$unit"; then echo "  $unit"; fi
	done
	for process in /proc/[0-9]*; do
		program=$(readlink "$process/exe") || continue
		# What has another root runs in a container, or it is us that do.
		case "$program" in "$root$programs"/keelson-* | "$root$programs"/containerd*)
			if [ "$process/root" -ef / ]; then echo "  process ${process#/proc/}, $program"; fi ;;
		esac
	done
)
if [ -n "$needed" ]; then
	echo "keelson: a mesh on this machine needs the programs:" >&2
	echo "$needed" >&2
	echo "End it first, and its Pods with it: keel reset --yes, or keel down if keel up has started it. Its data stays." >&2
	exit 1
fi
