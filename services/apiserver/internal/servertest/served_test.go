package servertest_test

import (
	"math"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// settings are those of --runtime-config.
func settings(text string) func(*inproc.Config) {
	return func(c *inproc.Config) {
		c.RuntimeConfig = map[string]string{}
		for part := range strings.SplitSeq(text, ",") {
			key, value, _ := strings.Cut(part, "=")
			c.RuntimeConfig[key] = value
		}
	}
}

// goaway is the value of --goaway-chance.
func goaway(chance float64) func(*inproc.Config) {
	return func(c *inproc.Config) { c.GoawayChance = chance }
}

// TestRuntimeConfig: versions and resources that are off are not there; all else is.
func TestRuntimeConfig(t *testing.T) {
	s := servertest.Start(t, settings("batch/v1=false,autoscaling/v1=false,apps/v1/daemonsets=false"))
	groups, resources, err := s.Client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups {
		if group.Name == "batch" {
			t.Error("the group batch is told of")
		}
		if group.Name == "autoscaling" && len(group.Versions) != 1 {
			t.Errorf("autoscaling has %v", group.Versions)
		}
	}
	var names []string
	for _, list := range resources {
		for _, resource := range list.APIResources {
			names = append(names, list.GroupVersion+"/"+resource.Name)
		}
	}
	for name, want := range map[string]bool{"apps/v1/deployments": true, "apps/v1/deployments/scale": true,
		"apps/v1/daemonsets": false, "apps/v1/daemonsets/status": false, "batch/v1/jobs": false,
		"autoscaling/v2/horizontalpodautoscalers": true, "autoscaling/v1/horizontalpodautoscalers": false} {
		if slices.Contains(names, name) != want {
			t.Errorf("%s is told of: %t", name, !want)
		}
	}
	config := s.ConfigAs(servertest.Admin)
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/apis/batch": 404, "/apis/batch/v1": 404, "/apis/batch/v1/jobs": 404,
		"/apis/apps/v1/daemonsets": 404, "/apis/apps/v1/deployments": 200,
		"/apis/autoscaling/v1/horizontalpodautoscalers": 404, "/apis/autoscaling/v2/horizontalpodautoscalers": 200} {
		if got, body := answered(t.Context(), client, config.Host, path); got != want {
			t.Errorf("%s: %d %s", path, got, body)
		}
	}
}

// TestOwnVersionsAreEnough: a server that serves what it needs itself, and nothing else, becomes ready.
func TestOwnVersionsAreEnough(t *testing.T) {
	s := servertest.Start(t, settings("api/all=false,v1=true,admissionregistration.k8s.io/v1,"+
		"apiextensions.k8s.io/v1,apiregistration.k8s.io/v1,coordination.k8s.io/v1,"+
		"discovery.k8s.io/v1,flowcontrol.apiserver.k8s.io/v1,networking.k8s.io/v1,node.k8s.io/v1,"+
		"rbac.authorization.k8s.io/v1,scheduling.k8s.io/v1,"+
		"storage.k8s.io/v1"))
	create(t, s.Client.CoreV1().ConfigMaps("default"), configMap("c", nil))
	if _, err := s.Client.AppsV1().Deployments("default").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("Deployments are served")
	}
}

// TestWrongServing: what cannot be served stops the start with one sentence.
func TestWrongServing(t *testing.T) {
	for want, change := range map[string]func(*inproc.Config){
		"--runtime-config: shop/v1: there is no version shop/v1; there are admissionregistration.k8s.io/v1, ": settings(
			"shop/v1=true"),
		"--runtime-config: apps/v1: \"no\" is neither true nor false": settings("apps/v1=no"),
		"--runtime-config: rbac.authorization.k8s.io/v1, v1 cannot be off: the apiserver itself uses it": settings(
			"v1=false,rbac.authorization.k8s.io/v1=false"),
		"--runtime-config: apps/v1/daemonset: apps/v1 has no resource daemonset": settings("apps/v1/daemonset=false"),
		"--goaway-chance: 0.021 is not between 0 and 0.02":                       goaway(0.021),
		"--goaway-chance: -0.01 is not between 0 and 0.02":                       goaway(-0.01),
		"--goaway-chance: NaN is not between 0 and 0.02":                         goaway(math.NaN()),
	} {
		t.Run(want, func(t *testing.T) {
			config := servertest.NewConfig(t, t.TempDir())
			change(config)
			refusesToStart(t, config, want)
		})
	}
}

// TestGoaway: clients are told now and then to reconnect, and only if a flag asks for that. Long-running requests go
// on.
func TestGoaway(t *testing.T) {
	for name, row := range map[string]struct {
		chance   float64
		requests int
		anew     bool
	}{
		"sometimes": {0.02, 2000, true}, // once in 1e17 by bad luck
		"never":     {0, 500, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t, goaway(row.chance))
			config := s.ConfigAs(servertest.Admin)
			client, err := restclient.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			clients, err := kubernetes.NewForConfigAndClient(config, client)
			if err != nil {
				t.Fatal(err)
			}
			w, err := clients.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{
				FieldSelector: "metadata.name=late"})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			anew := false
			traced := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				GotConn: func(got httptrace.GotConnInfo) { anew = anew || !got.Reused }})
			for i := 0; i < row.requests && !anew; i++ {
				if status, body := answered(traced, client, config.Host, "/version"); status != http.StatusOK {
					t.Fatalf("%d %s", status, body)
				}
			}
			if anew != row.anew {
				t.Errorf("another connection: %t", anew)
			}
			create(t, s.Client.CoreV1().ConfigMaps("default"), configMap("late", nil))
			if got, _ := next(t, w); got != "ADDED late" {
				t.Errorf("the watch brought %s", got)
			}
		})
	}
}
