package imagepull

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/distribution/reference"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/runtime"
	"keelson.dev/services/nodeagent/internal/wholefile"
)

// Records keep on disk which images the agent has pulled and with what credentials, in the kubelet's format: an
// ImagePullIntent from before a pull until its outcome is known, and an ImagePulledRecord of each image. An image
// with neither was on the node before. A record that cannot be read or written never opens an image to a Pod.
//
// Nil Records keep nothing and open every image to every Pod: those of a simulated node.
type Records struct {
	dir      string
	settings Settings
	log      *zap.Logger

	mu sync.Mutex // guards all fields below and the files
	// pulls are those under way, cutOff the files of the intents of those that ended without a known outcome.
	pulls  map[*Pull]bool
	cutOff map[string]bool
	// serial counts the written records; written holds, by image ID, the number of the last write.
	serial  uint64
	written map[string]uint64
}

// OpenRecords creates the folders if they are missing. Recover must be called before any Pod is given an image.
func OpenRecords(dir string, settings Settings, log *zap.Logger) (*Records, error) {
	r := &Records{dir: dir, settings: settings, log: log, pulls: map[*Pull]bool{}, cutOff: map[string]bool{},
		written: map[string]uint64{}}
	for _, folder := range []string{r.intents(), r.pulled()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, fmt.Errorf("making the folder of records of images: %w", err)
		}
		if err := wholefile.Clear(folder, "sha256-*"); err != nil {
			return nil, fmt.Errorf("opening the records of images: %w", err)
		}
	}
	return r, nil
}

// Recover takes up the pulls whose outcome an earlier agent has not recorded. The node's images that such a pull
// may have brought are open to no Pod until one has shown its credentials. Intents of missing images stay: the
// runtime may yet finish the pulls.
func (r *Records) Recover(images func() ([]runtime.Image, error)) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	intents, err := os.ReadDir(r.intents())
	if err != nil {
		return fmt.Errorf("listing the intents of pulls: %w", err)
	}
	if len(intents) == 0 {
		return nil
	}
	for _, intent := range intents {
		r.cutOff[intent.Name()] = true
	}
	there, err := images()
	if err != nil {
		return fmt.Errorf("listing images for the intents of pulls: %w", err)
	}
	for _, image := range there {
		for _, name := range slices.Concat(image.Tags, image.Digests) {
			if !r.cutOff[fileOf(name)] {
				continue
			}
			if err := r.add(image.ID, name, nil); err != nil {
				return err
			}
			if err := r.forgetIntent(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// MayUse reports whether a Pod may use the image with the ID, which the node has under the name, without a pull.
func (r *Records) MayUse(image reference.Named, id string, pod Shown) bool {
	if r == nil {
		return true
	}
	known, verifies := r.known(image, id)
	if !verifies || known.NodePodsAccessible {
		return true
	}
	return r.opensBySecret(image, id, known, pod) || opensByAccount(known, pod)
}

func opensByAccount(known kubeletv1beta1.ImagePullCredentials, pod Shown) bool {
	if len(known.KubernetesServiceAccounts) == 0 {
		return false
	}
	account := pod.Account()
	return account != nil && slices.Contains(known.KubernetesServiceAccounts, *account)
}

// opensBySecret also records a Secret that opens the image by the content of another one.
func (r *Records) opensBySecret(image reference.Named, id string, known kubeletv1beta1.ImagePullCredentials,
	pod Shown) bool {
	if len(known.KubernetesSecrets) == 0 {
		return false
	}
	secret, ok := opens(known, pod.Secrets())
	if ok && !slices.Contains(known.KubernetesSecrets, secret) && len(known.KubernetesSecrets) < mostSecrets {
		r.mu.Lock()
		defer r.mu.Unlock()
		if err := r.add(id, image.Name(), &Credentials{Secret: &secret}); err != nil {
			r.log.Warn("recording who may use an image failed", zap.Stringer("image", image), zap.Error(err))
		}
	}
	return ok
}

// known returns with which credentials the image was pulled, and whether a Pod must show that it has them.
func (r *Records) known(image reference.Named, id string) (known kubeletv1beta1.ImagePullCredentials, verifies bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	record, err := r.load(id)
	if err != nil {
		r.log.Warn("who may use an image is not known", zap.Stringer("image", image), zap.Error(err))
	}
	pulledHere := record != nil || err != nil || r.cutOff[fileOf(image.String())]
	for pull := range r.pulls {
		pulledHere = pulledHere || pull.image.Name() == image.Name() && pull.before != id
	}
	if record != nil {
		known = record.CredentialMapping[image.Name()]
	}
	return known, r.settings.verifies(image.Name(), pulledHere)
}

// Mark returns a point in time for Forget.
func (r *Records) Mark() uint64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.serial
}

// Forget removes the records of images that the node no longer has. images were listed after the mark; records
// written after it stay, as their images may have come after the list.
func (r *Records) Forget(images []runtime.Image, mark uint64) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := map[string]bool{}
	for _, image := range images {
		keep[fileOf(image.ID)] = true
	}
	for id, serial := range r.written {
		if serial > mark {
			keep[fileOf(id)] = true
		} else if !keep[fileOf(id)] {
			delete(r.written, id)
		}
	}
	entries, err := os.ReadDir(r.pulled())
	problems := []error{err}
	for _, entry := range entries {
		if !keep[entry.Name()] {
			problems = append(problems, os.Remove(filepath.Join(r.pulled(), entry.Name())))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("removing the records of images that are gone: %w", err)
	}
	return nil
}

func (r *Records) intents() string { return filepath.Join(r.dir, "pulling") }
func (r *Records) pulled() string  { return filepath.Join(r.dir, "pulled") }

// add records that the image was pulled under the name with the given credentials, nil for unknown ones, unless
// that is recorded already.
func (r *Records) add(id, name string, by *Credentials) error {
	old, err := r.load(id)
	if err != nil {
		r.log.Warn("a record of an image is of no use and is replaced", zap.String("image", name), zap.Error(err))
	}
	record := added(old, id, name, by)
	if old != nil && reflect.DeepEqual(old.CredentialMapping, record.CredentialMapping) {
		return nil
	}
	record.TypeMeta, record.LastUpdatedTime = kind("ImagePulledRecord"), metav1.NewTime(time.Now())
	if err := save("nodeagent/image.record", filepath.Join(r.pulled(), fileOf(id)), record); err != nil {
		return fmt.Errorf("writing the record of image %s: %w", id, err)
	}
	r.serial++
	r.written[id] = r.serial
	return nil
}

// load returns the record of an image; nil if it has none.
func (r *Records) load(id string) (*kubeletv1beta1.ImagePulledRecord, error) {
	data, err := os.ReadFile(filepath.Join(r.pulled(), fileOf(id)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	record := &kubeletv1beta1.ImagePulledRecord{}
	if err == nil {
		err = json.Unmarshal(data, record)
	}
	if err == nil && (record.TypeMeta != kind("ImagePulledRecord") || record.ImageRef != id) {
		err = fmt.Errorf("it is a %s of %s about %q", record.Kind, record.APIVersion, record.ImageRef)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record of image %s: %w", id, err)
	}
	if record.CredentialMapping == nil {
		record.CredentialMapping = map[string]kubeletv1beta1.ImagePullCredentials{}
	}
	return record, nil
}

func kind(name string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: name, APIVersion: kubeletv1beta1.SchemeGroupVersion.String()}
}

// save writes a record, at a place that tests can make fail.
func save(place, file string, record any) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return failpoint.Around(place, func() error { return wholefile.Write(file, data, 0o600) })
}
