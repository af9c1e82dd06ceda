package pki

import (
	"maps"
	"os"
	"slices"
	"testing"

	"keelson.dev/cli/internal/plan"
)

// A machine that joins the control plane gets all that the others have, and what vouches for the authority where that
// was replaced.
func TestShared(t *testing.T) {
	for _, bridged := range []bool{false, true} {
		from, to := plan.Layout{Dir: t.TempDir()}, plan.Layout{Dir: t.TempDir()}
		want := plan.SharedFiles()
		if bridged {
			want = append(want, bridgeFile)
		}
		for _, l := range []plan.Layout{from, to} {
			if err := os.MkdirAll(l.PKI(""), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range want {
			if err := os.WriteFile(from.PKI(name), []byte("content of "+name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		files, err := ReadShared(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteShared(to, files); err != nil {
			t.Fatal(err)
		}
		got, err := ReadShared(to)
		if err != nil || !maps.EqualFunc(got, files, slices.Equal) || len(got) != len(want) || !HasShared(to) {
			t.Errorf("bridged %v: got %v, %v", bridged, slices.Sorted(maps.Keys(got)), err)
		}
	}
}
