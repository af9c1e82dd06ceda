package authenticationconfig

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"keelson.dev/services/apiserver/internal/followedfile/followedfiletest"
)

const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"

// one is a file with one issuer that is right, but for what is replaced in it.
func one(replace ...string) string {
	text := head + `jwt:
- issuer: {url: https://issuer.example.com, audiences: [mesh]}
  claimMappings: {username: {claim: sub, prefix: "example:"}}
`
	return strings.NewReplacer(replace...).Replace(text)
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "authentication.yaml")
	followedfiletest.Replace(t, path, text)
	return path
}

// TestWhatAFileMayHave: what is wrong is told in one line, with its path in the file.
func TestWhatAFileMayHave(t *testing.T) {
	for _, row := range []struct {
		name, text string
		// want is how the sentence goes on after the flag and the file; empty: the file is right.
		want string
	}{
		{"one issuer", one(), ""},
		{"nothing but a kind", head, ""},
		{"an older version", one("k8s.io/v1", "k8s.io/v1beta1"), ""},
		{"anonymous on some paths", head + "anonymous: {enabled: true, conditions: [{path: /livez}]}\n", ""},
		{"empty", " \n", "the file is empty"},
		{"not YAML", "{", "error converting YAML to JSON: yaml: line 1: did not find expected node content"},
		{"another kind", strings.ReplaceAll(head, "Authentication", "Authorization") + "authorizers: []\n",
			`kind: must be AuthenticationConfiguration, not "AuthorizationConfiguration"`},
		{"no kind", "jwt: []\n", `kind: must be AuthenticationConfiguration, not ""`},
		{"a list", "- a\n", "it is no YAML object of the kind AuthenticationConfiguration"},
		{"an unknown version", one("k8s.io/v1", "k8s.io/v3"),
			`no kind "AuthenticationConfiguration" is registered for version "apiserver.config.k8s.io/v3"`},
		{"an unknown field", one("claimMappings", "claimMapping"),
			`strict decoding error: unknown field "jwt[0].claimMapping"`},
		{"no issuer by http", one("https://", "http://"),
			`jwt[0].issuer.url: Invalid value: "http://issuer.example.com": URL scheme must be https`},
		{"the server's own issuer", one("https://issuer.example.com", "https://own.example.com"),
			`jwt[0].issuer.url: Invalid value: "https://own.example.com": URL must not overlap with disallowed`},
		{"no audience", one("[mesh]", "[]"), "jwt[0].issuer.audiences: Required value"},
		{"two audiences without a policy", one("[mesh]", "[mesh, other]"),
			`jwt[0].issuer.audienceMatchPolicy: Invalid value: "": audienceMatchPolicy must be MatchAny`},
		{"no prefix", one(`, prefix: "example:"`, ""), "jwt[0].claimMappings.username.prefix: Required value"},
		{"an expression that is none", one(`claim: sub, prefix: "example:"`, `expression: "claims."`),
			"jwt[0].claimMappings.username.expression: Invalid value"},
		{"an address that nobody has verified", one(`claim: sub, prefix: "example:"`, "expression: claims.email"),
			`jwt[0].claimMappings.username.expression: Invalid value: "claims.email": claims.email_verified must be`},
		{"a key of Kubernetes' own",
			one("username:", "extra: [{key: k8s.io/x, valueExpression: claims.sub}], username:"),
			`jwt[0].claimMappings.extra[0].key: Invalid value: "k8s.io/x": k8s.io, kubernetes.io and their subdomains`},
		{"egress", one("audiences:", "egressSelectorType: cluster, audiences:"),
			"jwt[0].issuer.egressSelectorType: Forbidden: there is no egress selection"},
		{"an authority that is none", one("audiences:", "certificateAuthority: x, audiences:"),
			"jwt[0].issuer.certificateAuthority: Invalid value"},
		{"conditions of nothing", head + "anonymous: {enabled: false, conditions: [{path: /livez}]}\n",
			"anonymous.conditions: Invalid value"},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := writeFile(t, row.text)
			options := NewOptions()
			options.ConfigFile = path
			a, err := Open(options, Config{OwnIssuers: []string{"https://own.example.com"}, Log: zap.NewNop()})
			if err == nil {
				a.Close()
			}
			switch {
			case row.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case row.want != "" && (err == nil || !strings.HasPrefix(err.Error(),
				"--authentication-config: "+path+": "+row.want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("got %v\nwant %s", err, row.want)
			}
		})
	}
}

// TestFlags: which go together, and what is wrong with a value.
func TestFlags(t *testing.T) {
	const file, issuer, client = "--authentication-config=f", "--oidc-issuer-url=https://i", "--oidc-client-id=c"
	const known = "ES256, ES384, ES512, PS256, PS384, PS512, RS256, RS384, RS512"
	const both = "--oidc-issuer-url: needs --oidc-client-id, and all --oidc-* flags need both"
	const apart = "--authentication-config: not together with --oidc-* flags: what these say stands in the file, as " +
		"one of jwt"
	for _, row := range []struct {
		flags []string
		want  string
	}{
		{nil, ""},
		{[]string{file}, ""},
		{[]string{file, "--anonymous-auth=true"}, ""},
		{[]string{issuer, client}, ""},
		{[]string{issuer, client, "--oidc-signing-algs=ES256,PS512"}, ""},
		{[]string{issuer}, both},
		{[]string{client}, both},
		{[]string{"--oidc-groups-claim=groups"}, both},
		{[]string{"--oidc-username-claim=sub"}, both},
		{[]string{file, issuer, client}, apart},
		{[]string{file, "--oidc-username-claim=sub"}, apart},
		{[]string{file, "--oidc-required-claim=a=b"}, apart},
		{[]string{issuer, client, "--oidc-signing-algs=none"}, `--oidc-signing-algs: "none" is none of ` + known},
		{[]string{issuer, client, "--oidc-signing-algs=HS256"}, `--oidc-signing-algs: "HS256" is none of ` + known},
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

// TestAnonymousIsSaidOnce: a file that says who may be anonymous does not go with the flag.
func TestAnonymousIsSaidOnce(t *testing.T) {
	const said = head + "anonymous: {enabled: false}\n"
	for _, row := range []struct {
		text, flag string
		wrong      bool
	}{
		{said, "--log=x", false},
		{said, "--anonymous-auth=true", true},
		{said, "--anonymous-auth=false", true},
		{head, "--anonymous-auth=false", false},
	} {
		options := NewOptions()
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.String("log", "", "")
		options.AddFlags(flags)
		if err := flags.Parse([]string{row.flag}); err != nil {
			t.Fatal(err)
		}
		options.ConfigFile = writeFile(t, row.text)
		a, err := Open(options, Config{Log: zap.NewNop()})
		if err == nil {
			a.Close()
		}
		want := "--authentication-config: " + options.ConfigFile +
			": anonymous: must not be set together with --anonymous-auth"
		if row.wrong && (err == nil || err.Error() != want) || !row.wrong && err != nil {
			t.Errorf("%q and %s: %v", row.text, row.flag, err)
		}
	}
}
