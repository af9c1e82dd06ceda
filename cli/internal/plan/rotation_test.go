package plan

import (
	"slices"
	"strings"
	"testing"
)

// Each state that a step, or a kill during one, leaves on disk has one next step.
func TestDecideRotation(t *testing.T) {
	const rest, foreign, misfit = "", "no rotation has put them there", "pki/ca.key is not the key of"
	for name, row := range map[string]struct {
		have Authorities
		// further and finish are the step, or the error, without and with finish.
		further, finish string
	}{
		"none": {Authorities{Key: "a"}, "holds no certificate", "holds no certificate"},
		"one":  {Authorities{Bundle: []string{"a"}, Key: "a"}, string(RotationMake), rest},
		"one, after another": {Authorities{Bundle: []string{"a"}, Key: "a", Bridge: "a", BridgeBy: "z"},
			string(RotationMake), rest},
		"another's key": {Authorities{Bundle: []string{"a"}, Key: "b"}, misfit, misfit},
		"no key":        {Authorities{Bundle: []string{"a"}, Next: "b", Bridge: "b", BridgeBy: "a"}, misfit, misfit},
		"no bridge": {Authorities{Bundle: []string{"a"}, Key: "a", Next: "b"}, string(RotationMake),
			string(RotationMake)},
		"the bridge of before": {Authorities{Bundle: []string{"a"}, Key: "a", Next: "b", Bridge: "a", BridgeBy: "z"},
			string(RotationMake), string(RotationMake)},
		"a bridge by another": {Authorities{Bundle: []string{"a"}, Key: "a", Next: "b", Bridge: "b", BridgeBy: "z"},
			string(RotationMake), string(RotationMake)},
		"made": {Authorities{Bundle: []string{"a"}, Key: "a", Next: "b", Bridge: "b", BridgeBy: "a"},
			string(RotationTrust), string(RotationTrust)},
		"trusted": {Authorities{Bundle: []string{"a", "b"}, Key: "a", Next: "b", Bridge: "b", BridgeBy: "a"},
			string(RotationSwitch), string(RotationSwitch)},
		"trusted, its bridge lost": {Authorities{Bundle: []string{"a", "b"}, Key: "a", Next: "b"}, string(RotationMake),
			string(RotationMake)},
		"trusted, its key lost": {Authorities{Bundle: []string{"a", "b"}, Key: "a", Bridge: "b", BridgeBy: "a"},
			foreign, foreign},
		"the key switched": {Authorities{Bundle: []string{"a", "b"}, Key: "b", Next: "b", Bridge: "b", BridgeBy: "a"},
			string(RotationSwitch), string(RotationSwitch)},
		"a key from elsewhere": {Authorities{Bundle: []string{"a", "b"}, Key: "b", Bridge: "b", BridgeBy: "a"}, misfit,
			misfit},
		"switched": {Authorities{Bundle: []string{"b", "a"}, Key: "b", Next: "b", Bridge: "b", BridgeBy: "a"},
			string(RotationTidy), string(RotationTidy)},
		"tidied": {Authorities{Bundle: []string{"b", "a"}, Key: "b", Bridge: "b", BridgeBy: "a"}, rest,
			string(RotationFinish)},
		"finished with leftovers": {Authorities{Bundle: []string{"b"}, Key: "b", Next: "b"}, string(RotationTidy),
			string(RotationTidy)},
		"two of somebody's": {Authorities{Bundle: []string{"a", "b"}, Key: "a"}, foreign, foreign},
		"one twice":         {Authorities{Bundle: []string{"a", "a"}, Key: "a"}, foreign, foreign},
		"three": {Authorities{Bundle: []string{"a", "b", "c"}, Key: "a", Next: "b", Bridge: "b", BridgeBy: "a"},
			foreign, foreign},
	} {
		for finish, want := range map[bool]string{false: row.further, true: row.finish} {
			step, err := DecideRotation(row.have, finish)
			got := string(step)
			if err != nil {
				got = err.Error()
			}
			if got != want && (err == nil || !strings.Contains(got, want)) || err != nil && step != RotationRest {
				t.Errorf("%s, to finish %t: %q, want %q", name, finish, got, want)
			}
		}
	}
}

// The machine that would be lost is named, with what to do; one that follows is not.
func TestNotFollowing(t *testing.T) {
	for name, row := range map[string]struct {
		node Follower
		want string
	}{
		"follows":              {Follower{Node: "n", Authority: "b", Serving: "b"}, ""},
		"has never heard":      {Follower{Node: "n", Serving: "b"}, "node n does not follow the new authority: run"},
		"has followed the old": {Follower{Node: "n", Authority: "a", Serving: "a"}, "node n does not follow"},
		"waits for somebody":   {Follower{Node: "n", Authority: "b", Serving: "a"}, "node n shows a serving"},
		"shows another's":      {Follower{Node: "n", Authority: "b"}, "node n shows a serving certificate of"},
		"does not answer":      {Follower{Node: "n", Authority: "b", Fault: "no route"}, "node n cannot be asked for"},
	} {
		got := NotFollowing("b", []Follower{row.node})
		if (len(got) == 0) != (row.want == "") || len(got) > 0 && !strings.HasPrefix(got[0], row.want) {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
	got := NotFollowing("b", []Follower{{Node: "z"}, {Node: "y", Authority: "b", Serving: "b"}, {Node: "x"}})
	if len(got) != 2 || !slices.IsSorted(got) {
		t.Errorf("of three nodes %q", got)
	}
}
