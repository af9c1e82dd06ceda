// Package kindfuzz has the fuzz target over all kinds, built-in and custom. It stands apart from the registry's own
// tests, which start servers: everything that a fuzz target is linked with is built again with counters.
package kindfuzz
