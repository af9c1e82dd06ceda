package credentialprovider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	credentialproviderv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	"pgregory.net/rapid"
)

const secretText = "hunter2hunter2"

// whole is an answer with everything.
const whole = `{"apiVersion": "credentialprovider.kubelet.k8s.io/v1", "kind": "CredentialProviderResponse",
	"cacheKeyType": "Registry", "cacheDuration": "5m",
	"auth": {"reg.io": {"username": "u", "password": "` + secretText + `"}}}`

// An answer is used only if all of it is right; what is wrong is said without what stands in it.
func TestAnswers(t *testing.T) {
	const garbage = "printed something else than a CredentialProviderResponse in JSON"
	for _, row := range []struct{ old, new, want string }{
		{"", "", ""},
		{`"cacheDuration": "5m",`, "", ""},
		{`"5m"`, "null", ""},
		{`"5m"`, `"0s"`, ""},
		{`"5m"`, `"-1s"`, ""},
		{`"auth"`, `"later": 1, "auth"`, ""}, // a field of a later version
		{`{"reg.io": {"username": "u", "password": "` + secretText + `"}}`, "null", ""},
		{whole, "", "printed no answer"},
		{whole, " \n", "printed no answer"},
		{whole, secretText, garbage},
		{whole, whole + whole, garbage},
		{whole, "[]", garbage},
		{whole, `"` + secretText + `"`, garbage},
		{whole, whole[:len(whole)-1], garbage},
		{whole, whole + secretText, garbage},
		{whole, "kind: CredentialProviderResponse", garbage},
		{`"5m"`, "5", `printed an answer whose field "cacheDuration" has the wrong type`},
		{`"` + secretText + `"`, "77777777", `printed an answer whose field "auth" has the wrong type`},
		{`"5m"`, `"` + secretText + `"`, "printed a cacheDuration that is no duration, like 10m"},
		{"k8s.io/v1", "k8s.io/v1beta1", `printed kind "CredentialProviderResponse" of apiVersion ` +
			`"credentialprovider.kubelet.k8s.io/v1beta1", it must be CredentialProviderResponse of ` +
			`credentialprovider.kubelet.k8s.io/v1`},
		{"CredentialProviderResponse", "CredentialProviderRequest", `printed kind "CredentialProviderRequest" of ` +
			`apiVersion "credentialprovider.kubelet.k8s.io/v1", it must be CredentialProviderResponse of ` +
			`credentialprovider.kubelet.k8s.io/v1`},
		{whole, "{}", `printed kind "" of apiVersion "", it must be CredentialProviderResponse of ` +
			`credentialprovider.kubelet.k8s.io/v1`},
		{"Registry", "ServiceAccount", `printed cacheKeyType "ServiceAccount", it must be Image, Registry or Global`},
		{`"cacheKeyType": "Registry",`, "", `printed cacheKeyType "", it must be Image, Registry or Global`},
	} {
		text := strings.Replace(whole, row.old, row.new, 1)
		_, err := readAnswer([]byte(text))
		if got := fmt.Sprint(err); row.want == "" && err != nil || row.want != "" && got != row.want {
			t.Errorf("%s: %v, want %q", text, err, row.want)
		}
	}
	got, err := readAnswer([]byte(whole))
	if err != nil || got.kind != "Registry" || *got.lasts != 5*time.Minute ||
		got.auth["reg.io"].Password != secretText {
		t.Errorf("read %+v, %v", got, err)
	}
}

// FuzzAnswer checks that no answer, however broken, ends the agent or shows up in an error.
func FuzzAnswer(f *testing.F) {
	f.Add(whole, 0, "")
	f.Add(whole, 150, `"`)
	f.Fuzz(func(t *testing.T, text string, at int, insert string) {
		at = max(0, min(at, len(text)))
		_, err := readAnswer([]byte(text[:at] + insert + text[at:]))
		if err != nil && strings.Contains(err.Error(), secretText) &&
			!strings.HasPrefix(err.Error(), "printed kind") && !strings.HasPrefix(err.Error(), "printed cacheKeyType") {
			t.Errorf("an error shows a password: %v", err)
		}
	})
}

// The order of what is tried: longer keys before shorter ones, names before globs, earlier providers before later
// ones with the same key. (CredentialProviderResponse.auth, CredentialProviderConfig.providers.)
func TestOrder(t *testing.T) {
	of := func(provider string, keys ...string) answered {
		auth := map[string]credentialproviderv1.AuthConfig{}
		for _, key := range keys {
			auth[key] = credentialproviderv1.AuthConfig{Username: provider, Password: key}
		}
		return answered{answer: answer{auth: auth}}
	}
	answers := []answered{
		of("one", "*.io", "reg.io", "reg.io/a", "other.io", "reg.io:80", "https://reg.io", "reg.io/*", ""),
		of("two", "reg.io/a/b", "reg.io", "reg.*", "reg.io/b"),
		of("three"),
	}
	var got []string
	for _, c := range pick(named(t, "reg.io/a/b:1"), answers) {
		got = append(got, c.Username+" "+c.Password)
	}
	want := "two reg.io/a/b, one reg.io/a, one reg.io, two reg.io, two reg.*, one *.io"
	if strings.Join(got, ", ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// Whatever the order of an answer's keys in memory, the order of what is tried is the same, and only what matches is
// tried.
func TestOrderIsFixed(t *testing.T) {
	image := named(t, "ab.io/a/b")
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOf(rapid.StringMatching(`(ab|a\*|\*|b)\.(io|\*)(/a(/b)?)?`)).Draw(t, "keys")
		var answers []answered
		for i := range 3 {
			auth := map[string]credentialproviderv1.AuthConfig{}
			for _, key := range keys {
				auth[key] = credentialproviderv1.AuthConfig{Username: key, Password: fmt.Sprint(i)}
			}
			answers = append(answers, answered{answer: answer{auth: auth}})
		}
		first := pick(image, answers)
		for range 3 {
			if again := pick(image, answers); fmt.Sprint(again) != fmt.Sprint(first) {
				t.Fatalf("%v, and then %v", first, again)
			}
		}
		for i, c := range first {
			if p, err := parsePattern(c.Username); err != nil || !p.matches(image) {
				t.Fatalf("%s is tried for %s", c.Username, image)
			}
			if i > 0 && (c.Username > first[i-1].Username ||
				c.Username == first[i-1].Username && c.Password <= first[i-1].Password) {
				t.Fatalf("%v comes before %v", first[i-1], c)
			}
		}
	})
}
