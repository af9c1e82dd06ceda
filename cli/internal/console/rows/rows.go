// Package rows turns objects into the rows of the console's tables. A row has only what its table shows. It never has
// labels, annotations, environment variables, commands or arguments, in which users keep credentials.
//
//keelson:decision
package rows

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tone says at a glance how something is.
type Tone string

// The tones.
const (
	Good Tone = "good" // as it should be
	Busy Tone = "busy" // on the way there
	Bad  Tone = "bad"  // it does not get there without help
	Idle Tone = "idle" // it has ended, or is to do nothing
)

// Named is what all rows of objects have.
type Named struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Created   time.Time `json:"created,omitzero"`
}

func named(kind string, object metav1.Object) Named {
	return Named{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(),
		Created: object.GetCreationTimestamp().UTC()}
}

// longest is how much of a text a row has, in characters: the explanation of the object has all of it.
const longest = 1000

// shortened returns the beginning of a text that is too long for a row.
func shortened(text string) string {
	if len(text) <= longest { // bytes are at least as many as characters
		return text
	}
	if characters := []rune(text); len(characters) > longest {
		return string(characters[:longest]) + "…"
	}
	return text
}

// because joins a reason and its message; either may be missing.
func because(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}
