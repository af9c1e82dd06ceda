package containerlog

import (
	"os"
	"testing"
)

func TestRead(t *testing.T) {
	if _, err := os.ReadFile(t.TempDir() + "/none"); err == nil {
		t.Error("read")
	}
}
