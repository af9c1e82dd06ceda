package contained_test

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"keelson.dev/kit/contained"
)

// counted is how many works of the name have broken off.
func counted(t *testing.T, name string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(contained.Metrics()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == name {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// A panic becomes an error that says what broke off and why, and is counted; work that ends well is neither.
func TestDo(t *testing.T) {
	before := counted(t, "a test of Do")
	if err := contained.Do("a test of Do", func() {}); err != nil {
		t.Error(err)
	}
	var none map[string]int
	err := contained.Do("a test of Do", func() { none["x"] = 1 })
	if err == nil || err.Error() != "a test of Do broke off: assignment to entry in nil map" {
		t.Errorf("%v", err)
	}
	if after := counted(t, "a test of Do"); after != before+1 {
		t.Errorf("%v works have broken off, %v before", after, before)
	}
}

// Neither the work of a goroutine nor the report of its panic ends the process, and the waiting caller hears of it
// first.
func TestGroup(t *testing.T) {
	var group contained.Group
	done, told := false, ""
	group.Go("work", func() { done = true }, func(err error) { t.Error(err) })
	group.Go("work", func() { panic("no such case") }, func(err error) { told = err.Error() })
	group.Go("work", func() { panic("nobody to tell") }, nil)
	group.Go("work", func() { panic("first") }, func(error) { panic("second") })
	group.Wait()
	if !done || told != "work broke off: no such case" {
		t.Errorf("done %v, told %q", done, told)
	}
}

// A goroutine reports its panic, no matter which function started it.
func TestGoroutines(t *testing.T) {
	breaks := func() { panic("no such case") }
	told := make(chan error)
	tell := func(err error) { told <- err }
	over, end := context.WithCancel(t.Context())
	end()
	for name, start := range map[string]func(){
		"Go":    func() { contained.Go("work", breaks, tell) },
		"After": func() { contained.After(0, "work", breaks, tell) },
		"AtEnd": func() { contained.AtEnd(over, "work", breaks, tell) },
	} {
		start()
		if err := <-told; !strings.Contains(err.Error(), "no such case") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
