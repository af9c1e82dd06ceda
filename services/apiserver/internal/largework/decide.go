package largework

import "keelson.dev/services/apiserver/internal/objectsize"

// ordinary is as how many bytes each request of a tenant or a node counts at least, whatever it is about: some patches
// take a second for a few kilobytes.
const ordinary = 256 << 10

// weight is how many bytes a request counts: those that it sends, or the known size of its object or list, whichever is
// more. Small requests of trusted clients, the daemons of the mesh and its masters, count nothing and wait for no
// others.
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
