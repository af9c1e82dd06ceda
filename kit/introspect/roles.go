package introspect

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	introspectionv1 "keelson.dev/proto/keelson/introspection/v1"
)

// The methods below implement election.Observer.

// Campaigning notes that this process stands for the role.
func (s *State) Campaigning(role string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roles[role] = &introspectionv1.Role{Name: role}
}

// Leading notes that this process leads the role from now on.
func (s *State) Leading(role, identity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roles[role] = &introspectionv1.Role{Name: role, Leading: true, Holder: identity,
		Since: timestamppb.New(time.Now())}
}

// Lost notes that this process leads the role no longer.
func (s *State) Lost(role string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roles[role] = &introspectionv1.Role{Name: role}
}

// Elected notes who holds the role.
func (s *State) Elected(role, holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.roles[role]; r != nil {
		r.Holder = holder
	}
}

// Holder returns who holds the role as far as this process knows; empty if the role has no holder.
func (s *State) Holder(role string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roles[role].GetHolder()
}
