package scenario

import "testing"

func TestSharedAnswers(t *testing.T) {
	two := []string{"a", "b"}
	for _, row := range []struct {
		name string
		by   map[string]int
		want []string
		all  bool
	}{
		{"in turn", map[string]int{"a": 20, "b": 20}, two, true},
		{"just enough", map[string]int{"a": 30, "b": 10}, two, true},
		{"one too few", map[string]int{"a": 31, "b": 9}, two, false},
		{"a single one", map[string]int{"a": 39, "b": 1}, two, false},
		{"one alone", map[string]int{"a": 40}, two, false},
		{"nobody", nil, two, false},
		{"a stranger", map[string]int{"a": 20, "b": 20, "c": 20}, two, false},
		{"all of one", map[string]int{"a": 1}, []string{"a"}, true},
		{"just enough of three", map[string]int{"a": 25, "b": 25, "c": 10}, []string{"a", "b", "c"}, true},
		{"one too few of three", map[string]int{"a": 26, "b": 25, "c": 9}, []string{"a", "b", "c"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := (answers{by: row.by}).shared(row.want); got != row.all {
				t.Errorf("%v, want %v", got, row.all)
			}
		})
	}
}

func TestParseAnswers(t *testing.T) {
	a := parseAnswers("2 b\n3 a of\n1 failed: no such host\nlongest pause 1.5s\n")
	if a.String() != "answers map[a of:3 b:2], failures map[no such host:1]" || a.pause.Seconds() != 1.5 {
		t.Errorf("%v, %v without an answer", a, a.pause)
	}
}
