// Package kindfuzz has the fuzz target over all kinds, built-in and custom. It stands apart from the registry's own
// tests, which start servers: what a fuzz target is linked with is built anew with counters.
package kindfuzz
