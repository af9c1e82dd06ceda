package integration

import (
	"os"
	"testing"
)

// TestMain reads the sum through which make informs the go command about the files that these tests read outside
// of their module (OUTSIDE in the Makefile): the go command uses cached results only if the sum is the same.
func TestMain(m *testing.M) {
	os.Getenv("KEELSON_OUTSIDE")
	os.Exit(m.Run())
}
