// Package explain tells users what a collector's decision came to: what it does next, what it waits for, since when,
// and what ends that. It is the decision that acts which is asked.
package explain

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/introspect"
	"keelson.dev/kit/pass"
)

// Account is what decisions came to.
type Account struct {
	// Does are the effects of the next pass, such as "deletes it".
	Does []string
	// Waits are what the decision waits for, the first the most telling.
	Waits []Wait
	// Settled says how things stand, and is told where there is nothing to do or to wait for.
	Settled string
}

// Wait is one thing that a decision waits for.
type Wait struct {
	// Since is when the wait began; zero where nothing tells.
	Since time.Time
	// Reason is CamelCase, as in Events.
	Reason string
	// For completes "waits for", Ends the sentence "it ends when".
	For, Ends string
}

// Explanation puts the account into words.
func (a Account) Explanation() introspect.Explanation {
	var e introspect.Explanation
	var said []string
	for _, effect := range a.Does {
		said = append(said, "in its next pass "+effect)
		e.Facts = append(e.Facts, introspect.Fact{Reason: "Next", Message: effect})
	}
	for _, w := range a.Waits {
		said = append(said, "waits for "+w.For)
		since := ""
		if !w.Since.IsZero() {
			since = " since " + At(w.Since)
		}
		e.Facts = append(e.Facts, introspect.Fact{Time: w.Since, Reason: w.Reason,
			Message: fmt.Sprintf("waits for %s%s; it ends when %s", w.For, since, w.Ends)})
	}
	if len(said) == 0 {
		said = append(said, "waits for nothing: "+a.Settled)
	}
	e.Summary = strings.Join(said, "; ")
	return e
}

// At writes a time as users read it, as precisely as the API keeps it.
func At(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Explainer returns what answers for the objects of a collector: it observes and decides as a pass would, and applies
// nothing. Say puts a decision into words; leaves says why the collector has nothing to decide about an object.
func Explainer[O client.Object, In, Plan any](steps *pass.Steps[O, In, Plan], say func(In, Plan) Account,
	leaves func(O) string) introspect.Explainer {
	return func(ctx context.Context, namespace, name string) (introspect.Explanation, bool) {
		object := steps.New()
		switch err := steps.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); {
		case apierrors.IsNotFound(err):
			return introspect.Explanation{}, false
		case err != nil:
			return introspect.Explanation{Summary: "cannot read it: " + err.Error()}, true
		}
		in, needed, err := steps.Observe(ctx, object)
		switch {
		case err != nil:
			return introspect.Explanation{Summary: "cannot decide: " + err.Error()}, true
		case !needed:
			return introspect.Explanation{Summary: leaves(object)}, true
		}
		return say(in, steps.Decide(in)).Explanation(), true
	}
}
