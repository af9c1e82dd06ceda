package events

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Each write is of an Event about an object: "+a1" makes a new one, "*a1" counts that one up, "*a" one that was there
// before.
func TestRound(t *testing.T) {
	for _, row := range []struct{ writes, together, later string }{
		{"+a1 +b1 +a2", "+a1=1 +b1=1 +a2=1", ""},
		{"+a1 *a +b1", "+a1=1 +b1=1 *a=1", ""},
		{"+a1 *a1 *a1", "+a1=3", ""},
		{"+a1 +a2 *a1 *a2 *a1", "+a1=3 +a2=2", ""},
		{"*a +a1", "*a=1", "+a1"},
		{"+b1 *a +c1 +a1", "+b1=1 +c1=1 *a=1", "+a1"},
		{"*a +b1", "+b1=1 *a=1", ""},
		{"*a *a *b *a", "*a=3 *b=1", ""},
		{"+a1 *a1 +a2", "+a1=2 +a2=1", ""},
	} {
		var r round
		later := ""
		counts := map[string]int32{}
		for _, text := range strings.Fields(row.writes) {
			if !r.add(counted(text, counts)) {
				later = text
				break
			}
		}
		var together []string
		for _, w := range r.creates {
			together = append(together, fmt.Sprintf("+%s=%d", w.event.Name, w.event.Count))
			if w.again {
				t.Errorf("%s: %s is made with a patch", row.writes, w.event.Name)
			}
		}
		for _, w := range r.patches {
			together = append(together, fmt.Sprintf("*%s=%d", w.event.Name, w.event.Count))
			if !w.again {
				t.Errorf("%s: %s is counted up without a patch", row.writes, w.event.Name)
			}
		}
		if got := strings.Join(together, " "); got != row.together || later != row.later || r.empty() {
			t.Errorf("%s: %s, then %s; want %s, then %s", row.writes, got, later, row.together, row.later)
		}
	}
}

// counted is the write that a row names, with how often the Event has occurred in the row.
func counted(text string, counts map[string]int32) write {
	name := text[1:]
	counts[name]++
	return write{again: text[0] == '*', event: &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Count: counts[name],
		InvolvedObject: corev1.ObjectReference{UID: types.UID(name[:1])},
	}}
}

// A round has 200 Events at most, however often each is counted up.
func TestRoundIsBounded(t *testing.T) {
	for _, sign := range []string{"+", "*"} {
		var r round
		counts := map[string]int32{}
		for i := range 200 {
			if r.full() {
				t.Fatalf("full with %d of %s", i, sign)
			}
			r.add(counted(sign+fmt.Sprint(i), counts))
			r.add(counted("*"+fmt.Sprint(i), counts))
		}
		if !r.full() {
			t.Errorf("not full with 200 of %s", sign)
		}
	}
}

// Events of the same name in two namespaces are two.
func TestRoundKnowsNamespaces(t *testing.T) {
	var r round
	for _, namespace := range []string{"one", "two"} {
		r.add(write{event: &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: namespace}},
			again: true})
	}
	if len(r.patches) != 2 {
		t.Errorf("%d patches, want 2", len(r.patches))
	}
}
