// Package followedfiletest changes files that a server follows, for tests.
package followedfiletest

import (
	"os"
	"testing"
)

// Replace gives the file another content at once, as who writes one that others follow should.
func Replace(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
