package storage

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"

	"keelson.dev/services/apiserver/internal/storage/storedir"
)

// soon is far above what any of these starts takes, and below what the library waits for.
const soon = 30 * time.Second

// makeStore leaves a real, closed store that has written several files of its log and taken snapshots of it.
func makeStore(t *testing.T) (dir string) {
	t.Helper()
	defer func(size int64) { wal.SegmentSizeBytes = size }(wal.SegmentSizeBytes)
	wal.SegmentSizeBytes = 64 << 10
	dir = filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	paths := storedir.Of(dir)
	config := memberConfig(paths.Store, url.URL{Scheme: "unix", Path: filepath.Join(dir, socketName)}, zap.NewNop())
	config.SnapshotCount, config.SnapshotCatchUpEntries = 50, 10
	o := newOpening(paths, Peers{})
	go o.run(t.Context(), config)
	etcd, err := o.wait(t.Context())
	if err != nil {
		t.Fatalf("making a store: %v", err)
	}
	e := &Embedded{etcd: etcd}
	for i := range 220 {
		_, err := e.Client().KV.Put(t.Context(), fmt.Sprintf("/registry/k-%03d", i), strings.Repeat("v", 2<<10))
		must(t, err)
	}
	if err := identify(t.Context(), e.Client().Client, paths); err != nil {
		t.Fatal(err)
	}
	etcd.close()
	remove(t, filepath.Join(dir, socketName))
	return dir
}

// logFiles are the files of the log, the oldest first.
func logFiles(t *testing.T, p storedir.Paths) []string {
	files, err := filepath.Glob(filepath.Join(p.Log, "*.wal"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files of the log, %v: the store is not what this test needs", len(files), err)
	}
	return files
}

// logFile is a file of the log, counted from the end.
func logFile(t *testing.T, p storedir.Paths, fromEnd int) string {
	files := logFiles(t, p)
	return files[len(files)-fromEnd]
}

// start opens the store in dir and tells how that went.
func start(t *testing.T, dir string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	e, err := StartEmbedded(ctx, dir, zap.NewNop())
	if err == nil {
		e.Close()
	}
	if ctx.Err() != nil {
		t.Errorf("the start took more than %s", soon)
	}
	return err
}

// oneLine: err is one line that contains what.
func oneLine(err error, what string) bool {
	return err != nil && strings.Contains(err.Error(), what) && !strings.Contains(err.Error(), "\n")
}

// TestDamagedStores: each damage ends the start with one sentence that names the file, and changes nothing on disk.
func TestDamagedStores(t *testing.T) {
	whole := makeStore(t)
	rows := []struct {
		name   string
		damage func(t *testing.T, p storedir.Paths)
		// want is the file that the sentence begins with, and what it says of it.
		want func(p storedir.Paths) (file, what string)
	}{
		{"no etcd directory", func(t *testing.T, p storedir.Paths) { remove(t, p.Store) },
			func(p storedir.Paths) (string, string) { return p.Store, "holds no store, but" }},
		{"no member directory", func(t *testing.T, p storedir.Paths) { remove(t, filepath.Join(p.Store, "member")) },
			func(p storedir.Paths) (string, string) { return p.Store, "holds no store, but" }},
		{"no database", func(t *testing.T, p storedir.Paths) { remove(t, p.Database) },
			func(p storedir.Paths) (string, string) { return p.Database, "is missing" }},
		{"an empty database", func(t *testing.T, p storedir.Paths) { truncate(t, p.Database, 0) },
			func(p storedir.Paths) (string, string) { return p.Database, "cannot be read (it is empty)" }},
		{"half a database", func(t *testing.T, p storedir.Paths) { truncate(t, p.Database, 0.03) },
			func(p storedir.Paths) (string, string) { return p.Database, "and should have" }},
		{"a page of a database", func(t *testing.T, p storedir.Paths) { truncate(t, p.Database, 0.0001) },
			func(p storedir.Paths) (string, string) { return p.Database, "cannot be read" }},
		{"a scribbled database", func(t *testing.T, p storedir.Paths) { scribble(t, p.Database, 0, 0.9) },
			func(p storedir.Paths) (string, string) { return p.Database, "cannot be read" }},
		{"scribbled pages of a database", func(t *testing.T, p storedir.Paths) { scribble(t, p.Database, 0.01, 0.03) },
			func(p storedir.Paths) (string, string) { return p.Database, "cannot be read" }},
		{"a directory for a database", func(t *testing.T, p storedir.Paths) {
			remove(t, p.Database)
			mkdir(t,
				p.Database)
		},
			func(p storedir.Paths) (string, string) { return p.Database, "cannot be read" }},
		{"no log", func(t *testing.T, p storedir.Paths) { remove(t, p.Log) },
			func(p storedir.Paths) (string, string) { return p.Log, "holds no log" }},
		{"an empty log directory", func(t *testing.T, p storedir.Paths) { remove(t, p.Log); mkdir(t, p.Log) },
			func(p storedir.Paths) (string, string) { return p.Log, "holds no log" }},
		{"no last file of the log", func(t *testing.T, p storedir.Paths) { remove(t, logFile(t, p, 1)) },
			func(p storedir.Paths) (string, string) { return p.Log, "is cut off" }},
		{"no file in the middle of the log", func(t *testing.T, p storedir.Paths) { remove(t, logFile(t, p, 2)) },
			func(p storedir.Paths) (string, string) { return p.Log, "cannot be read" }},
		{"an empty last file", func(t *testing.T, p storedir.Paths) { truncate(t, logFile(t, p, 1), 0) },
			func(p storedir.Paths) (string, string) { return p.Log, "is cut off" }},
		{"empty files", func(t *testing.T, p storedir.Paths) {
			for _, file := range logFiles(t, p) {
				truncate(t, file, 0)
			}
		}, func(p storedir.Paths) (string, string) { return p.Log, "cannot be read" }},
		{"half a file in the middle", func(t *testing.T, p storedir.Paths) { truncate(t, logFile(t, p, 2), 0.5) },
			func(p storedir.Paths) (string, string) { return p.Log, "" }},
		{"a scribbled file of the log", func(t *testing.T, p storedir.Paths) {
			scribble(t, logFile(t, p, 2), 0.3, 0.6)
		},
			func(p storedir.Paths) (string, string) { return p.Log, "cannot be read" }},
		{"a strange file in the log", func(t *testing.T, p storedir.Paths) {
			write(t, filepath.Join(p.Log, "x.wal"),
				"")
		},
			func(p storedir.Paths) (string, string) { return p.Log, "x.wal is no name" }},
		{"an identity that is none", func(t *testing.T, p storedir.Paths) { write(t, p.Identity, "x\n") },
			func(p storedir.Paths) (string, string) { return p.Identity, "does not hold the identity" }},
		{"the identity of another mesh", func(t *testing.T, p storedir.Paths) {
			write(t, p.Identity, "11111111-2222-3333-4444-555555555555\n")
		}, func(p storedir.Paths) (string, string) { return p.Store, "keeps the mesh" }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir := copyStore(t, whole)
			p := storedir.Of(dir)
			row.damage(t, p)
			before := listing(t, p)
			err := start(t, dir)
			file, what := row.want(p)
			if !oneLine(err, what) || !strings.HasPrefix(err.Error(), file+" ") {
				t.Errorf("%v, want one line that begins with %q and has %q", err, file, what)
			}
			if after := listing(t, p); row.name != "the identity of another mesh" && after != before {
				t.Errorf("the files changed from\n%sto\n%s", before, after)
			}
		})
	}
}

// TestWholeStores: what an unlucky crash or a restore leaves is no damage.
func TestWholeStores(t *testing.T) {
	whole := makeStore(t)
	for name, change := range map[string]func(t *testing.T, p storedir.Paths){
		"untouched":   func(*testing.T, storedir.Paths) {},
		"no identity": func(t *testing.T, p storedir.Paths) { remove(t, p.Identity) },
		"nothing":     func(t *testing.T, p storedir.Paths) { remove(t, p.Store); remove(t, p.Identity) },
		"a torn last write": func(t *testing.T, p storedir.Paths) {
			tear(t, logFile(t, p, 1))
		},
		"a first start that was interrupted": func(t *testing.T, p storedir.Paths) {
			remove(t, p.Identity)
			remove(t, p.Store)
			mkdir(t, filepath.Dir(p.Database))
			emptyDatabase(t, p.Database)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyStore(t, whole)
			change(t, storedir.Of(dir))
			for i := range 2 {
				if err := start(t, dir); err != nil {
					t.Errorf("start %d: %v", i, err)
				}
			}
		})
	}
}

// TestUnreadableStore looks at the store as a user who may not read one of its files.
func TestUnreadableStore(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	p := storedir.Of(makeStore(t))
	openToAll(t, filepath.Dir(filepath.Dir(p.Store)))
	if err := asNobody(func() error { return check(p) }); err != nil {
		t.Fatalf("a store that everybody may read: %v", err)
	}
	for _, path := range []string{p.Database, p.Log, p.Identity, logFiles(t, p)[0]} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		chmod(t, path, 0)
		err = asNobody(func() error { return check(p) })
		if !oneLine(err, path+": permission denied") {
			t.Errorf("%v, want one line with %s: permission denied", err, path)
		}
		chmod(t, path, info.Mode().Perm())
	}
}

// TestFullDisk: a store that finds no room says so.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	data := filepath.Join(dir, "data")
	err := start(t, data)
	if !oneLine(err, "no space left on device") || !strings.HasPrefix(err.Error(), storedir.Of(data).Store) {
		t.Errorf("%v, want the store's directory and no space left on device", err)
	}
}

// TestStopWhileOpening: a start that hangs in the store ends when it is told to.
func TestStopWhileOpening(t *testing.T) {
	arm(t, "apiserver/store.open.before", "sleep(1h)")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := StartEmbedded(ctx, filepath.Join(t.TempDir(), "data"), zap.NewNop())
		ended <- err
	}()
	cancel()
	select {
	case err := <-ended:
		if err == nil || !strings.HasPrefix(err.Error(), "stopped while opening the store in ") {
			t.Errorf("%v", err)
		}
	case <-time.After(soon):
		t.Error("the start did not end")
	}
}

func check(p storedir.Paths) error {
	_, err := storedir.Check(p)
	return err
}
