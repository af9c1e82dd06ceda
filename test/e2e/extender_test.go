package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

const (
	seat = "example.com/seat"
	perk = "example.com/perk"
)

// extended is a scheduler with an extender for seats, which decides with all its verbs, and one for perks, which is
// ignorable. Both are one process.
const extended = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: 2
extenders:
- urlPrefix: http://%[1]s/seat
  filterVerb: filter
  prioritizeVerb: prioritize
  preemptVerb: preempt
  bindVerb: bind
  weight: 100
  httpTimeout: 2s
  managedResources: [{name: example.com/seat, ignoredByScheduler: true}]
- urlPrefix: http://%[1]s/perk
  filterVerb: filter
  httpTimeout: 2s
  ignorable: true
  managedResources: [{name: example.com/perk, ignoredByScheduler: true}]
`

// extenderStage is a mesh of bare nodes whose scheduler asks an extender.
type extenderStage struct {
	bareNodes
	command subprocess.Command
	process subprocess.Process
}

// TestSchedulerExtender follows Pods through a scheduler that asks an extender, a process of its own: it filters,
// scores, lets preempt and binds. While it is dead or hangs, its Pods wait and say why, those that can do without it
// and all others go on, and when it is back, those that waited have their nodes.
func TestSchedulerExtender(t *testing.T) {
	s := newExtenderStage(t)
	s.node("bare", "4", map[string]string{})
	s.node("best", "1", map[string]string{seats: "1", view: "9"})
	s.node("good", "1", map[string]string{seats: "1", view: "1", free: "1"})

	s.run("first", "600m", seat, 0)
	s.expectNode("first", "best")
	s.run("second", "600m", seat, 0)
	s.expectNode("second", "good")
	if by := s.pod("second").Annotations[boundBy]; by != extender {
		t.Errorf("the extender did not bind, but %q", by)
	}
	s.run("perk", "100m", perk, 0)
	if node := s.bound("perk"); node == "bare" {
		t.Error("the other extender was not asked: the Pod is on a node that it refuses")
	}

	s.run("urgent", "600m", seat, 1000)
	s.Await("the node that the extender lets preempt on", func() scenario.Answer {
		return s.differs("urgent is nominated for", s.pod("urgent").Status.NominatedNodeName, "good")
	})
	s.Await("the victim to go", func() scenario.Answer {
		if p := s.pod("second"); p.DeletionTimestamp == nil {
			return "it stays"
		}
		return ""
	})
	s.end("second") // no process runs behind the node
	s.expectNode("urgent", "good")
	if p := s.pod("first"); p.DeletionTimestamp != nil {
		t.Error("a Pod is preempted that the extender spared")
	}

	if err := subprocess.Kill(context.Background(), s.process); err != nil {
		t.Fatal(err)
	}
	s.waitsWithout("dead", "connect: connection refused")
	s.start()
	s.expectNode("dead", "best", "good")

	s.signal(syscall.SIGSTOP)
	s.waitsWithout("hung", "no answer within 2s")
	s.signal(syscall.SIGCONT)
	s.expectNode("hung", "best", "good")
}

// waitsWithout runs Pods while the extender gives no answer.
func (s *extenderStage) waitsWithout(name, why string) {
	s.Helper()
	s.run(name, "50m", seat, 0)
	s.run(name+"-plain", "50m", "", 0)
	s.run(name+"-perk", "50m", perk, 0)
	s.bound(name + "-plain")
	s.bound(name + "-perk")
	s.Await(name+" to say why it waits", func() scenario.Answer {
		for _, c := range s.pod(name).Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == "SchedulerError" &&
				strings.Contains(c.Message, "/seat failed to filter: ") && strings.Contains(c.Message, why) {
				return ""
			}
		}
		return scenario.Sawf("%+v", s.pod(name).Status.Conditions)
	})
	if node := s.pod(name).Spec.NodeName; node != "" {
		s.Errorf("Pod %s has node %s though its extender gave no answer", name, node)
	}
}

func newExtenderStage(t *testing.T) *extenderStage {
	m := processes.Shared(t, 0)
	// At this loopback address the port stays free while the extender is away: other connections are from 127.0.0.1.
	listener, err := net.Listen("tcp", "127.0.66.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, extended, address), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &extenderStage{bareNodes: bare(t, m), command: subprocess.Command{Name: extender,
		Path: program,
		Log:  filepath.Join(t.TempDir(), "extender.log"),
		Env:  []string{extenderAddress + "=" + address, extenderKubeconfig + "=" + m.Kubeconfig()}}}
	s.start()
	m.Restart(t, mesh.Scheduler, "--scheduler-config="+file)
	return s
}

// start starts the extender, until the test ends.
func (s *extenderStage) start() {
	s.Helper()
	p, err := subprocess.Start(s.command)
	if err != nil {
		s.Fatal(err)
	}
	s.process = p
	s.Cleanup(func() { _ = subprocess.Kill(context.Background(), p) })
}

func (s *extenderStage) signal(signal syscall.Signal) {
	s.Helper()
	if err := s.process.Signal(signal); err != nil {
		s.Fatal(err)
	}
}

// expectNode waits for a node, which must be one of these.
func (s *extenderStage) expectNode(name string, nodes ...string) {
	s.Helper()
	if node := s.bound(name); !strings.Contains(" "+strings.Join(nodes, " ")+" ", " "+node+" ") {
		s.Errorf("Pod %s is on %s, want one of %v", name, node, nodes)
	}
}

func (s *extenderStage) differs(what, got, want string) scenario.Answer {
	if got == want {
		return ""
	}
	return scenario.Sawf("%s %q, want %q", what, got, want)
}
