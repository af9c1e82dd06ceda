package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"keelson.dev/test/mesh/processes"
)

// The environment of a process of this test binary that is an extender in place of running tests.
const (
	extenderAddress    = "KEELSON_TEST_EXTENDER"
	extenderKubeconfig = "KEELSON_TEST_EXTENDER_KUBECONFIG"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(extenderAddress); address != "" {
		fmt.Println(serveExtender(address, os.Getenv(extenderKubeconfig)))
		os.Exit(1)
	}
	if err := processes.Furnish(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	release, err := processes.ClaimUsualRanges()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	code := m.Run()
	if err := processes.EndShared(); err != nil {
		fmt.Println(err)
		code = 1
	}
	release()
	os.Exit(code)
}

// What the extender goes by: labels of nodes, and an annotation that it leaves on the Pods that it binds.
const (
	seats    = "tests.keelson.dev/seats"
	view     = "tests.keelson.dev/view"
	free     = "tests.keelson.dev/free" // its Pods may be preempted
	boundBy  = "tests.keelson.dev/bound-by"
	noSeat   = "node(s) had no seat"
	extender = "extender"
)

// serveExtender answers all verbs until the process ends. It is asked with whole nodes, and with the names of victims.
func serveExtender(address, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building the client: %w", err)
	}
	mux := http.NewServeMux()
	answer(mux, "/seat/filter", func(_ context.Context, a extenderv1.ExtenderArgs) any { return filterSeats(a.Nodes) })
	answer(mux, "/perk/filter", func(_ context.Context, a extenderv1.ExtenderArgs) any { return filterSeats(a.Nodes) })
	answer(mux, "/seat/prioritize", func(_ context.Context, a extenderv1.ExtenderArgs) any {
		list := extenderv1.HostPriorityList{}
		for _, node := range a.Nodes.Items {
			score, _ := strconv.ParseInt(node.Labels[view], 10, 64)
			list = append(list, extenderv1.HostPriority{Host: node.Name, Score: score})
		}
		return list
	})
	answer(mux, "/seat/preempt", func(ctx context.Context, a extenderv1.ExtenderPreemptionArgs) any {
		result := extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
		for name, victims := range a.NodeNameToVictims {
			node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if err != nil || node.Labels[free] == "" {
				continue
			}
			meta := &extenderv1.MetaVictims{NumPDBViolations: victims.NumPDBViolations}
			for _, pod := range victims.Pods {
				meta.Pods = append(meta.Pods, &extenderv1.MetaPod{UID: string(pod.UID)})
			}
			result.NodeNameToMetaVictims[name] = meta
		}
		return result
	})
	answer(mux, "/seat/bind", func(ctx context.Context, a extenderv1.ExtenderBindingArgs) any {
		err := client.CoreV1().Pods(a.PodNamespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.PodNamespace, Name: a.PodName, UID: a.PodUID,
				Annotations: map[string]string{boundBy: extender}},
			Target: corev1.ObjectReference{Kind: "Node", Name: a.Node},
		}, metav1.CreateOptions{})
		if err != nil {
			return extenderv1.ExtenderBindingResult{Error: err.Error()}
		}
		return extenderv1.ExtenderBindingResult{}
	})
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: time.Second}
	return server.ListenAndServe()
}

// answer decodes what is asked and encodes what is answered.
func answer[T any](mux *http.ServeMux, path string, decide func(context.Context, T) any) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var args T
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(decide(r.Context(), args))
	})
}

func filterSeats(nodes *corev1.NodeList) extenderv1.ExtenderFilterResult {
	result := extenderv1.ExtenderFilterResult{Nodes: &corev1.NodeList{}, FailedNodes: map[string]string{}}
	for _, node := range nodes.Items {
		if node.Labels[seats] != "" {
			result.Nodes.Items = append(result.Nodes.Items, node)
		} else {
			result.FailedNodes[node.Name] = noSeat
		}
	}
	return result
}
