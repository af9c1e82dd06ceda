package authorizationconfig

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/server/options/authorizationconfig/metrics"

	"keelson.dev/services/apiserver/internal/followedfile"
	"keelson.dev/services/apiserver/internal/followedfile/followedfiletest"
)

// Files are looked at every moment, not once a minute.
func init() { followedfile.Interval = 50 * time.Millisecond }

// limit is how long a test waits for what must come.
const limit = 90 * time.Second

const (
	head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"
	rbac = "- {type: RBAC, name: rbac}\n"
	node = "- {type: Node, name: node}\n"
)

// hook is a webhook that is right, but for what is replaced in it. Its kubeconfig is path.
func hook(path string, replace ...string) string {
	text := `- type: Webhook
  name: hook.example.com
  webhook:
    timeout: 30s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: PATH}
    matchConditions: [{expression: "request.user != 'ann'"}]
`
	return strings.ReplaceAll(strings.NewReplacer(replace...).Replace(text), "PATH", path)
}

// TestWhatAFileMayHave: what is wrong is told in one line, with its path in the file.
func TestWhatAFileMayHave(t *testing.T) {
	dir := t.TempDir()
	kubeconfig, path := filepath.Join(dir, "hook.kubeconfig"), filepath.Join(dir, "authorization.yaml")
	followedfiletest.Replace(t, kubeconfig, "")
	for _, row := range []struct {
		name, text string
		// want is how the sentence goes on after the flag and the file; empty: the file is right.
		want string
	}{
		{"roles", head + rbac, ""},
		{"all that there is", head + node + rbac + hook(kubeconfig) + hook(kubeconfig, "hook.", "other.") +
			"- {type: AlwaysAllow, name: alwaysallow}\n- {type: AlwaysDeny, name: alwaysdeny}\n", ""},
		{"an older version", strings.ReplaceAll(head, "/v1", "/v1beta1") + rbac, ""},
		{"empty", "", "the file is empty"},
		{"nobody", head, "authorizers: Required value: at least one authorization mode must be defined"},
		{"an unknown field", head + "- {type: RBAC, name: rbac, x: 1}\n",
			`strict decoding error: unknown field "authorizers[0].x"`},
		{"an unknown type", head + "- {type: ABAC, name: abac}\n", `authorizers[0].type: Unsupported value: "ABAC": ` +
			`supported values: "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"`},
		{"one twice", head + rbac + rbac, `authorizers[1].type: Duplicate value: "RBAC"`},
		{"another name", head + "- {type: RBAC, name: roles}\n",
			`authorizers[0].name: Unsupported value: "roles": supported values: "rbac"`},
		{"a webhook without a name", head + hook(kubeconfig, "name: hook.example.com", "name: ''"),
			"authorizers[0].name: Required value"},
		{"a webhook's name twice", head + hook(kubeconfig) + hook(kubeconfig),
			`authorizers[1].name: Duplicate value: "hook.example.com"`},
		{"no time", head + hook(kubeconfig, "timeout: 30s", ""), "authorizers[0].webhook.timeout: Required value"},
		{"too much time", head + hook(kubeconfig, "30s", "30001ms"),
			`authorizers[0].webhook.timeout: Invalid value: "30.001s": must be > 0s and <= 30s`},
		{"no policy", head + hook(kubeconfig, "failurePolicy: NoOpinion", ""),
			"authorizers[0].webhook.failurePolicy: Required value"},
		{"an unknown policy", head + hook(kubeconfig, "NoOpinion", "Allow"),
			`authorizers[0].webhook.failurePolicy: Unsupported value: "Allow": supported values: "NoOpinion", `},
		{"an unknown version", head + hook(kubeconfig, "v1\n", "v2\n"),
			`[authorizers[0].webhook.subjectAccessReviewVersion: Unsupported value: "v2"`},
		{"a condition that is none", head + hook(kubeconfig, "request.user != 'ann'", "request.user"),
			`authorizers[0].webhook.matchConditions[0].expression: Invalid value: "request.user": must evaluate`},
		{"the apiserver itself", head + hook(kubeconfig, "{type: KubeConfigFile, kubeConfigFile: PATH}",
			"{type: InClusterConfig}"), `authorizers[0].webhook.connectionInfo.type: Unsupported value: ` +
			`"InClusterConfig": supported values: "KubeConfigFile"`},
		{"no kubeconfig", head + hook(kubeconfig+"x"),
			"authorizers[0].webhook.connectionInfo.kubeConfigFile: Invalid value"},
		{"a webhook of roles", head + hook(kubeconfig, "type: Webhook", "type: RBAC", "hook.example.com", "rbac"),
			"authorizers[0].webhook: Invalid value"},
	} {
		t.Run(row.name, func(t *testing.T) {
			followedfiletest.Replace(t, path, row.text)
			options := NewOptions()
			options.ConfigFile = path
			c, err := Open(options, Config{Log: zap.NewNop(),
				Use: func(*apiserver.AuthorizationConfiguration) error { return nil }})
			if err == nil {
				c.Close()
			}
			switch {
			case row.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case row.want != "" && (err == nil || !strings.HasPrefix(err.Error(),
				"--authorization-config: "+path+": "+row.want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("got %v\nwant %s", err, row.want)
			}
		})
	}
}

// TestFlags: which go together, and what is wrong with a value.
func TestFlags(t *testing.T) {
	const file, hook = "--authorization-config=f", "--authorization-webhook-config-file=f"
	const apart = "--authorization-config: not together with --authorization-mode or --authorization-webhook-*: what " +
		"these say stands in the file"
	const both = "--authorization-webhook-config-file: needs Webhook among --authorization-mode, and the reverse"
	for _, row := range []struct {
		flags []string
		want  string
	}{
		{nil, ""},
		{[]string{file}, ""},
		{[]string{"--authorization-mode=Node,RBAC,Webhook", hook}, ""},
		{[]string{"--authorization-mode=AlwaysAllow"}, ""},
		{[]string{"--authorization-mode=RBAC", hook}, both},
		{[]string{"--authorization-mode=RBAC,Webhook"}, both},
		{[]string{"--authorization-mode="}, "--authorization-mode: names at least one of Node, RBAC, Webhook, " +
			"AlwaysAllow, AlwaysDeny"},
		{[]string{"--authorization-mode=RBAC,ABAC"}, `--authorization-mode: "ABAC" is none of Node, RBAC, Webhook, ` +
			`AlwaysAllow, AlwaysDeny`},
		{[]string{"--authorization-mode=RBAC,RBAC"}, "--authorization-mode: RBAC stands there twice"},
		{[]string{"--authorization-webhook-version=v2"},
			`--authorization-webhook-version: "v2" is neither v1 nor v1beta1`},
		{[]string{"--authorization-webhook-cache-authorized-ttl=0"}, ""},
		{[]string{"--authorization-webhook-cache-authorized-ttl=-1s"},
			"--authorization-webhook-cache-authorized-ttl: -1s is less than 0s"},
		{[]string{"--authorization-webhook-cache-unauthorized-ttl=-1s"},
			"--authorization-webhook-cache-unauthorized-ttl: -1s is less than 0s"},
		{[]string{file, "--authorization-mode=Node,RBAC"}, apart},
		{[]string{file, "--authorization-webhook-version=v1"}, apart},
		{[]string{file, hook}, apart},
	} {
		options := NewOptions()
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		options.AddFlags(flags)
		if err := flags.Parse(row.flags); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, err := range options.Validate() {
			got = append(got, err.Error())
		}
		if strings.Join(got, "\n") != row.want {
			t.Errorf("%v: %q, want %q", row.flags, got, row.want)
		}
	}
}

// TestFlagsAsAFile: flags mean the same as Kubernetes' own.
func TestFlagsAsAFile(t *testing.T) {
	options := NewOptions()
	options.Modes = []string{RBAC, webhook, Node}
	options.Webhook.ConfigFile, options.Webhook.UnauthorizedTTL = "f", 0
	want := &apiserver.AuthorizationConfiguration{Authorizers: []apiserver.AuthorizerConfiguration{
		{Type: "RBAC", Name: "rbac"},
		{Type: "Webhook", Name: "default", Webhook: &apiserver.WebhookConfiguration{
			Timeout:       metav1.Duration{Duration: 30 * time.Second},
			AuthorizedTTL: metav1.Duration{Duration: 5 * time.Minute}, CacheAuthorizedRequests: true,
			SubjectAccessReviewVersion: "v1beta1", FailurePolicy: "NoOpinion",
			ConnectionInfo: apiserver.WebhookConnectionInfo{Type: "KubeConfigFile", KubeConfigFile: new("f")}}},
		{Type: "Node", Name: "node"},
	}}
	if got := options.configuration(); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// TestChangesOfTheFile: what can be followed is put in force, what cannot leaves in force what was, and is told. What
// the apiserver has started with stays.
func TestChangesOfTheFile(t *testing.T) {
	metrics.RegisterMetrics()
	path := filepath.Join(t.TempDir(), "authorization.yaml")
	followedfiletest.Replace(t, path, head+node+rbac)
	core, lines := observer.New(zap.ErrorLevel)
	options := NewOptions()
	options.ConfigFile = path
	used := make(chan int, 10)
	refuse := errors.New("away")
	c, err := Open(options, Config{Log: zap.New(core), Use: func(c *apiserver.AuthorizationConfiguration) error {
		if len(c.Authorizers) == 4 {
			return refuse
		}
		used <- len(c.Authorizers)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n := <-used; n != 2 {
		t.Fatalf("%d are in force at the start", n)
	}
	c.Follow()
	const allow, deny = "- {type: AlwaysAllow, name: alwaysallow}\n", "- {type: AlwaysDeny, name: alwaysdeny}\n"
	for _, row := range []struct{ text, want string }{
		{head + node, "authorizers: Required value: the type RBAC, with which the apiserver has started, stays"},
		{head + rbac + deny, "authorizers: Required value: the type Node, with which the apiserver has started, stays"},
		{"x", "it is no YAML object of the kind AuthorizationConfiguration"},
		{head + deny + node + rbac + allow, "away"},
	} {
		followedfiletest.Replace(t, path, row.text)
		err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, limit, true,
			func(context.Context) (bool, error) {
				all := lines.TakeAll()
				return slices.ContainsFunc(all, func(line observer.LoggedEntry) bool {
					return strings.HasPrefix(line.ContextMap()["error"].(string), path+": "+row.want)
				}), nil
			})
		if err != nil {
			t.Fatalf("not told: %s", row.want)
		}
		if len(used) > 0 {
			t.Errorf("%s: put in force", row.text)
		}
	}
	followedfiletest.Replace(t, path, head+deny+rbac+node)
	select {
	case n := <-used:
		if n != 3 {
			t.Errorf("%d are in force at the end", n)
		}
	case <-time.After(limit):
		t.Error("a file that is right is not in force")
	}
}
