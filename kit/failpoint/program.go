package failpoint

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

type action int

const (
	off action = iota
	failing
	sleeping
	holding
	crashing
)

// forever is the count of a term that is never used up.
const forever = -1

// term is one step of a program.
type term struct {
	count  int
	action action
	text   string
	delay  time.Duration
}

// parse reads "[N*]off|error(TEXT)|sleep(DURATION)|hold(FILE)|crash" terms joined by "->".
func parse(program string) ([]term, error) {
	var terms []term
	for part := range strings.SplitSeq(program, "->") {
		t, err := parseTerm(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
	}
	return terms, nil
}

func parseTerm(text string) (term, error) {
	t := term{count: forever}
	if count, rest, ok := strings.Cut(text, "*"); ok {
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 {
			return term{}, fmt.Errorf("count %q must be a whole number above 0", count)
		}
		t.count, text = n, rest
	}
	name, arg, hasArg := strings.Cut(text, "(")
	if hasArg {
		var closed bool
		if arg, closed = strings.CutSuffix(arg, ")"); !closed {
			return term{}, fmt.Errorf("%q lacks its closing parenthesis", text)
		}
	}
	switch name {
	case "off":
		t.action = off
	case "error":
		t.action, t.text = failing, arg
	case "crash":
		t.action = crashing
	case "sleep":
		delay, err := time.ParseDuration(arg)
		if err != nil {
			return term{}, fmt.Errorf("sleep(%s): %w", arg, err)
		}
		t.action, t.delay = sleeping, delay
	case "hold":
		if arg == "" {
			return term{}, fmt.Errorf("hold() lacks the file that it waits for")
		}
		t.action, t.text = holding, arg
	default:
		return term{}, fmt.Errorf(
			"unknown action %q, allowed are off, error(TEXT), sleep(DURATION), hold(FILE), crash", name)
	}
	return t, nil
}
