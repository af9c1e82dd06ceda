package backup

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"keelson.dev/services/apiserver/internal/storage"
)

// registry begins the keys of the API's objects.
const registry = "/registry/"

// Content is what a store holds at a revision.
type Content struct {
	// Revision is the last one.
	Revision int64 `json:"revision"`
	// Keys is how many keys there are, Kinds how many of each kind.
	Keys  int            `json:"keys"`
	Kinds map[string]int `json:"kinds"`
	// Checksum is that of all keys and values, whatever their revisions.
	Checksum string `json:"checksum"`
	// Identity is the mesh that the store belongs to; empty: it does not say.
	Identity string `json:"identity,omitempty"`
	// Version is that of etcd's form of the database; empty: before 3.6, or of a store that is open.
	Version string `json:"etcdVersion,omitempty"`
}

// String tells what differs where two are not the same.
func (c Content) String() string {
	return fmt.Sprintf("%d keys at revision %d with %s", c.Keys, c.Revision, c.Checksum)
}

// digest is what is kept of a value until its key has its place in the order.
type digest [sha256.Size]byte

// summarize sums up the keys and their values.
func summarize(live map[string]digest) Content {
	c := Content{Kinds: map[string]int{}}
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(live)) {
		if key == storage.MigrationKey { // which says where a store is, and not what is in it
			continue
		}
		c.Keys++
		value := live[key]
		// Length first: no two lists of keys and values give the same bytes.
		_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(key))))
		_, _ = sum.Write([]byte(key))
		_, _ = sum.Write(value[:])
		c.Kinds[kindOf(key)]++
	}
	c.Checksum = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return c
}

// undotted are the API groups without a dot that have objects; every other has one, and no resource has.
var undotted = []string{"apps", "autoscaling", "batch", "policy"}

// kindOf is what a key holds: the resource, with its group before it, or the first part of a key that is no object's.
func kindOf(key string) string {
	rest, object := strings.CutPrefix(key, registry)
	if !object {
		rest = strings.TrimPrefix(key, "/")
	}
	first, rest, _ := strings.Cut(rest, "/")
	if object && (strings.Contains(first, ".") || slices.Contains(undotted, first)) {
		second, _, _ := strings.Cut(rest, "/")
		return first + "/" + second
	}
	return first
}
