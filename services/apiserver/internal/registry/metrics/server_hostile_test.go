package metrics_test

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/nodeproxy/agenttest"
	"keelson.dev/services/apiserver/internal/servertest"
)

// Whatever an agent answers, or does not, costs the rows of its own node and no others.
func TestIllAgents(t *testing.T) {
	ill := map[string]func(a *agent, w http.ResponseWriter, r *http.Request){
		"silent": func(_ *agent, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"slow": func(a *agent, w http.ResponseWriter, r *http.Request) {
			a.answer(w, r)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"huge": func(a *agent, w http.ResponseWriter, r *http.Request) {
			a.answer(w, r)
			for line := strings.Repeat("#", 1<<10) + "\n"; ; {
				if _, err := fmt.Fprint(w, line); err != nil {
					return
				}
			}
		},
		"huge when unpacked": func(a *agent, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			a.tell(packed)
			for line := strings.Repeat("#", 1<<10) + "\n"; ; {
				if _, err := fmt.Fprint(packed, line); err != nil {
					return
				}
			}
		},
		"malformed": func(a *agent, w http.ResponseWriter, r *http.Request) {
			a.answer(w, r)
			fmt.Fprintln(w, `container_cpu_usage_seconds_total{pod="web"`)
		},
		"refusing": func(_ *agent, w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no",
				http.StatusForbidden)
		},
		"something": func(_ *agent, w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "<html>") },
		"aborting":  func(*agent, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"sending elsewhere": func(_ *agent, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		},
	}
	nodes := []string{"well", "stranger", "impostor", "gone"}
	for name := range ill {
		nodes = append(nodes, strings.ReplaceAll(name, " ", "-"))
	}
	c := newCluster(t, nodes...)
	for name, answer := range ill {
		a := c.agents[strings.ReplaceAll(name, " ", "-")]
		a.Metrics = func(w http.ResponseWriter, r *http.Request) { answer(a, w, r) }
	}
	// One does not take the apiserver's certificate, of the other the apiserver does not take the certificate.
	stranger, impostor := c.agents["stranger"], c.agents["impostor"]
	stranger.Agent, impostor.Agent = agenttest.Start(t), impostor.Impostor(t)
	stranger.Metrics, impostor.Metrics = stranger.answer, impostor.answer
	c.register(t)
	gone, err := c.Client.CoreV1().Nodes().Get(t.Context(), "gone", metav1.GetOptions{})
	must(t, err)
	gone.Status.DaemonEndpoints.KubeletEndpoint.Port = 1
	_, err = c.Client.CoreV1().Nodes().UpdateStatus(t.Context(), gone, metav1.UpdateOptions{})
	must(t, err)
	for _, node := range nodes {
		c.pod(t, node, "on-"+node, corev1.PodRunning, "app")
	}
	c.pod(t, "unregistered", "on-unregistered", corev1.PodRunning, "app")

	client := c.metrics(t, servertest.Admin).MetricsV1()
	var both sync.WaitGroup
	both.Go(func() {
		list, err := client.PodMetricses(c.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		wantNames(t, "pods", err, names(list.Items), "on-well")
	})
	both.Go(func() {
		list, err := client.NodeMetricses().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		wantNames(t, "nodes", err, names(list.Items), "well")
	})
	both.Wait()
}

// A nodeagent tells of the Pods that are bound to its node and of the containers that they have: what it says of others
// is not believed, whether their own agents tell or not.
func TestOnlyOwnPodsAreBelieved(t *testing.T) {
	c := newCluster(t, "liar", "honest", "mute")
	c.pod(t, "liar", "own", corev1.PodRunning, "app")
	c.pod(t, "honest", "told", corev1.PodRunning, "app")
	c.pod(t, "mute", "untold", corev1.PodRunning, "app")
	for _, pod := range []string{"told", "untold"} {
		c.agents["liar"].pods = append(c.agents["liar"].pods, c.namespace+"/"+pod+"/app")
	}
	c.agents["liar"].pods = append(c.agents["liar"].pods, c.namespace+"/own/unheard-of")
	c.agents["mute"].pods = nil
	c.register(t)
	list, err := c.metrics(t, servertest.Admin).MetricsV1().PodMetricses(c.namespace).List(t.Context(),
		metav1.ListOptions{})
	wantNames(t, "pods", err, names(list.Items), "own", "told")
	for i := range list.Items {
		if pod := &list.Items[i]; len(pod.Containers) != 1 || pod.Containers[0].Name != "app" {
			t.Errorf("%s: %+v", pod.Name, pod.Containers)
		}
	}
	if asked := c.agents["honest"].asked.Load(); asked != 2 {
		t.Errorf("the honest agent was asked %d times, want 2", asked)
	}
}
