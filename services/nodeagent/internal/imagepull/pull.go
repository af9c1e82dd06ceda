package imagepull

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/distribution/reference"
	"go.uber.org/zap"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// Pull is a pull under way. It ends with Succeeded, Failed or Lost.
type Pull struct {
	records *Records
	image   reference.Named
	// before is the ID of the image that the node had under this name before, empty for none.
	before string
}

// Begin records on disk that an image is about to be pulled. before is the ID of the image that the node has under
// the name.
func (r *Records) Begin(image reference.Named, before string) (*Pull, error) {
	if r == nil {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	intent := kubeletv1beta1.ImagePullIntent{TypeMeta: kind("ImagePullIntent"), Image: image.String()}
	file := fileOf(intent.Image)
	if err := save("nodeagent/image.intend", filepath.Join(r.intents(), file), intent); err != nil {
		return nil, fmt.Errorf("failed to record image pull intent for container image %q: %w", intent.Image, err)
	}
	if r.cutOff[file] {
		before = ""
	}
	pull := &Pull{records: r, image: image, before: before}
	r.pulls[pull] = true
	return pull, nil
}

// Succeeded records with which credentials the image with the ID was pulled. If that cannot be written, the intent
// stays: no other Pod gets access to the image.
func (p *Pull) Succeeded(id string, by Credentials) { p.ended(id, &by) }

// Failed ends a pull after which the node has the image with the ID, empty for none. An image that came although
// the pull failed is open to no Pod.
func (p *Pull) Failed(id string) {
	if p != nil && id == p.before {
		id = ""
	}
	p.ended(id, nil)
}

// Lost ends a pull with an unknown outcome. Its intent stays.
func (p *Pull) Lost() {
	if p == nil {
		return
	}
	p.records.mu.Lock()
	defer p.records.mu.Unlock()
	p.records.lose(p)
}

func (r *Records) lose(p *Pull) {
	delete(r.pulls, p)
	r.cutOff[fileOf(p.image.String())] = true
}

func (p *Pull) ended(id string, by *Credentials) {
	if p == nil {
		return
	}
	r := p.records
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.end(p, id, by); err != nil {
		r.lose(p)
		r.log.Warn("recording how a pull ended failed", zap.Stringer("image", p.image), zap.Error(err))
	}
}

// end writes the record of the pulled image, if any, and then removes the intent.
func (r *Records) end(pull *Pull, id string, by *Credentials) error {
	if id != "" {
		if err := r.add(id, pull.image.Name(), by); err != nil {
			return err
		}
	}
	delete(r.pulls, pull)
	for other := range r.pulls {
		if other.image.String() == pull.image.String() {
			return nil
		}
	}
	return r.forgetIntent(pull.image.String())
}

func (r *Records) forgetIntent(image string) error {
	file := fileOf(image)
	if err := os.Remove(filepath.Join(r.intents(), file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the intent of pulling %s: %w", image, err)
	}
	delete(r.cutOff, file)
	return nil
}
