package largework

import "keelson.dev/services/apiserver/internal/objectsize"

// ordinary is as how many bytes each request of a tenant or a node counts at least, whatever it is about: some patches
// take a second for a few kilobytes.
const ordinary = 256 << 10

// weight is how many bytes a request counts: those that it sends, or that its object or list has as far as anybody
// knows, whichever is more. Small ones of who is trusted, the daemons of the mesh and its masters, count nothing and
// wait for nobody.
func weight(sent, known int64, trusted bool) int64 {
	n := max(sent, known)
	switch {
	case !trusted:
		return max(n, ordinary)
	case n >= objectsize.Large:
		return n
	default:
		return 0
	}
}
