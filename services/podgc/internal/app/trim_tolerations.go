package app

import (
	"encoding/binary"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/fieldmask"
)

// knownTolerations is how many lists are kept to be shared; beyond that, the memory is cleared.
const knownTolerations = 1000

// evictionTolerations are those of all Pods in the cache.
var evictionTolerations = newTolerations()

// tolerations lets Pods that tolerate the same share one list: nearly all of them have the defaults or what their
// DaemonSet got. It is safe for concurrent use.
type tolerations struct {
	shared *fieldmask.Pool[[]corev1.Toleration]
}

func newTolerations() *tolerations {
	return &tolerations{fieldmask.NewPool[[]corev1.Toleration](knownTolerations)}
}

// of returns the tolerations of the list that concern evictions.
func (t *tolerations) of(list []corev1.Toleration) []corev1.Toleration {
	var room [256]byte
	name := room[:0]
	for i := range list {
		if concernsEviction(&list[i]) {
			name = appendName(name, &list[i])
		}
	}
	if len(name) == 0 {
		return nil
	}
	return t.shared.Share(name, func() []corev1.Toleration {
		var kept []corev1.Toleration
		for i := range list {
			if concernsEviction(&list[i]) {
				kept = append(kept, *list[i].DeepCopy())
			}
		}
		return kept
	})
}

// appendName appends a key that identifies a toleration.
func appendName(name []byte, t *corev1.Toleration) []byte {
	for _, text := range [...]string{t.Key, string(t.Operator), t.Value, string(t.Effect)} {
		name = append(binary.AppendUvarint(name, uint64(len(text))), text...)
	}
	if t.TolerationSeconds == nil {
		return append(name, 0)
	}
	return binary.AppendVarint(append(name, 1), *t.TolerationSeconds)
}

func concernsEviction(t *corev1.Toleration) bool {
	return t.Effect == "" || t.Effect == corev1.TaintEffectNoExecute
}
