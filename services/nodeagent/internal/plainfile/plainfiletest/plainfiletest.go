// Package plainfiletest provides, for tests, everything by which a container could replace a file.
package plainfiletest

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Secret is the contents of the symbolic link's target: path.other.
const Secret = "2026-01-31T10:00:00Z stdout F secret\n"

// Traps each put something at a path.
var Traps = map[string]func(t testing.TB, path string){
	"FIFO": func(t testing.TB, path string) { must(t, unix.Mkfifo(path, 0o666)) },
	"symbolic link to a file": func(t testing.TB, path string) {
		must(t, os.WriteFile(path+".other", []byte(Secret), 0o600))
		must(t, os.Symlink(path+".other", path))
	},
	"symbolic link to nowhere": func(t testing.TB, path string) { must(t, os.Symlink(path+".none", path)) },
	"device": func(t testing.TB, path string) {
		must(t, unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5)))) // zero: it never ends
	},
	"directory": func(t testing.TB, path string) { must(t, os.Mkdir(path, 0o755)) },
	"socket": func(t testing.TB, path string) {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		must(t, err)
		defer unix.Close(fd) //nolint:errcheck // its name stays
		must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	},
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Nest creates nested folders in dir, deeper than any path can express.
func Nest(t testing.TB, dir string, levels int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	for range levels {
		must(t, unix.Mkdirat(at, "d", 0o755))
		next, err := unix.Openat(at, "d", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		must(t, unix.Close(at))
		at = next
	}
	must(t, unix.Close(at))
}
