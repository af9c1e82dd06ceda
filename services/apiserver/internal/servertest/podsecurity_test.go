package servertest_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	standards "k8s.io/pod-security-admission/test"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// TestPodSecurityStandards: the server passes the suite of k8s.io/pod-security-admission, which makes Pods and
// Deployments of each kind that a level of some version allows or not.
//
// POD-036 SAF-108
func TestPodSecurityStandards(t *testing.T) {
	s := servertest.Start(t)
	standards.Run(t, standards.Options{ClientConfig: s.ConfigAs(servertest.Admin)})
}

// enforcing are the labels of a namespace that enforces the level.
func enforcing(level string) map[string]string {
	return map[string]string{"pod-security.kubernetes.io/enforce": level}
}

// heard are the warnings of a client.
type heard struct {
	mu    sync.Mutex // guards below
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (h *heard) HandleWarningHeader(_ int, _ string, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts = append(h.texts, text)
}

// take returns what was heard since the last time.
func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() { h.texts = nil }()
	return h.texts
}

// listening is an administrator who hears warnings.
func listening(t *testing.T, s *servertest.Server) (kubernetes.Interface, *heard) {
	t.Helper()
	config, warnings := s.ConfigAs(servertest.Admin), &heard{}
	config.WarningHandler = warnings
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, warnings
}

// bare is a Pod that baseline allows, and restricted does not.
func bare(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "a"}}}}
}

func createPod(t *testing.T, client kubernetes.Interface, namespace string, pod *corev1.Pod) {
	t.Helper()
	if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating %s/%s: %v", namespace, pod.Name, err)
	}
}

func makeNamespace(t *testing.T, client kubernetes.Interface, name string, labels map[string]string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err := client.CoreV1().ServiceAccounts(name).Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// What runs before the labels come stays and is told of; from then on the subresources that add containers are held to
// the labels too, and those that do not are not.
func TestPodSecurityOfRunning(t *testing.T) {
	s := servertest.Start(t)
	client, warnings := listening(t, s)
	makeNamespace(t, client, "here", nil)
	pods := client.CoreV1().Pods("here")
	createPod(t, client, "here", bare("running"))
	warnings.take()
	patch := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	label := func(options metav1.PatchOptions) {
		t.Helper()
		_, err := client.CoreV1().Namespaces().Patch(t.Context(), "here", types.MergePatchType, patch, options)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{`existing pods in namespace "here" violate the new PodSecurity enforce level ` +
			`"restricted:latest"`,
			"running: allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, " +
				"seccompProfile"}
		if got := warnings.take(); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	label(metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	label(metav1.PatchOptions{})
	servertest.Eventually(t, "the label holds", func(ctx context.Context) string {
		_, err := pods.Create(ctx, bare("refused"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(),
			`pods "refused" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation`) {
			return fmt.Sprintf("it is not refused: %v", err)
		}
		return ""
	})
	running, err := pods.Get(t.Context(), "running", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	running.Labels = map[string]string{"a": "b"}
	if running, err = pods.Update(t.Context(), running, metav1.UpdateOptions{}); err != nil {
		t.Errorf("a label: %v", err)
	}
	debugged := running.DeepCopy()
	debugged.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.
		EphemeralContainerCommon{Name: "debug", Image: "a", ImagePullPolicy: corev1.PullAlways,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile}}}
	_, err = pods.UpdateEphemeralContainers(t.Context(), "running", debugged, metav1.UpdateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `containers "main", "debug" must set`) {
		t.Errorf("an ephemeral container: %v", err)
	}
	if _, err := pods.UpdateResize(t.Context(), "running", running, metav1.UpdateOptions{}); err != nil {
		t.Errorf("a resize: %v", err)
	}
	// A mirror of a static Pod is a Pod.
	mirror := bare("mirror")
	mirror.Spec.NodeName = "n"
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "a"}
	_, err = pods.Create(t.Context(), mirror, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "violates PodSecurity") {
		t.Errorf("a mirror: %v", err)
	}
}

// configured is a configuration of admission that says this of PodSecurity.
func configured(says string) string {
	return "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{name: PodSecurity, " +
		"configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, " + says +
		"}}]\n"
}

// The file's defaults hold in namespaces without labels, even in those that come with the server, and its exemptions
// only for those that it names; the audit log and the metrics show what was decided.
func TestPodSecurityConfigured(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "audit.log")
	s := servertest.Start(t, func(c *inproc.Config) {
		c.AdmissionControlConfigFile = writeConfig(t, dir, "admission.yaml", configured(
			"defaults: {enforce: baseline, audit: restricted}, exemptions: {namespaces: [exempt]}"))
		c.Audit.PolicyFile = writeConfig(t, dir, "policy.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\n"+
			"omitStages: [RequestReceived]\n"+
			"rules: [{level: Metadata, resources: [{resources: [pods]}]}, {level: None}]\n")
		c.Audit.LogOptions.Path = log
	})
	client, warnings := listening(t, s)
	makeNamespace(t, client, "here", nil)
	makeNamespace(t, client, "exempt", enforcing("restricted"))
	want := []string{`namespace "exempt" is exempt from Pod Security, and the policy ` +
		`(enforce=restricted:latest) will be ignored`}
	if got := warnings.take(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	onHost := bare("on-host")
	onHost.Spec.HostNetwork = true
	before := counted(t, s)
	_, err := client.CoreV1().Pods("here").Create(t.Context(), onHost, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `violates PodSecurity "baseline:latest": `+
		`host namespaces (hostNetwork=true)`) {
		t.Errorf("where the default holds: %v", err)
	}
	createPod(t, client, "here", bare("bare"))
	createPod(t, client, "exempt", onHost)
	after := counted(t, s)
	for _, counter := range []string{
		`pod_security_evaluations_total{decision="deny",mode="enforce",policy_level="baseline",policy_version="latest",` +
			`request_operation="create",resource="pod",subresource=""}`,
		`pod_security_exemptions_total{request_operation="create",resource="pod",subresource=""}`,
	} {
		if before[counter] == after[counter] {
			t.Errorf("%s was %q and is %q", counter, before[counter], after[counter])
		}
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	noted := map[string]map[string]string{}
	for _, event := range readAudit(t, log) {
		noted[event.ObjectRef.Namespace+" "+event.Verb+" "+event.ObjectRef.Name] = ofPodSecurity(event.Annotations)
	}
	violations := `would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "main" ` +
		`must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "main" must ` +
		`set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "main" must set ` +
		`securityContext.runAsNonRoot=true), seccompProfile (pod or container "main" must set ` +
		`securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`
	for request, want := range map[string]map[string]string{
		"here create bare":      {"enforce-policy": "baseline:latest", "audit-violations": violations},
		"exempt create on-host": {"exempt": "namespace"},
	} {
		if !maps.Equal(noted[request], want) {
			t.Errorf("%s: the log says %q, want %q", request, noted[request], want)
		}
	}
}

// ofPodSecurity are the annotations of the plugin, without the prefix of their keys.
func ofPodSecurity(annotations map[string]string) map[string]string {
	found := map[string]string{}
	for key, value := range annotations {
		if name, ok := strings.CutPrefix(key, "pod-security.kubernetes.io/"); ok {
			found[name] = value
		}
	}
	return found
}

// counted are the counters of Pod Security on the server.
func counted(t *testing.T, s *servertest.Server) map[string]string {
	t.Helper()
	all, err := s.Client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counters := map[string]string{}
	for line := range strings.Lines(string(all)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(name, "pod_security_") {
			counters[name] = value
		}
	}
	return counters
}

// What is wrong in the file stops the start with one sentence and its path.
func TestWrongPodSecurity(t *testing.T) {
	dir := t.TempDir()
	for name, row := range map[string]struct{ content, want string }{
		"a wrong level": {configured("defaults: {enforce: strict}"), "--admission-control-config-file: " +
			`plugins[0].configuration: defaults.enforce: Invalid value: "strict": must be one of privileged`},
		"a wrong field": {configured("default: {}"), "--admission-control-config-file: plugins[0].configuration: " +
			"default: PodSecurityConfiguration has no such field"},
		"another plugin": {strings.Replace(configured(""), "PodSecurity", "ImagePolicyWebhook", 1),
			"--admission-control-config-file: plugins[0].name: "},
		"no file": {"", "--admission-control-config-file: stat "},
	} {
		t.Run(name, func(t *testing.T) {
			config := servertest.NewConfig(t, t.TempDir())
			config.AdmissionControlConfigFile = filepath.Join(dir, "none")
			if row.content != "" {
				config.AdmissionControlConfigFile = writeConfig(t, dir, "admission.yaml", row.content)
			}
			refusesToStart(t, config, row.want)
		})
	}
}
