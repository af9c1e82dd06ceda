package largework

import "keelson.dev/services/apiserver/internal/objectsize"

// weight is how many bytes a request counts: those that it sends, or that its object or list has as far as anybody
// knows, whichever is more. Zero is one that waits for nobody.
func weight(sent, known int64) int64 {
	if n := max(sent, known); n >= objectsize.Large {
		return n
	}
	return 0
}
