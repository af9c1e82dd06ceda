// Package terminal prevents text from objects from controlling the terminal on which it is printed: names,
// messages and logs may hold any text that a user wrote into the API.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Writer writes text with every character escaped that a terminal obeys rather than shows: all control characters but
// line feeds and tabs, what reorders text, what ends a line without being a line feed, and bytes that are no character.
// They come out as \u001b, which JSON reads as the character. It is safe for concurrent use.
type Writer struct {
	mu  sync.Mutex // guards what follows
	out io.Writer
	// begun is the beginning of a character whose other bytes have not been written yet.
	begun []byte
}

// NewWriter returns a writer to out. Flush ends it.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write writes the text as far as its characters are whole. It keeps what is not for the next Write.
func (w *Writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := append(w.begun, text...)
	whole := len(rest)
	for tail := 1; tail < min(utf8.UTFMax, len(rest)+1); tail++ {
		if from := len(rest) - tail; utf8.RuneStart(rest[from]) {
			if !utf8.FullRune(rest[from:]) {
				whole = from
			}
			break
		}
	}
	w.begun = append([]byte(nil), rest[whole:]...)
	if _, err := io.WriteString(w.out, escaped(string(rest[:whole]), shows)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Flush writes the rest of an incomplete character. It drops errors, because no caller can act on them.
func (w *Writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprint(w.out, escaped(string(w.begun), shows))
	w.begun = nil
}

// Line returns text for a single line: it also escapes line feeds and tabs, so that no part of the text looks like
// a line from another source.
func Line(text string) string {
	return escaped(text, func(r rune) bool { return r != '\n' && r != '\t' && shows(r) })
}

// shows reports whether a terminal only shows a character, or moves the cursor as text does.
func shows(r rune) bool {
	return r == '\n' || r == '\t' ||
		!unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// escaped returns text with the characters written out that are not plain, and the bytes that are none.
func escaped(text string, plain func(rune) bool) string {
	var out strings.Builder
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[at])
		case plain(r):
			out.WriteString(text[at : at+size])
		default: // none of them is beyond four digits
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		at += size
	}
	return out.String()
}
