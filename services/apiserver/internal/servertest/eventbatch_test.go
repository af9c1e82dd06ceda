package servertest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"keelson.dev/kit/client"
	"keelson.dev/kit/events"
	"keelson.dev/services/apiserver/internal/servertest"
)

// postEvents sends a body to where the Events of all namespaces are.
func postEvents(ctx context.Context, client kubernetes.Interface, body any, parameters ...string) (*metav1.Status,
	error) {
	request := client.CoreV1().RESTClient().Post().AbsPath("/api/v1/events").Body(body)
	for _, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		request.Param(name, value)
	}
	answer := &metav1.Status{}
	return answer, request.Do(ctx).Into(answer)
}

// asProtobuf is a client that sends and takes protobuf.
func asProtobuf(t *testing.T, s *servertest.Server, user string) kubernetes.Interface {
	t.Helper()
	config := s.ConfigAs(user)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	return kubernetes.NewForConfigOrDie(config)
}

func eventAbout(namespace, name string) corev1.Event {
	return corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Reason: "Tested", Count: 1,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "p", UID: "u"}}
}

// testEventBatch: what a batch makes of an Event is what a create makes of it, and one that is refused refuses no
// other.
func testEventBatch(t *testing.T, s *servertest.Server) {
	ns := s.Namespace(t, "batches")
	ending := s.Namespace(t, "batches-ending")
	if _, err := s.Client.CoreV1().Events(ns).Create(t.Context(), new(eventAbout(ns, "there")),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Client.CoreV1().Namespaces().Delete(t.Context(), ending, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		name string
		edit func(*corev1.Event)
	}{
		{"good", func(*corev1.Event) {}},
		{"with what only the server sets", func(e *corev1.Event) {
			e.UID, e.CreationTimestamp, e.DeletionTimestamp = "mine", metav1.Unix(1, 0), new(metav1.Unix(2, 0))
		}},
		{"with a version", func(e *corev1.Event) { e.ResourceVersion = "5" }},
		{"with labels", func(e *corev1.Event) { e.Labels = map[string]string{"a": "b"} }},
		{"a wrong name", func(e *corev1.Event) { e.Name = "Not/A_Name" }},
		{"no name", func(e *corev1.Event) { e.Name = "" }},
		{"wrong labels", func(e *corev1.Event) { e.Labels = map[string]string{"a b": ""} }},
		{"too many finalizers", func(e *corev1.Event) {
			for i := range 1001 {
				e.Finalizers = append(e.Finalizers, fmt.Sprint("example.com/f", i))
			}
		}},
		{"about another namespace", func(e *corev1.Event) { e.InvolvedObject.Namespace = "default" }},
		{"of the newer form, not whole", func(e *corev1.Event) { e.EventTime = metav1.NowMicro() }},
		{"wrong managed fields", func(e *corev1.Event) {
			e.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Nothing"}}
		}},
		{"in a namespace that is not there", func(e *corev1.Event) {
			e.Namespace, e.InvolvedObject.Namespace = "nowhere", "nowhere"
		}},
		{"in a namespace that ends", func(e *corev1.Event) {
			e.Namespace, e.InvolvedObject.Namespace = ending,
				ending
		}},
		{"one that is there", func(e *corev1.Event) { e.Name = "there" }},
	}
	for name, client := range map[string]kubernetes.Interface{
		"json": s.Client, "protobuf": asProtobuf(t, s, servertest.Admin)} {
		t.Run(name, func(t *testing.T) {
			batch := &corev1.EventList{}
			for i, row := range rows {
				e := eventAbout(ns, fmt.Sprint(name, "-batch-", i))
				row.edit(&e)
				batch.Items = append(batch.Items, e)
			}
			answer, err := postEvents(t.Context(), client, batch)
			if err != nil {
				t.Fatalf("the batch: %v", err)
			}
			causes := map[string]metav1.StatusCause{}
			for _, cause := range answer.Details.Causes {
				causes[cause.Field] = cause
			}
			for i, row := range rows {
				single := eventAbout(batch.Items[i].Namespace, strings.Replace(batch.Items[i].Name, "-batch-",
					"-single-", 1))
				named := single.Name
				row.edit(&single)
				if batch.Items[i].Name != single.Name && !strings.Contains(single.Name, "-single-") {
					single.Name = named
				}
				want, err := client.CoreV1().Events(single.Namespace).Create(t.Context(), &single,
					metav1.CreateOptions{})
				cause, refused := causes[fmt.Sprintf("items[%d]", i)]
				if err != nil {
					status := err.(apierrors.APIStatus).Status()
					reason := string(status.Reason)
					if row.name == "in a namespace that ends" {
						reason = "NamespaceTerminating"
					}
					message := strings.ReplaceAll(cause.Message, "-batch-", "-single-")
					if !refused || string(cause.Type) != reason || message != status.Message {
						t.Errorf("%s: %+v\nwant %s: %s", row.name, cause, reason, status.Message)
					}
					continue
				}
				got, err := s.Client.CoreV1().Events(ns).Get(t.Context(), batch.Items[i].Name, metav1.GetOptions{})
				if refused || err != nil {
					t.Errorf("%s: %+v, %v, want it stored", row.name, cause, err)
					continue
				}
				if got, want := comparable(got), comparable(want); got != want {
					t.Errorf("%s:\n%s\nwant\n%s", row.name, got, want)
				}
			}
			want := fmt.Sprintf("%d of %d Events are stored", len(rows)-len(causes), len(rows))
			if answer.Message != want || answer.Code != http.StatusOK {
				t.Errorf("the answer is %d %q, want %q", answer.Code, answer.Message, want)
			}
		})
	}
}

// comparable is an Event without what differs from one create to the next.
func comparable(e *corev1.Event) string {
	e = e.DeepCopy()
	for i := range e.ManagedFields {
		e.ManagedFields[i].Time = nil
	}
	return fmt.Sprintf("%v %v %v %v, uid %d, created %v, version %v", e.Reason, e.InvolvedObject, e.Labels,
		e.ManagedFields, len(e.UID), e.CreationTimestamp.IsZero(), e.ResourceVersion != "")
}

// testEventBatchRights: a batch is for who may create Events everywhere.
func testEventBatchRights(t *testing.T, s *servertest.Server) {
	ns := s.Namespace(t, "batch-rights")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reporter"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}}}}
	if _, err := s.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	to := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reporter"}
	who := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "bob"}}
	bob := s.As(t, "bob")
	single := func(name string) error {
		_, err := bob.CoreV1().Events(ns).Create(t.Context(), new(eventAbout(ns, name)), metav1.CreateOptions{})
		return err
	}
	if _, err := s.Client.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reporter"}, RoleRef: to, Subjects: who},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "bob may create in one namespace", func(context.Context) string {
		if err := single("single"); err != nil && !apierrors.IsAlreadyExists(err) {
			return err.Error()
		}
		return ""
	})
	batch := &corev1.EventList{Items: []corev1.Event{eventAbout(ns, "batched")}}
	if _, err := postEvents(t.Context(), bob, batch); !apierrors.IsForbidden(err) {
		t.Errorf("a batch of who may create in one namespace: %v, want forbidden", err)
	}
	if _, err := s.Client.CoreV1().Events(ns).Get(t.Context(), "batched",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an Event of the refused batch: %v", err)
	}
	if _, err := s.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reporter"}, RoleRef: to, Subjects: who},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "bob may create everywhere", func(context.Context) string {
		if answer, err := postEvents(t.Context(), bob, batch); err != nil || len(answer.Details.Causes) > 0 {
			return fmt.Sprint(answer, err)
		}
		return ""
	})
}

// testNoEventBatch: a POST of anything else to that path is refused as it is to the paths of other kinds.
func testNoEventBatch(t *testing.T, s *servertest.Server) {
	other := s.Client.CoreV1().RESTClient().Post().AbsPath("/api/v1/configmaps").Body(&corev1.ConfigMapList{}).
		Do(t.Context()).Error()
	if !apierrors.IsMethodNotSupported(other) {
		t.Fatalf("a POST of ConfigMaps: %v", other)
	}
	for name, body := range map[string]any{
		"an Event":            new(eventAbout("default", "a")),
		"a list of Pods":      &corev1.PodList{},
		"Events of theirs":    &eventsv1.EventList{},
		"nothing":             []byte{},
		"no JSON":             []byte("{"),
		"a list without kind": []byte(`{"items": []}`),
		"an unknown kind":     []byte(`{"apiVersion": "v1", "kind": "Unknown"}`),
	} {
		for form, client := range map[string]kubernetes.Interface{
			"json": s.Client, "protobuf": asProtobuf(t, s, servertest.Admin)} {
			if _, err := postEvents(t.Context(), client, body); err == nil || err.Error() != other.Error() {
				t.Errorf("%s as %s: %v, want %v", name, form, err, other)
			}
		}
	}
	if _, err := postEvents(t.Context(), s.Client, []byte(
		`{"apiVersion": "v1", "kind": "EventList", "items": [{"count": "many"}]}`)); !apierrors.IsBadRequest(err) ||
		!strings.Contains(err.Error(), "items") {
		t.Errorf("a count that is no number: %v", err)
	}
	anonymous := s.ConfigAs("stranger")
	if _, err := postEvents(t.Context(), kubernetes.NewForConfigOrDie(anonymous),
		&corev1.EventList{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("an unknown token: %v", err)
	}
}

// testEventBatchBounds: a batch has an end by number and by size, and is refused as a whole beyond.
func testEventBatchBounds(t *testing.T, s *servertest.Server) {
	ns := s.Namespace(t, "batch-bounds")
	of := func(n int) *corev1.EventList {
		list := &corev1.EventList{}
		for i := range n {
			list.Items = append(list.Items, eventAbout(ns, fmt.Sprint("e", i)))
		}
		return list
	}
	long := of(2)
	long.Items[1].Message = strings.Repeat("x", 3<<20)
	client := asProtobuf(t, s, servertest.Admin)
	for _, row := range []struct {
		list *corev1.EventList
		want string
	}{
		{of(501), "items: a batch has at most 500 Events, not 501"},
		{long, "limit is 3145728"},
	} {
		if _, err := postEvents(t.Context(), client, row.list); !apierrors.IsRequestEntityTooLargeError(err) ||
			!strings.Contains(err.Error(), row.want) {
			t.Errorf("%v, want %s", err, row.want)
		}
	}
	if stored(t, s, ns) != "" {
		t.Errorf("stored of refused batches: %s", stored(t, s, ns))
	}
	if answer, err := postEvents(t.Context(), client, of(500)); err != nil ||
		answer.Message != "500 of 500 Events are stored" {
		t.Errorf("the greatest batch: %+v, %v", answer, err)
	}
	if n := len(strings.Fields(stored(t, s, ns))); n != 500 {
		t.Errorf("%d are stored, want 500", n)
	}
	if answer, err := postEvents(t.Context(), client, &corev1.EventList{}); err != nil ||
		answer.Message != "0 of 0 Events are stored" {
		t.Errorf("an empty batch: %+v, %v", answer, err)
	}
	none := of(1)
	none.Items[0].Namespace = ""
	answer, err := postEvents(t.Context(), client, none)
	if err != nil || len(answer.Details.Causes) != 1 || answer.Details.Causes[0].Type != "Invalid" ||
		!strings.Contains(answer.Details.Causes[0].Message, "metadata.namespace: Required value") {
		t.Errorf("without a namespace: %+v, %v", answer, err)
	}
}

func stored(t *testing.T, s *servertest.Server, namespace string) string {
	t.Helper()
	list, err := s.Client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list.Items {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

// testEventBatchOptions: the parameters of a create hold for each Event.
func testEventBatchOptions(t *testing.T, s *servertest.Server) {
	ns := s.Namespace(t, "batch-options")
	list := &corev1.EventList{Items: []corev1.Event{eventAbout(ns, "a")}}
	if answer, err := postEvents(t.Context(), s.Client, list, "dryRun=All"); err != nil ||
		len(answer.Details.Causes) > 0 ||
		stored(t, s, ns) != "" {
		t.Errorf("dry run: %+v, %v, stored %s", answer, err, stored(t, s, ns))
	}
	for _, wrong := range []string{"dryRun=Some", "fieldValidation=Never", "fieldManager=" + strings.Repeat("m", 129)} {
		if _, err := postEvents(t.Context(), s.Client, list, wrong); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want it invalid", wrong, err)
		}
	}
	list.Items[0].Name, list.Items[0].GenerateName = "", "generated-"
	if _, err := postEvents(t.Context(), s.Client, list, "fieldManager=somebody"); err != nil {
		t.Fatal(err)
	}
	found, err := s.Client.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(found.Items) != 1 || !strings.HasPrefix(found.Items[0].Name, "generated-") ||
		found.Items[0].ManagedFields[0].Manager != "somebody" {
		t.Errorf("with a generated name: %+v, %v", found, err)
	}
	unknown := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"EventList","items":[{"metadata":{"namespace":%q,"name":"u"},
		"involvedObject":{"namespace":%q},"unknown":1}]}`, ns, ns)
	if _, err := postEvents(t.Context(), s.Client, unknown, "fieldValidation=Strict"); !apierrors.IsBadRequest(err) ||
		!strings.Contains(err.Error(), `unknown field "items[0].unknown"`) {
		t.Errorf("strict: %v", err)
	}
	warnings := &recorder{}
	config := s.ConfigAs(servertest.Admin)
	config.WarningHandler = warnings
	if _, err := postEvents(t.Context(), kubernetes.NewForConfigOrDie(config), unknown); err != nil ||
		len(warnings.texts) != 1 || !strings.Contains(warnings.texts[0], `unknown field "items[0].unknown"`) {
		t.Errorf("warn: %v, %q", err, warnings.texts)
	}
	// Each change of an object has a version of its own, by which a watch goes on behind it.
	inOrder := &corev1.EventList{}
	for i := range 20 {
		e := eventAbout(ns, fmt.Sprintf("o%02d", i))
		e.InvolvedObject.UID = types.UID(fmt.Sprint("uid-", i%2))
		inOrder.Items = append(inOrder.Items, e)
	}
	if _, err := postEvents(t.Context(), s.Client, inOrder); err != nil {
		t.Fatal(err)
	}
	last, seen := map[types.UID]string{}, map[string]bool{}
	for _, e := range inOrder.Items {
		got, err := s.Client.CoreV1().Events(ns).Get(t.Context(), e.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		about, version := e.InvolvedObject.UID, fmt.Sprintf("%12s", got.ResourceVersion)
		if version <= last[about] || seen[version] {
			t.Errorf("%s is stored as %s, behind %s", e.Name, version, last[about])
		}
		last[about], seen[version] = version, true
	}
}

// TestEventBatchIsCut: a server that ends in the middle of a batch keeps what it has stored, and the same batch sent
// again adds what is missing and nothing twice.
func TestEventBatchIsCut(t *testing.T) {
	dir := t.TempDir()
	startChild(t, dir, "").kill() // the system's objects are made here
	list := &corev1.EventList{}
	for i := range 400 {
		e := eventAbout("default", fmt.Sprint("e", i))
		e.InvolvedObject.UID = types.UID(fmt.Sprint(i))
		list.Items = append(list.Items, e)
	}
	c := startChild(t, dir, "apiserver/store.create.after=10*off->crash")
	if answer, err := postEvents(t.Context(), c.client, list); err == nil {
		t.Fatalf("a server that died in the batch has answered %+v", answer)
	}
	again := startChild(t, dir, "").client
	before, err := again.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(before.Items) < 10 || len(before.Items) == 400 {
		t.Fatalf("%d Events after the restart, %v", len(before.Items), err)
	}
	answer, err := postEvents(t.Context(), again, list)
	if err != nil || len(answer.Details.Causes) != len(before.Items) {
		t.Fatalf("again: %+v, %v, want %d to be there", answer, err, len(before.Items))
	}
	for _, cause := range answer.Details.Causes {
		if cause.Type != metav1.CauseType(metav1.StatusReasonAlreadyExists) {
			t.Errorf("%+v", cause)
		}
	}
	after, err := again.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(after.Items) != 400 {
		t.Errorf("%d Events in the end, %v, want 400", len(after.Items), err)
	}
}

// testEventRecorder: what daemons record is stored, by batches if they may create Events everywhere and one by one if
// not.
func testEventRecorder(t *testing.T, s *servertest.Server) {
	ns := s.Namespace(t, "recorded")
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reporter"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}}}}
	if _, err := s.Client.RbacV1().Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Client.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reporter"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reporter"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ann"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "ann may create Events", func(ctx context.Context) string {
		_, err := s.As(t, "ann").CoreV1().Events(ns).Create(ctx, new(eventAbout(ns, "first")),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err.Error()
		}
		return ""
	})
	for _, user := range []string{servertest.Admin, "ann"} {
		pool, err := events.NewPool(client.ForDaemon(s.ConfigAs(user), user))
		if err != nil {
			t.Fatal(err)
		}
		recorder := pool.Recorder(scheme.Scheme, user, "node")
		about := func(i int) *corev1.ObjectReference {
			return &corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: fmt.Sprint(user, i),
				UID: types.UID(fmt.Sprint(user, i))}
		}
		for i := range 300 {
			recorder.Record(about(i), events.Normal("Tested", "by %s", user))
		}
		for range 4 {
			recorder.Record(about(0), events.Normal("Tested", "by %s", user))
		}
		recorder.Record(&corev1.ObjectReference{Kind: "Pod", Namespace: "nowhere", Name: "p"},
			events.Normal("Lost", "x"))
		servertest.Eventually(t, "the Events of "+user, func(ctx context.Context) string {
			list, err := s.Client.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "source=" + user})
			if err != nil {
				return err.Error()
			}
			counts, wrong := map[int32]int{}, ""
			for _, e := range list.Items {
				counts[e.Count]++
				if e.Source.Host != "node" || e.Message != "by "+user || e.ManagedFields[0].Manager != "keelson-"+user {
					wrong = e.String()
				}
			}
			if counts[1] != 299 || counts[5] != 1 || wrong != "" {
				return fmt.Sprint(counts, wrong)
			}
			return ""
		})
		pool.Stop()
	}
}
