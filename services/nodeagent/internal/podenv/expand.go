package podenv

import (
	"errors"
	"fmt"
	"strings"
)

// ErrTooLong means that a text would be longer than its limit once its references are replaced.
var ErrTooLong = errors.New("too long with its references replaced")

// Expand replaces $(NAME) by the result of lookup. A name that lookup does not know is left as written, "$$" is one
// dollar sign (so "$$(NAME)" is the text "$(NAME)"), and any other dollar sign stands for itself. A result of more
// than limit bytes is ErrTooLong and is never built: a few references can multiply a text without end.
func Expand(text string, limit int, lookup func(name string) (string, bool)) (string, error) {
	length := 0
	for piece := range pieces(text, lookup) {
		if len(piece) > limit-length {
			return "", ErrTooLong
		}
		length += len(piece)
	}
	var out strings.Builder
	out.Grow(length)
	for piece := range pieces(text, lookup) {
		out.WriteString(piece)
	}
	return out.String(), nil
}

// ExpandAll is Expand for texts in which every name must be known: a subPathExpr.
func ExpandAll(text string, limit int, lookup func(name string) (string, bool)) (string, error) {
	var missing []string
	out, err := Expand(text, limit, func(name string) (string, bool) {
		value, ok := lookup(name)
		if !ok {
			missing = append(missing, name)
		}
		return value, ok
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("missing value for %q", missing[0])
	}
	if err != nil {
		return "", fmt.Errorf("%w: at most %d bytes are allowed", err, limit)
	}
	return out, nil
}

// pieces yields the pieces of the text with its references replaced.
func pieces(text string, lookup func(string) (string, bool)) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for text := text; text != ""; {
			before, after, found := strings.Cut(text, "$")
			if !yield(before) || !found {
				return
			}
			var piece string
			if piece, text = reference(after, lookup); !yield(piece) {
				return
			}
		}
	}
}

// reference reads what follows a dollar sign and returns its replacement and the text after it.
func reference(after string, lookup func(string) (string, bool)) (piece, rest string) {
	switch {
	case strings.HasPrefix(after, "$"):
		return "$", after[1:]
	case strings.HasPrefix(after, "("):
		name, rest, closed := strings.Cut(after[1:], ")")
		if !closed {
			return "$(", after[1:]
		}
		if value, ok := lookup(name); ok {
			return value, rest
		}
		return "$(" + name + ")", rest
	}
	return "$", after
}
