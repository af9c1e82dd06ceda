package longrunning

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// One more than the limit is refused, whoever else has how many, until one ends; nothing is remembered of who has none.
func TestCounts(t *testing.T) {
	c := &counts{of: map[string]int{}}
	for i, want := range []bool{true, true, false} {
		if got := c.begin("ann", 1, 2); got != want {
			t.Errorf("request %d of ann: %v", i, got)
		}
	}
	if !c.begin("bob", 1, 2) {
		t.Error("bob is refused for what ann has")
	}
	c.end("ann", 1)
	if !c.begin("ann", 1, 2) {
		t.Error("ann is refused although one has ended")
	}
	c.end("ann", 1)
	c.end("ann", 1)
	c.end("bob", 1)
	if !c.begin("ann", 2, 2) || c.begin("bob", 3, 2) {
		t.Error("one that counts as several is not counted so")
	}
	c.end("ann", 2)
	if len(c.of) != 0 {
		t.Errorf("remembered are %v", c.of)
	}
}

// A watch keeps its selectors in memory: a long one counts as several.
func TestWeight(t *testing.T) {
	for length, want := range map[int]int{0: 1, selectors - 1: 1, selectors: 2, 100 * selectors: 101} {
		if got := weight(&url.URL{RawQuery: strings.Repeat("x", length)}); got != want {
			t.Errorf("%d bytes: %d, want %d", length, got, want)
		}
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
