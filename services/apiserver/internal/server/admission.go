package server

import (
	"keelson.dev/services/apiserver/internal/admission"
)

// admit builds the admission chain.
func (s *Server) admit() error {
	chain, err := admission.New(admission.Config{Client: s.client, Informers: s.informers})
	if err != nil {
		return err
	}
	s.config.AdmissionControl = chain
	return nil
}
