package backup

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"

	"keelson.dev/services/apiserver/internal/storage"
)

// opened is a store that an apiserver has open.
type opened struct {
	dir string
	*storage.Embedded
	client *kubernetes.Client
}

// open opens the store in dir, as an apiserver does, until the test ends or close is called.
func open(t *testing.T, dir string) *opened {
	t.Helper()
	e, err := storage.StartEmbedded(t.Context(), dir, zap.NewNop())
	if err != nil {
		t.Fatalf("opening %s: %v", dir, err)
	}
	s := &opened{dir: dir, Embedded: e, client: e.Client()}
	t.Cleanup(sync.OnceFunc(s.Close))
	return s
}

func newDir(t *testing.T) string { return filepath.Join(t.TempDir(), "data") }

func (s *opened) put(t *testing.T, key, value string, opts ...clientv3.OpOption) int64 {
	t.Helper()
	done, err := s.client.KV.Put(t.Context(), key, value, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return done.Header.Revision
}

func (s *opened) get(t *testing.T, key string) string {
	t.Helper()
	got, err := s.client.KV.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) == 0 {
		return ""
	}
	return string(got.Kvs[0].Value)
}

func (s *opened) content(t *testing.T) Content {
	t.Helper()
	content, err := readOpen(t.Context(), s.client.KV)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// run is keel store with these arguments.
func run(ctx context.Context, args ...string) (status int, out, errOut string) {
	var said, complained bytes.Buffer
	status = Execute(ctx, args, &said, &complained)
	return status, said.String(), complained.String()
}

// must is run of what must go well.
func must(t *testing.T, args ...string) string {
	t.Helper()
	status, out, errOut := run(t.Context(), args...)
	if status != 0 || errOut != "" {
		t.Fatalf("%v: status %d, %s", args, status, errOut)
	}
	return out
}

// refused is run of what must end with one line that has text, and leave nothing behind.
func refused(t *testing.T, want int, text string, args ...string) {
	t.Helper()
	status, _, errOut := run(t.Context(), args...)
	if status != want || !strings.Contains(errOut, text) || strings.Count(errOut, "\n") != 1 {
		t.Errorf("%v: status %d, %q, want %d with %q on one line", args, status, errOut, want, text)
	}
}

// saved is a snapshot of a store with some objects.
func saved(t *testing.T) (file string, s *opened) {
	t.Helper()
	s = open(t, newDir(t))
	for i := range 20 {
		s.put(t, fmt.Sprintf("/registry/pods/default/p%d", i), strings.Repeat("x", 100*i))
	}
	file = filepath.Join(t.TempDir(), "s")
	must(t, "snapshot", file, "--data-dir", s.dir)
	return file, s
}

// A snapshot that is taken while others write is the store as it was at its revision, neither before nor after.
func TestSnapshotWhileOthersWrite(t *testing.T) {
	s := open(t, newDir(t))
	var values sync.Map // by revision, the value of /a and of /b, which change together
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	begun := make(chan struct{}, 1<<16)
	for w := range 2 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				value := fmt.Sprintf("%d-%d-%s", w, i, strings.Repeat("y", 2000))
				done, err := s.client.Txn(context.Background()).Then(
					clientv3.OpPut("/registry/pods/a", value),
					clientv3.OpPut(
						"/registry/pods/b",
						value,
					),
					clientv3.OpPut(fmt.Sprintf("/registry/pods/%d", i), value),
				).
					Commit()
				if err != nil {
					t.Error(err)
					return
				}
				values.Store(done.Header.Revision, value)
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 50 {
		<-begun
	}
	dir := t.TempDir()
	for i := range 3 {
		must(t, "snapshot", filepath.Join(dir, fmt.Sprint(i)), "--data-dir", s.dir)
	}
	stop()
	writers.Wait()
	for i := range 3 {
		file := filepath.Join(dir, fmt.Sprint(i))
		content, record, err := Verify(file)
		if err != nil || record == nil {
			t.Fatalf("%v, %v", record, err)
		}
		at, err := s.client.KV.Get(t.Context(), "\x00", clientv3.WithFromKey(), clientv3.WithRev(content.Revision))
		if err != nil {
			t.Fatal(err)
		}
		live := map[string]string{}
		for _, kv := range at.Kvs {
			live[string(kv.Key)] = string(kv.Value)
		}
		if sum := summarize(keysOf(live)); sum.Checksum != content.Checksum || content.Keys < 4 {
			t.Errorf("the snapshot at %d has %d keys, the store had %d then", content.Revision, content.Keys, sum.Keys)
		}
		if value, ok := values.Load(content.Revision); !ok || live["/registry/pods/a"] != value {
			t.Errorf("revision %d is of no write", content.Revision)
		}
	}
}

// What is written can be read by the owner alone, whatever the umask, and nothing else stays in the folder.
func TestSnapshotFiles(t *testing.T) {
	before := syscall.Umask(0)
	defer syscall.Umask(before)
	file, s := saved(t)
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 2 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", entry.Name(), info.Mode(), err)
		}
	}
	record, err := readRecord(file)
	if err != nil || record.File != "s" || record.Keys != 21 || record.Kinds["pods"] != 20 || record.Identity == "" ||
		record.Store != "mesh "+record.Identity {
		t.Errorf("%+v, %v", record, err)
	}
	if open := s.content(t); open.Checksum != record.Checksum || open.Identity != record.Identity {
		t.Errorf("the store is %+v, the record says %+v", open, record)
	}
	out := must(t, "verify", file)
	for _, want := range []string{"pods      20\n", "whole: 21 keys at revision ", record.Checksum,
		"as it was taken at "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// What a store holds has the checksum of its snapshot, whether an apiserver has it open or not, and whichever way it is
// read; none is begun where none is.
func TestStoreWithoutApiserver(t *testing.T) {
	file, s := saved(t)
	_, record, err := Verify(file)
	if err != nil {
		t.Fatal(err)
	}
	socket := "unix://" + filepath.Join(s.dir, "etcd.sock")
	reads := func(args ...string) {
		t.Helper()
		if out := must(t, append([]string{"verify"}, args...)...); !strings.Contains(out, record.Checksum) {
			t.Errorf("%v: %s, want %s", args, out, record.Checksum)
		}
	}
	reads("--data-dir", s.dir)
	reads("--etcd-servers", socket)
	s.Close()
	reads("--data-dir", s.dir)
	stopped := filepath.Join(t.TempDir(), "s")
	must(t, "snapshot", stopped, "--data-dir", s.dir)
	if content, again, err := Verify(stopped); err != nil || content.Checksum != record.Checksum ||
		again.Store != record.Store {
		t.Errorf("%+v, %+v, %v", content, again, err)
	}
	dir := t.TempDir()
	refused(t, 1, dir+" holds no store", "snapshot", stopped+"2", "--data-dir", dir)
	if left := list(t, dir); len(left) > 0 {
		t.Errorf("%v was made", left)
	}
}

// A folder keeps as many as it shall, and all that is not a snapshot of this store.
func TestFolder(t *testing.T) {
	_, s := saved(t)
	dir := t.TempDir()
	mine := []string{"notes", "store-20200101T000000Z.snapshot", "store-20200102T000000Z.snapshot.json"}
	for _, name := range mine {
		write(t, filepath.Join(dir, name), "mine")
	}
	write(t, filepath.Join(dir, "store-20200103T000000Z.snapshot.partial"), "left of a snapshot that was killed")
	write(t, filepath.Join(dir, "store-20200103T000000Z.snapshot.json.partial"), "left of it too")
	var names []string
	for day := range 4 {
		now := time.Date(2026, 1, day+1, 0, 0, 0, 0, time.UTC)
		done, err := taking{path: dir, keep: 2, now: now}.take(t.Context(), s.client.Client)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.Base(done.path))
	}
	want := append([]string{names[2], names[2] + ".json", names[3], names[3] + ".json"}, mine...)
	if got := list(t, dir); !equalSets(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	refused(t, 2, "is there already", "snapshot", filepath.Join(dir, names[3]), "--data-dir", s.dir)
}

// One snapshot at a time is written into a folder.
func TestFolderInUse(t *testing.T) {
	_, s := saved(t)
	dir := t.TempDir()
	f, err := openFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	refused(t, 1, "another snapshot is being written to "+dir, "snapshot", dir, "--data-dir", s.dir)
}

// A folder without room has no snapshot afterwards, and the ones that were there before.
func TestSnapshotOntoAFullDisk(t *testing.T) {
	_, s := saved(t)
	dir := smallDisk(t, "16k")
	refused(t, 1, "no space left on device", "snapshot", filepath.Join(dir, "s"), "--data-dir", s.dir)
	refused(t, 1, "no space left on device", "snapshot", dir, "--keep", "1", "--data-dir", s.dir)
	if left := list(t, dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// Each mistake gets one line.
func TestMistakes(t *testing.T) {
	file, s := saved(t)
	dir := t.TempDir()
	for line, want := range map[string]struct {
		status int
		text   string
	}{
		"bogus":                           {2, `unknown command "bogus"`},
		"snapshot":                        {2, "FILE|DIR is missing"},
		"snapshot a b":                    {2, `unexpected argument "b"`},
		"snapshot --nosuch":               {2, "unknown flag: --nosuch"},
		"snapshot --keep x " + dir:        {2, `--keep: "x" is not a whole number`},
		"snapshot --keep 0 " + dir:        {2, "--keep: 0 must be greater than 0"},
		"snapshot --keep -1 " + dir:       {2, "--keep: -1 must be greater than 0"},
		"snapshot --keep 1 " + dir + "/f": {2, "--keep: " + dir + "/f is a file"},
		"snapshot -o yaml " + dir:         {2, `--output: "yaml" must be json`},
		"snapshot " + dir + "/no/f --data-dir " + s.dir: {1, "no such file or directory"},
		"snapshot " + dir + "/no/ --data-dir " + s.dir:  {2, dir + "/no/ is no folder"},
		"snapshot " + file:                       {2, file + " is there already"},
		"snapshot " + dir + " --data-dir " + dir: {1, dir + " holds no store"},
		"snapshot " + dir + " --etcd-servers 127.0.0.1:1 --etcd-cafile " + dir + "/no": {2, "--etcd-cafile: open "},
		"verify " + dir:             {1, "is no file"},
		"verify a b":                {2, `unexpected argument "b"`},
		"verify a --etcd-servers b": {2, "--etcd-servers: a file is verified by itself"},
		"verify --data-dir " + dir:  {1, dir + " holds no store"},
		"verify " + dir + "/no":     {1, "no such file or directory"},
		"restore":                   {2, "FILE is missing"},
		"restore " + file + " --data-dir " + s.dir: {1, "an apiserver has the store in " + s.dir +
			" open: end it first"},
		"restore " + file + " --etcd-servers x": {2, "unknown flag: --etcd-servers"},
	} {
		t.Run(line, func(t *testing.T) { refused(t, want.status, want.text, strings.Fields(line)...) })
	}
}
