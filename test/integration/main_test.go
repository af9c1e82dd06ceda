package integration

import (
	"os"
	"testing"
)

// TestMain reads the sum by which make tells the go command what these tests read outside of their module (OUTSIDE in
// the Makefile): it answers from its cache only where that is the same.
func TestMain(m *testing.M) {
	os.Getenv("KEELSON_OUTSIDE")
	os.Exit(m.Run())
}
