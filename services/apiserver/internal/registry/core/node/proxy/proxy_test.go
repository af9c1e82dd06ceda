package proxy

import (
	"net/http"
	"net/url"
	"testing"

	"keelson.dev/services/apiserver/internal/httpproxy"
	"keelson.dev/services/apiserver/internal/nodeproxy"
)

// The apiserver shows who it is to the agent only.
func TestProxied(t *testing.T) {
	agents, others := &http.Transport{}, &http.Transport{}
	agent := nodeproxy.Agent{Base: url.URL{Scheme: "https", Host: "10.0.0.1:10250"}, Transport: agents}
	for _, row := range []struct {
		scheme, port string
		want         httpproxy.Target
	}{
		{"", "", httpproxy.Target{Scheme: "https", Host: "10.0.0.1:10250", Transport: agents}},
		{"http", "10250", httpproxy.Target{Scheme: "https", Host: "10.0.0.1:10250", Transport: agents}},
		{"https", "9100", httpproxy.Target{Scheme: "https", Host: "10.0.0.1:9100", Transport: others}},
		{"", "65536", httpproxy.Target{}}, {"", "0", httpproxy.Target{}}, {"", "http", httpproxy.Target{}},
	} {
		got, err := proxied(agent, httpproxy.Address{Scheme: row.scheme, Name: "n", Port: row.port}, others)
		if got != row.want || (err == nil) != (row.want.Host != "") {
			t.Errorf("%s:%s: %+v, %v", row.scheme, row.port, got, err)
		}
	}
}
