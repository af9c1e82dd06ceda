package servertest_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/batch"
)

// TestWebhooks has the webhooks of each namespace do one thing.
func TestWebhooks(t *testing.T) {
	h := startHooks(t)
	for name, test := range map[string]func(*testing.T, *hooks, string){
		"deny": testWebhookDenies, "patch": testWebhookPatches, "failure": testWebhookFails,
		"selectors": testWebhookSelectors, "conditions": testWebhookConditions, "dry-run": testWebhookDryRun,
		"service": testWebhookService, "reinvocation": testWebhookReinvocation,
		"equivalent": testWebhookEquivalent, "operations": testWebhookOperations,
		"batches": testWebhooksSeeBatches, "itself": testWebhooksNotAboutThemselves, "cut-off": testWebhookIsCutOff,
	} {
		t.Run(name, func(t *testing.T) { test(t, h, h.Namespace(t, "hooks-"+name)) })
	}
}

func testWebhookDenies(t *testing.T, h *hooks, ns string) {
	h.validate(t, ns, h.hook(ns, "deny", says(func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if r.Name == sentinel {
			return allow(r)
		}
		answer := deny(r)
		answer.Warnings = []string{"mind the gap"}
		return answer
	})))
	_, err := h.make(t, ns, "denied")
	status := apierrors.APIStatus(nil)
	if err == nil || !strings.Contains(err.Error(),
		`admission webhook "deny.hooks-deny.example.com" denied the request: not today`) {
		t.Errorf("%v", err)
	} else if status = err.(apierrors.APIStatus); status.Status().Code != http.StatusTeapot {
		t.Errorf("the code is %d", status.Status().Code)
	}
	if _, err := h.Client.CoreV1().ConfigMaps(ns).Get(t.Context(), "denied", metav1.GetOptions{}); !apierrors.
		IsNotFound(err) {
		t.Errorf("what is denied is stored: %v", err)
	}
	got := h.calls("/"+ns+"-deny", "denied")
	if len(got) != 1 || got[0].Operation != admissionv1.Create || got[0].UserInfo.Username != "admin" ||
		got[0].Namespace != ns || got[0].Kind.Kind != "ConfigMap" || len(got[0].Object.Raw) == 0 {
		t.Errorf("it was asked %+v", got)
	}
}

func testWebhookPatches(t *testing.T, h *hooks, ns string) {
	h.mutate(t, ns, mutating(h.hook(ns, "patch", says(patch(
		`[{"op":"add","path":"/metadata/labels","value":{"by":"webhook"}},{"op":"add","path":"/data/a","value":"b"}]`,
	)))))
	made, err := h.make(t, ns, "patched", func(m *corev1.ConfigMap) { m.Data = map[string]string{"c": "d"} })
	if err != nil || made.Labels["by"] != "webhook" || made.Data["a"] != "b" {
		t.Errorf("%+v, %v", made, err)
	}
	stored, err := h.Client.CoreV1().ConfigMaps(ns).Get(t.Context(), "patched", metav1.GetOptions{})
	if err != nil || stored.Data["a"] != "b" || len(stored.ManagedFields) == 0 {
		t.Errorf("%+v, %v", stored, err)
	}
}

// nowhere is an address without a listener.
func nowhere(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return "https://" + listener.Addr().String()
}

func testWebhookFails(t *testing.T, h *hooks, ns string) {
	strict, lax := h.hook(ns, "strict", nil), h.hook(ns, "lax", nil)
	named := func(name string) []admissionregistrationv1.MatchCondition {
		return []admissionregistrationv1.MatchCondition{
			{Name: "named", Expression: `object.metadata.name == "` + name + `"`},
		}
	}
	strict.ClientConfig.URL, strict.MatchConditions = new(nowhere(t)), named("strict")
	lax.ClientConfig.URL, lax.MatchConditions = new(nowhere(t)), named("lax")
	lax.FailurePolicy = new(admissionregistrationv1.Ignore)
	slow := h.hook(ns, "slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	slow.TimeoutSeconds, slow.MatchConditions = new(int32(1)), named("slow")
	h.validate(t, ns, strict, lax, slow)
	if _, err := h.make(t, ns, "strict"); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(),
		`failed calling webhook "strict.hooks-failure.example.com"`) {
		t.Errorf("by default: %v", err)
	}
	if _, err := h.make(t, ns, "lax"); err != nil {
		t.Errorf("where failures are ignored: %v", err)
	}
	if _, err := h.make(t, ns, "slow"); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(),
		"context deadline exceeded") {
		t.Errorf("beyond its time: %v", err)
	}
}

func testWebhookSelectors(t *testing.T, h *hooks, ns string) {
	other := h.Namespace(t, ns+"-other")
	selecting := h.hook(ns, "selecting", says(deny))
	selecting.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"checked": "yes"}}
	h.validate(t, ns, selecting)
	checked := func(m *corev1.ConfigMap) { m.Labels = map[string]string{"checked": "yes"} }
	if _, err := h.make(t, ns, "selected", checked); err == nil {
		t.Error("what is selected is let through")
	}
	if _, err := h.make(t, ns, "free"); err != nil {
		t.Errorf("an object that is not selected: %v", err)
	}
	if _, err := h.make(t, other, "free", checked); err != nil {
		t.Errorf("a namespace that is not selected: %v", err)
	}
}

func testWebhookConditions(t *testing.T, h *hooks, ns string) {
	conditional := h.hook(ns, "conditional", says(deny))
	conditional.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "not-sentinel", Expression: `object.metadata.name != "sentinel"`},
		{Name: "with-data", Expression: `has(object.data) && object.data["a"] == "b"`},
		{Name: "may", Expression: `authorizer.group("").resource("configmaps").check("create").allowed()`},
	}
	h.validate(t, ns, conditional)
	if _, err := h.make(
		t,
		ns,
		"matched",
		func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": "b"} },
	); err == nil {
		t.Error("what matches is let through")
	}
	if _, err := h.make(t, ns, "free"); err != nil {
		t.Errorf("what does not match: %v", err)
	}
	// An expression that fails refuses, unless failures are ignored.
	_, err := h.make(t, ns, "failing", func(m *corev1.ConfigMap) { m.Data = map[string]string{"c": "d"} })
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "no such key: a") {
		t.Errorf("a condition that fails: %v", err)
	}
}

func testWebhookDryRun(t *testing.T, h *hooks, ns string) {
	h.validate(t, ns, h.hook(ns, "told", says(allow)))
	_, err := h.Client.CoreV1().ConfigMaps(ns).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "tried"}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	if got := h.calls("/"+ns+"-told", "tried"); len(got) != 1 || got[0].DryRun == nil || !*got[0].DryRun {
		t.Errorf("it was asked %+v", got)
	}
	effects := h.hook(ns, "effects", says(allow))
	effects.SideEffects = new(admissionregistrationv1.SideEffectClassSome)
	_, err = h.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ns + "-effects"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{effects}}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), `webhooks[0].sideEffects: Unsupported value: "Some"`) {
		t.Errorf("a webhook that would have effects in a dry run: %v", err)
	}
}

// testWebhookService: a Service leads to its endpoint, whose certificate is for the Service's name.
func testWebhookService(t *testing.T, h *hooks, ns string) {
	h.Namespace(t, "hooks")
	_, err := h.Client.CoreV1().Services("hooks").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	served := h.hook(ns, "served", says(deny))
	served.ClientConfig.URL = nil
	served.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: "hooks", Name: "hook",
		Path: new("/" + ns + "-served")}
	served.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "not-sentinel", Expression: `object.metadata.name != "sentinel"`}}
	h.validate(t, ns, served)
	if _, err := h.make(t, ns, "early"); err == nil ||
		!strings.Contains(err.Error(), "there are no endpoints for the service hooks/hook") {
		t.Errorf("without an endpoint: %v", err)
	}
	_, err = h.Client.DiscoveryV1().EndpointSlices("hooks").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "hook", Labels: map[string]string{discoveryv1.LabelServiceName: "hook"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(h.port)}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{endpointIP}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.make(t, ns, "late"); err == nil || !strings.Contains(err.Error(), "denied the request: not today") {
		t.Errorf("by the Service: %v", err)
	}
}

// testWebhookReinvocation: who has asked for it sees once more what others have changed after it.
func testWebhookReinvocation(t *testing.T, h *hooks, ns string) {
	again := mutating(h.hook(ns, "again", says(allow)))
	again.ReinvocationPolicy = new(admissionregistrationv1.IfNeededReinvocationPolicy)
	once := mutating(h.hook(ns, "once", says(allow)))
	h.mutate(t, ns, again, once, mutating(h.hook(ns, "last", says(patch(
		`[{"op":"add","path":"/data","value":{"a":"b"}}]`)))))
	if _, err := h.make(t, ns, "made"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"again": 2, "once": 1, "last": 1} {
		got := h.calls("/"+ns+"-"+path, "made")
		if len(got) != want {
			t.Errorf("%s was asked %d times, want %d", path, len(got), want)
		}
		if path == "again" && !strings.Contains(string(got[len(got)-1].Object.Raw), `"a":"b"`) {
			t.Errorf("again it was asked about %s", got[len(got)-1].Object.Raw)
		}
	}
}

// testWebhookEquivalent: a webhook for one version is asked in it about a write in another one.
func testWebhookEquivalent(t *testing.T, h *hooks, ns string) {
	equivalent := h.hook(ns, "equivalent", says(allow))
	exact := h.hook(ns, "exact", says(allow))
	exact.MatchPolicy = new(admissionregistrationv1.Exact)
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{APIGroups: []string{"autoscaling"}, APIVersions: []string{"v2"},
			Resources: []string{"horizontalpodautoscalers"}}}}
	equivalent.Rules, exact.Rules = rules, rules
	h.validate(t, ns, equivalent, exact)
	_, err := h.Client.AutoscalingV1().HorizontalPodAutoscalers(ns).Create(t.Context(),
		&autoscalingv1.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: "made"},
			Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
				MaxReplicas:                    3,
				TargetCPUUtilizationPercentage: new(int32(7)),
				ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{
					Kind: "Deployment",
					Name: "d",
				},
			},
		},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := h.calls("/"+ns+"-equivalent", "made")
	if len(got) != 1 || got[0].Kind.Version != "v2" || got[0].RequestKind.Version != "v1" ||
		!strings.Contains(string(got[0].Object.Raw), `"averageUtilization":7`) {
		t.Errorf("it was asked %+v", got)
	}
	if got := h.calls("/"+ns+"-exact", "made"); len(got) != 0 {
		t.Errorf("about its version alone it was asked %+v", got)
	}
}

// testWebhookOperations: what is changed and what is deleted, one by one and all together, is asked about.
func testWebhookOperations(t *testing.T, h *hooks, ns string) {
	h.validate(t, ns, h.hook(ns, "all", says(allow)))
	maps := h.Client.CoreV1().ConfigMaps(ns)
	one, err := h.make(t, ns, "one")
	if err != nil {
		t.Fatal(err)
	}
	one.Data = map[string]string{"a": "b"}
	if _, err := maps.Update(t.Context(), one, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"two", "three"} {
		if _, err := h.make(t, ns, name); err != nil {
			t.Fatal(err)
		}
	}
	// What is deleted together has no name in the request, but in the object.
	if err := maps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range h.calls("/"+ns+"-all", "") {
		about, raw := corev1.ConfigMap{}, r.Object.Raw
		if r.Operation == admissionv1.Delete {
			raw = r.OldObject.Raw
		}
		if err := json.Unmarshal(raw, &about); err != nil {
			t.Errorf("a %s without an object: %v", r.Operation, err)
		}
		got[about.Name] += string(r.Operation) + " "
	}
	for name, want := range map[string]string{"one": "CREATE UPDATE DELETE ", "two": "CREATE DELETE ",
		"three": "CREATE DELETE "} {
		if got[name] != want {
			t.Errorf("about %s it was asked %s, want %s", name, got[name], want)
		}
	}
}

// testWebhooksSeeBatches: what comes in a batch is asked about as if it had come alone.
func testWebhooksSeeBatches(t *testing.T, h *hooks, ns string) {
	all := h.hook(ns, "all", says(func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if strings.HasPrefix(r.Name, "bad") {
			return deny(r)
		}
		return allow(r)
	}))
	all.Rules[0].Resources = []string{"configmaps", "events", "pods/binding"}
	marked := mutating(h.hook(ns, "marked", says(patch(
		`[{"op":"add","path":"/metadata/labels","value":{"by":"webhook"}}]`))))
	marked.Rules = []admissionregistrationv1.RuleWithOperations{all.Rules[0]}
	marked.Rules[0].Resources = []string{"events"}
	h.mutate(t, ns, marked)
	h.validate(t, ns, all)
	path := "/api/v1/namespaces/" + ns + "/"
	body := func(kind, name, more string) []byte {
		return []byte(`{"apiVersion":"v1","kind":"` + kind + `","metadata":{"name":"` + name + `"}` + more + `}`)
	}
	pod := `,"spec":{"containers":[{"name":"a","image":"b"}]}`
	requests := []batch.Request{
		{Method: "POST", Target: path + "pods", Body: body("Pod", "good", pod)},
		{Method: "POST", Target: path + "pods", Body: body("Pod", "bad", pod)},
		{Method: "POST", Target: path + "configmaps", Body: body("ConfigMap", "good-map", "")},
		{Method: "POST", Target: path + "configmaps", Body: body("ConfigMap", "bad-map", "")},
	}
	for i := range requests {
		requests[i].ContentType = "application/json"
	}
	x := exchangeAs(t, h.Server, "admin")
	for i, want := range []int{201, 201, 201, http.StatusTeapot} {
		if got := x.together(t, requests)[i]; i == 0 && got.Status != want {
			t.Fatalf("%s: %d %s", requests[i].Body, got.Status, got.Body)
		}
	}
	if got := h.calls("/"+ns+"-all", "bad-map"); len(got) == 0 {
		t.Error("a ConfigMap of a batch is not asked about")
	}
	binding := func(name string) batch.Request {
		return batch.Request{
			Method:      "POST",
			Target:      path + "pods/" + name + "/binding",
			ContentType: "application/json",
			Body:        body("Binding", name, `,"target":{"kind":"Node","name":"nobody"}`),
		}
	}
	answers := x.together(t, []batch.Request{binding("good"), binding("bad")})
	if answers[1].Status != http.StatusTeapot || answers[0].Status == http.StatusTeapot {
		t.Errorf("bindings: %d %s, %d %s", answers[0].Status, answers[0].Body, answers[1].Status, answers[1].Body)
	}
	got := h.calls("/"+ns+"-all", "good")
	if len(got) != 1 || got[0].SubResource != "binding" || got[0].Kind.Kind != "Binding" {
		t.Errorf("about the binding it was asked %+v", got)
	}
	status, err := postEvents(t.Context(), h.Client, &corev1.EventList{Items: []corev1.Event{
		eventAbout(ns, "good-event"), eventAbout(ns, "bad-event")}})
	if err != nil || len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != "items[1]" ||
		!strings.Contains(status.Details.Causes[0].Message, "denied the request: not today") {
		t.Fatalf("%+v, %v", status, err)
	}
	event, err := h.Client.CoreV1().Events(ns).Get(t.Context(), "good-event", metav1.GetOptions{})
	if err != nil || event.Labels["by"] != "webhook" || len(event.ManagedFields) == 0 {
		t.Errorf("%+v, %v", event, err)
	}
}

// testWebhooksNotAboutThemselves: a webhook about everything keeps no user from deleting it, nor from asking for his
// rights.
func testWebhooksNotAboutThemselves(t *testing.T, h *hooks, ns string) {
	everything := h.hook(ns, "everything", says(func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if r.Namespace == "default" {
			return deny(r)
		}
		return allow(r)
	}))
	everything.NamespaceSelector = nil
	everything.Rules[0].APIGroups, everything.Rules[0].APIVersions, everything.Rules[0].Resources =
		[]string{"*"}, []string{"*"}, []string{"*/*"}
	everything.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "admin",
		Expression: `request.userInfo.username == "admin"`}}
	h.validate(t, ns, everything)
	client := h.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	stored, err := client.Get(t.Context(), ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored.Labels = map[string]string{"a": "b"}
	if _, err := client.Update(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := h.make(t, "default", "other"); err == nil {
		t.Error("something else is let through")
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}}}
	if _, err := h.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review,
		metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
}

// testWebhookIsCutOff: who goes does not leave a webhook waiting.
func testWebhookIsCutOff(t *testing.T, h *hooks, ns string) {
	asked, gone := make(chan struct{}, 1), make(chan struct{})
	waiting := h.hook(ns, "waiting", func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
		close(gone)
	})
	waiting.TimeoutSeconds = new(int32(30))
	waiting.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "not-sentinel", Expression: `object.metadata.name != "sentinel"`}}
	h.validate(t, ns, waiting)
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		_, err := h.Client.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "made"}}, metav1.CreateOptions{})
		answered <- err
	}()
	<-asked
	start := time.Now()
	cancel()
	<-answered
	<-gone
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("the webhook waited for %s: until its own time was up", took)
	}
}
