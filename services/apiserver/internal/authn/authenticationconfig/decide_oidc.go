package authenticationconfig

import (
	"maps"
	"slices"

	"k8s.io/apiserver/pkg/apis/apiserver"
)

// noPrefix says that nothing stands before the names of users.
const noPrefix = "-"

// issuer is what the flags say as the file would: authority is the content of --oidc-ca-file.
func (o OIDC) issuer(authority string) apiserver.JWTAuthenticator {
	out := apiserver.JWTAuthenticator{
		Issuer: apiserver.Issuer{URL: o.IssuerURL, CertificateAuthority: authority, Audiences: []string{o.ClientID}},
		ClaimMappings: apiserver.ClaimMappings{
			Username: apiserver.PrefixedClaimOrExpression{Claim: o.UsernameClaim, Prefix: new(o.usernamePrefix())},
		},
	}
	if o.GroupsClaim != "" {
		out.ClaimMappings.Groups = apiserver.PrefixedClaimOrExpression{Claim: o.GroupsClaim,
			Prefix: new(o.GroupsPrefix)}
	}
	for _, claim := range slices.Sorted(maps.Keys(o.RequiredClaims)) {
		out.ClaimValidationRules = append(out.ClaimValidationRules,
			apiserver.ClaimValidationRule{Claim: claim, RequiredValue: o.RequiredClaims[claim]})
	}
	return out
}

// usernamePrefix keeps users of the issuer apart from others. An e-mail address needs no prefix.
func (o OIDC) usernamePrefix() string {
	switch {
	case o.UsernamePrefix == noPrefix:
		return ""
	case o.UsernamePrefix == "" && o.UsernameClaim != "email":
		return o.IssuerURL + "#"
	}
	return o.UsernamePrefix
}
