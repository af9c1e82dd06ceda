// Package kubernetes stands in for the real one.
package kubernetes

// Is is there to be imported.
const Is = true
