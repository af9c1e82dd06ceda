package vm

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What a machine sends reaches all others and not itself, also those whose neighbour is off.
func TestSwitch(t *testing.T) {
	s := NewSwitch(t)
	ports := map[string]*net.UnixConn{}
	for _, name := range []string{"a", "b", "c", "off"} {
		if arguments := s.netdev("n", name); !strings.Contains(arguments, "local.path="+filepath.Join(s.dir, name)+
			",") {
			t.Fatalf("the port of %s is %s", name, arguments)
		}
		if name == "off" {
			continue
		}
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(s.dir, name), Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		ports[name] = conn
	}
	if _, err := ports["a"].WriteToUnix([]byte("frame"), &net.UnixAddr{Name: s.socket(), Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c"} {
		if got := receive(t, ports[name], 10*time.Second); got != "frame" {
			t.Errorf("%s got %q", name, got)
		}
	}
	// Both others have it by now, so it would be here as well.
	if got := receive(t, ports["a"], 10*time.Millisecond); got != "" {
		t.Errorf("the sender got %q back", got)
	}
}

func receive(t *testing.T, conn *net.UnixConn, patience time.Duration) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 100)
	n, _ := conn.Read(buffer)
	return string(buffer[:n])
}
