package cpupin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"
)

// written is the content of the file, in the kubelet's format. Sets are in the kernel's form, like 0-2,7.
type written struct {
	PolicyName string `json:"policyName"`
	// DefaultCPUSet is what all containers without CPUs of their own share.
	DefaultCPUSet string                       `json:"defaultCpuSet"`
	Entries       map[string]map[string]string `json:"entries,omitempty"`
	// Checksum detects a file that was changed after it was written.
	Checksum uint64 `json:"checksum"`
}

// sum returns the checksum of the content.
func (w written) sum() uint64 {
	w.Checksum = 0
	data, _ := json.Marshal(w) // text and numbers: this cannot fail
	h := fnv.New32a()
	_, _ = h.Write(data) // this cannot fail either
	return uint64(h.Sum32())
}

// state is which Pod has which CPUs.
type state struct {
	Shared cpuset.CPUSet
	Pods   map[types.UID]Assignment
}

// encode returns the contents of the file for a state.
func (s state) encode() ([]byte, error) {
	w := written{PolicyName: Static, DefaultCPUSet: s.Shared.String(), Entries: map[string]map[string]string{}}
	for uid, containers := range s.Pods {
		entry := make(map[string]string, len(containers))
		for name, cpus := range containers {
			entry[name] = cpus.String()
		}
		w.Entries[string(uid)] = entry
	}
	w.Checksum = w.sum()
	return json.Marshal(w)
}

// decode parses a file. The error says what in it is damaged.
func decode(data []byte) (state, error) {
	var w written
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&w); err != nil {
		return state{}, fmt.Errorf("it is damaged: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return state{}, errors.New("it is damaged: something follows the object")
	}
	switch {
	case w.Checksum != w.sum():
		return state{}, errors.New("it is damaged: the checksum is that of another content")
	case w.PolicyName != Static:
		return state{}, fmt.Errorf("it was written under policy %q, not %q", w.PolicyName, Static)
	}
	out := state{Pods: make(map[types.UID]Assignment, len(w.Entries))}
	var err error
	if out.Shared, err = cpuset.Parse(w.DefaultCPUSet); err != nil {
		return state{}, fmt.Errorf("it is damaged: defaultCpuSet: %q is no set of cpus", w.DefaultCPUSet)
	}
	for uid, containers := range w.Entries {
		if uid == "" || uid[0] == '.' || strings.Contains(uid, "/") {
			return state{}, fmt.Errorf("it is damaged: entries: %q is no UID of a Pod", uid)
		}
		own := Assignment{}
		for name, text := range containers {
			if own[name], err = cpuset.Parse(text); err != nil || own[name].IsEmpty() {
				return state{}, fmt.Errorf("it is damaged: entries.%s.%s: %q is no set of cpus", uid, name, text)
			}
		}
		out.Pods[types.UID(uid)] = own
	}
	return out, nil
}

// check returns an error if a state does not fit a machine and its currently reserved CPUs.
func (s state) check(machine Machine, reserved cpuset.CPUSet) error {
	if !reserved.IsSubsetOf(s.Shared) {
		return fmt.Errorf("of the reserved cpus %s not all are in its defaultCpuSet %s", reserved, s.Shared)
	}
	known := s.Shared
	for uid, own := range s.Pods {
		if twice := own.all().Intersection(known); !twice.IsEmpty() {
			return fmt.Errorf("cpus %s of pod %s are somebody else's too", twice, uid)
		}
		known = known.Union(own.all())
	}
	if all := machine.all(); !known.Equals(all) {
		return fmt.Errorf("it is of a machine with cpus %s, and this one has %s", known, all)
	}
	return nil
}
