package servertest_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig/controller"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/followedfile/followedfiletest"
	"keelson.dev/services/apiserver/internal/servertest"
)

// Files are looked at every moment, not once a minute. No server of these tests follows one before.
func init() { controller.EncryptionConfigFileChangePollDuration = 50 * time.Millisecond }

const (
	password  = "correct horse battery staple"
	secretKey = "/registry/secrets/default/"
)

// rule says of some resources which providers encrypt them, the first one what is written.
func rule(resources string, providers ...string) string {
	text := fmt.Sprintf("- resources: [%s]\n  providers:\n", resources)
	for _, p := range providers {
		text += "  - " + p + "\n"
	}
	return text
}

// provider is a line of one that has a key, which its name determines.
func provider(kind, key string) string {
	secret := base64.StdEncoding.EncodeToString([]byte(fmt.Sprintf("%-32s", key)))
	return fmt.Sprintf("%s: {keys: [{name: %s, secret: %s}]}", kind, key, secret)
}

const (
	identity          = "identity: {}"
	configurationHead = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"
)

// encryptionFile writes an EncryptionConfiguration of rules.
func encryptionFile(t *testing.T, path string, rules ...string) {
	t.Helper()
	followedfiletest.Replace(t, path, configurationHead+"resources:\n"+strings.Join(rules, ""))
}

// encrypting is a store of one, and what makes a server keep it encrypted by rules.
func encrypting(t *testing.T, shared func(*inproc.Config), rules ...string) func(*inproc.Config) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	encryptionFile(t, path, rules...)
	return func(c *inproc.Config) {
		shared(c)
		c.Encryption.ConfigFile = path
	}
}

func createSecret(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name},
		StringData: map[string]string{"password": password}}
	if _, err := client.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating %s: %v", name, err)
	}
}

// readable wants each of the secrets as it was made.
func readable(t *testing.T, client kubernetes.Interface, names ...string) {
	t.Helper()
	for _, name := range names {
		got, err := client.CoreV1().Secrets("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || string(got.Data["password"]) != password {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// touch writes a secret as it is, and reports whether that changed what is stored.
func touch(t *testing.T, client kubernetes.Interface, name string) bool {
	t.Helper()
	before, err := client.CoreV1().Secrets("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	after, err := client.CoreV1().Secrets("default").Update(t.Context(), before, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("touching %s: %v", name, err)
	}
	return before.ResourceVersion != after.ResourceVersion
}

// touchSystem writes the Secrets of the server itself as they are.
func touchSystem(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	list, err := client.CoreV1().Secrets(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if _, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Update(t.Context(), &list.Items[i],
			metav1.UpdateOptions{}); err != nil {
			t.Fatalf("touching %s: %v", list.Items[i].Name, err)
		}
	}
}

// storedAs wants what lies at a key to begin so, and nothing of the object to be seen behind it.
func storedAs(t *testing.T, store servertest.RawStore, key, prefix string) {
	t.Helper()
	value := store.Get(t, key)
	if !strings.HasPrefix(value, prefix) {
		t.Errorf("%s lies there as %.40q, want %q", key, value, prefix)
	}
	if prefix == plain {
		return
	}
	if len(filepath.Base(key)) < 3 {
		t.Fatalf("%s: two bytes come up by chance in one of a hundred values that are encrypted", key)
	}
	for _, part := range []string{password, "password", "default", filepath.Base(key)} {
		if strings.Contains(value, part) {
			t.Errorf("%s shows %q", key, part)
		}
	}
}

// plain is how an object begins that is not encrypted.
const plain = "k8s\x00"

// TestEncryptedResources: each resource is encrypted by the rule that is for it, and is the same to clients.
func TestEncryptedResources(t *testing.T) {
	shared := servertest.SharedStore(t)
	s := servertest.Start(t, encrypting(t, shared,
		rule("secrets", provider("aescbc", "a"), identity),
		rule("configmaps", provider("aesgcm", "b"), identity),
		rule("serviceaccounts, leases.coordination.k8s.io", identity),
		rule("'*.apps'", provider("secretbox", "c"), identity),
		rule("'*.'", provider("secretbox", "d"), identity),
		rule("'*.*'", provider("aescbc", "e"), identity)))
	w, err := s.Client.CoreV1().Secrets("default").Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=hidden"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	createSecret(t, s.Client, "hidden")
	create(t, s.Client.CoreV1().ConfigMaps("default"), configMap("hidden", map[string]string{"password": password}))
	if _, err := s.Client.AppsV1().Deployments("default").Create(t.Context(), servertest.Deployment("hidden"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Client.CoreV1().Events("default").Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "hidden"},
		InvolvedObject: corev1.ObjectReference{Namespace: "default"}, Message: password},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	store := servertest.OpenRawStore(t, shared)
	for key, prefix := range map[string]string{
		"/registry/secrets/default/hidden":                                 "k8s:enc:aescbc:v1:a:",
		"/registry/configmaps/default/hidden":                              "k8s:enc:aesgcm:v1:b:",
		"/registry/apps/deployments/default/hidden":                        "k8s:enc:secretbox:v1:c:",
		"/registry/events/default/hidden":                                  "k8s:enc:secretbox:v1:d:",
		"/registry/namespaces/default":                                     "k8s:enc:secretbox:v1:d:",
		"/registry/rbac.authorization.k8s.io/clusterroles/admin":           "k8s:enc:aescbc:v1:e:",
		"/registry/scheduling.k8s.io/priorityclasses/system-node-critical": "k8s:enc:aescbc:v1:e:",
	} {
		storedAs(t, store, key, prefix)
	}
	readable(t, s.Client, "hidden")
	_, event := next(t, w)
	if got, ok := event.Object.(*corev1.Secret); !ok || string(got.Data["password"]) != password {
		t.Errorf("the watch brought %v", event.Object)
	}
	list, err := s.Client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=hidden"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Message != password {
		t.Errorf("the list holds %v, %v", list, err)
	}
}

// TestKeysAreRotated: a server with other providers reads what others have written, and writes by its first one what is
// touched, though nothing in it changes.
func TestKeysAreRotated(t *testing.T) {
	shared := servertest.SharedStore(t)
	store := servertest.OpenRawStore(t, shared)
	one, two, box := provider("aescbc", "one"), provider("aescbc", "two"), provider("secretbox", "box")
	made := []string{}
	for i, step := range []struct {
		providers []string
		prefix    string
	}{
		{nil, plain},
		{[]string{one, identity}, "k8s:enc:aescbc:v1:one:"},
		{[]string{two, one, identity}, "k8s:enc:aescbc:v1:two:"},
		{[]string{box, two}, "k8s:enc:secretbox:v1:box:"},
		{[]string{identity, box}, plain},
		{nil, plain},
	} {
		change := shared
		if step.providers != nil {
			change = encrypting(t, shared, rule("secrets", step.providers...))
		}
		s := servertest.Start(t, change)
		readable(t, s.Client, made...)
		touchSystem(t, s.Client)
		for _, name := range made {
			stale := !strings.HasPrefix(store.Get(t, secretKey+name), step.prefix)
			if touch(t, s.Client, name) != stale || touch(t, s.Client, name) {
				t.Errorf("step %d: %s was to be written anew once if it is stale, which it is: %t", i, name, stale)
			}
		}
		made = append(made, fmt.Sprintf("step-%d", i))
		createSecret(t, s.Client, made[i])
		for _, name := range made {
			storedAs(t, store, secretKey+name, step.prefix)
		}
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPatchEncryptsAnew: an empty patch is enough.
func TestPatchEncryptsAnew(t *testing.T) {
	shared := servertest.SharedStore(t)
	store := servertest.OpenRawStore(t, shared)
	before := servertest.Start(t, shared)
	createSecret(t, before.Client, "old")
	if err := before.Stop(); err != nil {
		t.Fatal(err)
	}
	s := servertest.Start(t, encrypting(t, shared, rule("secrets", provider("aesgcm", "key"), identity)))
	if _, err := s.Client.CoreV1().Secrets("default").Patch(t.Context(), "old", types.MergePatchType, []byte("{}"),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	storedAs(t, store, secretKey+"old", "k8s:enc:aesgcm:v1:key:")
	readable(t, s.Client, "old")
}

// TestUnreadableObjects: what no provider can read is named, keeps nothing else from being served, and can be given up.
func TestUnreadableObjects(t *testing.T) {
	shared := servertest.SharedStore(t)
	store := servertest.OpenRawStore(t, shared)
	config := encrypting(t, shared, rule("secrets", provider("aesgcm", "key"), identity))
	before := servertest.Start(t, config)
	for _, name := range []string{"damaged", "good", "moved", "scribbled"} {
		createSecret(t, before.Client, name)
	}
	if err := before.Stop(); err != nil {
		t.Fatal(err)
	}
	value := store.Get(t, secretKey+"damaged")
	store.Put(t, secretKey+"damaged", value[:len(value)-1]+string(value[len(value)-1]^1))
	store.Put(t, secretKey+"moved", store.Get(t, secretKey+"good")) // a secret is bound to its place
	store.Put(t, secretKey+"scribbled", "no object")

	s := servertest.Start(t, config)
	secrets := s.Client.CoreV1().Secrets("default")
	readable(t, s.Client, "good")
	create(t, s.Client.CoreV1().ConfigMaps("default"), configMap("another", nil))
	for _, name := range []string{"damaged", "moved", "scribbled"} {
		if _, err := secrets.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsInternalError(err) ||
			!strings.Contains(err.Error(), "/secrets/default/"+name) {
			t.Errorf("reading %s: %v", name, err)
		}
		if err := secrets.Delete(t.Context(), name, metav1.DeleteOptions{}); err == nil {
			t.Errorf("%s was deleted as any other", name)
		}
	}
	_, err := secrets.List(t.Context(), metav1.ListOptions{Limit: 500}) // as kubectl does
	named := fmt.Sprintf("%+v", err)
	if status, ok := err.(apierrors.APIStatus); ok && status.Status().Details != nil {
		named = fmt.Sprint(status.Status().Details.Causes)
	}
	for _, name := range []string{"damaged", "moved", "scribbled"} {
		if !strings.Contains(named, "/secrets/default/"+name) {
			t.Errorf("the list does not name %s: %v, of %s", name, err, named)
		}
	}
	yes := true
	for _, name := range []string{"damaged", "moved", "scribbled"} {
		if err := secrets.Delete(t.Context(), name, metav1.DeleteOptions{
			IgnoreStoreReadErrorWithClusterBreakingPotential: &yes}); err != nil {
			t.Errorf("giving up %s: %v", name, err)
		}
	}
	if err := secrets.Delete(t.Context(), "good", metav1.DeleteOptions{
		IgnoreStoreReadErrorWithClusterBreakingPotential: &yes}); err == nil {
		t.Error("a secret that can be read was given up")
	}
	servertest.Eventually(t, "the list", func(ctx context.Context) string {
		list, err := secrets.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		if len(list.Items) != 1 || list.Items[0].Name != "good" {
			return fmt.Sprint(list.Items)
		}
		return ""
	})
}

// TestEncryptionIsReloaded: a server takes another file as it runs, and keeps what it has while the file is wrong.
func TestEncryptionIsReloaded(t *testing.T) {
	shared := servertest.SharedStore(t)
	store := servertest.OpenRawStore(t, shared)
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	old, newer := provider("aescbc", "old"), provider("aescbc", "new")
	encryptionFile(t, path, rule("secrets", old, identity))
	s := servertest.Start(t, shared, func(c *inproc.Config) {
		c.Encryption.ConfigFile, c.Encryption.Reload = path, true
	})
	createSecret(t, s.Client, "first")
	storedAs(t, store, secretKey+"first", "k8s:enc:aescbc:v1:old:")

	errorsBefore := len(servertest.LibraryErrors())
	encryptionFile(t, path, rule("secrets", "aescbc: {keys: [{name: short, secret: c2hvcnQ=}]}"))
	servertest.Eventually(t, "the complaint", func(context.Context) string {
		for _, e := range servertest.LibraryErrors()[errorsBefore:] {
			if strings.Contains(fmt.Sprint(e.Message, e.ContextMap()),
				"resources[0].providers[0].aescbc.keys[0].secret") {
				return ""
			}
		}
		return "not in the log"
	})
	createSecret(t, s.Client, "second")
	storedAs(t, store, secretKey+"second", "k8s:enc:aescbc:v1:old:")

	encryptionFile(t, path, rule("secrets", newer, old, identity), rule("configmaps", newer, identity))
	servertest.Eventually(t, "the new key", func(context.Context) string {
		touch(t, s.Client, "first")
		if value := store.Get(t, secretKey+"first"); !strings.HasPrefix(value, "k8s:enc:aescbc:v1:new:") {
			return fmt.Sprintf("it lies there as %.40q", value)
		}
		return ""
	})
	readable(t, s.Client, "first", "second")
	create(t, s.Client.CoreV1().ConfigMaps("default"), configMap("later", nil))
	storedAs(t, store, "/registry/configmaps/default/later", "k8s:enc:aescbc:v1:new:")
	config := s.ConfigAs(servertest.Admin)
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	if status, body := answered(t.Context(), client, config.Host, "/readyz/kms-providers"); status != http.StatusOK {
		t.Errorf("the health check says %q", body)
	}
}

// TestWrongEncryption: what cannot be followed stops the start with one sentence, which shows no key.
func TestWrongEncryption(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) func(*inproc.Config) {
		path := writeConfig(t, dir, name, content)
		return func(c *inproc.Config) { c.Encryption.ConfigFile = path }
	}
	file := func(name string, rules ...string) func(*inproc.Config) {
		path := filepath.Join(dir, name)
		encryptionFile(t, path, rules...)
		return func(c *inproc.Config) { c.Encryption.ConfigFile = path }
	}
	const flag = "--encryption-provider-config: "
	at := flag + dir + "/"
	const short = "c2hvcnQ="
	for name, row := range map[string]struct {
		change func(*inproc.Config)
		want   string
	}{
		"missing": {func(c *inproc.Config) { c.Encryption.ConfigFile = filepath.Join(dir, "none") },
			flag + "stat "},
		"empty": {write("empty", ""),
			flag + "encryption provider configuration file \"" + dir + "/empty\" is empty"},
		"no YAML":       {write("text", "{"), flag + "error decoding"},
		"another kind":  {write("kind", "apiVersion: v1\nkind: Secret\n"), flag + "error decoding"},
		"unknown field": {write("field", configurationHead+"resource: []\n"), flag + "error decoding"},
		"no resources": {write("none-of-it", configurationHead+"resources: []\n"),
			at + "none-of-it: resources: Required value"},
		"short key": {file("short", rule("secrets", "aescbc: {keys: [{name: a, secret: "+short+"}]}")),
			at + "short: resources[0].providers[0].aescbc.keys[0].secret: Invalid value"},
		"short box": {file("box", rule("secrets", "secretbox: {keys: [{name: a, secret: "+short+"}]}")),
			at + "box: resources[0].providers[0].secretbox.keys[0].secret: Invalid value"},
		"no provider": {file("noprov", rule("secrets", "{}")), at + "noprov: resources[0].providers[0]: "},
		"masked": {file("masked", rule("'*.*'", identity), rule("secrets", identity)),
			at + "masked: resource \"secrets\" is masked by earlier rule \"*.*\""},
		"twice": {file("twice", rule("secrets, secrets", identity)),
			at + "twice: resources[0].resources: Invalid value"},
		"KMS by TCP": {file("tcp", rule("secrets", "kms: {apiVersion: v2, name: a, endpoint: 'http://127.0.0.1:1'}")),
			at + "tcp: resources[0].providers[0].kms.endpoint: Invalid value"},
		"a colon in the name of a KMS": {file("colon", rule("secrets",
			"kms: {apiVersion: v2, name: 'a:b', endpoint: 'unix:///x'}")),
			at + "colon: resources[0].providers[0].kms.name: Invalid value"},
		"KMS v1": {file("kmsv1", rule("secrets", "kms: {apiVersion: v1, name: a, endpoint: 'unix:///x'}")),
			at + "kmsv1: KMSv1 is deprecated"},
		"reload of nothing": {func(c *inproc.Config) { c.Encryption.Reload = true },
			"--encryption-provider-config-automatic-reload: needs --encryption-provider-config"},
	} {
		t.Run(name, func(t *testing.T) {
			config := servertest.NewConfig(t, t.TempDir())
			row.change(config)
			refusesToStart(t, config, row.want)
			if _, err := os.Stat(config.DataDir); err == nil {
				t.Error("the store was opened")
			}
		})
	}
}
