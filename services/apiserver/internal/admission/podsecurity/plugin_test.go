package podsecurity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

// standing is a plugin over one namespace, "here", with these labels and Pods.
func standing(t testing.TB, file string, labels map[string]string, pods ...corev1.Pod) *Plugin {
	t.Helper()
	p, err := newPlugin([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	here := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "here", Labels: labels}}
	client := fake.NewClientset(here)
	factory := informers.NewSharedInformerFactory(client, time.Hour)
	if err := factory.Core().V1().Namespaces().Informer().GetStore().Add(here); err != nil {
		t.Fatal(err)
	}
	p.SetExternalKubeClientSet(client)
	p.SetExternalKubeInformerFactory(factory)
	p.SetPods(func(_ context.Context, namespace string) ([]corev1.Pod, error) {
		if namespace != "here" {
			return nil, fmt.Errorf("asked for the Pods of %q", namespace)
		}
		return pods, nil
	})
	if err := p.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	return p
}

// enforce are the labels of a namespace that enforces a level, of a version if one is given.
func enforce(level, version string) map[string]string {
	labels := map[string]string{"pod-security.kubernetes.io/enforce": level}
	if version != "" {
		labels["pod-security.kubernetes.io/enforce-version"] = version
	}
	return labels
}

// asked is a request about a resource of the namespace "here".
func asked(resource, subresource string, obj, old runtime.Object) admission.Attributes {
	kinds := map[string]string{"pods": "Pod", "deployments": "Deployment", "namespaces": "Namespace",
		"configmaps": "ConfigMap"}
	group := corev1.SchemeGroupVersion
	if resource == "deployments" {
		group = appsv1.SchemeGroupVersion
	}
	operation := admission.Create
	if old != nil {
		operation = admission.Update
	}
	name := "one"
	if resource == "namespaces" {
		name = "here"
	}
	return admission.NewAttributesRecord(obj, old, group.WithKind(kinds[resource]), "here", name,
		group.WithResource(resource), subresource, operation, nil, false, &user.DefaultInfo{Name: "ann"})
}

// told are the warnings of a request.
type told struct {
	mu    sync.Mutex // guards below
	texts []string
}

// AddWarning implements warning.Recorder.
func (w *told) AddWarning(_, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func validate(t testing.TB, p *Plugin, a admission.Attributes) ([]string, error) {
	t.Helper()
	var w told
	err := p.Validate(warning.WithWarningRecorder(t.Context(), &w), a, nil)
	return w.texts, err
}

// holding is a Pod that restricted allows.
func holding(change ...func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "here"}, Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "main", Image: "a", SecurityContext: tight()}},
	}}
	for _, c := range change {
		c(&pod.Spec)
	}
	return pod
}

// tight is what restricted wants of a container.
func tight() *corev1.SecurityContext {
	return &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
}

// The restrictions that Windows has nothing for are not asked of a Pod that says that it is for Windows.
//
// POD-036
func TestWindows(t *testing.T) {
	bare := func(os corev1.OSName) *corev1.Pod {
		return holding(func(s *corev1.PodSpec) {
			s.OS = &corev1.PodOS{Name: os}
			s.SecurityContext.SeccompProfile = nil
			s.Containers[0].SecurityContext = nil
		})
	}
	for name, row := range map[string]struct {
		version string
		os      corev1.OSName
		want    string
	}{
		"for Windows": {"", corev1.Windows, ""},
		"for Linux": {"", corev1.Linux, `allowPrivilegeEscalation != false (container "main" must set ` +
			`securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "main" must set ` +
			`securityContext.capabilities.drop=["ALL"]), seccompProfile (pod or container "main" must set ` +
			`securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`},
		"since v1.25":        {"v1.25", corev1.Windows, ""},
		"not before, v1.24":  {"v1.24", corev1.Windows, "allowPrivilegeEscalation != false"},
		"nor for Linux then": {"v1.25", corev1.Linux, "allowPrivilegeEscalation != false"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := validate(t, standing(t, "", enforce("restricted", row.version)),
				asked("pods", "", bare(row.os), nil))
			checkRefusal(t, err, row.want)
		})
	}
}

// checkRefusal wants a refusal that has the text, or none if that is empty.
func checkRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want a refusal because of %q", err, want)
	}
}

// A Pod in a user namespace may say that it runs as root, in each of eight fields. v1.35 of the standards is the first
// that says so.
//
// SAF-108
func TestUserNamespaces(t *testing.T) {
	ephemeral := func(s *corev1.PodSpec, asRoot *corev1.SecurityContext) {
		s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "debug", Image: "a", SecurityContext: asRoot}}}
	}
	initial := func(s *corev1.PodSpec, asRoot *corev1.SecurityContext) {
		s.InitContainers = []corev1.Container{{Name: "init", Image: "a", SecurityContext: asRoot}}
	}
	main := func(s *corev1.PodSpec, asRoot *corev1.SecurityContext) { s.Containers[0].SecurityContext = asRoot }
	rooted := func() *corev1.SecurityContext { c := tight(); c.RunAsNonRoot = ptr.To(false); return c }
	root := func() *corev1.SecurityContext { c := tight(); c.RunAsUser = ptr.To[int64](0); return c }
	for field, change := range map[string]func(*corev1.PodSpec){
		"securityContext.runAsNonRoot": func(s *corev1.PodSpec) {
			s.SecurityContext.RunAsNonRoot = ptr.To(false)
		},
		"securityContext.runAsUser": func(s *corev1.PodSpec) {
			s.SecurityContext.RunAsUser = ptr.To[int64](0)
		},
		"containers[*].securityContext.runAsNonRoot":      func(s *corev1.PodSpec) { main(s, rooted()) },
		"containers[*].securityContext.runAsUser":         func(s *corev1.PodSpec) { main(s, root()) },
		"initContainers[*].securityContext.runAsNonRoot":  func(s *corev1.PodSpec) { initial(s, rooted()) },
		"initContainers[*].securityContext.runAsUser":     func(s *corev1.PodSpec) { initial(s, root()) },
		"ephemeralContainers[*].securityContext.runAs...": func(s *corev1.PodSpec) { ephemeral(s, rooted()) },
		"ephemeralContainers[*].securityContext.runAsUser": func(s *corev1.PodSpec) {
			ephemeral(s, root())
		},
	} {
		t.Run(field, func(t *testing.T) {
			for _, row := range []struct {
				version   string
				hostUsers *bool
				want      string
			}{
				{"", ptr.To(false), ""},
				{"", ptr.To(true), `violates PodSecurity "restricted:latest": runAs`},
				{"", nil, `violates PodSecurity "restricted:latest": runAs`},
				{"v1.35", ptr.To(false), ""},
				{"v1.34", ptr.To(false), `violates PodSecurity "restricted:v1.34": runAs`},
			} {
				pod := holding(change, func(s *corev1.PodSpec) { s.HostUsers = row.hostUsers })
				_, err := validate(t, standing(t, "", enforce("restricted", row.version)),
					asked("pods", "", pod, nil))
				checkRefusal(t, err, row.want)
			}
		})
	}
}

// What is no Pod and holds none is not looked at, and neither are subresources that leave what a Pod is alone.
func TestOnlyPods(t *testing.T) {
	p := standing(t, "", enforce("restricted", ""))
	wrong := holding(func(s *corev1.PodSpec) { s.HostNetwork = true })
	changed := wrong.DeepCopy()
	changed.Spec.Containers[0].Image = "b"
	for name, row := range map[string]struct {
		a    admission.Attributes
		want string
	}{
		"a Pod":                        {asked("pods", "", wrong, nil), "host namespaces (hostNetwork=true)"},
		"another image":                {asked("pods", "", changed, wrong), "host namespaces (hostNetwork=true)"},
		"the same image":               {asked("pods", "", wrong, wrong), ""},
		"its status":                   {asked("pods", "status", changed, wrong), ""},
		"its node":                     {asked("pods", "binding", &corev1.Binding{}, nil), ""},
		"a size":                       {asked("pods", "resize", wrong, wrong), ""},
		"a container beside":           {asked("pods", "ephemeralcontainers", changed, wrong), "host namespaces"},
		"a subresource of the future":  {asked("pods", "remake", changed, wrong), "host namespaces"},
		"a ConfigMap":                  {asked("configmaps", "", &corev1.ConfigMap{}, nil), ""},
		"a Deployment, only warned of": {asked("deployments", "", deployed(wrong), nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := validate(t, p, row.a)
			checkRefusal(t, err, row.want)
		})
	}
}

func deployed(pod *corev1.Pod) *appsv1.Deployment {
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: pod.Spec}}}
}

// A label that enforces also warns of what is enforced; a label that warns takes its place.
func TestWarnings(t *testing.T) {
	wrong := holding(func(s *corev1.PodSpec) { s.HostNetwork = true })
	const text = `would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`
	for name, row := range map[string]struct {
		labels map[string]string
		a      admission.Attributes
		want   []string
	}{
		"a Deployment": {enforce("baseline", ""), asked("deployments", "", deployed(wrong), nil), []string{text}},
		"a Deployment that holds": {enforce("restricted", ""), asked("deployments", "", deployed(holding()), nil),
			nil},
		"a warned Pod": {map[string]string{"pod-security.kubernetes.io/warn": "baseline"},
			asked("pods", "", wrong, nil), []string{text}},
		"warnings of less than is enforced": {map[string]string{"pod-security.kubernetes.io/enforce": "baseline",
			"pod-security.kubernetes.io/warn": "privileged"}, asked("deployments", "", deployed(wrong), nil), nil},
		"nothing asked for": {nil, asked("deployments", "", deployed(wrong), nil), nil},
		"a size": {map[string]string{"pod-security.kubernetes.io/warn": "baseline"},
			asked("deployments", "scale", deployed(wrong), nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := validate(t, standing(t, "", row.labels), row.a)
			if err != nil || !slices.Equal(got, row.want) {
				t.Errorf("%q, %v, want %q", got, err, row.want)
			}
		})
	}
}

// A namespace whose labels ask for more is told which of its Pods would be refused now, and by how many of them.
func TestLabelsOfNamespace(t *testing.T) {
	namespace := func(labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "here", Labels: labels}}
	}
	named := func(name string, change ...func(*corev1.PodSpec)) corev1.Pod {
		pod := holding(change...)
		pod.Name = name
		return *pod
	}
	onHost := func(s *corev1.PodSpec) { s.HostNetwork = true }
	pods := []corev1.Pod{named("b", onHost), named("a", onHost), named("c"),
		named("d", onHost, func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.Privileged = ptr.To(true) })}
	refused := []string{`existing pods in namespace "here" violate the new PodSecurity enforce level "baseline:latest"`,
		"a (and 1 other pod): host namespaces", "d: host namespaces, privileged"}
	for name, row := range map[string]struct {
		labels, old map[string]string
		want        []string
		err         string
	}{
		"more":    {enforce("baseline", ""), nil, refused, ""},
		"less":    {enforce("baseline", ""), enforce("restricted", ""), nil, ""},
		"nothing": {nil, enforce("restricted", ""), nil, ""},
		"no level": {enforce("strict", ""), nil, nil, `metadata.labels[pod-security.kubernetes.io/enforce]: ` +
			`Invalid value: "strict": must be one of privileged, baseline, restricted`},
		"no version": {enforce("baseline", "1.25"), nil, nil, `must be "latest" or "v1.x"`},
		"no level before either, and another change": {map[string]string{
			"pod-security.kubernetes.io/enforce": "strict", "a": "b"}, enforce("strict", ""), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := validate(t, standing(t, "", nil, pods...),
				asked("namespaces", "", namespace(row.labels), namespace(row.old)))
			if !slices.Equal(got, row.want) {
				t.Errorf("%q, want %q", got, row.want)
			}
			if (err != nil) != (row.err != "") || err != nil && !strings.Contains(err.Error(), row.err) {
				t.Errorf("%v, want %q", err, row.err)
			}
		})
	}
	_, err := validate(t, standing(t, "", nil), asked("namespaces", "", namespace(enforce("strict", "")), nil))
	if !apierrors.IsInvalid(err) {
		t.Errorf("a new namespace: %v", err)
	}
}

// At most 3000 Pods are looked at when labels change, one of each owner before its others, for a second at most.
func TestManyPods(t *testing.T) {
	pods := make([]corev1.Pod, 3001)
	for i := range pods {
		pods[i] = *holding(func(s *corev1.PodSpec) { s.HostNetwork = true })
		pods[i].Name = fmt.Sprintf("p-%04d", i)
	}
	restrict := asked("namespaces", "",
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "here", Labels: enforce("baseline", "")}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "here"}})
	for n, want := range map[int]string{
		3000: `existing pods in namespace "here" violate the new PodSecurity enforce level "baseline:latest"`,
		3001: "new PodSecurity enforce level only checked against the first 3000 of 3001 existing pods",
	} {
		got, err := validate(t, standing(t, "", nil, pods[:n]...), restrict)
		if err != nil || len(got) == 0 || got[0] != want {
			t.Errorf("of %d Pods: %q, %v, want %q first", n, got, err, want)
		}
	}
	slow := standing(t, "", nil)
	slow.SetPods(func(ctx context.Context, _ string) ([]corev1.Pod, error) {
		deadline, bounded := ctx.Deadline()
		if left := time.Until(deadline); !bounded || left > time.Second {
			return nil, fmt.Errorf("%v are left", left)
		}
		return nil, nil
	})
	if got, err := validate(t, slow, restrict); err != nil || got != nil {
		t.Errorf("%q, %v, want reading of a second at most", got, err)
	}
	failing := standing(t, "", nil)
	failing.SetPods(func(context.Context, string) ([]corev1.Pod, error) { return nil, errors.New("no") })
	got, err := validate(t, failing, restrict)
	if want := []string{"failed to list pods while checking new PodSecurity enforce level"}; err != nil ||
		!slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

const head = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n"

// The file says what holds where there are no labels, and for whom nothing holds.
func TestConfiguration(t *testing.T) {
	wrong := asked("pods", "", holding(func(s *corev1.PodSpec) {
		s.HostNetwork, s.RuntimeClassName = true, ptr.To("jailed")
	}), nil)
	const baseline = head + "defaults: {enforce: baseline}\nexemptions: "
	for name, row := range map[string]struct {
		file   string
		labels map[string]string
		want   string
	}{
		"no file":      {"", nil, ""},
		"an empty one": {head, nil, ""},
		"a default":    {baseline + "{}", nil, `violates PodSecurity "baseline:latest"`},
		"a default's version": {head + "defaults: {enforce: baseline, " +
			"enforce-version: v1.30}", nil, `"baseline:v1.30"`},
		"a label before it":     {baseline + "{}", enforce("privileged", ""), ""},
		"an exempt user":        {baseline + "{usernames: [ann]}", nil, ""},
		"another user":          {baseline + "{usernames: [anna]}", nil, "violates PodSecurity"},
		"an exempt namespace":   {baseline + "{namespaces: [here]}", nil, ""},
		"another namespace":     {baseline + "{namespaces: [there]}", nil, "violates PodSecurity"},
		"an exempt runtime":     {baseline + "{runtimeClasses: [jailed]}", nil, ""},
		"another runtime class": {baseline + "{runtimeClasses: [jail]}", nil, "violates PodSecurity"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := validate(t, standing(t, row.file, row.labels), wrong)
			checkRefusal(t, err, row.want)
		})
	}
}

// What is wrong with the file is one line with its path.
func TestWrongConfiguration(t *testing.T) {
	for name, row := range map[string]struct{ file, want string }{
		"no kind": {"defaults: {}", `apiVersion: "", it must be "pod-security.admission.config.k8s.io/v1"`},
		"another kind": {strings.Replace(head, "Configuration", "Config", 1),
			`kind: "PodSecurityConfig", it must be "PodSecurityConfiguration"`},
		"a wrong field": {head + "defaults: {enfroce: baseline}",
			"defaults.enfroce: PodSecurityConfiguration has no such field"},
		"a wrong level": {head + "defaults: {enforce: strict}", `defaults.enforce: Invalid value: "strict": must be ` +
			`one of privileged, baseline, restricted`},
		"a wrong version": {head + "defaults: {warn-version: v2.0}", `defaults.warn-version: Invalid value: "v2.0": ` +
			`must be "latest" or "v1.x"`},
		"a namespace twice": {head + "exemptions: {namespaces: [a, a]}",
			`exemptions.namespaces[1]: Duplicate value: "a"`},
		"an empty user": {head + `exemptions: {usernames: [""]}`, `exemptions.usernames[0]: Invalid value: "": ` +
			`username must not be empty`},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check([]byte(row.file))
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want one line with %q", err, row.want)
			}
		})
	}
}

// BenchmarkUnlabelled is what each new Pod of a namespace without labels pays for the plugin.
func BenchmarkUnlabelled(b *testing.B) { benchmark(b, nil) }

// BenchmarkRestricted is what a Pod pays in a namespace that enforces the most.
func BenchmarkRestricted(b *testing.B) { benchmark(b, enforce("restricted", "")) }

func benchmark(b *testing.B, labels map[string]string) {
	p, a, ctx := standing(b, "", labels), asked("pods", "", holding(), nil), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Validate(ctx, a, nil); err != nil {
			b.Fatal(err)
		}
	}
}
