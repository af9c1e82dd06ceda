package cpupin

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"
)

func TestEncode(t *testing.T) {
	data, err := state{Shared: cpuset.New(0, 3), Pods: map[types.UID]Assignment{"u1": {"c": cpuset.New(1, 2)}}}.encode()
	const want = `{"policyName":"static","defaultCpuSet":"0,3","entries":{"u1":{"c":"1-2"}},"checksum":`
	if err != nil || !strings.HasPrefix(string(data), want) {
		t.Errorf("%s, %v", data, err)
	}
}

// summed puts the right checksum into a file.
func summed(t *testing.T, text string) []byte {
	var w written
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	w.Checksum = w.sum()
	data, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestDecode(t *testing.T) {
	good := string(summed(t, `{"policyName":"static","defaultCpuSet":"0","entries":{"u1":{"c":"1"}}}`))
	for _, r := range []struct{ name, text, want string }{
		{"good", good, ""},
		{"nobody has any", string(summed(t, `{"policyName":"static","defaultCpuSet":"0-1"}`)), ""},
		{"nothing", "", "it is damaged: EOF"},
		{"cut off", good[:len(good)-1], "it is damaged: unexpected EOF"},
		{"more", good + "{}", "it is damaged: something follows the object"},
		{"a field that nobody knows", strings.Replace(good, "{", `{"x":1,`, 1), "it is damaged: json: unknown field"},
		{"changed", strings.Replace(good, `"c":"1"`, `"c":"2"`, 1), "it is damaged: the checksum is that of another"},
		{"no checksum", `{"policyName":"static","defaultCpuSet":"0-1"}`, "it is damaged: the checksum is that of another"},
		{"another policy", string(summed(t, `{"policyName":"none","defaultCpuSet":""}`)),
			`it was written under policy "none", not "static"`},
		{"no set", string(summed(t, `{"policyName":"static","defaultCpuSet":"x"}`)),
			`it is damaged: defaultCpuSet: "x" is no set of cpus`},
		{"an empty set", string(summed(t, `{"policyName":"static","defaultCpuSet":"0","entries":{"u1":{"c":""}}}`)),
			`it is damaged: entries.u1.c: "" is no set of cpus`},
		{"no UID", string(summed(t, `{"policyName":"static","defaultCpuSet":"0","entries":{"../x":{"c":"1"}}}`)),
			`it is damaged: entries: "../x" is no UID of a Pod`},
	} {
		_, err := decode([]byte(r.text))
		if r.want == "" && err != nil || r.want != "" && (err == nil || !strings.HasPrefix(err.Error(), r.want)) {
			t.Errorf("%s: %v, want %q", r.name, err, r.want)
		}
	}
}

func TestCheck(t *testing.T) {
	pods := func(pairs ...string) map[types.UID]Assignment {
		out := map[types.UID]Assignment{}
		for i := 0; i < len(pairs); i += 2 {
			out[types.UID(pairs[i])] = Assignment{"c": set(t, pairs[i+1])}
		}
		return out
	}
	for _, r := range []struct {
		name, shared string
		pods         map[types.UID]Assignment
		reserved     string
		want         string
	}{
		{"fits", "0,3", pods("a", "1", "b", "2"), "0", ""},
		{"nobody has any", "0-3", nil, "0-3", ""},
		{"init and main containers share", "0,3", map[types.UID]Assignment{"a": {"i": set(t, "1-2"), "c": set(t, "1")}},
			"0", ""},
		{"more is reserved now", "0,3", pods("a", "1-2"), "0-1",
			"of the reserved cpus 0-1 not all are in its defaultCpuSet 0,3"},
		{"shared and given", "0-1,3", pods("a", "1-2"), "0", "cpus 1 of pod a are somebody else's too"},
		{"given twice", "0,3", pods("a", "1-2", "b", "1-2"), "0", "cpus 1-2 of pod "},
		{"one was lost", "0,3", pods("a", "1"), "0", "it is of a machine with cpus 0-1,3, and this one has 0-3"},
		{"one has gone", "0,3-4", pods("a", "1-2"), "0", "it is of a machine with cpus 0-4, and this one has 0-3"},
	} {
		err := state{Shared: set(t, r.shared), Pods: r.pods}.check(box(1, 4, 1), set(t, r.reserved))
		if r.want == "" && err != nil || r.want != "" && (err == nil || !strings.HasPrefix(err.Error(), r.want)) {
			t.Errorf("%s: %v, want %q", r.name, err, r.want)
		}
	}
}

// A file is read as it was written, and no file with a changed byte is read as another state.
func TestDecodeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := state{Shared: cpuset.New(0), Pods: map[types.UID]Assignment{}}
		for i := range rapid.IntRange(0, 3).Draw(t, "pods") {
			s.Pods[types.UID([]string{"u", "v", "w"}[i])] = Assignment{"c": cpuset.New(1+2*i, 2+2*i)}
		}
		data, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		same := func(got state) bool {
			again, err := got.encode()
			return err == nil && string(again) == string(data)
		}
		if got, err := decode(data); err != nil || !same(got) {
			t.Fatalf("%s is read as %v, %v", data, got, err)
		}
		data2 := append([]byte(nil), data...)
		at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
		data2[at] ^= byte(rapid.IntRange(1, 127).Draw(t, "change"))
		if got, err := decode(data2); err == nil && !same(got) {
			t.Fatalf("%s with a changed byte, %s, is read as another state", data, data2)
		}
	})
}
