package servertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	restclient "k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// overload is a server with few seats, and a namespace flood in which a ConfigMap flood-N is made when the test lets
// it: until then the request that makes it has a seat.
type overload struct {
	*hooks
	let chan struct{}

	mu      sync.Mutex // guards clients
	clients map[string]*http.Client
}

func startOverload(t *testing.T) *overload {
	t.Helper()
	o := &overload{let: make(chan struct{})}
	o.hooks = startHooks(t, func(c *inproc.Config) {
		c.FlowControl.MaxRequestsInFlight, c.FlowControl.MaxMutatingRequestsInFlight = 8, 8
	})
	o.Namespace(t, "flood")
	o.Namespace(t, "calm")
	for _, ns := range []string{"flood", "calm"} {
		o.validate(t, ns, o.hook(ns, "slow",
			says(func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				if strings.HasPrefix(r.Name, "flood-") {
					<-o.let
				}
				return allow(r)
			})))
	}
	_, err := o.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "all-edit"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ann := o.As(t, "ann").CoreV1().ConfigMaps("calm")
	servertest.Eventually(t, "everybody may edit", func(ctx context.Context) string {
		if _, err := ann.List(ctx, metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	return o
}

// asked is an answer: its status, the name of the level that it says it had, and its header.
type asked struct {
	status int
	level  string
	header http.Header
}

// ask asks as a user with groups, or anonymously.
func (o *overload) ask(t *testing.T, as restclient.ImpersonationConfig, method, path, body string) asked {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+o.Address()+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return asked{}
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := o.client(t, as).Do(r)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return asked{}
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	a := asked{status: response.StatusCode, header: response.Header}
	levels, err := o.Client.FlowcontrolV1().PriorityLevelConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Errorf("reading the levels: %v", err)
		return a
	}
	for i := range levels.Items {
		if uid := response.Header.Get("X-Kubernetes-PF-PriorityLevel-UID"); string(levels.Items[i].UID) == uid {
			a.level = levels.Items[i].Name
		}
	}
	return a
}

// client is that of a user, one for all of his requests.
func (o *overload) client(t *testing.T, as restclient.ImpersonationConfig) *http.Client {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.clients[as.UserName]; c != nil {
		return c
	}
	config := o.ConfigAs(servertest.Admin)
	if config.Impersonate = as; as.UserName == "" {
		config.BearerToken = ""
	} else if as.UserName == servertest.Admin {
		config.Impersonate = restclient.ImpersonationConfig{}
	}
	c, err := restclient.HTTPClientFor(config)
	if err != nil {
		t.Error(err)
		return http.DefaultClient
	}
	if o.clients == nil {
		o.clients = map[string]*http.Client{}
	}
	o.clients[as.UserName] = c
	return c
}

// make makes a ConfigMap in a namespace.
func (o *overload) make(t *testing.T, as restclient.ImpersonationConfig, ns, name string) asked {
	t.Helper()
	return o.ask(t, as, http.MethodPost, "/api/v1/namespaces/"+ns+"/configmaps",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+name+`"}}`)
}

// requests are how many of a level wait and are worked on.
func requests(ctx context.Context, client discovery.DiscoveryInterface, level string) (waiting, executing int,
	err error) {
	text, err := client.RESTClient().Get().AbsPath("/debug/api_priority_and_fairness/dump_priority_levels").DoRaw(ctx)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, ",")
		if strings.TrimSpace(cells[0]) != level || len(cells) < 6 {
			continue
		}
		waiting, err = strconv.Atoi(strings.TrimSpace(cells[4]))
		if err != nil {
			return 0, 0, err
		}
		executing, err = strconv.Atoi(strings.TrimSpace(cells[5]))
		return waiting, executing, err
	}
	return 0, 0, fmt.Errorf("no level %s in %s", level, text)
}

func account(ns, name string) restclient.ImpersonationConfig {
	return restclient.ImpersonationConfig{UserName: "system:serviceaccount:" + ns + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + ns, "system:authenticated"}}
}

func person(name string, groups ...string) restclient.ImpersonationConfig {
	return restclient.ImpersonationConfig{UserName: name, Groups: append(groups, "system:authenticated")}
}

// TestOverload: while one client has more requests than its level has seats, all other levels and who is exempt are
// served, and another flow of its own level, which comes last, has its turn before most of them.
func TestOverload(t *testing.T) {
	const floods = 60
	o := startOverload(t)
	flooder := account("kube-system", "flooder")
	var (
		flood sync.WaitGroup
		mu    sync.Mutex
		made  = map[int]int{}
	)
	for i := range floods {
		flood.Go(func() {
			got := o.make(t, flooder, "flood", fmt.Sprint("flood-", i))
			mu.Lock()
			defer mu.Unlock()
			made[got.status]++
		})
	}
	seats := 0
	await := func(n int) {
		t.Helper()
		servertest.Eventually(t, fmt.Sprint(n, " requests are there"), func(ctx context.Context) string {
			waiting, executing, err := requests(ctx, o.Client.Discovery(), "workload-high")
			if seats = executing; err != nil || waiting+executing != n {
				return fmt.Sprintf("%d wait, %d are worked on, %v", waiting, executing, err)
			}
			return ""
		})
	}
	await(floods)
	if seats == 0 || seats > 16 {
		t.Errorf("%d requests of the flood are worked on", seats)
	}
	// Of its level flows are told apart by namespaces.
	calm := make(chan asked, 1)
	go func() { calm <- o.make(t, flooder, "calm", "one") }()
	await(floods + 1)
	lease := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"leader"}}`
	for _, row := range []struct {
		name               string
		as                 restclient.ImpersonationConfig
		method, path, body string
		status             int
		level              string
	}{
		{"a master", person(servertest.Admin), "GET", "/api/v1/namespaces/flood/configmaps", "", 200, "exempt"},
		{"a probe", restclient.ImpersonationConfig{}, "GET", "/livez", "", 200, "exempt"},
		{"another probe", restclient.ImpersonationConfig{}, "GET", "/healthz", "", 200, "exempt"},
		{"the flooder's own Lease", flooder, "POST", "/apis/coordination.k8s.io/v1/namespaces/flood/leases", lease, 201,
			"leader-election"},
		{"a controller's Lease", person("system:keelson:podgc"), "GET",
			"/apis/coordination.k8s.io/v1/namespaces/flood/leases/leader", "", 200, "leader-election"},
		{"a node's status", person("system:node:n", "system:nodes"), "GET", "/api/v1/nodes/n", "", 404, "node-high"},
		{"a node", person("system:node:n", "system:nodes"), "GET", "/apis/storage.k8s.io/v1/csinodes/n", "", 404,
			"system"},
		{"a tenant's account", account("calm", "builder"), "GET", "/api/v1/namespaces/flood/configmaps", "", 200,
			"workload-low"},
		{"a person", person("ann"), "GET", "/api/v1/namespaces/flood/configmaps", "", 200, "global-default"},
	} {
		got := o.ask(t, row.as, row.method, row.path, row.body)
		if got.status != row.status || got.level != row.level {
			t.Errorf("%s: %d at the level %q, want %d at %s", row.name, got.status, got.level, row.status, row.level)
		}
	}

	begun := func() int { return len(o.calls("/flood-slow", "")) }
	for begun() < floods && len(o.calls("/calm-slow", "one")) == 0 {
		before := begun()
		o.let <- struct{}{}
		servertest.Eventually(t, "the next request", func(context.Context) string {
			if begun() == before && len(o.calls("/calm-slow", "one")) == 0 {
				return fmt.Sprintf("%d of the flood have begun", before)
			}
			return ""
		})
	}
	before := begun()
	if before > floods*3/4 {
		t.Errorf("the other flow was served after %d of %d requests of the flood", before, floods)
	}
	t.Logf("the other flow was served after %d of %d requests, of which %d had seats", before, floods, seats)
	close(o.let)
	if got := <-calm; got.status != http.StatusCreated || got.level != "workload-high" {
		t.Errorf("the other flow: %d at the level %s", got.status, got.level)
	}
	if flood.Wait(); made[http.StatusCreated] != floods {
		t.Errorf("of the flood: %v", made)
	}
}

// TestRefusedByLevel: a level of one's own, with one seat and one place to wait, refuses the third request in the
// field's way; a schema without its level says so and matches nothing.
func TestRefusedByLevel(t *testing.T) {
	o := startOverload(t)
	client := o.Client.FlowcontrolV1()
	_, err := client.PriorityLevelConfigurations().Create(t.Context(), &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "narrow"},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{NominalConcurrencyShares: ptr.To[int32](1),
				BorrowingLimitPercent: ptr.To[int32](0), LimitResponse: flowcontrolv1.LimitResponse{
					Type:    flowcontrolv1.LimitResponseTypeQueue,
					Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 1, HandSize: 1, QueueLengthLimit: 1}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, level := range map[string]string{"ann": "narrow", "bob": "missing"} {
		_, err := client.FlowSchemas().Create(t.Context(), &flowcontrolv1.FlowSchema{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: flowcontrolv1.FlowSchemaSpec{MatchingPrecedence: 50,
				PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
				Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
					Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser,
						User: &flowcontrolv1.UserSubject{Name: name}}},
					ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"},
						Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"}}}}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"ann": "False narrow", "bob": "True global-default"} {
		servertest.Eventually(t, "what is said of the schema of "+name, func(ctx context.Context) string {
			s, err := client.FlowSchemas().Get(ctx, name, metav1.GetOptions{})
			if err != nil || len(s.Status.Conditions) != 1 ||
				s.Status.Conditions[0].Type != flowcontrolv1.FlowSchemaConditionDangling {
				return fmt.Sprintf("%+v, %v", s.Status, err)
			}
			level := o.ask(t, person(name), "GET", "/api/v1/namespaces/calm/configmaps", "").level
			if got := string(s.Status.Conditions[0].Status) + " " + level; got != want {
				return got + ", want " + want
			}
			return ""
		})
	}
	answers := make(chan asked, 2)
	for i := range 2 {
		go func() { answers <- o.make(t, person("ann"), "flood", fmt.Sprint("flood-", i)) }()
	}
	servertest.Eventually(t, "one waits", func(ctx context.Context) string {
		if waiting, executing, err := requests(ctx, o.Client.Discovery(), "narrow"); err != nil || waiting != 1 ||
			executing != 1 {
			return fmt.Sprintf("%d wait, %d are worked on, %v", waiting, executing, err)
		}
		return ""
	})
	third := o.make(t, person("ann"), "calm", "third")
	after, err := strconv.Atoi(third.header.Get("Retry-After"))
	if third.status != http.StatusTooManyRequests || third.level != "narrow" || err != nil || after < 1 ||
		third.header.Get("X-Kubernetes-PF-FlowSchema-UID") == "" {
		t.Errorf("the third is answered %d at %q with %v", third.status, third.level, third.header)
	}
	text, err := o.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`apiserver_flowcontrol_rejected_requests_total{flow_schema="ann",priority_level="narrow",reason="queue-full"} 1`,
		`apiserver_flowcontrol_current_inqueue_requests{flow_schema="ann",priority_level="narrow"} 1`,
		`apiserver_flowcontrol_current_executing_requests{flow_schema="ann",priority_level="narrow"} 1`,
		`apiserver_flowcontrol_nominal_limit_seats{priority_level="narrow"} 1`,
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("no metric %s", want)
		}
	}
	close(o.let)
	for range 2 {
		if got := <-answers; got.status != http.StatusCreated {
			t.Errorf("who waited is answered %d", got.status)
		}
	}
}

// TestWatchesKeepNoSeat: a watch has a seat until it has been told what there is, whatever it is about.
func TestWatchesKeepNoSeat(t *testing.T) {
	s := servertest.Start(t)
	define(t, s.ConfigAs(servertest.Admin), widgetDefinition(t))
	create(t, s.Client.CoreV1().ConfigMaps("default"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}})
	bindCluster(t, s, "cluster-admin", "ann")
	config := s.ConfigAs("ann")
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := s.Client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	open := 0
	for _, list := range lists {
		prefix := "/apis/"
		if list.GroupVersion == "v1" {
			prefix = "/api/"
		}
		for i := range list.APIResources {
			of := &list.APIResources[i]
			if strings.Contains(of.Name, "/") || !strings.Contains(of.Verbs.String(), "watch") {
				continue
			}
			path := prefix + list.GroupVersion + "/" + of.Name + "?watch=true"
			servertest.Eventually(t, "a watch of "+path, func(context.Context) string {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
				if err != nil {
					return err.Error()
				}
				response, err := client.Do(r)
				if err != nil {
					return err.Error()
				}
				if response.StatusCode != http.StatusOK || response.Header.Get("X-Kubernetes-PF-FlowSchema-UID") == "" {
					_ = response.Body.Close()
					return fmt.Sprint(response.Status, response.Header)
				}
				t.Cleanup(func() { _ = response.Body.Close() })
				return ""
			})
			open++
		}
	}
	if open < 40 {
		t.Fatalf("%d kinds can be watched: the test sees too few", open)
	}
	noSeat(t, s, "global-default")
}

// noSeat waits until no request of the level has a seat, or waits for one.
func noSeat(t *testing.T, s *servertest.Server, level string) {
	t.Helper()
	servertest.Eventually(t, "no request has a seat", func(ctx context.Context) string {
		waiting, executing, err := requests(ctx, s.Client.Discovery(), level)
		if err != nil || waiting+executing > 0 {
			return fmt.Sprintf("%d wait, %d have seats, %v", waiting, executing, err)
		}
		return ""
	})
}

// bindCluster gives the user a role in all namespaces.
func bindCluster(t *testing.T, s *servertest.Server, role, name string) {
	t.Helper()
	_, err := s.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSlowBodiesKeepNoSeat: however many bodies a client sends slowly, none of his requests has a seat before its body
// is there, and others of his level are served.
func TestSlowBodiesKeepNoSeat(t *testing.T) {
	const slow = 10
	o := startOverload(t)
	reading, answered := make(chan struct{}, slow), make(chan int, slow)
	var bodies []*io.PipeWriter
	for range slow {
		from, to := io.Pipe()
		bodies = append(bodies, to)
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got100Continue: func() { reading <- struct{}{} }})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+o.Address()+
			"/api/v1/namespaces/calm/configmaps", from)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Expect", "100-continue")
		go func() {
			response, err := o.client(t, person("ann")).Do(r)
			if err != nil {
				t.Error(err)
				answered <- 0
				return
			}
			_ = response.Body.Close()
			answered <- response.StatusCode
		}()
	}
	for range slow { // the server reads the body of each
		select {
		case <-reading:
		case <-time.After(90 * time.Second):
			t.Fatal("the server does not read all bodies")
		}
	}
	noSeat(t, o.Server, "global-default")
	if got := o.make(t, person("bob"), "calm", "meanwhile"); got.status != http.StatusCreated ||
		got.level != "global-default" {
		t.Errorf("somebody else is answered %d at %s", got.status, got.level)
	}
	for i, body := range bodies {
		_, err := fmt.Fprintf(body, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"slow-%d"}}`, i)
		if err := errors.Join(err, body.Close()); err != nil {
			t.Error(err)
		}
	}
	for range slow {
		if got := <-answered; got != http.StatusCreated {
			t.Errorf("a slow one is answered %d", got)
		}
	}
}

// TestWithoutPriorityAndFairness: switched off, no answer names a level, and what it goes by is served all the same.
func TestWithoutPriorityAndFairness(t *testing.T) {
	s := servertest.Start(t, func(c *inproc.Config) { c.FlowControl.PriorityAndFairness = false })
	o := &overload{hooks: &hooks{Server: s}}
	got := o.ask(t, person("ann"), "GET", "/version", "")
	if got.status != http.StatusOK || got.level != "" {
		t.Errorf("%d at the level %q", got.status, got.level)
	}
	schemas, err := s.Client.FlowcontrolV1().FlowSchemas().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(schemas.Items) < 13 {
		t.Errorf("%d schemas, %v", len(schemas.Items), err)
	}
}
