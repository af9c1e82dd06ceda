package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/test/mesh"
)

// asker is a Pod that does what it does unwatched: the stream of an exec would end with the nodeagent.
func asker(name, node string, command ...string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: asker}}
spec:
  nodeName: %s
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: %s, command: ["%s"]}]
`, name, node, Server, strings.Join(command, `", "`))
}

// KillDNS kills what runs of CoreDNS in these of its Pods, and says of how many.
type KillDNS func(t testing.TB, pods ...types.UID) int

// KillsUnderLoad kills every nodeagent, then CoreDNS, while Pods of every node ask a Service without a pause and hold
// a connection to it. No request to its address is lost, nor one by its name while CoreDNS lives. While the agent of
// one node is dead, a Pod behind the Service is replaced on the other.
func KillsUnderLoad(t *testing.T, m mesh.Mesh, kill KillDNS) {
	w := In(t, m)
	e := w.traffic().startEchoes()
	w.traffic().awaitAnswers(e.clients, e.names, "-n", enough, "http://echo/hostname")
	t.Run("nodeagent", func(t *testing.T) {
		requestDuring(w.on(t), e, func() {
			m.Kill(t, mesh.NodeAgent)
			m.Start(t, mesh.NodeAgent)
		}, "echo", e.ip)
	})
	t.Run("replaced meanwhile", func(t *testing.T) { e = replacePodOfDeadNode(w.on(t), e) })
	t.Run("coredns", func(t *testing.T) {
		w := w.on(t)
		requestDuring(w, e, func() { killDNS(w, e, kill) }, e.ip)
	})
}

// replacePodOfDeadNode replaces the Pod of the second node while the agent of the first one is dead. What that one has
// left in the kernel leads to a Pod that is gone: once it is back, it leads to the new one.
func replacePodOfDeadNode(w *World, e echoes) echoes {
	w.Helper()
	first := w.Mesh.Nodes()[0]
	pods := w.Pods("app=echo")
	far := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName != first })
	w.Mesh.StopNode(w, first)
	w.Kubectl("delete", "pod", pods[far].Name)
	w.AwaitAvailable("echo", int32(len(pods)))
	e.pods = w.traffic().addresses("app=echo")
	e.names = slices.Sorted(maps.Keys(e.pods))
	if slices.Contains(e.names, pods[far].Name) || len(e.names) != len(pods) {
		w.Fatalf("the Pods are %v, want another one in the place of %s", e.names, pods[far].Name)
	}
	w.Mesh.Start(w, mesh.NodeAgent)
	w.traffic().expectAllReached(e)
	return e
}

// longestPause is how long a client may be without an answer while one of two CoreDNS is dead, to which a resolver
// turns again after a second: a question may meet the dead one until all nodes know, or have been on its way to it, but
// the next attempts do not for as long as it stays away.
const (
	longestPause = 6 * time.Second
	soon         = "  dnsConfig: {options: [{name: timeout, value: \"1\"}]}\n"
)

// killDNS kills both CoreDNS, which come back, and then one of them again and again, which stays away for longer each
// time: meanwhile the other one knows all names.
func killDNS(w *World, e echoes, kill KillDNS) {
	w.Helper()
	dns := *w
	dns.Namespace = metav1.NamespaceSystem
	pods := dns.Pods("k8s-app=kube-dns")
	if len(pods) != 2 {
		w.Fatalf("%d Pods answer for names, want two", len(pods))
	}
	if killed := kill(w, pods[0].UID, pods[1].UID); killed != len(pods) {
		w.Fatalf("CoreDNS ran in %d Pods of two", killed)
	}
	url := "http://echo/hostname"
	w.traffic().awaitAnswers(e.clients, e.names, "-n", enough, url)
	dns.endpoints().await("kube-dns", map[string]string{pods[0].Name: "RS", pods[1].Name: "RS"})

	manifest := ""
	for i, node := range w.Mesh.Nodes() {
		manifest += strings.Replace(asker(fmt.Sprintf("by-name-%d", i+1), node, "requests", "-l", "-t", "8", url),
			"app: asker", "app: by-name", 1) + soon
	}
	w.KubectlWith(manifest, "apply", "-f", "-")
	awaitPhases(w, "app=by-name", corev1.PodRunning)
	// The first node's is the one that is soon back: a later test cuts the second node off.
	dead := max(0, slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName != w.Mesh.Nodes()[0] }))
	away := func() bool { return dns.endpoints().of("kube-dns")[pods[dead].Name] == "" }
	kill(w, pods[dead].UID)
	w.Await("the names to be known while one CoreDNS is away", func() Answer {
		if !away() {
			return Sawf("it runs: killed %d", kill(w, pods[dead].UID))
		}
		for name, a := range w.traffic().each(e.clients, "-n", enough, url) {
			if len(a.failed) > 0 || !a.shared(e.names) {
				return Sawf("%s: %v", name, a)
			}
		}
		if !away() {
			return Saw("it has come back meanwhile")
		}
		return ""
	})
	for _, pod := range awaitPhases(w, "app=by-name", corev1.PodSucceeded, corev1.PodFailed) {
		a := parseAnswers(w.Kubectl("logs", pod.Name))
		w.Logf("%s: %v, the longest time without an answer %v", pod.Name, a, a.pause)
		if !slices.Equal(a.from(), e.names) || a.pause == 0 || a.pause > longestPause {
			w.Errorf("%s: %v, %v without an answer, want at most %v", pod.Name, a, a.pause, longestPause)
		}
	}
}

// requestDuring does something while Pods ask by each of the Service's hosts, and looks at what they were told.
func requestDuring(w *World, e echoes, do func(), hosts ...string) {
	w.Helper()
	w.Kubectl("delete", "pod", "-l", "app=asker")
	manifest := ""
	for i, node := range w.Mesh.Nodes() {
		manifest += asker(fmt.Sprintf("holder-%d", i+1), node, "wget", "-q", "-T", "30", "-O-",
			"http://"+e.ip+"/sleep?for=20s")
		for j, host := range hosts {
			manifest += asker(fmt.Sprintf("asker-%d-%d", i+1, j+1), node, "requests", "-t", "20",
				"http://"+host+"/hostname")
		}
	}
	w.KubectlWith(manifest, "apply", "-f", "-")
	awaitPhases(w, "app=asker", corev1.PodRunning)
	do()
	for _, pod := range awaitPhases(w, "app=asker", corev1.PodSucceeded, corev1.PodFailed) {
		out := w.Kubectl("logs", pod.Name)
		if strings.HasPrefix(pod.Name, "holder-") {
			if strings.TrimSpace(out) != "slept 20s" {
				w.Errorf("%s lost its connection: %q", pod.Name, out)
			}
			continue
		}
		a := parseAnswers(out)
		w.Logf("%s: %v", pod.Name, a)
		if len(a.failed) > 0 || !a.shared(e.names) {
			w.Errorf("%s: %v, want no failure, and answers of %v", pod.Name, a, e.names)
		}
	}
}
