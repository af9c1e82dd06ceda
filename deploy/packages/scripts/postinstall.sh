#!/bin/sh
# Says to whoever has upgraded that a mesh still runs the programs from before. keel starts them anew, since it waits
# until each of them is ready and goes back otherwise, and on several machines somebody has to say in which order.
set -e

# A removal that was refused ends here too: nothing has changed.
case "$1" in abort-*) exit 0 ;; esac

for unit in "${DPKG_ROOT:-}"/etc/systemd/system/keelson-*.service; do
	grep -qs '^ExecStart=/usr/lib/keelson/bin/' "$unit" || continue
	command=$(sed -n '1s/^# Written by \(keel [a-z]*\) .*/\1/p' "$unit")
	echo "keelson: the mesh on this machine still runs the programs from before. keel upgrade replaces its daemons one" \
		"after the other, then ${command:-keel init} starts anew what is left; Pods go on running."
	break
done
