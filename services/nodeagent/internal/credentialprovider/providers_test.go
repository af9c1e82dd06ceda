package credentialprovider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	credentialproviderv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"keelson.dev/services/nodeagent/internal/volume"
)

// world is a node whose plugins are functions.
type world struct {
	*testing.T
	*Providers
	// plugins are the plugins by name; each gets its request and returns the fields of its answer.
	plugins map[string]func(credentialproviderv1.CredentialProviderRequest) (map[string]any, error)

	mu       sync.Mutex // guards the fields below
	requests []credentialproviderv1.CredentialProviderRequest
	ok, bad  int
	accounts map[string]*corev1.ServiceAccount
	tokens   map[types.UID]int
	denied   error
}

// provider is an entry of the configuration; more are further fields.
func entry(name, images string, more ...string) string {
	text := fmt.Sprintf("\n- name: %s\n  matchImages: [%s]\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n"+
		"  defaultCacheDuration: 10m\n", name, images)
	for _, field := range more {
		text += "  " + field + "\n"
	}
	return text
}

const tokens = "tokenAttributes: {serviceAccountTokenAudience: reg, requireServiceAccount: %s, cacheType: %s%s}"

func newWorld(t *testing.T, entries ...string) *world {
	t.Helper()
	file := filepath.Join(t.TempDir(), "providers.yaml")
	if err := os.WriteFile(file, []byte(head+strings.Join(entries, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, accounts: map[string]*corev1.ServiceAccount{}, tokens: map[types.UID]int{},
		plugins: map[string]func(credentialproviderv1.CredentialProviderRequest) (map[string]any, error){}}
	p, err := Open(t.Context(), Config{Settings: Settings{Config: file, BinDir: "/bin"}, Log: zap.NewNop(), Accounts: w,
		Observer: w})
	if err != nil {
		t.Fatal(err)
	}
	p.run = w.run
	w.Providers = p
	return w
}

func (w *world) run(_ context.Context, c call) ([]byte, error) {
	var r credentialproviderv1.CredentialProviderRequest
	if err := json.Unmarshal(c.request, &r); err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.requests = append(w.requests, r)
	w.mu.Unlock()
	fields, err := w.plugins[c.name](r)
	if err != nil {
		return nil, err
	}
	whole := map[string]any{"kind": responseKind, "apiVersion": version}
	maps.Copy(whole, fields)
	return json.Marshal(whole)
}

func (w *world) PluginRan(_ string, _ time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ok {
		w.ok++
	} else {
		w.bad++
	}
}

func (w *world) ServiceAccount(_ context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if account := w.accounts[namespace+"/"+name]; account != nil {
		return account, nil
	}
	return nil, errors.New("no such account")
}

// ServiceAccountToken returns tokens that name what they are for.
func (w *world) ServiceAccountToken(_ context.Context, pod *corev1.Pod, audience string,
	lifetime time.Duration) (volume.Token, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.denied != nil {
		return volume.Token{}, w.denied
	}
	return volume.Token{Value: fmt.Sprintf("%s of %s for %s and %s, %d", pod.Spec.ServiceAccountName, pod.UID, audience,
		lifetime, w.tokens[pod.UID])}, nil
}

func (w *world) account(name, uid string, annotations map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accounts["ns/"+name] = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
		UID: types.UID(uid), Annotations: annotations}}
}

func podOf(uid, account string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: uid, UID: types.UID(uid)},
		Spec: corev1.PodSpec{ServiceAccountName: account}}
}

// get returns the users of the credentials for an image.
func (w *world) get(pod *corev1.Pod, image string) (string, error) {
	w.Helper()
	found, err := w.Credentials(w.Context(), pod, named(w.T, image))
	var users []string
	for _, c := range found {
		users = append(users, c.Username)
	}
	return strings.Join(users, " "), err
}

// expect checks the users of the credentials, and how often plugins ran for them.
func (w *world) expect(pod *corev1.Pod, image, users string, runs int) {
	w.Helper()
	before := w.ran()
	got, err := w.get(pod, image)
	if err != nil || got != users || w.ran()-before != runs {
		w.Errorf("%s for %s: %q, %v after %d runs; want %q after %d", image, pod.Name, got, err, w.ran()-before, users,
			runs)
	}
}

func (w *world) ran() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.requests)
}

// says makes a plugin answer with the same fields each time, and with one user for all images.
func (w *world) says(plugin, user string, fields map[string]any) {
	w.plugins[plugin] = func(credentialproviderv1.CredentialProviderRequest) (map[string]any, error) {
		all := map[string]any{"cacheKeyType": "Image", "auth": map[string]any{
			"*.io": map[string]string{"username": user}, "*.io:80": map[string]string{"username": user}}}
		maps.Copy(all, fields)
		return all, nil
	}
}

// An answer is kept for the images that its kind says, and as long as it says. (CredentialProviderResponse.cacheKeyType
// and cacheDuration, CredentialProvider.defaultCacheDuration.)
func TestWhatIsKept(t *testing.T) {
	p := podOf("p", "")
	for _, row := range []struct {
		kind  string
		lasts any
		// Whether there is a run for: the same image, another tag, another image there, another registry.
		runs [4]int
		life time.Duration
	}{
		{"Image", nil, [4]int{0, 0, 1, 1}, 10 * time.Minute},
		{"Registry", nil, [4]int{0, 0, 0, 1}, 10 * time.Minute},
		{"Global", nil, [4]int{0, 0, 0, 0}, 10 * time.Minute},
		{"Registry", "30s", [4]int{0, 0, 0, 1}, 30 * time.Second},
		{"Registry", "48h", [4]int{0, 0, 0, 1}, 48 * time.Hour},
		{"Registry", "0s", [4]int{1, 1, 1, 1}, 0},
		{"Global", "-1s", [4]int{1, 1, 1, 1}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, entry("one", "'*.io', '*.io:80'"))
			w.says("one", "u", map[string]any{"cacheKeyType": row.kind, "cacheDuration": row.lasts})
			w.expect(p, "reg.io/a:1", "u", 1)
			for i, image := range []string{"reg.io/a:1", "reg.io/a:2", "reg.io/b", "reg.io:80/a"} {
				w.expect(p, image, "u", row.runs[i])
			}
			if row.life == 0 {
				return
			}
			time.Sleep(row.life)
			w.expect(p, "reg.io/a:1", "u", 0)
			time.Sleep(time.Nanosecond)
			w.expect(p, "reg.io/a:1", "u", 1)
			w.expect(p, "reg.io/a:1", "u", 0)
			if w.bad > 0 || w.ok != w.ran() {
				t.Errorf("of %d runs %d are counted as good, %d as bad", w.ran(), w.ok, w.bad)
			}
		})
	}
}

// A plugin without credentials is believed too, and one for other images is not asked.
func TestNoCredentials(t *testing.T) {
	w := newWorld(t, entry("one", "'*.io'"))
	w.says("one", "", map[string]any{"auth": nil})
	w.expect(podOf("p", ""), "reg.io/a", "", 1)
	w.expect(podOf("p", ""), "reg.io/a", "", 0)
	w.expect(podOf("p", ""), "reg.com/a", "", 0)
	var none *Providers
	if got, err := none.Credentials(t.Context(), podOf("p", ""), named(t, "reg.io/a")); got != nil || err != nil {
		t.Errorf("no providers have %v, %v", got, err)
	}
	if got := none.Account(t.Context(), podOf("p", "a"), named(t, "reg.io/a")); got != nil {
		t.Errorf("no providers know the account %v", got)
	}
	none.Wait()
}

// All providers for an image are asked, and one that fails does not keep back what the others have. A failure is not
// kept.
func TestSeveralProviders(t *testing.T) {
	w := newWorld(t, entry("one", "'*.io'"), entry("two", "reg.io"), entry("three", "reg.io/b"),
		entry("four", "reg.io"))
	w.says("one", "1", nil)
	w.says("four", "4", map[string]any{"auth": map[string]any{"reg.io": map[string]string{"username": "4"},
		"reg.com": map[string]string{"username": "no"}}})
	w.plugins["two"] = func(credentialproviderv1.CredentialProviderRequest) (map[string]any, error) {
		return nil, errors.New("is broken")
	}
	got, err := w.get(podOf("p", ""), "reg.io/a")
	if got != "4 1" || fmt.Sprint(err) != `credential provider "two" is broken` || w.ran() != 3 || w.bad != 1 {
		t.Errorf("%q, %v after %d runs, of which %d are bad", got, err, w.ran(), w.bad)
	}
	w.says("two", "2", nil)
	w.expect(podOf("p", ""), "reg.io/a", "4 1 2", 1)

	w.says("four", "4", map[string]any{"auth": map[string]any{"reg.com": map[string]string{"username": "no"}}})
	w.plugins["three"] = func(credentialproviderv1.CredentialProviderRequest) (map[string]any, error) {
		return map[string]any{"kind": "Else"}, nil
	}
	got, err = w.get(podOf("p", ""), "reg.io/b")
	if want := `credential provider "three" printed kind "Else" of apiVersion ` +
		`"credentialprovider.kubelet.k8s.io/v1", it must be CredentialProviderResponse of ` +
		`credentialprovider.kubelet.k8s.io/v1; credential provider "four" printed credentials for other images ` +
		`only`; got != "1 2" || fmt.Sprint(err) != want {
		t.Errorf("%q, %v; want the error %s", got, err, want)
	}
}

// Of callers that would find each other's answers in memory, one runs the plugin; they share what it answers only if
// it is for them.
func TestOneRunAtATime(t *testing.T) {
	for name, row := range map[string]struct {
		first, kind string
		lasts       any
		images      []string
		runs        int
	}{
		"one image":                       {"", "Image", nil, []string{"reg.io/a", "reg.io/a:2", "reg.io/a"}, 1},
		"one image, nothing kept":         {"", "Image", "0s", []string{"reg.io/a", "reg.io/a:2", "reg.io/a"}, 1},
		"images of unknown kind":          {"", "Registry", nil, []string{"reg.io/a", "reg.io/b"}, 2},
		"one registry":                    {"Registry", "Registry", nil, []string{"reg.io/a", "reg.io/b"}, 1},
		"two registries":                  {"Registry", "Registry", nil, []string{"reg.io/a", "reg.io:80/a"}, 2},
		"all":                             {"Global", "Global", nil, []string{"reg.io/a", "reg.io:80/b", "x.io/c"}, 1},
		"another kind than before":        {"Global", "Image", nil, []string{"reg.io/a", "reg.io/a", "x.io/c"}, 2},
		"one registry, nothing kept":      {"Registry", "Registry", "0s", []string{"reg.io/a", "reg.io/b"}, 2},
		"a failure of one image":          {"Registry", "", nil, []string{"reg.io/a", "reg.io/a"}, 1},
		"a failure of one among others":   {"Registry", "", nil, []string{"reg.io/a", "reg.io/b"}, 2},
		"the same after another's answer": {"Global", "Image", nil, []string{"x.io/c", "reg.io/a", "reg.io/a"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, entry("one", "'*.io', '*.io:80'"))
				if row.first != "" {
					w.says("one", "u", map[string]any{"cacheKeyType": row.first, "cacheDuration": "0s"})
					w.expect(podOf("p", ""), "reg.io/a", "u", 1)
				}
				before := w.ran()
				w.plugins["one"] = func(r credentialproviderv1.CredentialProviderRequest) (map[string]any, error) {
					time.Sleep(time.Second)
					if row.kind == "" {
						return nil, errors.New(r.Image)
					}
					return map[string]any{"cacheKeyType": row.kind, "cacheDuration": row.lasts,
						"auth": map[string]any{"*.io": map[string]string{"username": r.Image},
							"*.io:80": map[string]string{"username": r.Image}}}, nil
				}
				var callers sync.WaitGroup
				for _, image := range row.images {
					callers.Go(func() {
						got, err := w.get(podOf("p", ""), image)
						own := named(t, image).Name()
						isOwn := got == own
						if row.kind == "" {
							isOwn = fmt.Sprint(err) == `credential provider "one" `+own
						}
						mayBeAnothers := row.lasts == nil && row.kind != "" && row.kind != "Image"
						if (got == "") != (row.kind == "") || !isOwn && !mayBeAnothers {
							t.Errorf("%s: %q, %v", image, got, err)
						}
					})
					synctest.Wait()
				}
				callers.Wait()
				if w.ran()-before != row.runs {
					t.Errorf("%d runs, want %d", w.ran()-before, row.runs)
				}
			})
		})
	}
}

// A caller that leaves ends no run: others wait for it. None waits for a run that nobody can end.
func TestCallersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, entry("one", "'*.io'"))
		w.plugins["one"] = func(credentialproviderv1.CredentialProviderRequest) (map[string]any, error) {
			time.Sleep(time.Second)
			return map[string]any{"cacheKeyType": "Image",
				"auth": map[string]any{"*.io": map[string]string{"username": "u"}}}, nil
		}
		ctx, leave := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		callers.Go(func() {
			if _, err := w.Credentials(ctx, podOf("p", ""), named(t, "reg.io/a")); !errors.Is(err, context.Canceled) {
				t.Errorf("one that left got the error %v", err)
			}
		})
		synctest.Wait()
		callers.Go(func() { w.expect(podOf("q", ""), "reg.io/a", "u", 0) })
		synctest.Wait()
		leave()
		callers.Wait()
		w.Wait()

		forever := make(chan struct{})
		w.plugins["one"] = func(credentialproviderv1.CredentialProviderRequest) (map[string]any, error) {
			<-forever
			return nil, errors.New("ended at last")
		}
		_, err := w.get(podOf("p", ""), "reg.io/b")
		if fmt.Sprint(err) != `credential provider "one" did not end within 1m0s` {
			t.Errorf("the error is %v", err)
		}
		close(forever)
		w.Wait()
	})
}

// However many there are, answers take no more than a bounded part of the memory.
func TestMostKept(t *testing.T) {
	w := newWorld(t, entry("one", "'*.io'"))
	w.says("one", "u", nil)
	for i := range mostKept + 1 {
		w.expect(podOf("p", ""), fmt.Sprintf("reg.io/a%d", i), "u", 1)
	}
	if n := len(w.kept.Keys()); n != mostKept {
		t.Errorf("%d answers are kept", n)
	}
	w.expect(podOf("p", ""), "reg.io/a0", "u", 1)
	if !slices.ContainsFunc(w.kept.Keys(), func(k any) bool { return k.(key).of == "reg.io/a0" }) {
		t.Error("the newest answer is not kept")
	}
}
