// Package explain explains to users the result of a decision of a controller or collector: what the next pass does,
// what it waits for, since when, and what ends that. It is the decision that acts which is asked.
//
//	account.go     what a decision came to, in words (pure)
//	explainer.go   asks a controller's decision about an object
package explain

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"keelson.dev/kit/introspect"
)

// Account is what a decision came to.
type Account struct {
	// Does are the effects of the next pass, such as "creates 2 Pods".
	Does []string
	// Waits are what the decision waits for, the first the most telling.
	Waits []Wait
	// Settled says how things stand, and is shown if there is nothing to do or to wait for.
	Settled string
	// Whole has the summary list everything, not the first of each with the number of the others.
	Whole bool
}

// Wait is one thing that a decision waits for.
type Wait struct {
	// Since is when the wait began; zero if it is not known.
	Since time.Time
	// Reason is CamelCase, as in Events.
	Reason string
	// For completes "waits for", Ends the sentence "it ends when".
	For, Ends string
}

// Do adds an effect if there is anything to do.
func (a *Account) Do(count int, format string, args ...any) {
	if count > 0 {
		a.Does = append(a.Does, fmt.Sprintf(format, args...))
	}
}

// Wait adds something to wait for.
func (a *Account) Wait(w Wait) { a.Waits = append(a.Waits, w) }

// Explanation puts the account into words.
func (a Account) Explanation() introspect.Explanation {
	e := introspect.Explanation{Summary: a.summary()}
	for _, effect := range a.Does {
		e.Facts = append(e.Facts, introspect.Fact{Reason: "Next", Message: effect})
	}
	for _, w := range a.Waits {
		e.Facts = append(e.Facts, introspect.Fact{Time: w.Since, Reason: w.Reason,
			Message: fmt.Sprintf("waits for %s%s; it ends when %s", w.For, since(w.Since), w.Ends)})
	}
	return e
}

func (a Account) summary() string {
	var does, waits []string
	for _, effect := range a.Does {
		does = append(does, "in its next pass "+effect)
	}
	for _, w := range a.Waits {
		waits = append(waits, "waits for "+w.For)
	}
	if !a.Whole {
		does, waits = first(does), first(waits)
	}
	return cmp.Or(strings.Join(append(does, waits...), "; "), "waits for nothing: "+a.Settled)
}

// first keeps the first of what is said, with the number of the others.
func first(said []string) []string {
	if len(said) < 2 {
		return said
	}
	return []string{said[0] + fmt.Sprintf(" (and %d more)", len(said)-1)}
}

func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + At(t)
}

// At writes a time as users read it, as precisely as the API keeps it.
func At(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Count writes a number of things: "1 Pod", "2 Pods".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
