package credentialprovider

import (
	"regexp"
	"strings"
	"testing"

	"github.com/distribution/reference"
	"pgregory.net/rapid"
)

func named(t interface{ Fatal(...any) }, image string) reference.Named {
	ref, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		t.Fatal(image, err)
	}
	return reference.TagNameOnly(ref)
}

// The rules of matchImages and of an answer's keys. (CredentialProvider.matchImages, kubelet.config.k8s.io/v1.)
func TestPatterns(t *testing.T) {
	for _, row := range []struct {
		pattern, image string
		want           bool
	}{
		{"123456789.dkr.ecr.us-east-1.amazonaws.com", "123456789.dkr.ecr.us-east-1.amazonaws.com/a:1", true},
		{"*.dkr.ecr.*.amazonaws.com", "123456789.dkr.ecr.us-east-1.amazonaws.com/a", true},
		{"*.azurecr.io", "me.azurecr.io/a/b@sha256:" + strings.Repeat("0", 64), true},
		{"*.azurecr.io", "azurecr.io/a", false},
		{"*.azurecr.io", "a.b.azurecr.io/a", false},
		{"*.*.registry.io", "a.b.registry.io/x", true},
		{"*.io", "x.k8s.io/a", false},
		{"k8s.*.io", "k8s.gcr.io/a", true},
		{"k8s.*", "k8s.io/a", true},
		{"app*.k8s.io", "app1.k8s.io/a", true},
		{"app*.k8s.io", "app.k8s.io/a", true},
		{"app*.k8s.io", "web.k8s.io/a", false},
		{"a*c.k8s.io", "abbc.k8s.io/a", true},
		{"gcr.io", "gcr.io/a", true},
		{"gcr.io", "xgcr.io/a", false},
		{"gcr.io", "gcr.io.evil.com/a", false},
		{"gcr.io", "gcr.iox/a", false},
		{"gcr.io/", "gcr.io/a", true},
		{"registry.io:8080/path", "registry.io:8080/path/a", true},
		{"registry.io:8080/path", "registry.io:8080/path", true},
		{"registry.io:8080/path", "registry.io:8080/pathology", true}, // a prefix, as the API says
		{"registry.io:8080/path/", "registry.io:8080/pathology", false},
		{"registry.io:8080/path", "registry.io:8080/a/path", false},
		{"registry.io:8080/path", "registry.io:8081/path", false},
		{"registry.io:8080", "registry.io/path", false},
		{"registry.io", "registry.io:8080/path", false}, // another port is another registry
		{"*", "localhost/a", true},
		{"*", "busybox", false},
		{"docker.io", "busybox", true},
		{"docker.io/library", "busybox", true},
		{"docker.io/me", "busybox", false},
		{"[::1]:5000", "[::1]:5000/a", true},
		{"[::2]:5000", "[::1]:5000/a", false},
		{"*:5000", "[::1]:5000/a", false},
		{"10.0.0.*:5000", "10.0.0.7:5000/a", true},
	} {
		p, err := parsePattern(row.pattern)
		if err != nil {
			t.Errorf("%s: %v", row.pattern, err)
			continue
		}
		if got := p.matches(named(t, row.image)); got != row.want {
			t.Errorf("%s matches %s: %v, want %v", row.pattern, row.image, got, row.want)
		}
	}
}

func TestWrongPatterns(t *testing.T) {
	for _, pattern := range []string{"", "/", "/a", ".", "a..b", ".io", "io.", "https://gcr.io", "gcr.io:", "gcr.io:0",
		"gcr.io:65536", "gcr.io:http", "gcr.io:*", "gcr.io/*", "gcr.io/a//b", "gcr.io/a:1", "gcr.io/a@sha256:0",
		"g cr.io",
		"gcr.io/a b", "gcr.io?x", "gcr.io#x", "me@gcr.io", "[::1", "[]", "[x]", "[::1]5000", "[::1]:", "[*]", "a[b].io",
		"gcr.io\n", "é.io", `a\b.io`, "gcr.io:+80"} {
		if p, err := parsePattern(pattern); err == nil {
			t.Errorf("%q is taken for %+v", pattern, p)
		}
	}
}

// Patterns mean the same as regular expressions, which say what * stands for in another way.
func TestPatternsMeanWhatTheySay(t *testing.T) {
	part := rapid.StringMatching(`[ab]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		glob := rapid.StringMatching(`[ab*]{1,3}`)
		pattern := strings.Join(rapid.SliceOfN(glob, 2, 3).Draw(t, "globs"), ".")
		image := strings.Join(rapid.SliceOfN(part, 2, 3).Draw(t, "host"), ".")
		port := rapid.SampledFrom([]string{"", ":80", ":81"})
		pattern += port.Draw(t, "pattern's port")
		image += port.Draw(t, "image's port") + "/" + part.Draw(t, "path")
		host := regexp.QuoteMeta(pattern)
		pattern += rapid.SampledFrom([]string{"", "/", "/a", "/ab"}).Draw(t, "prefix")
		want := regexp.MustCompile("^" + strings.ReplaceAll(host, `\*`, `[^.:/]*`) + "/.*").MatchString(image)
		if _, path, ok := strings.Cut(pattern, "/"); ok {
			_, of, _ := strings.Cut(image, "/")
			want = want && strings.HasPrefix(of, path)
		}
		p, err := parsePattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.matches(named(t, image)); got != want {
			t.Fatalf("%s matches %s: %v, want %v", pattern, image, got, want)
		}
	})
}
