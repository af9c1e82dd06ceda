package authn

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

// maxToken is how many bytes a token may have. One with hundreds of groups has a few thousand, and each byte is looked
// at by everybody who may know the token.
const maxToken = 64 << 10

// bounded looks at no token that is longer than any that is given out.
type bounded struct{ authenticator.Token }

// AuthenticateToken implements authenticator.Token.
func (b bounded) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	if len(token) > maxToken {
		return nil, false, fmt.Errorf("the token has %d bytes, more than %d", len(token), maxToken)
	}
	return b.Token.AuthenticateToken(ctx, token)
}

// authenticated puts everybody whose token is known into system:authenticated, where he is not yet: a webhook may have
// said so.
type authenticated struct{ authenticator.Token }

// AuthenticateToken implements authenticator.Token.
func (a authenticated) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	response, ok, err := a.Token.AuthenticateToken(ctx, token)
	if err != nil || !ok {
		return nil, false, err
	}
	groups := response.User.GetGroups()
	if slices.Contains(groups, user.AllAuthenticated) {
		return response, true, nil
	}
	return &authenticator.Response{Audiences: response.Audiences, User: &user.DefaultInfo{
		Name: response.User.GetName(), UID: response.User.GetUID(), Extra: response.User.GetExtra(),
		Groups: append(slices.Clone(groups), user.AllAuthenticated)}}, true, nil
}
