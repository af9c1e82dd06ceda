package fairshare

// Signal tells many that something has changed. The zero value is ready; its owner's lock is held for each call.
type Signal struct{ waited chan struct{} }

// Next is closed by the next Tell.
func (s *Signal) Next() <-chan struct{} {
	if s.waited == nil {
		s.waited = make(chan struct{})
	}
	return s.waited
}

// Tell tells all that wait.
func (s *Signal) Tell() {
	if s.waited != nil {
		close(s.waited)
		s.waited = nil
	}
}
