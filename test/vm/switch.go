package vm

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// maxFrame holds any Ethernet frame that a machine sends at once, also one that its card was to cut up.
const maxFrame = 128 << 10

// stall is how long a machine that takes nothing more may hold the others up.
const stall = 20 * time.Millisecond

// Switch is the private network of some machines: what one sends, all others get. It exists in this process alone, and
// no packet leaves it.
type Switch struct {
	dir  string
	conn *net.UnixConn

	mu    sync.Mutex
	ports map[string]*net.UnixAddr
}

// NewSwitch makes a network that ends with the test.
func NewSwitch(t testing.TB) *Switch {
	t.Helper()
	s := &Switch{dir: testDir(t), ports: map[string]*net.UnixAddr{}}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: s.socket(), Net: "unixgram"})
	if err != nil {
		t.Fatalf("making the machines' network: %v", err)
	}
	s.conn = conn
	done := make(chan struct{})
	go func() { defer close(done); s.forward() }()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return s
}

func (s *Switch) socket() string { return filepath.Join(s.dir, "switch") }

// netdev is the argument by which an emulator has the network; the port's name is the machine's.
func (s *Switch) netdev(id, port string) string {
	file := filepath.Join(s.dir, port)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports[port] = &net.UnixAddr{Name: file, Net: "unixgram"}
	return fmt.Sprintf("dgram,id=%s,local.type=unix,local.path=%s,remote.type=unix,remote.path=%s", id, file,
		s.socket())
}

// forward gives each frame to all ports but its own. One that is off or full loses it, as on any network.
func (s *Switch) forward() {
	frame := make([]byte, maxFrame)
	for {
		n, from, err := s.conn.ReadFromUnix(frame)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || from == nil {
			continue
		}
		_ = s.conn.SetWriteDeadline(time.Now().Add(stall))
		s.mu.Lock()
		for _, port := range s.ports {
			if port.Name != from.Name {
				_, _ = s.conn.WriteToUnix(frame[:n], port)
			}
		}
		s.mu.Unlock()
	}
}
