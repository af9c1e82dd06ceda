package scenario

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// client is a Pod on a node that asks others: with a network of its own, or from the node's.
func client(name, node string, host bool) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: client}}
spec:
  nodeName: %s
  hostNetwork: %t
  dnsPolicy: ClusterFirstWithHostNet
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: %s, args: ["-http="]}]
`, name, node, host, Server)
}

// clients are the Pods that ask, by where they are: in a Pod of each node, and on each node itself.
type clients []string

// serviceTraffic sends requests from the clients of a world and judges the answers.
type serviceTraffic struct{ *World }

func (w *World) traffic() serviceTraffic { return serviceTraffic{w} }

// startClients makes two clients on each node: from a Pod, and from the node. Both ask the cluster's DNS.
func (w serviceTraffic) startClients() clients {
	w.Helper()
	var all clients
	var manifest strings.Builder
	for i, node := range w.Mesh.Nodes() {
		pod, onNode := fmt.Sprintf("in-pod-%d", i+1), fmt.Sprintf("on-node-%d", i+1)
		manifest.WriteString(client(pod, node, false) + client(onNode, node, true))
		all = append(all, pod, onNode)
	}
	w.KubectlWith(manifest.String(), "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod", "-l", "app=client", "--timeout=60s")
	return all
}

// answers counts what a client's requests came to.
type answers struct {
	by     map[string]int
	failed map[string]int
	// pause is how long there was no answer at the longest, if the client was asked to say so.
	pause time.Duration
}

func (a answers) total() (total int) {
	for _, count := range a.by {
		total += count
	}
	return total
}

// from names who answered, in order.
func (a answers) from() []string { return slices.Sorted(maps.Keys(a.by)) }

// shared reports whether just these answered, each at least half as often as if they had come in turn: 40 answers by
// chance of two who are chosen alike are shared less evenly once in 1,400 times.
func (a answers) shared(want []string) bool {
	if !slices.Equal(a.from(), want) {
		return false
	}
	for _, count := range a.by {
		if 2*count*len(want) < a.total() {
			return false
		}
	}
	return true
}

func (a answers) String() string { return fmt.Sprintf("answers %v, failures %v", a.by, a.failed) }

// requests lets a client ask as told (see package applet) and counts its answers.
func (w serviceTraffic) requests(client string, args ...string) answers {
	w.Helper()
	return w.startRequests(client, args...)()
}

// startRequests is requests that goes on until the returned function is called, which waits for its end.
func (w serviceTraffic) startRequests(client string, args ...string) (wait func() answers) {
	w.Helper()
	command := w.kubectl(append([]string{"exec", client, "--", "requests"}, args...)...)
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	if err := command.Start(); err != nil {
		w.Fatalf("kubectl could not be run: %v", err)
	}
	return func() answers {
		w.Helper()
		err := command.Wait()
		all := parseAnswers(out.String())
		if err != nil && len(all.failed) == 0 {
			w.Fatalf("requests of %s %v: %v\n%s", client, args, err, complaints.String())
		}
		return all
	}
}

// startLoad lets a client ask as told without a pause. It returns once the client has its first answer; the returned
// function ends the load.
func (w serviceTraffic) startLoad(client string, args ...string) (end func() answers) {
	w.Helper()
	input, more := io.Pipe()
	said, out := io.Pipe()
	command := w.kubectl(append([]string{"exec", "-i", client, "--", "requests", "-i"}, args...)...)
	var complaints bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = input, out, &complaints
	if err := command.Start(); err != nil {
		w.Fatalf("kubectl could not be run: %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		err := command.Wait()
		_ = out.Close()
		ended <- err
	}()
	lines := bufio.NewReader(said)
	if first, err := lines.ReadString('\n'); err != nil {
		w.Fatalf("%s %v ended before its first answer: %v\n%s%s", client, args, err, first, complaints.String())
	}
	return func() answers {
		w.Helper()
		_ = more.Close()
		rest, err := io.ReadAll(lines)
		if err := errors.Join(err, <-ended); err != nil && !strings.Contains(string(rest), "failed: ") {
			w.Fatalf("requests of %s %v: %v\n%s", client, args, err, complaints.String())
		}
		return parseAnswers(string(rest))
	}
}

func parseAnswers(out string) answers {
	all := answers{by: map[string]int{}, failed: map[string]int{}}
	for line := range strings.Lines(out) {
		if text, ok := strings.CutPrefix(line, "longest pause "); ok {
			all.pause, _ = time.ParseDuration(strings.TrimSpace(text))
			continue
		}
		number, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		count, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		if failure, ok := strings.CutPrefix(text, "failed: "); ok {
			all.failed[failure] += count
		} else {
			all.by[text] += count
		}
	}
	return all
}

// each lets all clients ask at once and returns what each one got.
func (w serviceTraffic) each(all clients, args ...string) map[string]answers {
	w.Helper()
	got := map[string]answers{}
	var mutex sync.Mutex
	var group sync.WaitGroup
	for _, name := range all {
		wait := w.startRequests(name, args...)
		group.Go(func() {
			a := wait()
			mutex.Lock()
			defer mutex.Unlock()
			got[name] = a
		})
	}
	group.Wait()
	return got
}

// awaitAnswers waits until every client, asking as told, is answered by these alone, and by each of them enough.
func (w serviceTraffic) awaitAnswers(all clients, want []string, args ...string) {
	w.Helper()
	slices.Sort(want)
	w.Await(fmt.Sprintf("%v to be answered by %v", args, want), func() Answer {
		for name, a := range w.each(all, args...) {
			if len(a.failed) > 0 || !a.shared(want) {
				return Sawf("%s: %v", name, a)
			}
		}
		return ""
	})
}

// lookup asks for the records of a name, in a Pod. What is wrong takes the place of the records.
func (w serviceTraffic) lookup(pod, kind, name string) []string {
	w.Helper()
	r := w.TryKubectl("", "exec", pod, "--", "nslookup", "-type="+kind, name)
	if r.Code != 0 {
		_, reason, _ := strings.Cut(r.Stderr, "lookup ")
		reason, _, _ = strings.Cut(reason, "\n")
		return []string{"failed: " + reason}
	}
	return strings.Fields(r.Stdout)
}

// awaitLookup waits until a name has just these records.
func (w serviceTraffic) awaitLookup(pod, kind, name string, want ...string) {
	w.Helper()
	slices.Sort(want)
	w.Await(fmt.Sprintf("the %s records %v of %s", kind, want, name), func() Answer {
		if got := w.lookup(pod, kind, name); !slices.Equal(got, want) {
			return Sawf("%v", got)
		}
		return ""
	})
}

// awaitNoName waits until a name does not exist.
func (w serviceTraffic) awaitNoName(pod, name string) {
	w.Helper()
	w.Await("nobody to know "+name, func() Answer {
		got := w.lookup(pod, "A", name)
		if len(got) == 1 && strings.HasSuffix(got[0], ": no such host") {
			return ""
		}
		return Sawf("%v", got)
	})
}

// addresses maps the Pods of a selector to their addresses.
func (w serviceTraffic) addresses(selector string) map[string]string {
	return w.familyAddresses(selector, 0)
}

// familyAddresses maps the Pods of a selector to those of their addresses at a place, or to none.
func (w serviceTraffic) familyAddresses(selector string, family int) map[string]string {
	w.Helper()
	all := map[string]string{}
	for _, pod := range w.Pods(selector) {
		all[pod.Name] = ""
		if family < len(pod.Status.PodIPs) {
			all[pod.Name] = pod.Status.PodIPs[family].IP
		}
	}
	return all
}

// service reads a Service.
func (w *World) service(name string) *corev1.Service {
	w.Helper()
	s, err := w.Client.CoreV1().Services(w.Namespace).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return s
}
