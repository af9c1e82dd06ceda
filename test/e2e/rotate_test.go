package e2e

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/machine"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// account is a Pod that asks the API as its ServiceAccount for as long as it runs, by turns trusting what its volume
// says now and what that said when the Pod was started.
const account = `{apiVersion: v1, kind: Pod, metadata: {name: account}, spec: {terminationGracePeriodSeconds: 1,
  containers: [{name: c, image: "` + scenario.Server + `", command: [sh, -c, '
    given=/var/run/secrets/kubernetes.io/serviceaccount; mkdir /tmp/once;
    cp $given/ca.crt /tmp/once/ca.crt; cp $given/token /tmp/once/token;
    while true; do for folder in /tmp/once $given; do
      echo of $folder; requests -n 1 -a $folder https://$KUBERNETES_SERVICE_HOST/readyz; done; sleep 1; done']}]}}`

// TestRotateAuthority replaces the authority of a mesh of two machines, with keel killed at each of its steps: no one
// is refused before the last one, no machine is forgotten, no container ends, and then who knows the old authority
// alone is refused.
func TestRotateAuthority(t *testing.T) {
	r := &rotated{joined{T: t, first: machine.New(t, "first"), second: machine.New(t, "second")}}
	machine.Connect(t, r.first, netip.MustParsePrefix("192.168.78.1/24"), r.second,
		netip.MustParsePrefix("192.168.78.2/24"))
	for _, step := range []struct {
		name string
		test func(*rotated)
	}{
		{"Mesh", (*rotated).mesh}, {"Switch", (*rotated).replace}, {"NotWithoutTheWorker", (*rotated).forgotten},
		{"Follow", (*rotated).follow}, {"Finish", (*rotated).finish}, {"NobodyWasRefused", (*rotated).asked},
		{"UpToDate", (*rotated).upToDate},
	} {
		if !t.Run(step.name, func(t *testing.T) { r.T = t; step.test(r) }) {
			return
		}
	}
}

type rotated struct{ joined }

// stale is the operator's kubeconfig as it was copied beforehand.
const stale = "stale.kubeconfig"

func (r *rotated) mesh() {
	found := joinLine.FindStringSubmatch(r.keel(r.first, "init", "--bind-address=192.168.78.1"))
	if found == nil {
		r.Fatal("keel init does not say how machines join")
	}
	r.line = strings.Fields(found[1])
	r.join()
	r.approve()
	manifest := filepath.Join(r.TempDir(), "account.yaml")
	if err := os.WriteFile(manifest, []byte(account), 0o600); err != nil {
		r.Fatal(err)
	}
	r.kubectl("apply", "-f", manifest)
	r.kubectl("wait", "pod", "account", "--for=condition=Ready", "--timeout=90s")
	kubeconfig, err := os.ReadFile(r.first.File("kubeconfig", "admin.kubeconfig"))
	if err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(r.first.File(stale), kubeconfig, 0o600); err != nil {
		r.Fatal(err)
	}
}

// approve lets the worker have the serving certificate that it asks for.
func (r *rotated) approve() {
	const pending = "go-template={{range .items}}{{if not .status.certificate}}{{.metadata.name}} {{end}}{{end}}"
	var names []string
	eventually(r.T, "the worker to ask for a serving certificate", func(ctx context.Context) bool {
		out, err := r.first.Kubectl(ctx, "get", "csr", "--field-selector=spec.signerName=kubernetes.io/kubelet-serving",
			"-o", pending)
		names = strings.Fields(out)
		return err == nil && len(names) > 0
	})
	r.kubectl(append([]string{"certificate", "approve"}, names...)...)
}

// byStale asks as who has copied the kubeconfig beforehand.
func (r *rotated) byStale(ctx context.Context) (string, error) {
	return r.first.Run(ctx, "kubectl", "--kubeconfig="+filepath.Join(r.first.DataDir, stale), "get", "nodes", "-o",
		"name")
}

func (r *rotated) expectStaleServed() {
	r.Helper()
	var last string
	eventually(r.T, "a client of the old authority to be served", func(ctx context.Context) bool {
		out, err := r.byStale(ctx)
		if refused := complaint(out); refused != "" {
			r.Fatalf("a client of the old authority is refused: %s", refused)
		}
		if out != last {
			r.Logf("it is told %s (%v)", out, err)
		}
		last = out
		return err == nil && out == "node/first\nnode/second\n"
	})
}

// complaint returns the first line that reports distrust.
func complaint(said string) string {
	for line := range strings.Lines(said) {
		for _, word := range []string{"x509", "certificate", "tls:", "Unauthorized", "Forbidden"} {
			if strings.Contains(line, word) {
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}

// killing runs keel again and again, killed at its first step, its second one and so on, until one run comes to its end
// before.
func (r *rotated) killing(between func(), args ...string) {
	r.Helper()
	for step := 1; ; step++ {
		ctx, kill := context.WithCancel(r.Context())
		out := &steps{left: step, kill: kill}
		err := r.first.RunTo(ctx, out, append([]string{"keel", "--data-dir=" + r.first.DataDir}, args...)...)
		killed := ctx.Err() != nil
		kill()
		if !killed {
			if err != nil {
				r.Fatalf("keel %s: %v\n%s", strings.Join(args, " "), err, out)
			}
			r.Logf("keel %s, killed %d times before:\n%s", strings.Join(args, " "), step-1, out)
			return
		}
		between()
	}
}

// steps is where keel prints to, until it heads as many steps as are left.
type steps struct {
	kill func()

	mu   sync.Mutex // guards all below
	said bytes.Buffer
	left int
}

// Write kills keel at the step.
func (s *steps) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said.Write(text)
	if bytes.Count(s.said.Bytes(), []byte("==> ")) >= s.left {
		s.kill()
	}
	return len(text), nil
}

func (s *steps) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

func (r *rotated) replace() {
	pods := r.restarts()
	r.killing(r.expectStaleServed, "certs", "rotate-ca")
	r.expectStaleServed()
	r.expectAuthorities(2)
	r.worksAgain(pods)
	// The worker has not heard of anything, and is asked and asks.
	for node, pod := range r.pods() {
		r.await(pod+"\n", "exec", pod, "--", "hostname")
		r.Logf("the Pod of %s is asked", node)
	}
}

// expectAuthorities checks that the mesh publishes this number of authorities to Pods.
func (r *rotated) expectAuthorities(count int) {
	r.Helper()
	eventually(r.T, "Pods to be told of the authorities", func(ctx context.Context) bool {
		out, err := r.first.Kubectl(ctx, "get", "configmap", "kube-root-ca.crt", "-o", `jsonpath={.data.ca\.crt}`)
		return err == nil && strings.Count(out, "BEGIN CERTIFICATE") == count
	})
}

func (r *rotated) refusedToFinish(want string) {
	r.Helper()
	out, err := r.first.Keel(r.Context(), "certs", "rotate-ca", "--finish")
	if err == nil || !strings.Contains(out, want) {
		r.Errorf("keel certs rotate-ca --finish: %v\n%s\nwant %s", err, out, want)
	}
	r.expectStaleServed()
}

func (r *rotated) forgotten() {
	r.refusedToFinish("node second does not follow the new authority: run keel join on its machine")
}

func (r *rotated) follow() {
	pods := r.restarts()
	r.keel(r.second, "join")
	r.refusedToFinish("node second shows a serving certificate of the old authority: approve")
	r.approve()
	r.worksAgain(pods)
}

func (r *rotated) finish() {
	pods := r.restarts()
	eventually(r.T, "the worker to show its new certificate", func(ctx context.Context) bool {
		out, err := r.first.Keel(ctx, "certs", "rotate-ca")
		return err == nil && !strings.Contains(out, "node second")
	})
	r.killing(func() {
		r.await("node/first\nnode/second\n", "get", "nodes", "-o", "name")
	}, "certs", "rotate-ca", "--finish")
	if out, err := r.byStale(r.Context()); err == nil || complaint(out) == "" {
		r.Errorf("a client of the old authority is told %s, %v", out, err)
	}
	r.expectAuthorities(1)
	r.keel(r.second, "join") // from now on it trusts the new one alone
	r.worksAgain(pods)
	for _, pod := range r.pods() {
		r.await(pod+"\n", "exec", pod, "--", "hostname")
	}
}

// asked looks at what the Pod was told all the time.
func (r *rotated) asked() {
	for _, folder := range []string{"/tmp/once", "/var/run/secrets/kubernetes.io/serviceaccount"} {
		eventually(r.T, "the Pod to be answered, by "+folder, func(ctx context.Context) bool {
			out, err := r.first.Kubectl(ctx, "logs", "account", "--tail=8")
			return err == nil && strings.Contains(out, "of "+folder+"\n1 ok\n")
		})
	}
	said := r.kubectl("logs", "account")
	if refused := complaint(said); refused != "" {
		r.Errorf("the Pod was refused once: %s", refused)
	}
	if answers := strings.Count(said, "\n1 ok\n"); answers < 10 {
		r.Errorf("it had %d answers only:\n%s", answers, said)
	}
	restarts := r.kubectl("get", "pod", "account", "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
	if restarts != "0" {
		r.Errorf("it was started again %s times", restarts)
	}
}

// upToDate has keel init, keel join and a last rotate-ca find nothing to do.
func (r *rotated) upToDate() {
	r.again()
	if out := r.keel(r.first, "certs", "rotate-ca", "--finish"); !strings.Contains(out, "nothing is left to finish") {
		r.Errorf("it says\n%s", out)
	}
	r.keel(r.first, "certs", "list")
	left, err := os.ReadDir(r.first.File("pki"))
	if err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.Contains(e.Name(), "next") }) {
		r.Errorf("left are %v, %v", left, err)
	}
}

// TestRotateAuthorityOfProcesses does the same with the mesh of keel up, whose nodes are all keel's.
func TestRotateAuthorityOfProcesses(t *testing.T) {
	if os.Getenv("KEELSON_ALL") == "" {
		t.Skip("make test-all runs this: keel up goes the way of keel init")
	}
	m := processes.New(t, 1)
	kubectl := func(ctx context.Context, args ...string) (string, error) { // by the kubeconfig of the moment
		var out bytes.Buffer
		err := processes.Program(ctx, &out, append([]string{"kubectl", "--kubeconfig=" + m.Kubeconfig()},
			args...)...).Run()
		return out.String(), err
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := kubectl(t.Context(), args...)
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	manifest := filepath.Join(t.TempDir(), "account.yaml")
	if err := os.WriteFile(manifest, []byte(account), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Pod to be made", func(ctx context.Context) bool {
		_, err := kubectl(ctx, "apply", "-f", manifest) // its ServiceAccount is made meanwhile
		return err == nil
	})
	must("wait", "pod", "account", "--for=condition=Ready", "--timeout=90s")
	began := m.Of(t, mesh.Scheduler)[0].PID
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"certs", "rotate-ca"}, "rotate-ca --finish takes the old"},
		{[]string{"certs", "rotate-ca"}, "rotate-ca --finish takes the old"},
		{[]string{"certs", "rotate-ca", "--finish"}, "nothing is left to finish"},
	} {
		if out, err := m.Keel(t.Context(), row.args...); err != nil || !strings.Contains(out, row.want) {
			t.Fatalf("keel %s: %v\n%s", strings.Join(row.args, " "), err, out)
		}
	}
	if m.Of(t, mesh.Scheduler)[0].PID == began {
		t.Error("the scheduler was not started anew")
	}
	ask(t, m)
	eventually(t, "the Pod to be answered", func(ctx context.Context) bool {
		out, err := kubectl(ctx, "logs", "account", "--tail=8")
		return err == nil && strings.Count(out, "1 ok\n") >= 2
	})
	if refused := complaint(must("logs", "account")); refused != "" {
		t.Errorf("the Pod was refused once: %s", refused)
	}
	if got := must("get", "pod", "account", "-o", "jsonpath={.status.containerStatuses[0].restartCount}"); got != "0" {
		t.Errorf("the Pod was started again %s times", got)
	}
}
