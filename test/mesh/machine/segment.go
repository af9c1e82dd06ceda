package machine

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/vishvananda/netlink"

	"keelson.dev/kit/namespaces"
)

// bridge is the device of a switch.
const bridge = "switch"

// Segment gives machines a network of their own: a switch that is no machine's, so that it stays when one fails.
func Segment(t testing.TB, at map[*Machine]netip.Prefix) {
	t.Helper()
	keeper := exec.Command("unshare", "--net", "sleep", "infinity")
	if err := keeper.Start(); err != nil {
		t.Fatalf("making a switch: %v", err)
	}
	t.Cleanup(func() {
		_ = keeper.Process.Kill()
		_ = keeper.Wait() // it was killed
	})
	awaitSleep(t, keeper.Process.Pid)
	inside := namespaces.Files{Net: filepath.Join("/proc", strconv.Itoa(keeper.Process.Pid), "ns", "net")}
	if err := inside.Do(func() error {
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge}}); err != nil {
			return fmt.Errorf("making a switch: %w", err)
		}
		return up(bridge)
	}); err != nil {
		t.Fatal(err)
	}
	port := 0
	for m, address := range at {
		port++
		name := fmt.Sprint("port", port)
		pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, Namespace: netlink.NsPid(keeper.Process.Pid)},
			PeerName: device, PeerNamespace: netlink.NsPid(m.keeper.Process.Pid)}
		if err := netlink.LinkAdd(pair); err != nil {
			t.Fatalf("connecting %s: %v", m.Name, err)
		}
		if err := inside.Do(func() error { return plug(name) }); err != nil {
			t.Fatal(err)
		}
		m.do(t, func() error { return addressed(address) })
	}
}

// plug connects a device to the switch.
func plug(name string) error {
	port, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding the device %s: %w", name, err)
	}
	to, err := netlink.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("finding the switch: %w", err)
	}
	if err := netlink.LinkSetMaster(port, to); err != nil {
		return fmt.Errorf("connecting the device %s: %w", name, err)
	}
	return up(name)
}

// Dial connects from the machine.
func (m *Machine) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = m.namespaces().Do(func() error {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}
