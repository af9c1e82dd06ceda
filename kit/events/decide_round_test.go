package events

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestRound(t *testing.T) {
	for _, row := range []struct{ writes, together, later string }{
		{"+a +b +a", "+a +b +a", ""},
		{"+a *a +b", "+a *a +b", ""},
		{"+a *a *a", "+a *a *a", ""},
		{"*a +a", "*a", "+a"},
		{"+b *a +c +a", "+b *a +c", "+a"},
		{"*a +b", "*a +b", ""},
		{strings.Repeat("+a ", 201), strings.Repeat("+a ", 200), "+a"},
		{strings.Repeat("*a ", 201), strings.Repeat("*a ", 200), "*a"},
	} {
		var r round
		var taken, later []string
		for _, text := range strings.Fields(row.writes) {
			w := write{event: &corev1.Event{InvolvedObject: corev1.ObjectReference{UID: types.UID(text[1:])}}}
			if text[0] == '*' {
				w.patch = []byte("{}")
			}
			if r.full() || !r.add(w) {
				later = append(later, text)
				break
			}
			taken = append(taken, text)
		}
		if got, want := fmt.Sprint(taken, later), fmt.Sprint(strings.Fields(row.together),
			strings.Fields(row.later)); got != want {
			t.Errorf("%.40s: %.80s, want %.80s", row.writes, got, want)
		}
		if len(r.creates)+len(r.patches) != len(taken) || r.empty() {
			t.Errorf("%.40s: %d new and %d patches of %d", row.writes, len(r.creates), len(r.patches), len(taken))
		}
	}
}
