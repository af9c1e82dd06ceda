package server

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"keelson.dev/services/apiserver/internal/apiextensions"
	"keelson.dev/services/apiserver/internal/webhookcall"
)

// extend makes the server of the kinds that CustomResourceDefinitions define.
func (s *Server) extend(config *genericapiserver.Config, next genericapiserver.DelegationTarget) (_ link, err error) {
	s.extensions, err = apiextensions.New(config, next, apiextensions.Config{
		Definitions: s.store.Of(apiextensions.Codecs, schema.GroupVersion{Group: apiextensions.Group,
			Version: apiextensions.Version}),
		Objects:  s.store.Untyped(),
		Services: services{&s.objects},
		Webhooks: s.webhooks(config, webhookcall.MaxConversion),
		Shared:   len(s.options.Etcd.Servers) > 0,
	})
	if err != nil {
		return link{}, err
	}
	if err := s.extensions.Follow(s.mapper.Reset); err != nil {
		s.extensions.Destroy()
		return link{}, fmt.Errorf("following kinds: %w", err)
	}
	return link{server: s.extensions.GenericAPIServer}, nil
}

// extended answers what h answers, when it can.
func (s *Server) extended(h http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	if s.extensions == nil { // which is for the extensions themselves, where nothing comes by
		return h
	}
	return s.extensions.Over(h, serializer)
}

// tellOfExtensions says at /apis that there are CustomResourceDefinitions.
func (s *Server) tellOfExtensions() {
	version := metav1.GroupVersionForDiscovery{Version: apiextensions.Version,
		GroupVersion: apiextensions.Group + "/" + apiextensions.Version}
	s.core.DiscoveryGroupManager.AddGroup(metav1.APIGroup{Name: apiextensions.Group,
		Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
}
