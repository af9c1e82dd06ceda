package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"keelson.dev/test/mesh/machine"
)

// TestHighlyAvailableControlPlane makes three machines one mesh with an apiserver and a copy of the store on each,
// kills each of them in turn while a client writes to whichever answers, and takes them apart again.
func TestHighlyAvailableControlPlane(t *testing.T) {
	c := &controlPlane{T: t}
	at := map[*machine.Machine]netip.Prefix{}
	for i, name := range []string{"first", "second", "third"} {
		m := machine.New(t, name)
		c.machines = append(c.machines, m)
		c.addresses = append(c.addresses, fmt.Sprintf("192.168.78.%d", i+1))
		at[m] = netip.MustParsePrefix(c.addresses[i] + "/24")
	}
	c.worker = machine.New(t, "worker")
	at[c.worker] = netip.MustParsePrefix("192.168.78.9/24")
	machine.Segment(t, at)
	for _, step := range []struct {
		name string
		test func(*controlPlane)
	}{
		{"Init", (*controlPlane).init}, {"Refused", (*controlPlane).refused}, {"Join", (*controlPlane).join},
		{"JoinIsKilled", (*controlPlane).joinIsKilled}, {"Deployment", (*controlPlane).deployment},
		{"JoinWorker", (*controlPlane).joinWorker},
		{"WorkerOutlivesTheFirst", (*controlPlane).workerOutlivesTheFirst},
		{"MachinesFail", (*controlPlane).machinesFail}, {"NoMajority", (*controlPlane).noMajority},
		{"Reset", (*controlPlane).reset},
	} {
		if !t.Run(step.name, func(t *testing.T) { c.T = t; step.test(c) }) {
			return
		}
	}
}

// controlPlane are the three machines, and a worker for a time.
type controlPlane struct {
	*testing.T
	machines  []*machine.Machine
	addresses []string
	worker    *machine.Machine
	// acknowledged are the objects of which an apiserver has said that it has them.
	acknowledged []string
}

func (c *controlPlane) init() {
	c.lead(0)
	c.keel(0, "init", "--control-plane-endpoint="+endpoint.Addr().String())
}

// offer returns by what another machine joins the control plane.
func (c *controlPlane) offer() []string {
	c.Helper()
	said := c.keel(0, "token", "create", "--control-plane", "--print-join-command")
	line, ok := strings.CutPrefix(strings.TrimSpace(said), "keel ")
	if !ok {
		c.Fatalf("it does not say how machines join:\n%s", said)
	}
	return strings.Fields(line)
}

// refused are a token of workers, and the key of another token; nothing is written.
func (c *controlPlane) refused() {
	line, other := c.offer(), c.offer()
	key := slices.Clone(line)
	key[len(key)-1] = other[len(other)-1]
	worker := slices.Clone(line)
	worker[slices.Index(worker, "--token")+1] = strings.TrimSpace(c.keel(0, "token", "create"))
	for want, args := range map[string][]string{
		"--certificate-key: it is not the one that was printed": key,
		"is not for the control plane":                          worker,
	} {
		out, err := c.machines[1].Keel(c.Context(), args...)
		if err == nil || !strings.Contains(out, want) {
			c.Errorf("got %v:\n%s\nwant %s", err, out, want)
		}
	}
	if _, err := os.Stat(c.machines[1].File("pki")); err == nil {
		c.Error("keys were written")
	}
}

func (c *controlPlane) join() {
	line := c.offer()
	c.keel(1, line...)
	c.members(0, 1)
	// What it has joined by is good for one.
	if out, err := c.machines[2].Keel(c.Context(), line...); err == nil {
		c.Errorf("a second machine has joined by it:\n%s", out)
	}
}

// joinIsKilled goes on where it was ended, without token and key: it has what it needs.
func (c *controlPlane) joinIsKilled() {
	line := c.offer()
	ctx, kill := context.WithCancel(c.Context())
	defer kill()
	ended := make(chan string, 1)
	go func() {
		out, _ := c.machines[2].Keel(ctx, line...)
		ended <- out
	}()
	eventually(c.T, "the machine to have the keys", func(context.Context) bool {
		_, err := os.Stat(c.machines[2].File("pki", "ca.key"))
		return err == nil
	})
	kill()
	<-ended
	c.keel(2, "join")
	c.members(0, 1, 2)
	if out := c.keel(2, "join"); strings.Contains(out, "starting") || strings.Contains(out, "writing") {
		c.Errorf("keel join found something to do:\n%s", out)
	}
	c.endpoints(0, 1, 2)
}

// deployment has a Pod on each machine.
func (c *controlPlane) deployment() {
	manifest := filepath.Join(c.TempDir(), "apart.yaml")
	three := strings.Replace(apart, "replicas: 2", "replicas: 3", 1)
	if err := os.WriteFile(manifest, []byte(three), 0o600); err != nil {
		c.Fatal(err)
	}
	c.kubectl(1, "apply", "-f", manifest)
	c.kubectl(2, "rollout", "status", "deployment", "apart", "--timeout=90s")
	nodes := strings.Fields(c.kubectl(0, "get", "pods", "-l", "app=apart", "-o",
		"jsonpath={range .items[*]}{.spec.nodeName} {end}"))
	slices.Sort(nodes)
	if want := []string{"first", "second", "third"}; !slices.Equal(nodes, want) {
		c.Errorf("the Pods are on %v", nodes)
	}
}

// machinesFail ends each machine in turn while a client writes: it goes on, and nothing acknowledged is lost.
func (c *controlPlane) machinesFail() {
	w := c.write()
	for failed := range c.machines {
		w.more(c.T, 5)
		c.fail(failed)
		w.more(c.T, 20)
		if failed == 0 { // of the others the same is so
			c.endpoints(1, 2)
		}
		c.revive(failed)
	}
	c.acknowledged = w.end(c.T)
	c.nothingIsLost()
	c.endpoints(0, 1, 2)
}

// noMajority lets one machine of three write nothing, nor leave two, until another one is back.
func (c *controlPlane) noMajority() {
	c.fail(2)
	if out, err := c.machines[1].Keel(c.Context(), "reset", "--yes"); err == nil ||
		!strings.Contains(out, "those that are left would be no majority") {
		c.Errorf("leaving one of three that runs: %v\n%s", err, out)
	}
	c.fail(1)
	if err := c.create(c.client(0), "nobody-has-this"); err == nil {
		c.Error("one of three has acknowledged a write")
	}
	c.revive(2)
	w := c.write()
	w.more(c.T, 5)
	c.revive(1)
	c.acknowledged = append(c.acknowledged, w.end(c.T)...)
	c.nothingIsLost()
}

// reset takes the machines out of the store, one after the other; those that are left go on.
func (c *controlPlane) reset() {
	for i := 2; i > 0; i-- {
		out := c.keel(i, "reset", "--yes")
		if want := "kubectl delete node " + c.machines[i].Name; !strings.Contains(out, want) {
			c.Errorf("it does not say that the Node stays:\n%s", out)
		}
		c.members([]int{0, 1}[:i]...)
		c.kubectl(0, "delete", "node", c.machines[i].Name)
	}
	c.keel(0, "reset", "--yes")
}

// members sees the store on these machines, and all of them count.
func (c *controlPlane) members(at ...int) {
	c.Helper()
	var listed []struct {
		Address string
		Counts  bool
	}
	if err := json.Unmarshal([]byte(c.keel(0, "store", "members", "-o", "json")), &listed); err != nil {
		c.Fatal(err)
	}
	got, want := map[string]bool{}, map[string]bool{}
	for _, m := range listed {
		host, _, _ := strings.Cut(m.Address, ":")
		got[host] = m.Counts
	}
	for _, i := range at {
		want[c.addresses[i]] = true
	}
	if !maps.Equal(got, want) {
		c.Errorf("the store is on %v, want %v", got, want)
	}
}

// endpoints waits until the apiservers of these machines are those that Pods are told of.
func (c *controlPlane) endpoints(at ...int) {
	c.Helper()
	var want []string
	for _, i := range at {
		want = append(want, c.addresses[i])
	}
	client, last := c.client(at[0]), ""
	eventually(c.T, fmt.Sprintf("the endpoints to be %v", want), func(ctx context.Context) bool {
		found, err := client.CoreV1().Endpoints(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
		if err != nil {
			return false
		}
		var got []string
		for _, subset := range found.Subsets {
			for _, address := range subset.Addresses {
				got = append(got, address.IP)
			}
		}
		if now := strings.Join(got, " "); now != last {
			c.Logf("the endpoints are %s", now)
			last = now
		}
		return slices.Equal(got, want)
	})
}

// fail kills all that keel runs on a machine.
func (c *controlPlane) fail(i int) {
	c.Helper()
	j := &joined{T: c.T}
	pids := []int{j.record(c.machines[i], "supervisor").Process.PID}
	for _, pid := range j.processes(c.machines[i]) {
		pids = append(pids, pid)
	}
	for _, pid := range pids { // the supervisor first, which would start the others again
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			c.Fatal(err)
		}
	}
}

// revive makes keel start the killed processes.
func (c *controlPlane) revive(i int) {
	c.Helper()
	c.keel(i, map[bool]string{true: "init", false: "join"}[i == 0])
}

func (c *controlPlane) keel(i int, args ...string) string {
	c.Helper()
	return c.keelOn(c.machines[i], args...)
}

func (c *controlPlane) keelOn(m *machine.Machine, args ...string) string {
	c.Helper()
	out, err := m.Keel(c.Context(), args...)
	if err != nil {
		c.Fatalf("keel %s on %s: %v\n%s", args[0], m.Name, err, out)
	}
	return out
}

func (c *controlPlane) kubectl(i int, args ...string) string {
	c.Helper()
	out, err := c.machines[i].Kubectl(c.Context(), args...)
	if err != nil {
		c.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// client is a connection of the operator's to the apiserver of a machine.
func (c *controlPlane) client(i int) kubernetes.Interface {
	c.Helper()
	config, err := clientcmd.BuildConfigFromFlags("https://"+c.addresses[i]+":6443",
		c.machines[0].File("kubeconfig", "admin.kubeconfig"))
	if err != nil {
		c.Fatal(err)
	}
	config.Dial, config.Timeout = c.machines[0].Dial, 5*time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		c.Fatal(err)
	}
	return client
}

// create writes an object; that it is there already is what an answer that was lost looks like.
func (c *controlPlane) create(client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(context.Background(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// nothingIsLost reads every acknowledged object from each apiserver.
func (c *controlPlane) nothingIsLost() {
	c.Helper()
	for i := range c.machines {
		list, err := c.client(i).CoreV1().ConfigMaps(metav1.NamespaceDefault).List(c.Context(), metav1.ListOptions{})
		if err != nil {
			c.Errorf("listing on %s: %v", c.machines[i].Name, err)
			continue
		}
		there := map[string]bool{}
		for _, object := range list.Items {
			there[object.Name] = true
		}
		for _, name := range c.acknowledged {
			if !there[name] {
				c.Errorf("%s was acknowledged, and %s does not have it", name, c.machines[i].Name)
			}
		}
	}
}

// askingWriter writes one object after the other to whichever apiserver answers.
type askingWriter struct {
	stop  chan struct{}
	ended chan struct{}

	mu           sync.Mutex // guards what follows
	acknowledged []string
}

// write begins.
func (c *controlPlane) write() *askingWriter {
	c.Helper()
	w := &askingWriter{stop: make(chan struct{}), ended: make(chan struct{})}
	var clients []kubernetes.Interface
	for i := range c.machines {
		clients = append(clients, c.client(i))
	}
	first, t := len(c.acknowledged), c.T
	go func() {
		defer close(w.ended)
		for number, try := first, 0; ; try++ {
			select {
			case <-w.stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			name := fmt.Sprintf("written-%d", number)
			if err := c.create(clients[try%len(clients)], name); err != nil {
				t.Logf("%s: %v", name, err)
				continue
			}
			number++
			w.mu.Lock()
			w.acknowledged = append(w.acknowledged, name)
			w.mu.Unlock()
		}
	}()
	return w
}

func (w *askingWriter) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acknowledged)
}

// more waits until so many more writes are acknowledged.
func (w *askingWriter) more(t *testing.T, number int) {
	t.Helper()
	before := w.count()
	eventually(t, fmt.Sprintf("%d more writes", number), func(context.Context) bool {
		return w.count() >= before+number
	})
}

// end returns the acknowledged writes.
func (w *askingWriter) end(t *testing.T) []string {
	t.Helper()
	close(w.stop)
	<-w.ended
	return w.acknowledged
}
