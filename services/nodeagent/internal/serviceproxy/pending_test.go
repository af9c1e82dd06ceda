package serviceproxy

import (
	"slices"
	"testing"
)

// What is taken stays pending until it is committed, and a change in between stays pending after that.
func TestPending(t *testing.T) {
	var p pending
	if !p.empty() || p.has("a") {
		t.Fatal("something is pending of nothing")
	}
	p.add("b")
	p.add("a")
	first := p.take()
	if again := p.take(); !slices.Equal(first.services, []string{"a", "b"}) || first.whole ||
		!slices.Equal(again.services, first.services) {
		t.Fatalf("%+v, then %+v", first, again)
	}
	p.add("b")
	p.addAll()
	if !p.allAhead() || !p.has("else") {
		t.Error("the whole is not pending")
	}
	p.commit(first)
	second := p.take()
	if !second.whole || !slices.Equal(second.services, []string{"b"}) || p.allAhead() {
		t.Errorf("%+v is taken, the whole still ahead: %t", second, p.allAhead())
	}
	p.add("c")
	p.commit(second)
	if p.has("a") || p.has("b") || !p.has("c") || p.empty() {
		t.Errorf("%+v is left, want c alone", p)
	}
	p.addAll()
	whole := p.take()
	p.addAll()
	if p.commit(whole); p.has("c") == false || p.all == 0 || !p.allAhead() {
		t.Error("a second change of the whole is lost")
	}
	if p.commit(p.take()); !p.empty() {
		t.Errorf("%+v is left", p)
	}
}
