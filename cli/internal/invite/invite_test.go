package invite

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapsecrets "k8s.io/cluster-bootstrap/util/secrets"
	"sigs.k8s.io/yaml"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/manifest"
	"keelson.dev/cli/internal/plan"
)

func input(t *testing.T) Input {
	t.Helper()
	pods, err := plan.ParseRange("10.244.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	services, err := plan.ParseRange("10.96.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	return Input{Server: "https://192.0.2.1:6443", CA: []byte("the \"CA\"\n"), Settings: plan.NodeSettings{
		Pod: pods, Service: services, PodNetwork: plan.Routes, ServiceProxy: plan.NFTables, DNS: plan.CoreDNS,
		Domain: plan.DefaultDomain, VXLAN: 9}}
}

// objects are what is applied, by kind and name; a field that the API does not know fails the test.
func objects(t *testing.T) map[string]any {
	t.Helper()
	values, err := input(t).values()
	if err != nil {
		t.Fatal(err)
	}
	all, err := manifest.Render("test", template, values)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]any{}
	for _, object := range all {
		text, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		into := map[string]any{"ConfigMap": &corev1.ConfigMap{}, "Role": &rbacv1.Role{},
			"RoleBinding": &rbacv1.RoleBinding{}, "ClusterRole": &rbacv1.ClusterRole{},
			"ClusterRoleBinding": &rbacv1.ClusterRoleBinding{}}[object.GetKind()]
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
		known[object.GetKind()+" "+object.GetName()] = into
	}
	return known
}

// A client with a token may request a node's certificate and read the settings of nodes, nodes may renew their own
// certificates, and every client may read cluster-info. No other client gets any right.
func TestWhoMayWhat(t *testing.T) {
	const joins, renews, reads = "Group " + Group, "Group system:nodes", "User system:anonymous"
	want := map[string]string{
		"ClusterRole system:node-bootstrapper":                                             joins,
		"ClusterRole system:certificates.k8s.io:certificatesigningrequests:nodeclient":     joins,
		"ClusterRole system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": renews,
		"ClusterRole keelson:get-nodes":                                                    joins,
		"Role keelson:nodes-config":                                                        joins,
		"Role keelson:cluster-info":                                                        reads,
	}
	all := objects(t)
	if len(all) != 11 {
		t.Errorf("%d objects, want 11", len(all))
	}
	check := func(ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		role := ref.Kind + " " + ref.Name
		if len(subjects) != 1 || subjects[0].Kind+" "+subjects[0].Name != want[role] {
			t.Errorf("%s is given to %v, want %s", role, subjects, want[role])
		}
		delete(want, role)
	}
	for _, object := range all {
		switch binding := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			check(binding.RoleRef, binding.Subjects)
		case *rbacv1.RoleBinding:
			check(binding.RoleRef, binding.Subjects)
		case *rbacv1.Role:
			if rule := binding.Rules[0]; len(binding.Rules) != 1 || len(rule.ResourceNames) != 1 ||
				strings.Join(rule.Verbs, " ") != "get" || strings.Join(rule.Resources, " ") != "configmaps" {
				t.Errorf("%s allows %v", binding.Name, binding.Rules)
			}
		case *rbacv1.ClusterRole:
			if rule := binding.Rules[0]; len(binding.Rules) != 1 || strings.Join(rule.Verbs, " ") != "get" ||
				strings.Join(rule.Resources, " ") != "nodes" {
				t.Errorf("%s allows %v", binding.Name, binding.Rules)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("nobody is given %v", want)
	}
}

// Text with any characters is read as it was written.
func TestWhatMachinesRead(t *testing.T) {
	all, in := objects(t), input(t)
	config, err := clientcmd.Load([]byte(all["ConfigMap cluster-info"].(*corev1.ConfigMap).Data["kubeconfig"]))
	if err != nil || len(config.Clusters) != 1 || len(config.AuthInfos) > 0 ||
		config.Clusters[""].Server != in.Server ||
		string(config.Clusters[""].CertificateAuthorityData) != string(in.CA) {
		t.Errorf("cluster-info says %+v, %v", config, err)
	}
	got, err := plan.ParseNodeSettings(all["ConfigMap keel-config"].(*corev1.ConfigMap).Data["nodes"])
	if got.Version = 0; err != nil || got != in.Settings {
		t.Errorf("the settings are %+v, %v", got, err)
	}
}

// A token is believed and signs until it expires, by the rules of the library that the apiserver judges by.
func TestSecretOf(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 500, time.FixedZone("", 3600))
	token := discovery.Token{ID: "abcdef", Secret: "0123456789abcdef"}
	for life, expired := range map[time.Duration]bool{0: false, time.Hour: true} {
		secret := secretOf(token, life, "for me", now)
		secret.Data = map[string][]byte{}
		for key, value := range secret.StringData {
			secret.Data[key] = []byte(value)
		}
		if id, ok := bootstrapsecrets.ParseName(secret.Name); !ok || id != token.ID {
			t.Errorf("its name is %s", secret.Name)
		}
		groups, err := bootstrapsecrets.GetGroups(secret)
		if err != nil || len(groups) != 2 || groups[1] != Group {
			t.Errorf("it stands for %v, %v", groups, err)
		}
		if bootstrapsecrets.HasExpired(secret, now.Add(time.Hour-2*time.Second)) ||
			bootstrapsecrets.HasExpired(secret, now.Add(time.Hour+time.Second)) != expired {
			t.Errorf("good for %v, it expires %s", life, secret.Data["expiration"])
		}
	}
}

func TestList(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	secret := func(id string, more ...string) corev1.Secret {
		data := map[string][]byte{"token-id": []byte(id), "token-secret": []byte("0123456789abcdef")}
		for i := 0; i < len(more); i += 2 {
			data[more[i]] = []byte(more[i+1])
		}
		return corev1.Secret{Data: data}
	}
	got := list([]corev1.Secret{
		secret("dddddd", "expiration", "soon"),
		secret("cccccc", "expiration", "2026-11-27T12:00:00Z"),
		secret("bbbbbb", "expiration", "2026-11-28T12:00:00Z", "usage-bootstrap-signing", "true",
			"usage-bootstrap-authentication", "false", "description", "d", "auth-extra-groups", "g"),
		secret("aaaaaa", "usage-bootstrap-signing", "true", "usage-bootstrap-authentication", "true"),
	}, now)
	want := []Listed{
		{"aaaaaa.0123456789abcdef", "<forever>", "<never>", "authentication,signing", "", ""},
		{"bbbbbb.0123456789abcdef", "1d", "2026-11-28T12:00:00Z", "signing", "g", "d"},
		{"cccccc.0123456789abcdef", "<expired>", "2026-11-27T12:00:00Z", "", "", ""},
		{"dddddd.0123456789abcdef", "<invalid>", "soon", "", "", ""},
	}
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
}

func TestCheckLife(t *testing.T) {
	for life, good := range map[time.Duration]bool{0: true, time.Second: true, time.Second - 1: false, -1: false} {
		if err := CheckLife(life); (err == nil) != good {
			t.Errorf("%v: %v", life, err)
		}
	}
}

func TestParseTokenID(t *testing.T) {
	for text, want := range map[string]string{"abcdef": "abcdef", "abcdef.0123456789abcdef": "abcdef", "abcde": "",
		"abcdef.": "", "abcdef/": "", "": ""} {
		if got, err := ParseTokenID(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
