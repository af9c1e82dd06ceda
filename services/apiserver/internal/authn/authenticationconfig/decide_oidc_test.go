package authenticationconfig

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/apis/apiserver"
)

// TestFlagsAsAFile: flags mean the same as Kubernetes' own.
func TestFlagsAsAFile(t *testing.T) {
	basic := func(change func(*OIDC)) OIDC {
		o := NewOptions().OIDC
		o.IssuerURL, o.ClientID = "https://i", "c"
		change(&o)
		return o
	}
	want := func(username string, prefix string, change func(*apiserver.JWTAuthenticator)) apiserver.JWTAuthenticator {
		j := apiserver.JWTAuthenticator{
			Issuer: apiserver.Issuer{URL: "https://i", Audiences: []string{"c"}, CertificateAuthority: "PEM"},
			ClaimMappings: apiserver.ClaimMappings{
				Username: apiserver.PrefixedClaimOrExpression{Claim: username, Prefix: &prefix}},
		}
		change(&j)
		return j
	}
	nothing := func(*apiserver.JWTAuthenticator) {}
	for _, row := range []struct {
		name string
		oidc OIDC
		want apiserver.JWTAuthenticator
	}{
		{"as little as possible", basic(func(*OIDC) {}), want("sub", "https://i#", nothing)},
		{"addresses of e-mail are names", basic(func(o *OIDC) { o.UsernameClaim = "email" }),
			want("email", "", nothing)},
		{"with a prefix if asked for", basic(func(o *OIDC) { o.UsernameClaim, o.UsernamePrefix = "email", "p:" }),
			want("email", "p:", nothing)},
		{"a prefix", basic(func(o *OIDC) { o.UsernamePrefix = "p:" }), want("sub", "p:", nothing)},
		{"no prefix", basic(func(o *OIDC) { o.UsernamePrefix = "-" }), want("sub", "", nothing)},
		{"groups", basic(func(o *OIDC) { o.GroupsClaim = "g" }), want("sub", "https://i#",
			func(j *apiserver.JWTAuthenticator) {
				j.ClaimMappings.Groups = apiserver.PrefixedClaimOrExpression{Claim: "g", Prefix: new("")}
			})},
		{"groups with a prefix", basic(func(o *OIDC) { o.GroupsClaim, o.GroupsPrefix = "g", "-" }),
			want("sub", "https://i#", func(j *apiserver.JWTAuthenticator) {
				j.ClaimMappings.Groups = apiserver.PrefixedClaimOrExpression{Claim: "g", Prefix: new("-")}
			})},
		{"required claims", basic(func(o *OIDC) { o.RequiredClaims = map[string]string{"b": "2", "a": "1"} }),
			want("sub", "https://i#", func(j *apiserver.JWTAuthenticator) {
				j.ClaimValidationRules = []apiserver.ClaimValidationRule{
					{Claim: "a", RequiredValue: "1"}, {Claim: "b", RequiredValue: "2"}}
			})},
	} {
		if got := row.oidc.issuer("PEM"); !equality.Semantic.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v\nwant %+v", row.name, got, row.want)
		}
	}
}
