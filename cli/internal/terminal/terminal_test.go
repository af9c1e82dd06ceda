package terminal

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

func written(t *testing.T, pieces ...string) string {
	t.Helper()
	var out strings.Builder
	w := NewWriter(&out)
	for _, piece := range pieces {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatalf("wrote %d of %q: %v", n, piece, err)
		}
	}
	w.Flush()
	return out.String()
}

func TestWriter(t *testing.T) {
	for name, row := range map[string]struct {
		pieces []string
		want   string
	}{
		"plain":               {[]string{"NAME\tREADY\nweb äöü 日本 👩‍💻\n"}, "NAME\tREADY\nweb äöü 日本 👩‍💻\n"},
		"colours and a title": {[]string{"\x1b[31mred\x1b]0;title\x07"}, `\u001b[31mred\u001b]0;title\u0007`},
		"back over the line":  {[]string{"bad\rgood\b\b"}, `bad\u000dgood\u0008\u0008`},
		"C1":                  {[]string{"\u009b31m\u0085"}, `\u009b31m\u0085`},
		"C1 as a byte":        {[]string{"\x9b31m"}, `\x9b31m`},
		"delete":              {[]string{"\x7f"}, `\u007f`},
		"reordered":           {[]string{"a\u202eb\u2066c\u200fd\u061c"}, `a\u202eb\u2066c\u200fd\u061c`},
		"other line ends":     {[]string{"a\u2028b\u2029\v\f"}, `a\u2028b\u2029\u000b\u000c`},
		"in two pieces":       {[]string{"\xe2\x80", "\xaeb\xc3", "\xa4"}, `\u202ebä`},
		"byte by byte":        {[]string{"\xf0", "\x9f", "\x91", "\xa9"}, "👩"},
		"never completed":     {[]string{"a\xe2\x80"}, `a\xe2\x80`},
		"not continued":       {[]string{"\xe2\x80", "a"}, `\xe2\x80a`},
		"nothing":             {[]string{"", ""}, ""},
	} {
		if got := written(t, row.pieces...); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// For any text written in any pieces, the output has nothing that controls a terminal, and JSON keeps its meaning.
func FuzzWriter(f *testing.F) {
	f.Add("a\x1b[2J\u202e\x9b\xe2", 3)
	f.Fuzz(func(t *testing.T, text string, at int) {
		at = min(max(at, 0), len(text))
		got := written(t, text[:at], text[at:])
		for _, r := range got {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Errorf("%q comes out as %q", text, got)
			}
		}
		object, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var before, after string
		if err := json.Unmarshal(object, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(written(t, string(object))), &after); err != nil || before != after {
			t.Errorf("%s becomes %q: %v", object, after, err)
		}
	})
}

func TestLine(t *testing.T) {
	if got := Line(
		"done\nEvents:\n\tall is well\x1b[2J ä",
	); got != `done\u000aEvents:\u000a\u0009all is well\u001b[2J ä` {
		t.Errorf("%q", got)
	}
}
