package podnetwork

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"keelson.dev/kit/netdump"
)

// VXLANPort is the standard UDP port of VXLAN.
const VXLANPort = 4789

// ensureTunnel creates the device of the plan, with what it has to know of the others, or removes it.
func (k kernel) ensureTunnel(plan Plan) error {
	if plan.Tunnel == nil {
		return removeLink(k.tunnel)
	}
	t := plan.Tunnel
	if !t.Local.IsValid() {
		return errors.New("the node has no InternalIP to send from")
	}
	want := &netlink.Vxlan{LinkAttrs: named(k.tunnel), VxlanId: k.vxlanID, Port: VXLANPort, SrcAddr: t.Local.AsSlice(),
		Learning: false}
	want.HardwareAddr, want.MTU = t.Hardware[:], plan.MTU
	link, err := ensureLink(want, func(have netlink.Link) bool {
		now, ok := have.(*netlink.Vxlan)
		return ok && now.SrcAddr.Equal(want.SrcAddr) && now.VxlanId == want.VxlanId && now.Port == VXLANPort &&
			now.HardwareAddr.String() == want.HardwareAddr.String() && now.MTU == plan.MTU
	})
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("another network of this machine has --vxlan-id=%d and port %d: %w", k.vxlanID, VXLANPort,
			err)
	}
	if err != nil {
		return err
	}
	if err := switchOn(link); err != nil {
		return err
	}
	if err := k.setAddresses(link, t.Addresses); err != nil {
		return err
	}
	return t.setPeers(link.Attrs().Index)
}

// removeLink removes a link; a missing one is no error.
func removeLink(name string) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil {
		return fmt.Errorf("removing the link %s: %w", name, err)
	}
	return nil
}

// entry is what the kernel knows of a peer: the hardware address of an IP address, or the node of a hardware
// address.
type entry struct {
	address  netip.Addr
	hardware Hardware
}

// setPeers sets what the device knows of the others to what the plan says.
func (t *Tunnel) setPeers(index int) error {
	neighbours, forwarding := map[entry]bool{}, map[entry]bool{}
	for _, peer := range t.Peers {
		forwarding[entry{peer.Node, peer.Hardware}] = true
		for _, address := range peer.Addresses {
			neighbours[entry{address, peer.Hardware}] = true
		}
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		if err := setEntries(index, family, 0, 0, neighbours); err != nil {
			return err
		}
	}
	return setEntries(index, unix.AF_BRIDGE, netlink.NTF_SELF, unix.AF_BRIDGE, forwarding)
}

// setEntries adds missing entries to a table and removes unwanted ones.
func setEntries(index, table int, flags, family int, want map[entry]bool) error {
	have, err := netdump.Whole(func() ([]netlink.Neigh, error) { return netlink.NeighList(index, table) })
	if err != nil {
		return fmt.Errorf("listing what is known of other nodes' tunnels: %w", err)
	}
	there := map[entry]bool{}
	for _, neighbour := range have {
		address, ok := netip.AddrFromSlice(neighbour.IP)
		if !ok || len(neighbour.HardwareAddr) != len(Hardware{}) || address.IsMulticast() {
			continue
		}
		e := entry{address.Unmap(), Hardware(neighbour.HardwareAddr)}
		if permanent := neighbour.State&netlink.NUD_PERMANENT != 0; permanent && want[e] {
			there[e] = true
			continue
		}
		if err := netlink.NeighDel(&neighbour); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("forgetting the tunnel at %s: %w", address, err)
		}
	}
	for e := range want {
		inTable := table == unix.AF_BRIDGE || e.address.Is4() == (table == netlink.FAMILY_V4)
		if there[e] || !inTable {
			continue
		}
		err := netlink.NeighSet(&netlink.Neigh{LinkIndex: index, Family: family, State: netlink.NUD_PERMANENT,
			Flags: flags, IP: e.address.AsSlice(), HardwareAddr: net.HardwareAddr(e.hardware[:])})
		if err != nil {
			return fmt.Errorf("telling the tunnel of %s: %w", e.address, err)
		}
	}
	return nil
}
