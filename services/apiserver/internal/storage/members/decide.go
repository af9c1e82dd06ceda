// Package members tells which machines have the store of a mesh, and takes one out.
package members

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Member is one machine's copy of the store.
type Member struct {
	ID uint64 `json:"id"`
	// Address is where the others reach it, of a lone one only a name.
	Address string `json:"address"`
	// URL is the same as etcd says it.
	URL string `json:"url"`
	// Counts tells that writes wait for it, or for enough others. One that is catching up does not count yet.
	Counts bool `json:"counts"`
	// Self tells that it is this machine's.
	Self bool `json:"self,omitempty"`
}

// errLast is why the only copy stays.
var errLast = errors.New("this machine has the only copy of the store that counts, and another one is still catching " +
	"up: wait until keel store members says that it counts, or take it out by keel store remove-member")

// decideLeave says which member is to be taken out so that a machine leaves the store; none where it is alone.
func decideLeave(all []Member) (leaving *Member, err error) {
	at := slices.IndexFunc(all, func(m Member) bool { return m.Self })
	if at < 0 {
		return nil, errors.New("the store does not know this machine's member")
	}
	others := slices.ContainsFunc(all, func(m Member) bool { return m.Counts && !m.Self })
	switch own := all[at]; {
	case len(all) == 1:
		return nil, nil
	case own.Counts && !others:
		return nil, errLast
	default:
		return &own, nil
	}
}

// decideRemove finds the member to remove by the address or URL that the user gave.
func decideRemove(all []Member, asked string) (Member, error) {
	var allowed []string
	for _, m := range all {
		switch {
		case asked != m.Address && asked != m.URL:
			if !m.Self {
				allowed = append(allowed, m.Address)
			}
		case m.Self:
			return m, fmt.Errorf("ADDRESS: %s is this machine's own: keel reset takes it out", m.Address)
		default:
			return m, nil
		}
	}
	if len(allowed) == 0 {
		return Member{}, fmt.Errorf("ADDRESS: %q is no member: no other machine has the store", asked)
	}
	return Member{}, fmt.Errorf("ADDRESS: %q is no member: give one of %s", asked, strings.Join(allowed, ", "))
}

// others are the URLs of all members but this machine's.
func others(all []Member) (urls []string) {
	for _, m := range all {
		if !m.Self {
			urls = append(urls, m.URL)
		}
	}
	return urls
}
