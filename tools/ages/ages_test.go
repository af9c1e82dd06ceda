package ages

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Two clones of the same content are of the same age, file by file, and what differs is of another.
func TestSettle(t *testing.T) {
	content := map[string]string{"go.mod": "module m", "p/p.go": "package p", "p/testdata/page": "text"}
	first := clone(t, content)
	if again := clone(t, content); !maps.Equal(first, again) {
		t.Errorf("two clones are as old as %v and %v", first, again)
	}
	for name, age := range first {
		if time.Since(age) < 24*time.Hour {
			t.Errorf("%s is of %v: the go command does not trust new files", name, age)
		}
	}
	content["p/p.go"] = "package q"
	content["p/testdata/more"] = ""
	changed := clone(t, content)
	for _, name := range []string{"p/p.go", "p/testdata"} {
		if changed[name].Equal(first[name]) {
			t.Errorf("%s has changed and is as old as before", name)
		}
	}
	for _, name := range []string{"go.mod", "p", "p/testdata/page"} {
		if !changed[name].Equal(first[name]) {
			t.Errorf("%s is as before and of another age", name)
		}
	}
}

// What make builds keeps its age, or make would not know what is due.
func TestSettleLeavesBinAlone(t *testing.T) {
	root := t.TempDir()
	stamp := filepath.Join(root, "bin", ".stamps", "helm")
	write(t, stamp, "")
	before := age(t, stamp)
	if err := Settle(root); err != nil {
		t.Fatal(err)
	}
	if after := age(t, stamp); !after.Equal(before) {
		t.Errorf("the stamp is of %v, was of %v", after, before)
	}
}

// clone writes the files into a folder of its own, settles it, and returns the ages of all that is in it.
func clone(t *testing.T, content map[string]string) map[string]time.Time {
	t.Helper()
	root := t.TempDir()
	for name, text := range content {
		write(t, filepath.Join(root, name), text)
	}
	if err := os.Symlink("nowhere", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if err := Settle(root); err != nil {
		t.Fatal(err)
	}
	ages := map[string]time.Time{}
	for _, name := range []string{".", "p", "p/testdata"} {
		ages[name] = age(t, filepath.Join(root, name))
	}
	for name := range content {
		ages[name] = age(t, filepath.Join(root, name))
	}
	return ages
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func age(t *testing.T, name string) time.Time {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}
