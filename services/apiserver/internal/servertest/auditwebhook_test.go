package servertest_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// auditReceiver takes batches of audit records by HTTPS.
type auditReceiver struct {
	*httptest.Server
	// arrived is told of each batch. It is answered at once, or, of a receiver that hangs, after release.
	arrived chan auditv1.EventList
	release func()
}

func startReceiver(t *testing.T, hangs bool) *auditReceiver {
	t.Helper()
	answer := make(chan struct{})
	r := &auditReceiver{arrived: make(chan auditv1.EventList, 1000),
		release: sync.OnceFunc(func() { close(answer) })}
	if !hangs {
		r.release()
	}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var list auditv1.EventList
		if err := json.NewDecoder(request.Body).Decode(&list); err != nil || list.Kind != "EventList" ||
			request.Method != http.MethodPost || request.Header.Get("Authorization") != "Bearer audit" {
			t.Errorf("%s of a %s, %v", request.Method, list.Kind, err)
		}
		r.arrived <- list
		<-answer
	}))
	t.Cleanup(r.Close)
	t.Cleanup(r.release)
	return r
}

// next is the next batch.
func (r *auditReceiver) next(t *testing.T) []auditv1.Event {
	t.Helper()
	select {
	case list := <-r.arrived:
		return list.Items
	case <-time.After(90 * time.Second):
		t.Fatal("no batch came")
		return nil
	}
}

// taken lets a server send what the policy asks for to the receiver.
func (r *auditReceiver) taken(t *testing.T, policy string, change func(*options.AuditWebhookOptions),
) func(*inproc.Config) {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, err := json.Marshal(clientcmdapi.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: "audit",
		Clusters: []clientcmdapi.NamedCluster{{Name: "audit", Cluster: clientcmdapi.Cluster{Server: r.URL + "/records",
			CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
				Bytes: r.Certificate().Raw})}}},
		AuthInfos: []clientcmdapi.NamedAuthInfo{{Name: "audit", AuthInfo: clientcmdapi.AuthInfo{Token: "audit"}}},
		Contexts: []clientcmdapi.NamedContext{{Name: "audit", Context: clientcmdapi.Context{Cluster: "audit",
			AuthInfo: "audit"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *inproc.Config) {
		c.Audit.PolicyFile = writeConfig(t, dir, "policy.yaml", policy)
		c.Audit.WebhookOptions.ConfigFile = writeConfig(t, dir, "receiver.yaml", string(kubeconfig))
		change(&c.Audit.WebhookOptions)
	}
}

// TestAuditWebhook: records come in full batches, and the last ones when the server ends; a record that is too large
// comes without what was written.
func TestAuditWebhook(t *testing.T) {
	r := startReceiver(t, false)
	s := servertest.Start(t, r.taken(t, auditPolicy, func(o *options.AuditWebhookOptions) {
		o.BatchOptions.BatchConfig.MaxBatchSize, o.BatchOptions.BatchConfig.MaxBatchWait = 5, time.Hour
		o.TruncateOptions.Enabled, o.TruncateOptions.TruncateConfig.MaxEventSize = true, 4<<10
	}))
	for i := range 6 {
		create(t, s.Client.CoreV1().ConfigMaps("default"), configMap(fmt.Sprintf("c%d", i),
			map[string]string{"k": fmt.Sprint(i)}))
	}
	create(t, s.Client.CoreV1().ConfigMaps("default"), configMap("c6", map[string]string{
		"k": strings.Repeat("long", 2<<10)}))
	records := r.next(t)
	if len(records) != 5 {
		t.Errorf("the first batch has %d records, want 5", len(records))
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	for len(records) < 7 { // the truncation may split a batch
		records = append(records, r.next(t)...)
	}
	for i, e := range records[:6] {
		var written corev1.ConfigMap
		if err := json.Unmarshal(e.RequestObject.Raw, &written); err != nil {
			t.Fatal(err)
		}
		if e.ObjectRef.Name != fmt.Sprintf("c%d", i) || written.Data["k"] != fmt.Sprint(i) ||
			e.User.Username != "admin" {
			t.Errorf("record %d is of %s by %s, with %v", i, e.ObjectRef.Name, e.User.Username, written.Data)
		}
	}
	if large := records[6]; large.ObjectRef.Name != "c6" || large.RequestObject != nil ||
		large.Annotations["audit.k8s.io/truncated"] != "true" {
		t.Errorf("the large record: %+v", large)
	}
}

// TestAuditReceiverThatHangs: in batches, a receiver that takes a record and says nothing keeps no client waiting, even
// when there is no more room for records.
func TestAuditReceiverThatHangs(t *testing.T) {
	r := startReceiver(t, true)
	s := servertest.Start(t, r.taken(t, auditPolicy, func(o *options.AuditWebhookOptions) {
		o.BatchOptions.BatchConfig.MaxBatchSize, o.BatchOptions.BatchConfig.BufferSize = 1, 3
		o.BatchOptions.BatchConfig.AsyncDelegate = false // one batch at a time, so that the room is used up
	}))
	create(t, s.Client.CoreV1().ConfigMaps("default"), configMap("first", nil))
	r.next(t)
	for i := range 20 {
		create(t, s.Client.CoreV1().ConfigMaps("default"), configMap(fmt.Sprintf("c%d", i), nil))
	}
	r.release()
	if got := r.next(t); got[0].ObjectRef.Name != "c0" {
		t.Errorf("after the first came %s", got[0].ObjectRef.Name)
	}
}

// TestAuditReceiverIsDown: by the mode, records are lost, or with them what they are about.
func TestAuditReceiverIsDown(t *testing.T) {
	everyStage := strings.ReplaceAll(auditPolicy, "omitStages: [RequestReceived]", "")
	for mode, refused := range map[string]bool{options.ModeBatch: false, options.ModeBlocking: false,
		options.ModeBlockingStrict: true} {
		t.Run(mode, func(t *testing.T) {
			r := startReceiver(t, false)
			r.Close()
			s := servertest.Start(t, r.taken(t, everyStage, func(o *options.AuditWebhookOptions) {
				o.BatchOptions.Mode, o.InitialBackoff = mode, time.Millisecond
			}))
			_, err := s.Client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("c", nil),
				metav1.CreateOptions{})
			if (err != nil) != refused {
				t.Errorf("creating: %v", err)
			}
		})
	}
}

// TestAuditBlocks: in the mode that waits, a request goes on when the receiver has its record.
func TestAuditBlocks(t *testing.T) {
	r := startReceiver(t, true)
	s := servertest.Start(t, r.taken(t, strings.ReplaceAll(auditPolicy, "omitStages: [RequestReceived]",
		"omitStages: [ResponseComplete]"), func(o *options.AuditWebhookOptions) {
		o.BatchOptions.Mode = options.ModeBlocking
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var created error
	var wait sync.WaitGroup
	wait.Go(func() {
		_, created = s.Client.CoreV1().ConfigMaps("default").Create(ctx, configMap("c", nil), metav1.CreateOptions{})
	})
	r.next(t)
	_, err := s.As(t, servertest.Admin).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Errorf("a request without a record waits too: %v", err)
	}
	unrecorded, err := kubernetes.NewForConfig(s.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	list, err := unrecorded.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=c"})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("the ConfigMap was made before its record was taken: %v, %v", list, err)
	}
	r.release()
	if wait.Wait(); created != nil {
		t.Errorf("creating: %v", created)
	}
}
