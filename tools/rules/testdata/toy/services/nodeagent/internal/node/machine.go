// Package node reads what no container may write.
package node

import "os"

// Release reads the system's name.
func Release() ([]byte, error) { return os.ReadFile("/etc/os-release") }
