// Package defaults fills in single fields that a client left out.
//
//keelson:decision
package defaults

// Set gives a field that is still zero its default.
func Set[V comparable](field *V, value V) {
	var zero V
	if *field == zero {
		*field = value
	}
}

// SetPtr is Set for an optional field.
func SetPtr[V any](field **V, value V) {
	if *field == nil {
		*field = &value
	}
}
