package credentialprovider

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	credentialproviderv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// Plugins that ask for it get a token of the Pod and the account's annotations; what they answer is kept for that
// account, or for that token alone. (ServiceAccountTokenAttributes.)
func TestTokens(t *testing.T) {
	role := ", requiredServiceAccountAnnotationKeys: [x.io/role], optionalServiceAccountAnnotationKeys: [x.io/team]"
	for _, cacheType := range []string{"ServiceAccount", "Token"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, entry("one", "'*.io'", fmt.Sprintf(tokens, "true", cacheType, role)))
			w.plugins["one"] = func(r credentialproviderv1.CredentialProviderRequest) (map[string]any, error) {
				return map[string]any{"cacheKeyType": "Global",
					"auth": map[string]any{"*.io": map[string]string{"username": r.ServiceAccountToken}}}, nil
			}
			w.account("a", "1", map[string]string{"x.io/role": "r", "x.io/other": "o"})
			w.account("b", "2", map[string]string{"x.io/role": "", "x.io/team": "t"})
			const tokenOfP = "a of p for reg and 1h0m0s, 0"
			w.expect(podOf("p", "a"), "reg.io/a", tokenOfP, 1)
			first := w.requests[0]
			if first.ServiceAccountToken != tokenOfP || first.Image != "reg.io/a" || first.APIVersion != version ||
				first.Kind != "CredentialProviderRequest" ||
				fmt.Sprint(first.ServiceAccountAnnotations) != "map[x.io/role:r]" {
				t.Errorf("the request is %+v", first)
			}
			w.expect(podOf("p", "a"), "reg.io/b", tokenOfP, 0)
			if cacheType == "Token" {
				w.expect(podOf("q", "a"), "reg.io/a", "a of q for reg and 1h0m0s, 0", 1)
				w.tokens["p"]++
				w.expect(podOf("p", "a"), "reg.io/a", "a of p for reg and 1h0m0s, 1", 1)
			} else {
				w.expect(podOf("q", "a"), "reg.io/a", tokenOfP, 0)
			}
			w.expect(podOf("r", "b"), "reg.io/a", "b of r for reg and 1h0m0s, 0", 1)
			if last := w.requests[len(w.requests)-1]; len(last.ServiceAccountAnnotations) != 2 {
				t.Errorf("the request has %v", last.ServiceAccountAnnotations)
			}
			w.account("b", "2", map[string]string{"x.io/role": "", "x.io/team": "other"})
			w.expect(podOf("r", "b"), "reg.io/a", "b of r for reg and 1h0m0s, 0", 1)
			w.account("b", "3", map[string]string{"x.io/role": "", "x.io/team": "other"}) // created again
			w.expect(podOf("r", "b"), "reg.io/a", "b of r for reg and 1h0m0s, 0", 1)
			w.expect(podOf("static", ""), "reg.io/a", "", 0)

			before := w.ran()
			w.account("bare", "4", map[string]string{"x.io/team": "t"})
			for pod, want := range map[*corev1.Pod]string{
				podOf("s", "bare"): `requires the annotation "x.io/role", which the service account ns/bare lacks`,
				podOf("s", "none"): "cannot be given the service account: no such account",
			} {
				got, err := w.get(pod, "reg.io/a")
				if got != "" || fmt.Sprint(err) != `credential provider "one" `+want {
					t.Errorf("account %s: %q, %v", pod.Spec.ServiceAccountName, got, err)
				}
			}
			w.denied = errors.New("not authorized")
			if _, err := w.get(podOf("q", "b"), "reg.io/a"); fmt.Sprint(err) !=
				`credential provider "one" cannot be given a token for the audience "reg": not authorized` {
				t.Errorf("without a token: %v", err)
			}
			if w.ran() != before {
				t.Errorf("the plugin ran %d times without what it requires", w.ran()-before)
			}
		})
	}
}

// Answers that may not be kept are not shared by Pods of one account, even if they ask at the same time.
func TestTokensAreNotShared(t *testing.T) {
	for lasts, runs := range map[string]int{"0s": 2, "1m": 1} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, entry("one", "'*.io'", fmt.Sprintf(tokens, "true", "ServiceAccount", "")))
			w.account("a", "1", nil)
			w.plugins["one"] = func(r credentialproviderv1.CredentialProviderRequest) (map[string]any, error) {
				time.Sleep(time.Second)
				return map[string]any{"cacheKeyType": "Image", "cacheDuration": lasts,
					"auth": map[string]any{"*.io": map[string]string{"username": r.ServiceAccountToken}}}, nil
			}
			var callers sync.WaitGroup
			for _, name := range []string{"p", "q", "q"} {
				callers.Go(func() {
					got, err := w.get(podOf(name, "a"), "reg.io/a")
					if err != nil || lasts == "0s" && !strings.HasPrefix(got, "a of "+name) {
						t.Errorf("Pod %s: %q, %v", name, got, err)
					}
				})
				synctest.Wait()
			}
			callers.Wait()
			if w.ran() != runs {
				t.Errorf("%d runs for answers that last %s, want %d", w.ran(), lasts, runs)
			}
		})
	}
}

// Credentials say for which account they are; and the account is known without a run.
func TestAccounts(t *testing.T) {
	w := newWorld(t, entry("node", "node.io"), entry("all", "all.io", fmt.Sprintf(tokens, "false", "Token", "")),
		entry("some", "some.io", fmt.Sprintf(tokens, "true", "Token", ", requiredServiceAccountAnnotationKeys: [x]")))
	for _, name := range []string{"node", "all", "some"} {
		w.says(name, "u", nil)
	}
	w.account("a", "1", map[string]string{"x": ""})
	w.account("b", "2", nil)
	a := &kubeletv1beta1.ImagePullServiceAccount{UID: "1", Namespace: "ns", Name: "a"}
	b := &kubeletv1beta1.ImagePullServiceAccount{UID: "2", Namespace: "ns", Name: "b"}
	nobody := &kubeletv1beta1.ImagePullServiceAccount{}
	for _, row := range []struct {
		image, account string
		want           *kubeletv1beta1.ImagePullServiceAccount
		gets           bool
	}{
		{"node.io/x", "a", nil, true}, {"node.io/x", "", nil, true},
		{"all.io/x", "a", a, true}, {"all.io/x", "b", b, true}, {"all.io/x", "", nobody, true},
		{"all.io/x", "gone", nil, false},
		{"some.io/x", "a", a, true}, {"some.io/x", "b", nil, false}, {"some.io/x", "", nil, false},
		{"else.io/x", "a", nil, false},
	} {
		pod := podOf("p", row.account)
		before := w.ran()
		got := w.Account(t.Context(), pod, named(t, row.image))
		if fmt.Sprint(got) != fmt.Sprint(row.want) || w.ran() != before {
			t.Errorf("%s with account %q: %v after %d runs, want %v", row.image, row.account, got, w.ran()-before,
				row.want)
		}
		found, _ := w.Credentials(t.Context(), pod, named(t, row.image))
		if (len(found) == 1) != row.gets || row.gets && fmt.Sprint(found[0].Account) != fmt.Sprint(row.want) {
			t.Errorf("%s with account %q gets %v, want them for %v", row.image, row.account, found, row.want)
		}
	}
}

// What a plugin says of its failure is shown, without the token and the values of its variables, neither in the error
// nor in the log.
func TestFailureIsShownWithoutSecrets(t *testing.T) {
	w := newWorld(t, entry("plugin", "'*.io'", fmt.Sprintf(tokens, "true", "Token", ""), "env:",
		"- {name: "+acts+", value: fail}", "- {name: PASSWORD, value: "+secretText+"}"))
	w.account("a", "1", nil)
	logs, seen := observer.New(zap.DebugLevel)
	w.Providers.Log, w.BinDir, w.Providers.run = zap.New(logs), install(t, "plugin"), run
	_, err := w.get(podOf("p", "a"), "reg.io/a")
	const want = `ended with status 7: no role for this machine (removed)`
	if fmt.Sprint(err) != `credential provider "plugin" `+want {
		t.Errorf("the error is %v", err)
	}
	all := seen.All()
	if len(all) != 1 || all[0].ContextMap()["error"] != want || all[0].ContextMap()["plugin"] != "plugin" ||
		strings.Contains(fmt.Sprint(all), secretText) || strings.Contains(fmt.Sprint(all), "of p for") {
		t.Errorf("the log is %+v", all)
	}
	if w.bad != 1 {
		t.Errorf("%d runs are counted as bad", w.bad)
	}
}
