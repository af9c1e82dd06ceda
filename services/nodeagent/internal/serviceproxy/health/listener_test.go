package health

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/zap"

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

// takenAddress is a loopback address at which another listener listens. Its port stays free after that: connections
// of other tests are from 127.0.0.1.
func takenAddress(t *testing.T) net.Listener {
	t.Helper()
	taken, err := net.Listen("tcp", "127.0.67.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	return taken
}

// status returns the code of the answer, as soon as there is one.
func status(t *testing.T, address string) int {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for began := time.Now(); ; <-time.After(time.Millisecond) {
		response, err := client.Get("http://" + address + "/healthz")
		if err == nil {
			response.Body.Close()
			return response.StatusCode
		}
		if time.Since(began) > time.Minute {
			t.Error(err)
			return 0
		}
	}
}

// expectFree tries to listen.
func expectFree(t *testing.T, address string) {
	t.Helper()
	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Errorf("the address is not given back: %v", err)
		return
	}
	again.Close()
}

// An address in use is tried again, and released at the end.
func TestATakenAddressIsTriedAgain(t *testing.T) {
	taken := takenAddress(t)
	tries := make(chan bool, 2)
	a := listener{zap.NewNop(), http.NotFoundHandler(), func(context.Context) bool { return <-tries }}
	ended := a.open(t.Context(), taken.Addr().String())
	tries <- true
	tries <- false
	<-ended // without having listened
	ctx, cancel := context.WithCancel(t.Context())
	ended = a.open(ctx, taken.Addr().String())
	tries <- true
	taken.Close()
	tries <- true
	if got := status(t, taken.Addr().String()); got != http.StatusNotFound {
		t.Errorf("it answers %d", got)
	}
	cancel()
	<-ended
	expectFree(t, taken.Addr().String())
}

// An agent answers for its node as soon as the one before has released the address, and ends with its context.
func TestTheNodesHealthAddress(t *testing.T) {
	taken, f := takenAddress(t), &Freshness{}
	address := taken.Addr().String()
	taken.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := listener{zap.NewNop(), f.Handler(), untilNextTry}.open(ctx, address)
	if got := status(t, address); got != http.StatusServiceUnavailable {
		t.Errorf("status %d of an agent without rules", got)
	}
	cancel()
	<-ended
	f.Serve(ctx, zap.NewNop(), address)
	expectFree(t, address)
}

// A Service's health check whose port is in use answers once it is free, and another Service may have it then.
func TestAHealthCheckPortThatIsTaken(t *testing.T) {
	taken := takenAddress(t)
	at := netip.MustParseAddrPort(taken.Addr().String())
	free := make(chan bool, 2)
	fresh := &Freshness{}
	fresh.Written(time.Now(), time.Time{})
	h := NewNodePorts(zap.NewNop(), fresh)
	h.wait = func(ctx context.Context) bool {
		select {
		case <-ctx.Done():
			return false
		case <-free:
			return true
		}
	}
	addresses := []netip.Addr{at.Addr()}
	h.Set("ns/first", &plan.HealthCheck{NodePort: at.Port(), ReadyEndpoints: 1}, addresses)
	h.Set("ns/second", &plan.HealthCheck{NodePort: at.Port(), ReadyEndpoints: 0}, addresses)
	taken.Close()
	h.Set("ns/first", &plan.HealthCheck{NodePort: at.Port(), ReadyEndpoints: 2}, addresses) // restarts nothing
	h.Set("ns/second", nil, nil)
	free <- true
	if got := status(t, at.String()); got != http.StatusOK {
		t.Errorf("the first Service's port, which was taken: %d", got)
	}
	h.Set("ns/second", &plan.HealthCheck{NodePort: at.Port(), ReadyEndpoints: 0}, addresses)
	h.Set("ns/first", nil, nil)
	free <- true
	if got := status(t, at.String()); got != http.StatusServiceUnavailable {
		t.Errorf("the second Service's port, which the first had: %d", got)
	}
	h.Close()
	expectFree(t, at.String())
}
