// Package podgc stands in for the real one.
package podgc

// Is is there to be imported.
const Is = true
