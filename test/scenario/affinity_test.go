package scenario

import (
	"reflect"
	"testing"
	"time"
)

func TestJudgeStay(t *testing.T) {
	at := func(milliseconds int) time.Time { return time.UnixMilli(int64(milliseconds)) }
	// Each request takes 10 ms.
	ask := func(port, by string, began int) asked { return asked{port, at(began), at(began + 10), by} }
	slow := asked{port: "80", began: at(0), ended: at(1950), by: "a"}
	for _, r := range []struct {
		what string
		all  []asked
		want stay
	}{
		{"one request", []asked{ask("80", "a", 0)}, stay{}},
		{"it stays", []asked{ask("80", "a", 0), ask("80", "a", 1000)}, stay{}},
		{"it moves", []asked{ask("80", "a", 0), ask("80", "b", 1000)},
			stay{moved: []string{"port 80: a answered, and b at most 1.01s later"}}},
		{"each port for itself", []asked{ask("80", "a", 0), ask("81", "b", 1000)}, stay{}},
		{"renewed once", []asked{ask("80", "a", 0), ask("80", "a", 1500), ask("80", "a", 3000), ask("80", "a", 4000)},
			stay{renewed: 1}},
		{"renewed, but hardly beyond it", []asked{ask("80", "a", 0), ask("80", "a", 1000), ask("80", "a", 2110)},
			stay{}},
		{"renewed, just beyond it", []asked{ask("80", "a", 0), ask("80", "a", 1000), ask("80", "a", 2111)},
			stay{renewed: 1}},
		{"within, at the bound", []asked{ask("80", "a", 0), ask("80", "b", 1889)},
			stay{moved: []string{"port 80: a answered, and b at most 1.899s later"}}},
		{"not surely within", []asked{ask("80", "a", 0), ask("80", "b", 1890)}, stay{}},
		{"not surely beyond", []asked{ask("80", "a", 0), ask("80", "b", 2110)}, stay{}},
		{"beyond", []asked{ask("80", "a", 0), ask("80", "b", 2111)}, stay{freed: 1}},
		{"beyond, the same again", []asked{ask("80", "a", 0), ask("80", "a", 2111)}, stay{}},
		{"a gap ends what is renewed", []asked{ask("80", "a", 0), ask("80", "a", 1950), ask("80", "a", 2500)}, stay{}},
		{"a slow request", []asked{slow, ask("80", "b", 1960)}, stay{}},
	} {
		if got := judgeStay(r.all, 2*time.Second); !reflect.DeepEqual(got, r.want) {
			t.Errorf("%s: %+v, want %+v", r.what, got, r.want)
		}
	}
}

func TestParseAsked(t *testing.T) {
	got, err := parseAsked("80 1000000000 1 echo-a 2000000001\n")
	want := []asked{{"80", time.Unix(1, 0), time.Unix(2, 1), "echo-a"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, out := range []string{"80 1 1 failed: connection refused 2\n", "80 1 2\n", "80 x 1 a 2\n", "80 1 1 a x\n",
		"80 1 1 a b\n"} {
		if got, err := parseAsked(out); err == nil {
			t.Errorf("%q: %v, want an error", out, got)
		}
	}
}
