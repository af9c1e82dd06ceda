package pod_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/nodeproxy/agenttest"
	"keelson.dev/services/apiserver/internal/servertest"
)

// cluster is an apiserver with one node, whose agent is a fake.
type cluster struct {
	*servertest.Server
	agent *agenttest.Agent
}

// deadNode is a node whose agent does not listen.
const deadNode = "node-dead"

// TestPods runs against the real server: one of them for all, each test in a namespace of its own.
func TestPods(t *testing.T) {
	c := newCluster(t)
	for name, test := range map[string]func(*testing.T, *cluster, typedcorev1.PodInterface){
		"create": testCreate, "update": testUpdate, "status": testStatus, "watch by node": testWatchByNode,
		"delete gracefully": testDeleteGracefully, "delete at once": testDeleteAtOnce, "finalizers": testFinalizers,
		"delete by the owner": testForceDeleteByOwner, "consistency": testConsistency,
		"bind": testBind, "bind by the old resource": testLegacyBind, "bind what cannot be bound": testBindRefused,
		"bind to no node": testBindNowhere, "bind to a full node": testBindFull, "bind at once": testBindAtOnce,
		"evict": testEvict, "evict what is not meant": testEvictRefused, "evict, interrupted": testEvictInterrupted,
		"evict what has no node": testEvictUnbound,
		"evict in the beta form": testEvictBeta, "evict on a budget": testEvictBudget,
		"evict what is not ready": testEvictUnready,
		"evict a hundred at once": testEvictAtOnce,
		"ephemeral containers":    testEphemeralContainers,
		"resize":                  testResize,
		"log":                     testLog, "log by websocket": testLogWebSocket, "follow a log": testFollowLog,
		"log refused": testLogRefused,
		"exec":        testExec, "attach": testAttach, "terminal": testTerminal, "exec refused": testExecRefused,
		"port-forward": testPortForward, "who is joined": testConnectionRights,
	} {
		t.Run(name, func(t *testing.T) {
			namespace := c.Namespace(t, strings.NewReplacer(" ", "-", ",", "").Replace(name))
			test(t, c, c.Client.CoreV1().Pods(namespace))
		})
	}
	for _, line := range servertest.LibraryErrors() {
		if text := fmt.Sprint(line.Message, line.ContextMap()); !strings.Contains(text, "injected failure") {
			t.Errorf("an ordinary run logged the error %s", text)
		}
	}
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	agent := agenttest.Start(t)
	server := servertest.Start(t, func(config *inproc.Config) { config.Nodeagents = agent.Config })
	for _, name := range []string{"node-1", "node-2", deadNode} {
		node := agent.Node(name)
		if name == deadNode {
			node.Status.DaemonEndpoints.KubeletEndpoint.Port = 1
		}
		created, err := server.Client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
		must(t, err)
		created.Status = node.Status
		written, err := server.Client.CoreV1().Nodes().UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
		must(t, err)
		_, err = server.Client.CoreV1().Nodes().List(t.Context(), servertest.NotOlderThan(written))
		must(t, err)
	}
	return &cluster{Server: server, agent: agent}
}

// nginx is the Pod of the documentation.
func nginx(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "nginx"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:1.14.2",
			Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func onNode(p *corev1.Pod) { p.Spec.NodeName = "node-1" }

func create(t *testing.T, pods typedcorev1.PodInterface, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := pods.Create(t.Context(), p, metav1.CreateOptions{})
	must(t, err)
	return created
}

func get(t *testing.T, pods typedcorev1.PodInterface, name string) *corev1.Pod {
	t.Helper()
	p, err := pods.Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError wants an error of the given kind whose text contains part.
func wantError(t *testing.T, err error, is func(error) bool, part string) {
	t.Helper()
	if err == nil || !is(err) || !strings.Contains(err.Error(), part) {
		t.Errorf("got %v, want %q", err, part)
	}
}

func gone(ctx context.Context, pods typedcorev1.PodInterface, name string) string {
	if _, err := pods.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return "the Pod is still there"
	}
	return ""
}
