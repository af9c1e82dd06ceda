package largework

// weight is how many bytes a request counts: those that it sends, or that its object or list has as far as anybody
// knows, whichever is more, and at most what one client may have. Zero is one that waits for nobody.
func weight(sent, known, most int64) int64 {
	n := max(sent, known)
	if n < large {
		return 0
	}
	return min(n, most)
}
