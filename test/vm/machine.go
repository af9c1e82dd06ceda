package vm

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"keelson.dev/test/vm/wire"
)

// emulator needs no help of this machine's processor, so it also runs inside other virtual machines.
const emulator = "qemu-system-x86_64"

// bootTimeout bounds a start: 13 s where nothing else runs, more than a minute beside a full load.
const bootTimeout = 4 * time.Minute

// kernelArguments end with the machine's name. Without the first line's last two, each look at the clock leaves the
// emulated processor and takes a lock that all of them share: Go programs look at it all the time.
const kernelArguments = "root=/dev/vda rw console=ttyS0 quiet mitigations=off tsc=reliable clocksource=tsc " +
	"systemd.show_status=no systemd.hostname="

// Config is what a machine is made of.
type Config struct {
	// Name is its hostname too.
	Name string
	// MemoryMiB is 2048 if not set.
	MemoryMiB int
	// Switch is the private network that it is on, Address its address there; none without them.
	Switch  *Switch
	Address netip.Prefix
	// Mesh is set where it has the programs and images of a mesh, in payloadMount/bin.
	Mesh bool
	// Package is set where it has the package for Debian, as payloadMount/keelson.deb.
	Package bool
}

// Machine is a machine with a disk of its own, which keeps its content when the machine is off.
type Machine struct {
	Config

	lab           *lab
	dir           string
	disk, payload string
	// port is that of this machine which leads to the program inside.
	port int

	process *exec.Cmd
	ended   chan struct{}
}

// New makes a machine and starts it. It ends with the test, also with one that is killed.
func New(t testing.TB, config Config) *Machine {
	t.Helper()
	l := open(t)
	dir := testDir(t)
	m := &Machine{Config: config, lab: l, dir: dir, disk: filepath.Join(dir, "disk")}
	if m.MemoryMiB == 0 {
		m.MemoryMiB = 2048
	}
	build := l.payload
	switch {
	case config.Mesh:
		build = l.meshPayload
	case config.Package:
		build = l.packagePayload
	}
	var err error
	if m.payload, err = build(); err != nil {
		t.Fatal(err)
	}
	if out, err := output(t.Context(), "cp", "--sparse=always", l.root.Image, m.disk); err != nil {
		t.Fatalf("copying the machine's disk: %v\n%s", err, out)
	}
	m.writePrivateNetwork(t)
	m.port = freePort(t)
	t.Cleanup(func() {
		if t.Failed() {
			m.showLogs(t)
		}
		m.Cut(t)
	})
	m.PowerOn(t)
	return m
}

// privateMAC is that of a machine's card in the private network, by its address there.
func (m *Machine) privateMAC() string {
	last := m.Address.Addr().As4()[3]
	return fmt.Sprintf("52:54:00:00:01:%02x", last)
}

// writePrivateNetwork puts the card's configuration on the disk, where the machine's own systemd finds it.
func (m *Machine) writePrivateNetwork(t testing.TB) {
	t.Helper()
	if m.Switch == nil {
		return
	}
	const name = "20-private.network"
	file := filepath.Join(m.dir, name)
	content := fmt.Sprintf("[Match]\nMACAddress=%s\n\n[Network]\nAddress=%s\n", m.privateMAC(), m.Address)
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatalf("writing the private network: %v", err)
	}
	out, err := output(t.Context(), "debugfs", "-w", "-R", "write "+file+" /etc/systemd/network/"+name, m.disk)
	if err != nil || strings.Contains(out, "error") {
		t.Fatalf("writing the private network onto the disk: %v\n%s", err, out)
	}
}

// PowerOn starts the machine and waits until it answers.
func (m *Machine) PowerOn(t testing.TB) {
	t.Helper()
	started := time.Now()
	command := exec.Command(emulator, m.arguments()...)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(filepath.Join(m.dir, "emulator.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatalf("opening the emulator's log: %v", err)
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	m.process, m.ended = command, make(chan struct{})
	begun := make(chan error, 1)
	go func() {
		defer close(m.ended)
		// The kernel ends the emulator with the thread that has started it, so that one lives as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		begun <- err
		if err == nil {
			_ = command.Wait()
		}
	}()
	if err := <-begun; err != nil {
		t.Fatalf("starting the emulator: %v", err)
	}
	m.AwaitBoot(t, "")
	t.Logf("%s answers after %v", m.Name, time.Since(started).Round(time.Second))
}

func (m *Machine) arguments() []string {
	control := fmt.Sprintf("user,id=control,restrict=on,hostfwd=tcp:127.0.0.1:%d-:%d", m.port, wire.Port)
	args := []string{
		"-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", fmt.Sprint(m.MemoryMiB),
		"-display", "none", "-monitor", "none", "-serial", "file:" + filepath.Join(m.dir, "console.log"),
		"-kernel", m.lab.root.Kernel, "-initrd", m.lab.root.Initrd,
		"-append", kernelArguments + m.Name,
		// What the disk has taken survives the end of the emulator in the kernel's memory outside, synced there or not;
		// what only the kernel inside holds is lost, as at a power cut.
		"-drive", "file=" + m.disk + ",if=virtio,format=raw,cache=unsafe",
		"-drive", "file=" + m.payload + ",if=virtio,format=raw,readonly=on",
		"-netdev", control,
		"-device", "virtio-net-pci,netdev=control,mac=52:54:00:00:00:01",
		"-device", "virtio-rng-pci",
	}
	if m.Switch != nil {
		args = append(args, "-netdev", m.Switch.netdev("private", m.Name),
			"-device", "virtio-net-pci,netdev=private,mac="+m.privateMAC())
	}
	return args
}

// AwaitBoot waits until the machine answers, in another start than the one named if one is, and returns which it is.
func (m *Machine) AwaitBoot(t testing.TB, before string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
	defer cancel()
	for {
		id, err := m.bootID(ctx)
		if err == nil && id != before {
			return id
		}
		select {
		case <-m.ended:
			t.Fatalf("the emulator of %s has ended; see its log:\n%s", m.Name, m.tail("emulator.log"))
		case <-ctx.Done():
			t.Fatalf("%s does not answer after %v (%v); the end of its console:\n%s", m.Name, bootTimeout, err,
				m.tail("console.log"))
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// Reboot restarts the machine in the orderly way.
func (m *Machine) Reboot(t testing.TB) {
	t.Helper()
	before, err := m.bootID(t.Context())
	if err != nil {
		t.Fatalf("asking %s which start it is: %v", m.Name, err)
	}
	m.Run(t, "systemctl", "--no-block", "reboot")
	m.AwaitBoot(t, before)
}

// Cut takes the power from the machine.
func (m *Machine) Cut(t testing.TB) {
	t.Helper()
	if m.process == nil || m.process.Process == nil {
		return
	}
	_ = m.process.Process.Kill()
	<-m.ended
	m.process = nil
}

func (m *Machine) tail(name string) string {
	content, err := os.ReadFile(filepath.Join(m.dir, name))
	if err != nil {
		return err.Error()
	}
	const enough = 4 << 10
	return string(content[max(0, len(content)-enough):])
}

// showLogs prints what a person would look at first.
func (m *Machine) showLogs(t testing.TB) {
	t.Logf("the end of the console of %s:\n%s", m.Name, m.tail("console.log"))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	result, err := m.Try(ctx, "", "journalctl", "-b", "-p", "warning", "--no-pager", "-n", "20")
	t.Logf("the end of the journal of %s (%v):\n%s", m.Name, err, result.Output)
}

func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("finding a free port: %v", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
