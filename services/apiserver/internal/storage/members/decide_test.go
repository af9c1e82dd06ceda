package members

import (
	"slices"
	"strings"
	"testing"
)

func member(id uint64, address string, counts, self bool) Member {
	return Member{ID: id, Address: address, URL: "https://" + address, Counts: counts, Self: self}
}

func TestDecideLeave(t *testing.T) {
	own, learning := member(1, "192.0.2.1:2380", true, true), member(1, "192.0.2.1:2380", false, true)
	second, late := member(2, "192.0.2.2:2380", true, false), member(2, "192.0.2.2:2380", false, false)
	for name, row := range map[string]struct {
		all  []Member
		want uint64
		says string
	}{
		"alone":                          {[]Member{own}, 0, ""},
		"two that count":                 {[]Member{own, second}, 1, ""},
		"three":                          {[]Member{second, own, member(3, "192.0.2.3:2380", true, false)}, 1, ""},
		"still catching up":              {[]Member{learning, second}, 1, ""},
		"the other still catches up":     {[]Member{own, late}, 0, "only copy of the store that counts"},
		"not among them":                 {[]Member{second}, 0, "does not know this machine's member"},
		"nobody tells whose members are": {nil, 0, "does not know this machine's member"},
	} {
		got, err := decideLeave(row.all)
		if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", name, err)
		}
		if id := idOf(got); id != row.want {
			t.Errorf("%s: %d leaves, want %d", name, id, row.want)
		}
	}
}

func idOf(m *Member) uint64 {
	if m == nil {
		return 0
	}
	return m.ID
}

func TestDecideRemove(t *testing.T) {
	own, second := member(1, "192.0.2.1:2380", true, true), member(2, "192.0.2.2:2380", true, false)
	for name, row := range map[string]struct {
		all   []Member
		asked string
		want  uint64
		says  string
	}{
		"by its address":    {[]Member{own, second}, "192.0.2.2:2380", 2, ""},
		"by its URL":        {[]Member{own, second}, "https://192.0.2.2:2380", 2, ""},
		"its own":           {[]Member{own, second}, "192.0.2.1:2380", 0, "keel reset takes it out"},
		"without the port":  {[]Member{own, second}, "192.0.2.2", 0, "give one of 192.0.2.2:2380"},
		"one that is alone": {[]Member{own}, "192.0.2.9:2380", 0, "no other machine has the store"},
	} {
		got, err := decideRemove(row.all, row.asked)
		if (err == nil) != (row.says == "") || err == nil && got.ID != row.want ||
			err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got := others([]Member{own, second}); !slices.Equal(got, []string{"https://192.0.2.2:2380"}) {
		t.Errorf("the others are %v", got)
	}
}
