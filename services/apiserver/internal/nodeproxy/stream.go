package nodeproxy

import (
	"net/http"

	"k8s.io/apimachinery/pkg/util/proxy"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	utilproxy "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// ProcessHandler joins a client to the streams of a process at the agent. A client that speaks the fifth version of the
// WebSocket protocol is translated to SPDY; one that speaks SPDY or an older WebSocket protocol is passed through.
func ProcessHandler(a Agent, l Location, s Streams, responder genericrest.Responder) http.Handler {
	translator := utilproxy.NewStreamTranslatorHandler(a.At(l), a.Transport, 0,
		utilproxy.Options{Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Tty: s.TTY})
	return utilproxy.NewTranslatingHandler(upgradeHandler(a, l, responder), translator,
		wsstream.IsWebSocketRequestWithStreamCloseProtocol)
}

// PortForwardHandler joins a client to ports at the agent. A WebSocket client tunnels SPDY.
func PortForwardHandler(a Agent, l Location, responder genericrest.Responder) http.Handler {
	upgrade := upgradeHandler(a, l, responder)
	return utilproxy.NewTranslatingHandler(upgrade, utilproxy.NewTunnelingHandler(upgrade),
		wsstream.IsWebSocketRequestWithTunnelingProtocol)
}

func upgradeHandler(a Agent, l Location, responder genericrest.Responder) http.Handler {
	handler := proxy.NewUpgradeAwareHandler(a.At(l), a.Transport, false, true, proxy.NewErrorResponder(responder))
	handler.UseLocationHost = true
	return handler
}
