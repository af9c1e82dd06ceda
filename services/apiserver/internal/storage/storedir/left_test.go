package storedir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// No process opens a store that was removed, and Retire puts it aside at once or in its next call.
func TestRetire(t *testing.T) {
	now := time.Date(2026, 11, 27, 20, 0, 0, 0, time.UTC)
	others := []string{"https://192.0.2.2:2380", "https://192.0.2.3:2380"}
	for cut := range 3 { // what an earlier call has done
		p := Of(t.TempDir())
		if err := os.MkdirAll(p.Store, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := WriteIdentity(p, "4cdaca64-7b85-4b7e-b5c8-07b12e60d56b"); err != nil {
			t.Fatal(err)
		}
		if aside, err := Retire(p, now); err != nil || aside != "" {
			t.Errorf("without a mark: %q, %v", aside, err)
		}
		if err := MarkLeft(p, others); err != nil {
			t.Fatal(err)
		}
		if left, got, err := HasLeft(p); !left || !slices.Equal(got, others) || err != nil {
			t.Errorf("%v, %v, %v", left, got, err)
		}
		if _, err := Check(p); err == nil || !strings.Contains(err.Error(), "was taken out of the store") {
			t.Errorf("opening it: %v", err)
		}
		if cut > 0 {
			if err := os.Rename(p.Store, p.Store+".left-before"); err != nil {
				t.Fatal(err)
			}
		}
		if cut > 1 {
			if err := os.Remove(p.Identity); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Retire(p, now); err != nil {
			t.Errorf("cut off after %d steps: %v", cut, err)
		}
		for _, file := range []string{p.Store, p.Identity, p.Left} {
			if _, err := os.Lstat(file); !os.IsNotExist(err) {
				t.Errorf("cut off after %d steps: %s is there (%v)", cut, filepath.Base(file), err)
			}
		}
		if kept, _ := filepath.Glob(p.Store + ".left-*"); len(kept) != 1 {
			t.Errorf("cut off after %d steps: kept are %v", cut, kept)
		}
	}
}

func TestMayOpen(t *testing.T) {
	for _, row := range []struct {
		members int
		peers   bool
		may     bool
	}{{0, false, true}, {1, false, true}, {2, false, false}, {2, true, true}, {3, false, false}} {
		err := Found{Database: &Database{Members: row.members}}.MayOpen(row.peers)
		if (err == nil) != row.may {
			t.Errorf("%+v: %v", row, err)
		}
	}
	if err := (Found{}).MayOpen(false); err != nil {
		t.Errorf("no store: %v", err)
	}
}
