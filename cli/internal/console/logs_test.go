package console

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"k8s.io/client-go/kubernetes/fake"
)

func TestLog(t *testing.T) {
	s := serve(t, fake.NewClientset(objects()...))
	got := s.reads(s.ask("/api/logs?namespace=n&pod=web-1&container=c"))
	want := ": alive\n\nevent: lines\ndata: [\"fake logs\"]\n\nevent: end\ndata: \"\"\n\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, missing := range []string{"pod=web-1&container=c", "namespace=n&container=c", "namespace=n&pod=web-1"} {
		if response := s.ask("/api/logs?" + missing); response.StatusCode != 400 {
			t.Errorf("%s: %d", missing, response.StatusCode)
		}
	}
}

// Lines are sent as they are read, several together if they are there, without what would steer a terminal.
func TestSendLines(t *testing.T) {
	long := strings.Repeat("x", longestLine)
	var many []string
	for i := range mostLines + 1 {
		many = append(many, fmt.Sprint(i))
	}
	broken := errors.New("broken")
	for name, row := range map[string]struct {
		in   io.Reader
		want [][]string
		err  error
	}{
		"nothing": {strings.NewReader(""), nil, nil},
		"two":     {strings.NewReader("a\nb\n"), [][]string{{"a", "b"}}, nil},
		"one comes later": {io.MultiReader(strings.NewReader("a\n"), strings.NewReader("b\n")),
			[][]string{{"a"}, {"b"}}, nil},
		"an unfinished one": {strings.NewReader("a\nb"), [][]string{{"a", "b"}}, nil},
		"empty ones":        {strings.NewReader("\n\r\n"), [][]string{{"", ""}}, nil},
		"a long one":        {strings.NewReader(long + "\n"), [][]string{{long}}, nil},
		"one that is too long": {strings.NewReader(strings.Repeat("x", 200_000) + "\nb\n"),
			[][]string{{long + "…", "b"}}, nil},
		"many": {strings.NewReader(strings.Join(many, "\n")), [][]string{many[:mostLines], many[mostLines:]},
			nil},
		"colors, and bytes that are no text": {strings.NewReader("\x1b[31mred\x1b[0m \xff\x1b]0;title\x07.\n"),
			[][]string{{"red \ufffd."}}, nil},
		"broken off": {io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(broken)), [][]string{{"a"}}, broken},
	} {
		t.Run(name, func(t *testing.T) {
			var got [][]string
			err := sendLines(row.in, func(lines []string) error {
				got = append(got, lines)
				return nil
			})
			if !slices.EqualFunc(got, row.want, slices.Equal[[]string]) || !errors.Is(err, row.err) {
				t.Errorf("%.200q, %v; want %.200q, %v", got, err, row.want, row.err)
			}
		})
	}
	if err := sendLines(strings.NewReader("a\n"), func([]string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a page that has left: %v", err)
	}
}
