// Package apiserver stands in for the real one.
package apiserver

// Is is there to be imported.
const Is = true
