// Package machine makes machines without systemd, as far as keel sees: network, mount and UTS namespaces of their own
// on this one. What keel init or keel join starts there runs in them.
package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"

	"keelson.dev/kit/namespaces"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// limit bounds one call of keel.
const limit = 5 * time.Minute

// Machine is one machine.
type Machine struct {
	// Name is the host's, DataDir the folder of keel's data, which the machine alone sees: File is how others do.
	Name, DataDir string
	// keeper keeps the namespaces.
	keeper *exec.Cmd
}

// New makes a machine with a loopback device. With the test it ends what keel has started there.
func New(t testing.TB, name string) *Machine {
	t.Helper()
	dir := processes.ShortDir(t)
	m := &Machine{Name: name, DataDir: dir,
		keeper: exec.Command("unshare", "--net", "--mount", "--uts", "sleep", "infinity")}
	if err := m.keeper.Start(); err != nil {
		t.Fatalf("making the namespaces of a machine: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			processes.ShowLogs(t, m.File())
		}
		if out, err := m.Keel(context.Background(), "reset", "--yes", "--force"); err != nil {
			t.Errorf("keel reset on %s: %v\n%s", name, err, out)
		}
		_ = m.keeper.Process.Kill()
		_ = m.keeper.Wait() // it was killed
		if err := os.Remove(dir); err != nil {
			t.Errorf("removing the data directory: %v", err)
		}
	})
	awaitSleep(t, m.keeper.Process.Pid)
	m.do(t, m.furnish)
	return m
}

// namespaces are the machine's.
func (m *Machine) namespaces() namespaces.Files {
	dir := filepath.Join("/proc", strconv.Itoa(m.keeper.Process.Pid), "ns")
	return namespaces.Files{Net: filepath.Join(dir, "net"), Mount: filepath.Join(dir, "mnt"),
		UTS: filepath.Join(dir, "uts")}
}

// awaitSleep waits until unshare has made namespaces and has become what keeps them.
func awaitSleep(t testing.TB, keeper int) {
	t.Helper()
	file := filepath.Join("/proc", strconv.Itoa(keeper), "comm")
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 90*time.Second, true,
		func(context.Context) (bool, error) {
			name, err := os.ReadFile(file)
			return string(name) == "sleep\n", err
		}); err != nil {
		t.Fatalf("namespaces do not begin: %v", err)
	}
}

func (m *Machine) do(t testing.TB, do func() error) {
	t.Helper()
	if err := m.namespaces().Do(do); err != nil {
		t.Fatalf("on the machine %s: %v", m.Name, err)
	}
}

func (m *Machine) furnish() error {
	if err := unix.Sethostname([]byte(m.Name)); err != nil {
		return fmt.Errorf("naming the host: %w", err)
	}
	if err := processes.MountShims(); err != nil {
		return err
	}
	// A disk of its own: how full this machine's is says nothing about what the test shows.
	if err := unix.Mount("tmpfs", m.DataDir, "tmpfs", 0, "mode=0711,size=8g"); err != nil {
		return fmt.Errorf("mounting %s: %w", m.DataDir, err)
	}
	return up("lo")
}

// File is where a file of the data directory is seen from outside.
func (m *Machine) File(path ...string) string {
	return filepath.Join(append([]string{"/proc", strconv.Itoa(m.keeper.Process.Pid), "root", m.DataDir}, path...)...)
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding the device %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bringing the device %s up: %w", name, err)
	}
	return nil
}

// device is what a machine has beside its loopback.
const device = "eth0"

// Connect gives two machines a network of their own.
func Connect(t testing.TB, first *Machine, one netip.Prefix, second *Machine, other netip.Prefix) {
	t.Helper()
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: device,
		Namespace: netlink.NsPid(first.keeper.Process.Pid)}, PeerName: device,
		PeerNamespace: netlink.NsPid(second.keeper.Process.Pid)}
	if err := netlink.LinkAdd(pair); err != nil {
		t.Fatalf("connecting machines: %v", err)
	}
	for machine, address := range map[*Machine]netip.Prefix{first: one, second: other} {
		machine.do(t, func() error { return addressed(address) })
	}
}

// addressed gives the machine's device an address.
func addressed(address netip.Prefix) error {
	if err := readdress(netlink.AddrAdd, address); err != nil {
		return fmt.Errorf("giving the machine its address: %w", err)
	}
	return up(device)
}

// Assign gives the machine an address beside its own.
func (m *Machine) Assign(t testing.TB, address netip.Prefix) {
	t.Helper()
	m.do(t, func() error { return readdress(netlink.AddrAdd, address) })
}

// Release takes an address away from the machine, if it has it.
func (m *Machine) Release(t testing.TB, address netip.Prefix) {
	t.Helper()
	m.do(t, func() error {
		if err := readdress(netlink.AddrDel, address); !errors.Is(err, unix.EADDRNOTAVAIL) {
			return err
		}
		return nil
	})
}

// Forget has the machine ask again which of its neighbors has an address, as after the announcement of one that moved.
func (m *Machine) Forget(t testing.TB, address netip.Addr) {
	t.Helper()
	m.do(t, func() error {
		link, err := netlink.LinkByName(device)
		if err != nil {
			return fmt.Errorf("finding the device: %w", err)
		}
		err = netlink.NeighDel(&netlink.Neigh{LinkIndex: link.Attrs().Index, IP: address.AsSlice()})
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("forgetting a neighbor: %w", err)
		}
		return nil
	})
}

// readdress changes the addresses of the machine's device.
func readdress(change func(netlink.Link, *netlink.Addr) error, address netip.Prefix) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("finding the device: %w", err)
	}
	parsed, err := netlink.ParseAddr(address.String())
	if err != nil {
		return fmt.Errorf("reading an address: %w", err)
	}
	return change(link, parsed)
}

// Keel runs keel on the machine and returns what it has printed.
func (m *Machine) Keel(ctx context.Context, args ...string) (string, error) {
	return m.Run(ctx, append([]string{"keel", "--data-dir=" + m.DataDir}, args...)...)
}

// Kubectl runs kubectl on the machine as the mesh's operator.
func (m *Machine) Kubectl(ctx context.Context, args ...string) (string, error) {
	return m.Run(ctx, append([]string{"kubectl", "--kubeconfig=" + filepath.Join(m.DataDir, "kubeconfig",
		"admin.kubeconfig")}, args...)...)
}

// Run runs one of our programs on the machine and returns what it has printed.
func (m *Machine) Run(ctx context.Context, command ...string) (string, error) {
	var out bytes.Buffer
	err := m.RunTo(ctx, &out, command...)
	return out.String(), err
}

// RunTo runs one of our programs on the machine, which prints to out, and kills it when ctx ends.
func (m *Machine) RunTo(ctx context.Context, out io.Writer, command ...string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	child := processes.Program(ctx, out, command...)
	if err := m.namespaces().Do(child.Start); err != nil {
		return fmt.Errorf("starting %s: %w", command[0], err)
	}
	return child.Wait()
}

// Script runs a bash script on the machine, which finds our programs and sees the variables, and returns what it has
// printed to its output.
func (m *Machine) Script(ctx context.Context, script string, env ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out bytes.Buffer
	bash := exec.CommandContext(ctx, "bash", "-c", script)
	bash.Env = append(os.Environ(), "PATH="+scenario.BinDir()+":"+os.Getenv("PATH"), "KEELSON_DATA_DIR="+m.DataDir,
		"KUBECONFIG="+filepath.Join(m.DataDir, "kubeconfig", "admin.kubeconfig"))
	bash.Env = append(bash.Env, env...)
	bash.Stdout = &out
	if err := m.namespaces().Do(bash.Start); err != nil {
		return "", fmt.Errorf("starting bash: %w", err)
	}
	err := bash.Wait()
	return out.String(), err
}

// Standing is what do returns in the machine's network.
func (m *Machine) Standing(t testing.TB, do func(testing.TB) []string) (all []string) {
	t.Helper()
	m.do(t, func() error { all = do(t); return nil })
	return all
}
