package podenv

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/downward"
)

func input(container corev1.Container) Input {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop",
			Annotations: map[string]string{"batch.kubernetes.io/job-completion-index": "2"}},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{container}},
	}
	return Input{
		View:      downward.View{Pod: pod, PodIPs: []string{"10.1.0.7"}, HostIPs: []string{"192.0.2.1"}},
		Container: &container,
		ConfigMaps: map[string]Object[corev1.ConfigMap]{
			"cm":     {Value: &corev1.ConfigMap{Data: map[string]string{"one": "1", "two": "2", "x.y": "dotted"}}},
			"broken": {Err: errors.New("connection refused")},
		},
		Secrets: map[string]Object[corev1.Secret]{
			"key": {Value: &corev1.Secret{Data: map[string][]byte{"password": []byte("hush"), "two": []byte("II")}}},
		},
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
	}
}

func values(result Result) map[string]string {
	out := map[string]string{}
	for _, variable := range result.Env {
		out[variable.Name] = variable.Value
	}
	return out
}

func from(source corev1.EnvVarSource) *corev1.EnvVarSource { return &source }

func configMapRef(name string, optional *bool) *corev1.ConfigMapEnvSource {
	return &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: optional}
}

func configMapKey(name, key string, optional *bool) *corev1.EnvVarSource {
	return from(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: optional}})
}

func secretKey(name, key string, optional *bool) *corev1.EnvVarSource {
	return from(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: optional}})
}

// POD-038, POD-191, SAF-109, SAF-110, SAF-112, SAF-118, SAF-119, JOB-049
func TestResolveAllSources(t *testing.T) {
	result, err := Resolve(input(corev1.Container{
		Command: []string{"/bin/app", "--index=$(JOB_COMPLETION_INDEX)", "$$(NAME)"},
		Args:    []string{"$(GREETING)", "$(NONE)"},
		EnvFrom: []corev1.EnvFromSource{
			{ConfigMapRef: configMapRef("cm", nil)},
			{Prefix: "S_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{
				Name: "key"}}},
			{ConfigMapRef: configMapRef("absent", ptr.To(true))},
		},
		Env: []corev1.EnvVar{
			{Name: "NAME",
				ValueFrom: from(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
					FieldPath: "metadata.name"}})},
			{Name: "GREETING", Value: "hello $(NAME) $(one) $(LATER)"},
			{Name: "LATER", Value: "x"},
			{Name: "two", Value: "overridden"},
			{Name: "JOB_COMPLETION_INDEX", ValueFrom: from(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
				FieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']"}})},
			{Name: "CPU",
				ValueFrom: from(corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{
					Resource: "limits.cpu"}})},
			{Name: "PASSWORD", ValueFrom: secretKey("key", "password", nil)},
			{Name: "FROM_MAP", ValueFrom: configMapKey("cm", "one", nil)},
			{Name: "UNSET", ValueFrom: configMapKey("cm", "absent", ptr.To(true))},
			{Name: "UNSET2", ValueFrom: secretKey("absent", "x", ptr.To(true))},
			{Name: "IP",
				ValueFrom: from(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}})},
			{Name: "EMPTY"},
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"one": "1", "two": "overridden", "x.y": "dotted", "S_password": "hush", "S_two": "II",
		"NAME": "web", "GREETING": "hello web 1 $(LATER)", "LATER": "x", "JOB_COMPLETION_INDEX": "2", "CPU": "4",
		"PASSWORD": "hush", "FROM_MAP": "1", "IP": "10.1.0.7", "EMPTY": "",
	}
	if got := values(result); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if want := []string{"/bin/app", "--index=2", "$(NAME)"}; !reflect.DeepEqual(result.Command, want) {
		t.Errorf("command %q, want %q", result.Command, want)
	}
	if want := []string{"hello web 1 x", "$(NONE)"}; result.Args[1] != want[1] ||
		result.Args[0] != "hello web 1 $(LATER)" {
		t.Errorf("args %q", result.Args)
	}
}

// POD-105: each wrong reference is one sentence.
func TestResolveErrors(t *testing.T) {
	for _, row := range []struct {
		name, want string
		container  corev1.Container
	}{
		{"missing config map", `configmap "absent" not found`,
			corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: configMapKey("absent", "k", nil)}}}},
		{"missing secret", `secret "absent" not found`,
			corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: secretKey("absent", "k", nil)}}}},
		{"missing key", "couldn't find key k in ConfigMap shop/cm",
			corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: configMapKey("cm", "k", nil)}}}},
		{"missing secret key", "couldn't find key k in Secret shop/key",
			corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: secretKey("key", "k", nil)}}}},
		{"missing envFrom", `configmap "absent" not found`,
			corev1.Container{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: configMapRef("absent", nil)}}}},
		{"optional does not hide a failed look-up", "connection refused",
			corev1.Container{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: configMapRef("broken", ptr.To(true))}}}},
		{"unknown field", "unsupported fieldPath: spec.nope",
			corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: from(corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nope"}})}}}},
		{"no source",
			"unsupported valueFrom: use fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef or fileKeyRef",
			corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{}}}}},
	} {
		if _, err := Resolve(input(row.container)); err == nil || err.Error() != row.want {
			t.Errorf("%s: got %v, want %s", row.name, err, row.want)
		}
	}
}

func TestResolveSkipsKeysThatCannotBeNames(t *testing.T) {
	in := input(corev1.Container{EnvFrom: []corev1.EnvFromSource{{Prefix: "a=", ConfigMapRef: configMapRef("cm",
		nil)}}})
	result, err := Resolve(in)
	if err != nil || len(result.Env) != 0 || len(result.Skipped) != 1 {
		t.Fatalf("got %+v, %v", result, err)
	}
	want := "Keys [a=one, a=two, a=x.y] from the EnvFrom ConfigMap shop/cm were skipped since they are considered " +
		"invalid environment variable names."
	if got := result.Skipped[0].Message("shop"); got != want {
		t.Errorf("got %q", got)
	}
}

func service(namespace, name, ip string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: ports}}
}

func services() []*corev1.Service {
	return []*corev1.Service{
		service("default", "kubernetes", "10.96.0.1", corev1.ServicePort{Name: "https", Port: 443}),
		service("default", "other", "10.96.0.2", corev1.ServicePort{Port: 80}),
		service("shop", "management", "10.96.0.3", corev1.ServicePort{Port: 80}, corev1.ServicePort{Name: "dns-udp",
			Port: 53, Protocol: corev1.ProtocolUDP}),
		service("shop", "headless", corev1.ClusterIPNone, corev1.ServicePort{Port: 80}),
		service("shop", "six-db", "fd00::5", corev1.ServicePort{Port: 5432, Protocol: corev1.ProtocolTCP}),
	}
}

// POD-192
func TestServiceVariables(t *testing.T) {
	in := input(corev1.Container{Env: []corev1.EnvVar{{Name: "URL",
		Value: "http://$(MANAGEMENT_SERVICE_HOST):$(MANAGEMENT_SERVICE_PORT)"}}})
	in.Services = services()
	result, err := Resolve(in)
	if err != nil {
		t.Fatal(err)
	}
	got := values(result)
	for name, want := range map[string]string{
		"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443",
		"KUBERNETES_SERVICE_PORT_HTTPS": "443",
		"KUBERNETES_PORT":               "tcp://10.96.0.1:443",
		"MANAGEMENT_SERVICE_HOST":       "10.96.0.3", "MANAGEMENT_SERVICE_PORT": "80",
		"MANAGEMENT_SERVICE_PORT_DNS_UDP": "53",
		"MANAGEMENT_PORT":                 "tcp://10.96.0.3:80", "MANAGEMENT_PORT_53_UDP": "udp://10.96.0.3:53",
		"MANAGEMENT_PORT_53_UDP_PROTO": "udp", "MANAGEMENT_PORT_53_UDP_PORT": "53",
		"MANAGEMENT_PORT_53_UDP_ADDR": "10.96.0.3",
		"SIX_DB_PORT":                 "tcp://[fd00::5]:5432", "URL": "http://10.96.0.3:80",
	} {
		if got[name] != want {
			t.Errorf("%s = %q, want %q", name, got[name], want)
		}
	}
	for _, name := range []string{"OTHER_SERVICE_HOST", "HEADLESS_SERVICE_HOST"} {
		if _, ok := got[name]; ok {
			t.Errorf("%s is set", name)
		}
	}
}

// POD-192: without links only the API server's Service is shown, and the namespace's own "kubernetes" wins over it.
func TestServiceLinksOff(t *testing.T) {
	in := input(corev1.Container{})
	in.Services = append(services(), service("shop", "kubernetes", "10.96.0.9", corev1.ServicePort{Port: 1}))
	result, _ := Resolve(in)
	if got := values(result)["KUBERNETES_SERVICE_HOST"]; got != "10.96.0.9" {
		t.Errorf("with links: %s", got)
	}
	in.Pod.Spec.EnableServiceLinks = ptr.To(false)
	result, _ = Resolve(in)
	got := values(result)
	if _, ok := got["MANAGEMENT_SERVICE_HOST"]; ok || got["KUBERNETES_SERVICE_HOST"] != "10.96.0.1" {
		t.Errorf("without links: %v", got)
	}
}

// Resolve is deterministic: the same input gives the same result in the same order, and the input is not changed.
func TestResolveIsDeterministic(t *testing.T) {
	in := input(corev1.Container{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: configMapRef("cm", nil)}},
		Env: []corev1.EnvVar{{Name: "B", Value: "1"}, {Name: "A", Value: "$(B)"}}})
	in.Services = services()
	before := in.Container.DeepCopy()
	one, _ := Resolve(in)
	for range 20 {
		if two, _ := Resolve(in); !reflect.DeepEqual(one, two) {
			t.Fatal("two calls differ")
		}
	}
	if !reflect.DeepEqual(before, in.Container) {
		t.Error("the input was changed")
	}
	if value, ok := one.Lookup("A"); value != "1" || !ok {
		t.Errorf("Lookup(A) = %q, %v", value, ok)
	}
}

// doubling returns variables each of which is twice the one before: from 16 bytes the n-th has 16 * 2^n.
func doubling(n int) []corev1.EnvVar {
	list := []corev1.EnvVar{{Name: "E0", Value: strings.Repeat("x", 16)}}
	for i := range n {
		list = append(list, corev1.EnvVar{Name: fmt.Sprintf("E%d", i+1), Value: fmt.Sprintf("$(E%d)$(E%d)", i, i)})
	}
	return list
}

// POD-038, POD-105: a container's environment, command and arguments have at most 1 MiB, and more is never built.
func TestResolveIsBounded(t *testing.T) {
	const mib = 1048576
	text := func(n int) string { return strings.Repeat("x", n) }
	repeat := func(n int, variable corev1.EnvVar) (list []corev1.EnvVar) {
		for i := range n {
			variable.Name = fmt.Sprintf("V%d", i)
			list = append(list, variable)
		}
		return list
	}
	for _, row := range []struct {
		name, want string
		container  corev1.Container
	}{
		{"the whole bound by one value", "", corev1.Container{Env: []corev1.EnvVar{{Name: "A", Value: text(mib - 3)}}}},
		{"one byte beyond it", "variable A", corev1.Container{Env: []corev1.EnvVar{{Name: "A", Value: text(mib - 2)}}}},
		{"the whole bound by args", "", corev1.Container{Command: []string{text(10)}, Args: []string{text(mib - 12)}}},
		{"one byte beyond it in args", "args[1]", corev1.Container{Args: []string{text(mib/2 - 1), text(mib / 2)}}},
		{"one byte beyond it in command", "command[1]",
			corev1.Container{Command: []string{text(mib/2 - 1), text(mib / 2)}}},
		{"doubled 15 times", "", corev1.Container{Env: doubling(14)}},
		{"doubled 40 times", "variable E15", corev1.Container{Env: doubling(40)}},
		{"doubled in an argument", "args[0]", corev1.Container{Env: doubling(14),
			Args: []string{text(9) + "$(E14)$(E14)$(E14)"}}},
		{"one name again and again", "variable A",
			corev1.Container{Env: slices.Repeat([]corev1.EnvVar{{Name: "A", Value: "$(A)" + text(1000)}}, 2000)}},
		{"one key again and again", "variable V",
			corev1.Container{Env: repeat(300_000, corev1.EnvVar{ValueFrom: configMapKey("cm", "x.y", nil)})}},
		{"one source again and again", "variable",
			corev1.Container{EnvFrom: slices.Repeat([]corev1.EnvFromSource{{ConfigMapRef: configMapRef("cm", nil)}},
				100_000)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.container.Name = "main"
			in := input(row.container)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Resolve(in)
			runtime.ReadMemStats(&after)
			if row.want == "" && err != nil {
				t.Fatal(err)
			}
			if row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want) ||
				!strings.Contains(err.Error(), "container main") ||
				!strings.Contains(err.Error(), "1048576 bytes")) {
				t.Fatalf("got %v, want it to name container main, %s and 1048576 bytes", err, row.want)
			}
			if made := after.TotalAlloc - before.TotalAlloc; made > 32*mib {
				t.Errorf("%d bytes were allocated", made)
			}
		})
	}
}
