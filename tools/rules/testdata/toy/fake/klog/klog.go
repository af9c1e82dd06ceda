// Package klog stands in for the real one.
package klog

// ClearLogger does nothing.
func ClearLogger() {}
