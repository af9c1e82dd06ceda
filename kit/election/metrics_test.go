package election

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A role that is stood for is shown as not led until it is won, and again when it is lost.
func TestWhoLeadsIsShown(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(Metrics()...)
	expect := func(when string, want float64) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				if metric.GetLabel()[0].GetValue() == "test.shown" {
					if got := metric.GetGauge().GetValue(); got != want {
						t.Errorf("%s the gauge is %v, want %v", when, got, want)
					}
					return
				}
			}
		}
		t.Errorf("%s there is no gauge", when)
	}
	synctest.Test(t, func(t *testing.T) {
		client := leases()
		otherCtx, stopOther := context.WithCancel(t.Context())
		wait := func(ctx context.Context) error { <-ctx.Done(); return nil }
		ended := make(chan struct{}, 2)
		go func() { _ = elector(client, "other").Run(otherCtx, "test.shown", wait); ended <- struct{}{} }()
		time.Sleep(time.Second)
		leading.Reset() // of the other, which is of this process here
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = elector(client, "this").Run(ctx, "test.shown", wait); ended <- struct{}{} }()
		time.Sleep(5 * time.Second)
		expect("while another leads", 0)
		stopOther()
		time.Sleep(20 * time.Second)
		expect("while it leads", 1)
		stop()
		<-ended
		<-ended
		expect("after it led", 0)
	})
}
