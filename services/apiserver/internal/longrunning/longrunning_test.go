package longrunning

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// One more than the limit is refused, whoever else has how many, until one ends; nothing is remembered of who has none.
func TestCounts(t *testing.T) {
	c := &counts{of: map[string]int{}}
	for i, want := range []bool{true, true, false} {
		if got := c.begin("ann", 2); got != want {
			t.Errorf("request %d of ann: %v", i, got)
		}
	}
	if !c.begin("bob", 2) {
		t.Error("bob is refused for what ann has")
	}
	c.end("ann")
	if !c.begin("ann", 2) {
		t.Error("ann is refused although one has ended")
	}
	c.end("ann")
	c.end("ann")
	c.end("bob")
	if len(c.of) != 0 {
		t.Errorf("remembered are %v", c.of)
	}
}

func TestNoLimit(t *testing.T) {
	served := false
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true })
	Limit{}.With(handler).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	if !served {
		t.Error("without a limit nothing is served")
	}
}
