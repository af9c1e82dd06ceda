// Package responsewriters stands in for the real one.
package responsewriters

// Is is there to be imported.
const Is = true
