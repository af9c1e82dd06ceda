// Package containerlog reads what a container may write or replace.
package containerlog

import "os"

// Read opens it as if it were its own.
func Read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return os.ReadFile(path)
}
