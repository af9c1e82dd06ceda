package podenv

import (
	"fmt"
	"strings"
)

// Expand replaces $(NAME) by what lookup says. A name that lookup does not know stays as it is written, "$$" is one
// dollar sign (so "$$(NAME)" is the text "$(NAME)"), and any other dollar sign stands for itself.
func Expand(text string, lookup func(name string) (string, bool)) string {
	var out strings.Builder
	for text != "" {
		before, after, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			break
		}
		var piece string
		piece, text = reference(after, lookup)
		out.WriteString(piece)
	}
	return out.String()
}

// ExpandAll is Expand for texts in which every name must be known: a subPathExpr.
func ExpandAll(text string, lookup func(name string) (string, bool)) (string, error) {
	var missing []string
	out := Expand(text, func(name string) (string, bool) {
		value, ok := lookup(name)
		if !ok {
			missing = append(missing, name)
		}
		return value, ok
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("missing value for %q", missing[0])
	}
	return out, nil
}

// reference reads what follows a dollar sign and returns what to write for it and the text after it.
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
