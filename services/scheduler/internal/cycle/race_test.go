//go:build race

package cycle_test

// Under the race detector, which finds nothing in a package without goroutines, the references compare less often.
func init() { usualPlacements, usualPreemptions = 10_000, 2_000 }
