package redact

import (
	"strings"
	"testing"
)

// marker is what must not be in what is left. It has the shape of no credential by itself.
const marker = "hunter2hunter2"

// Each shape of a credential is removed, and what stands around it stays.
func TestTextRemoves(t *testing.T) {
	for _, r := range []struct{ text, want string }{
		{"GET https://admin:" + marker + "@registry.test/v2/: 401", "GET https://REDACTED@registry.test/v2/: 401"},
		{"pulling from https://" + marker + "@registry.test", "pulling from https://REDACTED@registry.test"},
		{"Authorization: Bearer " + marker, "Authorization: REDACTED REDACTED"},
		{"sent bearer " + marker + ", got 403", "sent bearer REDACTED, got 403"},
		{"basic " + marker + "==", "basic REDACTED"},
		{"the token eyJhbGciOiJSUzI1NiJ9.eyJ" + marker + ".c2ln-_ was refused", "the token REDACTED was refused"},
		{"by abcdef.0123456789abcdef of the machine", "by REDACTED of the machine"},
		{"-----BEGIN EC PRIVATE KEY-----\n" + marker + "\n-----END EC PRIVATE KEY-----\nmore", "REDACTED\nmore"},
		{`{"key":"-----BEGIN PRIVATE KEY-----\n` + marker + `\n-----END PRIVATE KEY-----\n"}`, `{"key":"REDACTED\n"}`},
		{"-----BEGIN PRIVATE KEY-----\n" + marker, "REDACTED"},
		{"password=" + marker + " user=a", "password=REDACTED user=a"},
		{"db-passwd: " + marker, "db-passwd: REDACTED"},
		{`{"clientSecret":"` + marker + ` two","user":"a"}`, `{"clientSecret":"REDACTED","user":"a"}`},
		{`{"msg":"got {\"api_key\":\"` + marker + ` two\",\"n\":1}"}`, `{"msg":"got {\"api_key\":\"REDACTED\",\"n\":1}"}`},
		{"SECRET='" + marker + " two' next", "SECRET='REDACTED' next"},
		{"https://s3.test/x?X-Amz-Signature=" + marker + "&n=1", "https://s3.test/x?X-Amz-Signature=REDACTED&n=1"},
		{"run --token " + marker + " --verbose", "run --token REDACTED --verbose"},
		{"run --api-token=" + marker + " --verbose", "run --api-token=REDACTED --verbose"},
		{`args ["--token","` + marker + `","-v"]`, `args ["--token","REDACTED","-v"]`},
		{`args ["--token", "` + marker + `"]`, `args ["--token", "REDACTED"]`},
	} {
		got := Text(r.text)
		if got != r.want {
			t.Errorf("%q becomes %q, want %q", r.text, got, r.want)
		}
		if strings.Contains(got, marker) {
			t.Errorf("%q still has the secret", got)
		}
		if again := Text(got); again != got {
			t.Errorf("%q becomes %q when redacted once more", got, again)
		}
	}
}

// What an operator looks for in a log stays.
func TestTextKeeps(t *testing.T) {
	for _, text := range []string{
		"", "Secret default/web not found", `couldn't find key user in Secret "web"`,
		"https://10.96.0.1:443/api/v1/namespaces/default/pods?watch=true&resourceVersion=17",
		"the Pod web-7d4b9c.16f0a81b2c3d4e5f is gone at 2026-11-28T05:00:00.000Z",
		"image registry.test/team/app@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"user@host", "keelson.dev/services/apiserver v1.2.3-0.20261128045745-b289f490cf51",
		"run --verbose --count 3", "tokens are checked",
		"--service-account-signing-key-file=/var/lib/keelson/pki/sa.key",
	} {
		if got := Text(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// The value of a setting whose name says that it is secret goes, whatever surrounds it.
func TestTextRemovesWhereverItStands(t *testing.T) {
	surroundings := []string{"", "\n", " ", "x", "a=b\n", "{", "}", `"`, "'", "(", ", ", "; ", "-- ", "token ", "://",
		"@", `\"`}
	for _, name := range []string{"token", "PASSWORD", "client_secret", "db.passphrase", "apiKey", "X-Amz-Signature"} {
		for _, setting := range []string{name + "=" + marker, name + ": " + marker, `"` + name + `":"` + marker + `"`,
			name + "='" + marker + "'", "--" + name + " " + marker, "--" + name + "=" + marker} {
			for _, before := range surroundings {
				for _, after := range surroundings {
					text := before + "\n" + setting + "\n" + after
					if got := Text(text); strings.Contains(got, marker) {
						t.Errorf("%q becomes %q", text, got)
					}
				}
			}
		}
	}
}
