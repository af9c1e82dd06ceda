package transcript

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const page = "# A page\n\n```\n$ not run\n```\n\n```console\n$ echo one  two\none two\n$ cat <<EOF\n> a\n> b\n> EOF\na\nb\n" +
	"```\n\ntext\n\n```console\n$ export X=1\n$ echo $X; false # fails\n1\n```\n"

func TestRead(t *testing.T) {
	steps, err := Read(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []Step{
		{Line: 8, Command: "echo one  two", Says: []string{"one two"}},
		{Line: 10, Command: "cat <<EOF\na\nb\nEOF", Says: []string{"a", "b"}},
		{Line: 21, Command: "export X=1"},
		{Line: 22, Command: "echo $X; false # fails", Says: []string{"1"}, Fails: true},
	}
	if !slices.EqualFunc(steps, want, func(a, b Step) bool {
		return a.Line == b.Line && a.Command == b.Command && slices.Equal(a.Says, b.Says) && a.Fails == b.Fails
	}) {
		t.Errorf("got %+v", steps)
	}
	for page, why := range map[string]string{
		"```console\nwords\n```\n": "begins with a command",
		"```console\n$ true\n":     "not closed",
		"```\n$ true\n```\n":       "no block",
	} {
		if _, err := Read(page); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", page, err, why)
		}
	}
}

func TestScript(t *testing.T) {
	steps, err := Read(page)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-c", Script(steps)).Output()
	ended, rest := Split(string(out))
	if err != nil || len(ended) != len(steps) || rest != "" {
		t.Fatalf("%v: %+v, then %q", err, ended, rest)
	}
	for i, s := range steps {
		if differs := s.Differs(ended[i]); differs != "" {
			t.Errorf("%s: %s; it said %q", s.Command, differs, ended[i].Said)
		}
	}
	out, err = exec.CommandContext(t.Context(), "bash", "-c", Script([]Step{{Command: "false"}, {Command: "echo no"}})).
		Output()
	if ended, _ := Split(string(out)); err == nil || len(ended) != 1 || (Step{}).Differs(ended[0]) == "" {
		t.Errorf("after a step that failed: %v, %+v", err, ended)
	}
}

func TestDiffers(t *testing.T) {
	for _, c := range []struct {
		says, said string
		same       bool
	}{
		{"a   b", "a b\n", true},
		{"a b", "a b\nc\n", false},
		{"a ... c", "a b b c", true},
		{"a ... c", "a b", false},
		{"a\n...\nd", "a\nb\nc\nd\n", true},
		{"a\n...\nd", "a\nd\n", true},
		{"a\n...", "a\nb\nc\n", true},
		{"...\nd", "a\nb\n", false},
		{"1.5 (x)", "125 (x)", false},
		{"a", "\n\na\n\n", true},
	} {
		s := Step{Says: strings.Split(c.says, "\n")}
		if got := s.Differs(Result{Said: c.said}); (got == "") != c.same {
			t.Errorf("%q shows %q: %q", c.says, c.said, got)
		}
	}
	if (Step{}).Differs(Result{Said: "anything"}) != "" || (Step{}).Differs(Result{Status: 1}) == "" ||
		(Step{Fails: true}).Differs(Result{}) == "" || (Step{Fails: true}).Differs(Result{Status: 3}) != "" {
		t.Error("the status counts, and what a page does not show does not")
	}
}
