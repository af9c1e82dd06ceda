package metrics_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	metricsv1 "k8s.io/metrics/pkg/apis/metrics/v1"
	metrics "k8s.io/metrics/pkg/client/clientset/versioned"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/nodeproxy/agenttest"
	"keelson.dev/services/apiserver/internal/servertest"
)

// cluster is a server with a few nodes, whose agents are well or ill in a way of their own.
type cluster struct {
	*servertest.Server
	namespace string
	agents    map[string]*agent
	began     time.Time
}

// agent says of some containers that they use a quarter of a core and 64 MiB.
type agent struct {
	*agenttest.Agent
	began time.Time
	pods  []string // "namespace/pod/container"
	asked atomic.Int32
}

func (a *agent) answer(w http.ResponseWriter, _ *http.Request) { a.tell(w) }

func (a *agent) tell(w io.Writer) {
	a.asked.Add(1)
	now := time.Now()
	cpu := now.Sub(a.began).Seconds() / 4
	fmt.Fprintf(w, "node_cpu_usage_seconds_total %f %d\n", 8*cpu, now.UnixMilli())
	fmt.Fprintf(w, "node_memory_working_set_bytes %d %d\n", 1<<30, now.UnixMilli())
	for _, path := range a.pods {
		part := strings.Split(path, "/")
		labels := fmt.Sprintf("{container=%q,namespace=%q,pod=%q}", part[2], part[0], part[1])
		fmt.Fprintf(w, "container_cpu_usage_seconds_total%s %f %d\n", labels, cpu, now.UnixMilli())
		fmt.Fprintf(w, "container_memory_working_set_bytes%s %d %d\n", labels, 64<<20, now.UnixMilli())
		fmt.Fprintf(w, "container_start_time_seconds%s %d\n", labels, a.began.Unix())
	}
}

func newCluster(t *testing.T, nodes ...string) *cluster {
	t.Helper()
	first := agenttest.Start(t)
	c := &cluster{agents: map[string]*agent{}, began: time.Now().Add(-time.Minute),
		Server: servertest.Start(t, func(config *inproc.Config) { config.Nodeagents = first.Config })}
	c.namespace = c.Namespace(t, "metrics")
	for _, name := range nodes {
		a := &agent{Agent: first.Another(t), began: c.began}
		a.Metrics = a.answer
		c.agents[name] = a
	}
	return c
}

// register makes the Nodes, as their agents do. As what is measured is read from the watch cache, it returns when they
// are there, as does pod.
func (c *cluster) register(t *testing.T) {
	t.Helper()
	for name, a := range c.agents {
		node := a.Node(name)
		node.Labels = map[string]string{"name": name}
		created, err := c.Client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
		must(t, err)
		created.Status = node.Status
		written, err := c.Client.CoreV1().Nodes().UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
		must(t, err)
		_, err = c.Client.CoreV1().Nodes().List(t.Context(), servertest.NotOlderThan(written))
		must(t, err)
	}
}

// pod runs a Pod of the given containers on a node, and lets the node's agent know of it.
func (c *cluster) pod(t *testing.T, node, name string, phase corev1.PodPhase, containers ...string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}},
		Spec: corev1.PodSpec{NodeName: node}}
	for _, container := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container, Image: "i"})
		if a := c.agents[node]; a != nil {
			a.pods = append(a.pods, c.namespace+"/"+name+"/"+container)
		}
	}
	pods := c.Client.CoreV1().Pods(c.namespace)
	written, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	if phase != "" {
		written.Status.Phase, written.Status.StartTime = phase, &metav1.Time{Time: c.began}
		written, err = pods.UpdateStatus(t.Context(), written, metav1.UpdateOptions{})
		must(t, err)
	}
	_, err = pods.List(t.Context(), servertest.NotOlderThan(written))
	must(t, err)
}

// metrics is a client of the metrics API.
func (c *cluster) metrics(t *testing.T, user string) metrics.Interface {
	t.Helper()
	client, err := metrics.NewForConfig(c.ConfigAs(user))
	must(t, err)
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func names[T any, P interface {
	*T
	metav1.Object
}](items []T) []string {
	all := make([]string, 0, len(items))
	for i := range items {
		all = append(all, P(&items[i]).GetName())
	}
	slices.Sort(all)
	return all
}

func wantNames(t *testing.T, what string, err error, got []string, want ...string) {
	t.Helper()
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: %v, %v, want %v", what, got, err, want)
	}
}

// DEP-212: a fresh mesh is a source of container and Pod metrics by itself.
func TestMetrics(t *testing.T) {
	c := newCluster(t, "n1", "n2", "n3")
	c.pod(t, "n1", "web", corev1.PodRunning, "app", "side")
	c.pod(t, "n1", "ended", corev1.PodSucceeded, "app")
	c.pod(t, "n1", "failed", corev1.PodFailed, "app")
	c.pod(t, "n1", "unseen", "", "app")
	c.pod(t, "n2", "other", corev1.PodRunning, "app")
	c.pod(t, "", "waiting", "", "app")
	c.register(t)
	client := c.metrics(t, servertest.Admin).MetricsV1()
	pods := client.PodMetricses(c.namespace)

	web, err := pods.Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)
	c.wantAsked(t, "a Pod by name", 2, 0, 0)
	if len(web.Containers) != 2 || web.Containers[0].Name != "app" || web.Containers[1].Name != "side" ||
		web.Labels["name"] != "web" || time.Since(web.Timestamp.Time).Abs() > time.Minute ||
		web.Window.Duration < time.Second || web.Window.Duration > 20*time.Second {
		t.Errorf("web: %+v", web)
	}
	wantUsage(t, "web", web.Containers[0].Usage, 250, 64<<20)

	list, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "name in (other)"})
	wantNames(t, "by label", err, names(list.Items), "other")
	c.wantAsked(t, "Pods by label", 2, 2, 0)
	list, err = pods.List(t.Context(), metav1.ListOptions{})
	wantNames(t, "all of the namespace", err, names(list.Items), "other", "web")
	c.wantAsked(t, "what is fresh", 2, 2, 0)
	list, err = client.PodMetricses("").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=web"})
	wantNames(t, "by field, everywhere", err, names(list.Items), "web")
	list, err = client.PodMetricses("default").List(t.Context(), metav1.ListOptions{})
	wantNames(t, "of another namespace", err, names(list.Items))

	node, err := client.NodeMetricses().Get(t.Context(), "n3", metav1.GetOptions{})
	must(t, err)
	wantUsage(t, "n3", node.Usage, 2000, 1<<30)
	nodes, err := client.NodeMetricses().List(t.Context(), metav1.ListOptions{LabelSelector: "name!=n3"})
	wantNames(t, "nodes by label", err, names(nodes.Items), "n1", "n2")
	c.wantAsked(t, "nodes", 2, 2, 2)
	t.Run("beta", func(t *testing.T) { c.testBeta(t, web) })
	t.Run("missing", c.testMissing)
	t.Run("rights", c.testRights)
	t.Run("wrong requests", c.testWrong)
	t.Run("table", c.testTable)
}

func (c *cluster) wantAsked(t *testing.T, what string, want ...int32) {
	t.Helper()
	got := []int32{c.agents["n1"].asked.Load(), c.agents["n2"].asked.Load(), c.agents["n3"].asked.Load()}
	if !slices.Equal(got, want) {
		t.Errorf("%s: the agents were asked %v times, want %v", what, got, want)
	}
}

// wantUsage allows for the coarseness of a machine that is busy otherwise: what an agent measures is exact.
func wantUsage(t *testing.T, what string, usage corev1.ResourceList, milli, memory int64) {
	t.Helper()
	cpu := usage.Cpu().MilliValue()
	if cpu < milli*99/100 || cpu > milli*101/100 || usage.Memory().Value() != memory || len(usage) != 2 {
		t.Errorf("%s uses %v, want %dm and %d", what, usage, milli, memory)
	}
}

// The older version serves the same objects.
func (c *cluster) testBeta(t *testing.T, web *metricsv1.PodMetrics) {
	client := c.metrics(t, servertest.Admin).MetricsV1beta1()
	pod, err := client.PodMetricses(c.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)
	if len(pod.Containers) != 2 || !pod.Timestamp.Equal(&web.Timestamp) || pod.Window != web.Window ||
		!pod.Containers[1].Usage.Cpu().Equal(*web.Containers[1].Usage.Cpu()) {
		t.Errorf("%+v, want as %+v", pod, web)
	}
	pods, err := client.PodMetricses(c.namespace).List(t.Context(), metav1.ListOptions{})
	wantNames(t, "pods", err, names(pods.Items), "other", "web")
	nodes, err := client.NodeMetricses().List(t.Context(), metav1.ListOptions{})
	wantNames(t, "nodes", err, names(nodes.Items), "n1", "n2", "n3")
}

func (c *cluster) testMissing(t *testing.T) {
	client := c.metrics(t, servertest.Admin).MetricsV1()
	for name, want := range map[string]string{
		"nobody":  `pods "nobody" not found`,
		"waiting": `podmetrics.metrics.k8s.io "` + c.namespace + `/waiting" not found`,
		"unseen":  `podmetrics.metrics.k8s.io "` + c.namespace + `/unseen" not found`,
		"ended":   `podmetrics.metrics.k8s.io "` + c.namespace + `/ended" not found`,
		"failed":  `podmetrics.metrics.k8s.io "` + c.namespace + `/failed" not found`,
	} {
		_, err := client.PodMetricses(c.namespace).Get(t.Context(), name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	_, err := client.NodeMetricses().Get(t.Context(), "nowhere", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) || err.Error() != `nodes "nowhere" not found` {
		t.Errorf("nowhere: %v", err)
	}
}

// A user who may view a namespace may see what its Pods use, and no other user may.
func (c *cluster) testRights(t *testing.T) {
	ann := c.metrics(t, "ann").MetricsV1()
	_, err := ann.PodMetricses(c.namespace).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("without a right: %v", err)
	}
	_, err = c.Client.RbacV1().RoleBindings(c.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ann"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ann"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}, metav1.CreateOptions{})
	must(t, err)
	var pods *metricsv1.PodMetricsList
	servertest.Eventually(t, "the role's taking hold", func(ctx context.Context) string {
		if pods, err = ann.PodMetricses(c.namespace).List(ctx, metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	wantNames(t, "a viewer", err, names(pods.Items), "other", "web")
	if _, err := ann.NodeMetricses().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the nodes: %v", err)
	}
}

// What cannot be done is refused in one sentence.
func (c *cluster) testWrong(t *testing.T) {
	client := c.Client.(*kubernetes.Clientset).RESTClient()
	path := "/apis/metrics.k8s.io/v1/namespaces/" + c.namespace + "/pods"
	for name, row := range map[string]struct {
		verb, path, want string
		code             int32
	}{
		"create": {"POST", path, "the server does not allow this method on the requested resource", 405},
		"delete": {"DELETE", path + "/web", "the server does not allow this method on the requested resource", 405},
		"watch":  {"GET", path + "?watch=true", "watch is not supported", 405},
		"by another field": {"GET", path + "?fieldSelector=spec.nodeName%3Dn1",
			`"spec.nodeName" is not a known field selector`, 400},
		"not a selector": {"GET", path + "?labelSelector=a%3D%3D%3Db", "", 400},
	} {
		err := client.Verb(row.verb).RequestURI(row.path).Do(t.Context()).Error()
		status, ok := err.(apierrors.APIStatus)
		if !ok || status.Status().Code != row.code || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %d %s", name, err, row.code, row.want)
		}
	}
}

// kubectl get shows the sum of a Pod's containers.
func (c *cluster) testTable(t *testing.T) {
	client := c.Client.(*kubernetes.Clientset).RESTClient()
	for path, want := range map[string]string{
		"/namespaces/" + c.namespace + "/pods/web": "Name CPU Memory Window web 128Mi",
		"/nodes/n3": "Name CPU Memory Window n3 1Gi",
	} {
		raw, err := client.Get().RequestURI("/apis/metrics.k8s.io/v1"+path).SetHeader("Accept",
			"application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
		must(t, err)
		var table metav1.Table
		must(t, json.NewDecoder(bytes.NewReader(raw)).Decode(&table))
		var got []string
		for _, column := range table.ColumnDefinitions {
			got = append(got, column.Name)
		}
		cells := table.Rows[0].Cells
		got = append(got, fmt.Sprint(cells[0]), fmt.Sprint(cells[2]))
		if strings.Join(got, " ") != want || len(cells) != 4 {
			t.Errorf("%s: %v, cells %v", path, got, cells)
		}
	}
}
