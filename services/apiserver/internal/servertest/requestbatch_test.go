package servertest_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"keelson.dev/kit/batch"
	"keelson.dev/services/apiserver/internal/servertest"
)

// exchange is a connection by which a test sends what it likes.
type exchange struct {
	host   string
	client *http.Client
}

func exchangeAs(t *testing.T, s *servertest.Server, user string) exchange {
	t.Helper()
	config := s.ConfigAs(user)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return exchange{config.Host, client}
}

func (e exchange) send(t *testing.T, r batch.Request) *http.Response {
	t.Helper()
	response, err := e.trySend(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func (e exchange) trySend(ctx context.Context, r batch.Request) (*http.Response, error) {
	sent, err := http.NewRequestWithContext(ctx, r.Method, e.host+r.Target, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"Content-Type": r.ContentType, "Accept": r.Accept} {
		if value != "" {
			sent.Header.Set(name, value)
		}
	}
	return e.client.Do(sent)
}

// alone sends a request by itself.
func (e exchange) alone(t *testing.T, r batch.Request) batch.Answer {
	t.Helper()
	response := e.send(t, r)
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return batch.Answer{Status: response.StatusCode, Header: response.Header, Body: body}
}

// together sends requests as one, and returns the answers in the requests' order.
func (e exchange) together(t *testing.T, requests []batch.Request) []batch.Answer {
	t.Helper()
	answers, err := e.tryTogether(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

func (e exchange) tryTogether(ctx context.Context, requests []batch.Request) ([]batch.Answer, error) {
	var body []byte
	for _, r := range requests {
		body = batch.AppendRequest(body, r)
	}
	response, err := e.trySend(ctx, batch.Request{Method: http.MethodPost, Target: batch.Path,
		ContentType: batch.ContentType, Body: body})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return nil, fmt.Errorf("a batch: %s %s", response.Status, text)
	}
	answers := make([]batch.Answer, len(requests))
	from := bufio.NewReader(response.Body)
	for range requests {
		a, err := batch.ReadAnswer(from)
		if err != nil {
			return nil, err
		}
		answers[a.Item] = a
	}
	return answers, nil
}

// differs is what differs from one write to the next.
var differs = regexp.MustCompile(`"(uid|resourceVersion|creationTimestamp|time)":"[^"]*"|-(single|batch)`)

// testRequestBatch: what is answered to a request of a batch is what is answered to it by itself, and one that is
// refused refuses no other.
func testRequestBatch(t *testing.T, s *servertest.Server) {
	ns := s.Namespace(t, "request-batch")
	none := corev1.ResourceList{"count/secrets": resource.MustParse("0")}
	quota, err := s.Client.CoreV1().ResourceQuotas(ns).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	if _, err := s.Client.CoreV1().ResourceQuotas(ns).UpdateStatus(t.Context(), quota,
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "batch-node"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	maps := s.Client.CoreV1().ConfigMaps(ns)
	for _, name := range []string{"there-single", "there-batch", "old-single", "old-batch", "gone-single", "gone-batch",
		"applied-single", "applied-batch"} {
		create(t, maps, configMap(name, nil))
	}
	for _, name := range []string{"pod-single", "pod-batch"} {
		if _, err := s.Client.CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c",
				Image: "i"}}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	path := "/api/v1/namespaces/" + ns + "/"
	object := func(kind, rest string) string {
		return `{"apiVersion":"v1","kind":"` + kind + `",` + rest + `}`
	}
	const maptype = "ConfigMap"
	rows := []struct{ method, target, kind, body, want string }{
		{"POST", "configmaps?fieldManager=me", "", object(maptype, `"metadata":{"name":"new-%s"},"data":{"a":"b"}`),
			"201"},
		{"POST", "configmaps", "", object(maptype, `"metadata":{"name":"there-%s"}`), "409"},
		{"POST", "configmaps", "", object(maptype, `"metadata":{"name":"No/name-%s"}`), "422"},
		{"POST", "configmaps?dryRun=All", "", object(maptype, `"metadata":{"name":"dry-%s"}`), "201"},
		{"POST", "configmaps?fieldValidation=Strict", "", object(maptype, `"no":1,"metadata":{"name":"s-%s"}`), "400"},
		{"POST", "configmaps", "", object(maptype, `"no":1,"metadata":{"name":"warned-%s"}`), "201"},
		{"POST", "configmaps", "", `{`, "400"},
		{"POST", "configmaps", "text/plain", `x`, "415"},
		{"POST", "secrets", "", object("Secret", `"metadata":{"name":"too-many-%s"}`), "403"},
		{"POST", "unknowns", "", `{}`, "404"},
		{"PUT", "configmaps/old-%s", "", object(maptype, `"metadata":{"name":"old-%s","resourceVersion":"1"}`), "409"},
		{"PATCH", "configmaps/there-%s", "application/merge-patch+json", `{"data":{"x":"y"}}`, "200"},
		{"PATCH", "configmaps/applied-%s?fieldManager=me", "application/apply-patch+yaml",
			object(maptype, `"metadata":{"name":"applied-%s"},"data":{"c":"d"}`), "200"},
		{"DELETE", "configmaps/gone-%s", "", "", "200"},
		{"DELETE", "configmaps/never-%s", "", "", "404"},
		{"POST", "pods/pod-%s/binding", "", object("Binding",
			`"metadata":{"name":"pod-%s"},"target":{"kind":"Node","name":"batch-node"}`), "201"},
		{"POST", "pods/none-%s/binding", "", object("Binding",
			`"metadata":{"name":"none-%s"},"target":{"kind":"Node","name":"batch-node"}`), "404"},
	}
	e, requests := exchangeAs(t, s, servertest.Admin), []batch.Request(nil)
	request := func(i int, as string) batch.Request {
		fill := func(text string) string { return strings.ReplaceAll(text, "%s", as) }
		r := batch.Request{Method: rows[i].method, Target: path + fill(rows[i].target), Accept: "application/json",
			ContentType: rows[i].kind, Body: []byte(fill(rows[i].body))}
		if r.ContentType == "" {
			r.ContentType = "application/json"
		}
		return r
	}
	for i := range rows {
		requests = append(requests, request(i, "batch"))
	}
	for i, got := range e.together(t, requests) {
		want := e.alone(t, request(i, "single"))
		plain := func(a batch.Answer) string {
			return fmt.Sprint(a.Status, " ", a.Header.Get("Content-Type"), " ", a.Header["Warning"], " ",
				differs.ReplaceAllString(string(a.Body), ""))
		}
		if plain(got) != plain(want) || fmt.Sprint(got.Status) != rows[i].want {
			t.Errorf("%s %s:\n%s\nwant as by itself\n%s", rows[i].method, rows[i].target, plain(got), plain(want))
		}
	}
	testRequestOrder(t, s, e, ns)
}

// testRequestOrder: of many changes of one object in a batch the last is the last, and each has a version of its own.
func testRequestOrder(t *testing.T, s *servertest.Server, e exchange, ns string) {
	create(t, s.Client.CoreV1().ConfigMaps(ns), configMap("changed", nil))
	var requests []batch.Request
	for i := range 128 {
		requests = append(requests, batch.Request{Method: "PATCH", ContentType: "application/merge-patch+json",
			Target: "/api/v1/namespaces/" + ns + "/configmaps/changed",
			Body:   fmt.Appendf(nil, `{"data":{"last":"%d"}}`, i)})
	}
	version := regexp.MustCompile(`"resourceVersion":"(\d+)"`)
	last := ""
	for i, a := range e.together(t, requests) {
		found := version.FindSubmatch(a.Body)
		if a.Status != http.StatusOK || found == nil || fmt.Sprintf("%12s", found[1]) <= last {
			t.Fatalf("change %d: %d %s, behind version %s", i, a.Status, a.Body, last)
		}
		last = fmt.Sprintf("%12s", found[1])
	}
	got, err := s.Client.CoreV1().ConfigMaps(ns).Get(t.Context(), "changed", metav1.GetOptions{})
	if err != nil || got.Data["last"] != "127" {
		t.Errorf("in the end %v, %v", got.Data, err)
	}
}

// testRequestBatchRights: what is sent together is allowed to who may send it alone, and to no other.
func testRequestBatchRights(t *testing.T, s *servertest.Server) {
	allowed, other := s.Namespace(t, "batch-allowed"), s.Namespace(t, "batch-forbidden")
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "writer"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}}}
	if _, err := s.Client.RbacV1().Roles(allowed).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Client.RbacV1().RoleBindings(allowed).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "writer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "writer"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "bob"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	create := func(ns string) batch.Request {
		return batch.Request{Method: "POST", Target: "/api/v1/namespaces/" + ns + "/configmaps",
			ContentType: "application/json", Body: []byte(`{"metadata":{"generateName":"c-"}}`)}
	}
	bob := exchangeAs(t, s, "bob")
	servertest.Eventually(t, "bob may create ConfigMaps", func(context.Context) string {
		if a := bob.alone(t, create(allowed)); a.Status != http.StatusCreated {
			return string(a.Body)
		}
		return ""
	})
	answers := bob.together(t, []batch.Request{create(allowed), create(other), create(allowed)})
	for i, want := range []int{201, 403, 201} {
		if answers[i].Status != want {
			t.Errorf("request %d: %d %s", i, answers[i].Status, answers[i].Body)
		}
	}
	if list, err := s.Client.CoreV1().ConfigMaps(other).List(t.Context(), metav1.ListOptions{}); err != nil ||
		len(list.Items) > 0 {
		t.Errorf("made without a right: %v, %v", list.Items, err)
	}
	for _, user := range []string{"stranger", ""} {
		config := s.ConfigAs(user)
		if user == "" {
			config.BearerToken = ""
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		response := exchange{config.Host, client}.send(t, batch.Request{Method: "POST", Target: batch.Path,
			ContentType: batch.ContentType, Body: batch.AppendRequest(nil, create(allowed))})
		if response.StatusCode != http.StatusUnauthorized && response.StatusCode != http.StatusForbidden {
			t.Errorf("%q: %s", user, response.Status)
		}
	}
}

// testJoinedWrites: what clients write at once over a connection that joins writes is what each has asked for.
func testJoinedWrites(t *testing.T, s *servertest.Server) {
	ns := s.Namespace(t, "joined-writes")
	client := joining(s.ConfigAs(servertest.Admin))
	var made sync.Map
	var writers sync.WaitGroup
	for i := range 300 {
		writers.Go(func() {
			name := fmt.Sprint("c", i/2)
			switch c, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap(name, nil),
				metav1.CreateOptions{}); {
			case err == nil && c.Name == name:
				if _, twice := made.LoadOrStore(name, c.UID); twice {
					t.Errorf("%s was made twice", name)
				}
			case !apierrors.IsAlreadyExists(err):
				t.Errorf("%s: %v, %v", name, c, err)
			}
		})
	}
	writers.Wait()
	list, err := s.Client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 150 {
		t.Fatalf("%d are stored, %v, want 150", len(list.Items), err)
	}
	for _, c := range list.Items {
		if uid, _ := made.Load(c.Name); uid != c.UID {
			t.Errorf("%s is %v, and %v was answered", c.Name, c.UID, uid)
		}
	}
}

// testJoinedLargeWrites: an answer that a server would compress is what its client reads, also among others.
func testJoinedLargeWrites(t *testing.T, s *servertest.Server) {
	ns := s.Namespace(t, "joined-large-writes")
	create(t, s.Client.CoreV1().ConfigMaps(ns), configMap("c", map[string]string{"a": strings.Repeat("x", 200<<10)}))
	client := joining(s.ConfigAs(servertest.Admin)).CoreV1().ConfigMaps(ns)
	var writers sync.WaitGroup
	for i := range 16 {
		writers.Go(func() {
			c, err := client.Patch(t.Context(), "c", types.MergePatchType, fmt.Appendf(nil, `{"data":{"c%d":""}}`, i),
				metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil || len(c.Data["a"]) != 200<<10 {
				t.Errorf("patch %d: %v", i, err)
			}
		})
	}
	writers.Wait()
}

func joining(config *rest.Config) kubernetes.Interface {
	config.QPS = -1
	return kubernetes.NewForConfigOrDie(batch.Over(config, func(context.Context) error { return nil }))
}

// TestRequestBatchIsCut: of a server that ends in the middle of batches each write is there that was answered, and of
// the others each has an error.
func TestRequestBatchIsCut(t *testing.T) {
	dir := t.TempDir()
	startChild(t, dir, "").kill() // the system's objects are made here
	c := startChild(t, dir, "apiserver/store.create.after=40*off->crash")
	client := joining(servertest.ConfigAs(c.address, servertest.Admin))
	const writes = 300
	var answered sync.Map
	var writers sync.WaitGroup
	for i := range writes {
		writers.Go(func() {
			name := fmt.Sprint("c", i)
			if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap(name, nil),
				metav1.CreateOptions{}); err == nil {
				answered.Store(name, true)
			}
		})
	}
	writers.Wait()
	list, err := startChild(t, dir, "").client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) < 40 {
		t.Fatalf("%d are there, %v", len(list.Items), err)
	}
	there := map[string]bool{}
	for _, c := range list.Items {
		there[c.Name] = true
	}
	answered.Range(func(name, _ any) bool {
		if !there[name.(string)] {
			t.Errorf("%s was answered and is not there", name)
		}
		return true
	})
}
