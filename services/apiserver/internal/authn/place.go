package authn

import (
	"errors"
	"net/http"
	"net/netip"

	"k8s.io/apiserver/pkg/authentication/authenticator"

	"keelson.dev/services/apiserver/internal/fairshare"
)

// perPlace gives each network address its share of the requests whose tokens others are asked about. Their clients are
// not known yet, so no other limit holds: without it, one machine with made-up tokens could have any number of requests
// wait for a webhook that does not answer.
type perPlace struct {
	authenticator.Request
	shares *fairshare.Shares
}

var errPlaceIsFull = errors.New("as many tokens from this address are being asked about as one address may have: a " +
	"quarter of what others leave")

// AuthenticateRequest implements authenticator.Request.
func (p perPlace) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	if r.Header.Get("Authorization") == "" && r.Header.Get("Sec-Websocket-Protocol") == "" {
		return nil, false, nil // There is no token to ask about.
	}
	place := placeOf(r)
	if !p.shares.Take(place, 1) {
		return nil, false, errPlaceIsFull
	}
	defer p.shares.Give(place, 1)
	return p.Request.AuthenticateRequest(r)
}

// placeOf is where a request comes from.
func placeOf(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return from.Addr().Unmap().String()
}
