package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

var settled = flag.Duration("settled", 30*time.Second, "how long TestNoWritesAtRest counts what a mesh at rest writes")

// auditPolicy has the apiserver record who has asked for a change of what.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: None, verbs: [get, list, watch]}
- {level: Metadata}
`

// TestNoWritesAtRest counts what a mesh of real nodes at rest writes, which has an object of every kind that a
// controller keeps, a VolumeAttachment of a driver among them: Leases are renewed, and each node reports its
// status now and then. No client asks for any other change.
//
// POD-010
func TestNoWritesAtRest(t *testing.T) {
	m := processes.New(t, 2)
	log := recordWrites(t, m)
	c := newCSI(scenario.In(t, m), m)
	c.run("attached", c.a)
	c.ready("attached")
	w := scenario.AtRest(t, m)
	c.heldBy(c.a)
	before := readWrites(t, log)
	stored, since := scenario.WritesIn(w, *settled)
	var told []string
	recorded, statuses := 0, 0
	for who, n := range after(before, readWrites(t, log)) {
		told = append(told, fmt.Sprintf("%6d %s", n, who))
		switch {
		case who.resource == "leases":
			continue
		case who.resource == "nodes/status" && strings.HasPrefix(who.user, "system:node:"):
			statuses += n
		default:
			t.Errorf("a mesh at rest: %d times %s", n, who)
		}
		recorded += n
	}
	slices.Sort(told)
	t.Logf("in %v:\n%s\n%d writes of the store beside those of Leases", *settled, strings.Join(told, "\n"), stored)
	if most := len(m.Nodes()) * (1 + int(*settled/statusPeriod)); statuses > most {
		t.Errorf("the nodes told their status %d times in %v, want no more than %d", statuses, *settled, most)
	}
	// What no client has asked for is the store's own: it notes each time how far it has compacted itself.
	if own, most := int(stored)-recorded, 1+int(*settled/compactPeriod); own > most {
		t.Errorf("%d writes that nobody asked for, want no more than %d; changed are%s", own, most,
			scenario.ChangedSince(w, since))
	}
}

const (
	// statusPeriod is how often a node reports an unchanged status.
	statusPeriod = 5 * time.Minute
	// compactPeriod is how often the apiserver compacts its store.
	compactPeriod = 5 * time.Minute
)

// write is a change that a client has asked for.
type write struct {
	verb, resource, user, program string
	failed                        bool
}

func (w write) String() string {
	text := fmt.Sprintf("%s %s by %s (%s)", w.verb, w.resource, w.user, w.program)
	if w.failed {
		text += ", in vain"
	}
	return text
}

// recordWrites has the apiserver write down who asks for changes, until the test ends, and returns the file.
func recordWrites(t *testing.T, m *processes.Mesh) string {
	t.Helper()
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	m.Restart(t, mesh.APIServer, "--audit-policy-file="+policy, "--audit-log-path="+log)
	client, err := kubernetes.NewForConfig(m.Admin())
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 90*time.Second, true,
		func(ctx context.Context) (bool, error) {
			_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
			return err == nil, nil
		})
	if err != nil {
		t.Fatalf("waiting for the apiserver that records: %v", err)
	}
	return log
}

// readWrites counts the changes of stored objects in the audit log.
func readWrites(t *testing.T, log string) map[write]int {
	t.Helper()
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	counts := map[write]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event record
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("reading %q: %v", lines.Text(), err)
		}
		if event.ObjectRef == nil || event.ObjectRef.isAsked() {
			continue
		}
		program, _, _ := strings.Cut(event.UserAgent, " ")
		counts[write{event.Verb, strings.Trim(event.ObjectRef.Resource+"/"+event.ObjectRef.Subresource, "/"),
			event.User.Username, program, event.ResponseStatus.Code >= http.StatusBadRequest}]++
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return counts
}

// record is the part of an Event of audit.k8s.io/v1 that is read.
type record struct {
	Verb, UserAgent string
	User            struct{ Username string }
	ObjectRef       *reference
	ResponseStatus  struct{ Code int }
}

type reference struct{ APIGroup, Resource, Subresource string }

// isAsked reports whether objects of that kind are questions, which are answered and not stored.
func (r *reference) isAsked() bool {
	return r.APIGroup == "authentication.k8s.io" || r.APIGroup == "authorization.k8s.io" ||
		r.Resource == "serviceaccounts" && r.Subresource == "token"
}

// after is what came to the counts.
func after(before, now map[write]int) map[write]int {
	more := maps.Clone(now)
	for who, n := range before {
		if more[who] -= n; more[who] == 0 {
			delete(more, who)
		}
	}
	return more
}
