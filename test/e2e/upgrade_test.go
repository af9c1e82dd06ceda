package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"keelson.dev/test/mesh/machine"
	"keelson.dev/test/scenario"
)

// upgradePage is the guide that TestUpgrade follows.
const upgradePage = "how-to/upgrade-a-machine.md"

// TestUpgrade replaces apiserver and nodeagent on two machines by those of another version while a client writes and
// reads, goes back, and tries one that does not work: the client is refused nothing, and no container ends.
func TestUpgrade(t *testing.T) {
	// They are there for longer than the machines, which keel ends by them.
	newer, one, other := programsOf(t, "v0.2."), programsOf(t, "v0.1."), programsOf(t, "v0.1.")
	u := &upgraded{joined: joined{T: t, first: machine.New(t, "first"), second: machine.New(t, "second")}, newer: newer}
	u.older = map[*machine.Machine]string{u.first: one, u.second: other}
	machine.Connect(t, u.first, netip.MustParsePrefix("192.168.79.1/24"), u.second,
		netip.MustParsePrefix("192.168.79.2/24"))
	for _, step := range []struct {
		name string
		test func(*upgraded)
	}{
		{"Mesh", (*upgraded).mesh}, {"NotBeforeTheAPIServer", (*upgraded).tooEarly}, {"Guide", (*upgraded).guide},
		{"Worker", (*upgraded).worker}, {"BrokenIsTakenBack", (*upgraded).broken},
		{"NothingWasRefused", (*upgraded).served},
	} {
		if !t.Run(step.name, func(t *testing.T) { u.T = t; step.test(u) }) {
			return
		}
	}
}

type upgraded struct {
	joined
	// older are the folders of the programs that the machines begin with, which are replaced there, newer the one of
	// those that follow.
	older map[*machine.Machine]string
	newer string
	// client asks all the time, and running are the containers that run all the time.
	client  *persistent
	running string
}

// restamped are the daemons whose versions the test knows. The others are the same before and after.
var restamped = []string{"keelson-apiserver", "keelson-nodeagent"}

// programsOf is a folder of all programs, of which the restamped ones say a version that begins so.
func programsOf(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	all, err := os.ReadDir(scenario.BinDir())
	must(t, err)
	for _, entry := range all {
		must(t, os.Symlink(filepath.Join(scenario.BinDir(), entry.Name()), filepath.Join(dir, entry.Name())))
	}
	for _, name := range restamped {
		file := filepath.Join(dir, name)
		must(t, os.Remove(file))
		restamp(t, filepath.Join(scenario.BinDir(), name), file, version)
	}
	return dir
}

// restamp copies a program, whose version becomes one that begins so: the linker's stamp is a string, in the place of
// which another one of the same length stands. Linking anew would take most of the test's time.
func restamp(t *testing.T, from, to, version string) {
	t.Helper()
	stamp := versionOf(t, from)
	if len(version) >= len(stamp) {
		t.Fatalf("%s has the version %s, for which %s is too long", from, stamp, version)
	}
	version += strings.Repeat("1", len(stamp)-len(version))
	content, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, bytes.ReplaceAll(content, []byte(stamp), []byte(version)), 0o755))
	if got := versionOf(t, to); got != version {
		t.Fatalf("%s says that it is of %s, and not of %s", to, got, version)
	}
}

// versionOf is what a program says of itself.
func versionOf(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, "--version").Output()
	must(t, err)
	words := strings.Fields(string(out))
	return words[len(words)-1]
}

func (u *upgraded) mesh() {
	found := joinLine.FindStringSubmatch(u.keel(u.first, "init", "--bind-address=192.168.79.1",
		"--programs="+u.older[u.first]))
	if found == nil {
		u.Fatal("keel init does not say how machines join")
	}
	u.line = append(strings.Fields(found[1]), "--programs="+u.older[u.second])
	u.join()
	u.running = u.restarts()
	u.client = u.ask()
}

// runs checks which version of a daemon is installed and runs on a machine, and that no container has ended.
func (u *upgraded) runs(m *machine.Machine, daemon, version string) {
	u.Helper()
	for where, program := range map[string]string{
		"installed": filepath.Join(u.older[m], "keelson-"+daemon),
		"running":   fmt.Sprintf("/proc/%d/exe", u.record(m, "keelson-"+daemon+".service").Process.PID),
	} {
		if got := versionOf(u.T, program); !strings.HasPrefix(got, version) {
			u.Errorf("the %s that is %s on %s is of %s, want %s", daemon, where, m.Name, got, version)
		}
	}
	if now := u.restarts(); now != u.running {
		u.Errorf("the Pods were\n%s\nand are\n%s", u.running, now)
	}
}

// tooEarly has a worker refuse to be newer than its apiserver.
func (u *upgraded) tooEarly() {
	out, err := u.second.Keel(u.Context(), "upgrade", "--from="+u.newer)
	const want = "no daemon may be newer: keel upgrade apiserver there first"
	if err == nil || !strings.Contains(out, want) {
		u.Errorf("got %v:\n%s\nwant %s", err, out, want)
	}
	u.runs(u.second, "nodeagent", "v0.1.")
}

// guide does on the first machine what the guide shows. It ends with the nodeagent back at the version of before.
func (u *upgraded) guide() {
	u.client.more(u.T, 5)
	followBy(u.T, upgradePage, func(script string) (string, error) {
		return u.first.Script(u.Context(), script, "NEW="+u.newer, "HOME="+u.TempDir())
	})
	u.runs(u.first, "apiserver", "v0.2.")
	u.runs(u.first, "nodeagent", "v0.1.")
	u.client.more(u.T, 5)
}

// worker brings the second machine after the first one, and finds nothing more to do.
func (u *upgraded) worker() {
	if out := u.keel(u.first, "upgrade", "--from="+u.newer); !strings.Contains(out, "Next: keel upgrade on second") {
		u.Errorf("it does not say which machine is next:\n%s", out)
	}
	u.keel(u.second, "upgrade", "--from="+u.newer)
	for _, m := range []*machine.Machine{u.first, u.second} {
		u.runs(m, "nodeagent", "v0.2.")
		agent := u.record(m, "keelson-nodeagent.service").Process.PID
		if out := u.keel(m, "upgrade", "--from="+u.newer); strings.Contains(out, "==>") {
			u.Errorf("there is something left to do:\n%s", out)
		}
		if now := u.record(m, "keelson-nodeagent.service").Process.PID; now != agent {
			u.Errorf("the nodeagent of %s was process %d and is %d", m.Name, agent, now)
		}
	}
	u.await("True True ", "get", "nodes", "-o",
		`jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {end}`)
}

// broken tries an apiserver that ends at once.
func (u *upgraded) broken() {
	dir := u.TempDir()
	must(u.T, os.WriteFile(filepath.Join(dir, "keelson-apiserver"), []byte(`#!/bin/sh
[ "$1" = --version ] && { echo keelson-apiserver version v0.3.0; exit 0; }
echo nothing works here
exit 1
`), 0o755))
	out, err := u.first.Keel(u.Context(), "upgrade", "apiserver", "--from="+dir)
	if err == nil {
		u.Errorf("it has succeeded:\n%s", out)
	}
	for _, want := range []string{"It said last:\n", "\n      nothing works here\n",
		"runs again, since v0.3.0 was taken back"} {
		if !strings.Contains(out, want) {
			u.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	u.runs(u.first, "apiserver", "v0.2.")
}

// served looks at what the client was told all the time.
func (u *upgraded) served() {
	u.client.more(u.T, 5)
	u.client.end(u.T)
	u.worksAgain(u.running)
}

// persistent is a client that writes one object after the other and reads it back, and tries again where the API is
// away.
type persistent struct {
	stop, ended chan struct{}
	// count counts the objects that were written and read; refusal is the first answer that no retry mends.
	count   atomic.Int64
	refusal error
	again   int
}

// ask begins to.
func (u *upgraded) ask() *persistent {
	u.Helper()
	config, err := clientcmd.BuildConfigFromFlags("https://192.168.79.1:6443",
		u.first.File("kubeconfig", "admin.kubeconfig"))
	must(u.T, err)
	config.Dial, config.Timeout, config.QPS = u.first.Dial, 5*time.Second, -1
	client, err := kubernetes.NewForConfig(config)
	must(u.T, err)
	p := &persistent{stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		for number := 0; p.refusal == nil; {
			select {
			case <-p.stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			switch err := writeAndRead(client, fmt.Sprintf("written-%d", number)); {
			case err == nil:
				number++
				p.count.Store(int64(number))
			case passes(err):
				p.again++
			default:
				p.refusal = fmt.Errorf("after %d objects: %w", number, err)
			}
		}
	}()
	return p
}

// writeAndRead makes an object, unless an answer that was lost has, and reads it.
func writeAndRead(client kubernetes.Interface, name string) error {
	objects := client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	_, err := objects.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = objects.Get(context.Background(), name, metav1.GetOptions{})
	return err
}

// passes reports whether an error says only that the API is away for the moment.
func passes(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true // no answer
	}
	code := status.Status().Code
	return slices.Contains([]int32{http.StatusServiceUnavailable, http.StatusTooManyRequests,
		http.StatusGatewayTimeout}, code)
}

// more waits until so many more objects were written and read.
func (p *persistent) more(t *testing.T, number int64) {
	t.Helper()
	begun := p.count.Load()
	eventually(t, fmt.Sprintf("%d more objects", number), func(context.Context) bool {
		select {
		case <-p.ended:
			t.Fatalf("the client was refused: %v", p.refusal)
		default:
		}
		return p.count.Load() >= begun+number
	})
}

// end has the client stop.
func (p *persistent) end(t *testing.T) {
	t.Helper()
	close(p.stop)
	<-p.ended
	t.Logf("the client has written and read %d objects, and tried again %d times", p.count.Load(), p.again)
	if p.refusal != nil {
		t.Errorf("the client was refused: %v", p.refusal)
	}
}
