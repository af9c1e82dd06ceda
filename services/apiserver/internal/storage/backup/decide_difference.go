package backup

import (
	"maps"
	"slices"
)

// entry is what is compared of a key.
type entry struct {
	value digest
	// lease is the lease with which the key goes; 0: it stays.
	lease int64
	// revision is that of the key's last write, which clients know as its resourceVersion.
	revision int64
}

// holding is all that a store holds at a revision.
type holding struct {
	entries  map[string]entry
	revision int64
	// identity is the mesh that the store belongs to; empty: it does not say.
	identity string
}

// content sums it up.
func (h holding) content() Content {
	values := make(map[string]digest, len(h.entries))
	for key, entry := range h.entries {
		values[key] = entry.value
	}
	c := summarize(values)
	c.Revision, c.Identity = h.revision, h.identity
	return c
}

// without is a holding without some keys.
func (h holding) without(keys ...string) holding {
	entries := maps.Clone(h.entries)
	for _, key := range keys {
		delete(entries, key)
	}
	h.entries = entries
	return h
}

// due reports whether a key is to be written to a copy. No object's resourceVersion may go back: a key that the copy
// has with the same value, but of an earlier revision, is written again.
func (e entry) due(in holding, key string) bool {
	have, there := in.entries[key]
	return !there || have.value != e.value || have.lease != e.lease || have.revision < e.revision
}

// difference is in what a copy is not as its original.
type difference struct {
	// wrong are the keys that are missing, are other than they should be, or should not be there, in order.
	wrong []string
	// expired are the keys that are missing and had a lease, whose time may be over, in order.
	expired []string
}

// compare says in what a copy differs from its original.
func compare(original, copied holding) (d difference) {
	for _, key := range slices.Sorted(maps.Keys(original.entries)) {
		want := original.entries[key]
		switch _, there := copied.entries[key]; {
		case !there && want.lease != 0:
			d.expired = append(d.expired, key)
		case want.due(copied, key):
			d.wrong = append(d.wrong, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(copied.entries)) {
		if _, there := original.entries[key]; !there {
			d.wrong = append(d.wrong, key)
		}
	}
	return d
}

// lasting is a holding without the keys that go with a lease.
func (h holding) lasting() holding {
	entries := map[string]entry{}
	for key, entry := range h.entries {
		if entry.lease == 0 {
			entries[key] = entry
		}
	}
	h.entries = entries
	return h
}
