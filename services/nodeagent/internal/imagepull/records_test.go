package imagepull

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/distribution/reference"
	"go.uber.org/zap"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// at is a folder of records with which agents start, one after the other.
type at struct {
	*testing.T
	dir string
}

// start starts an agent while the node has the images.
func (a at) start(images ...runtime.Image) *Records {
	a.Helper()
	r, err := OpenRecords(a.dir, Settings{}, zap.NewNop())
	if err != nil {
		a.Fatal(err)
	}
	if err := r.Recover(func() ([]runtime.Image, error) { return images, nil }); err != nil {
		a.Fatal(err)
	}
	return r
}

func (a at) begin(r *Records, image, before string) *Pull {
	a.Helper()
	pull, err := r.Begin(named(image), before)
	if err != nil {
		a.Fatal(err)
	}
	return pull
}

// showing is a Pod with the Secrets, which has no service account of a credential provider.
func showing(secrets []kubeletv1beta1.ImagePullSecret) Shown {
	return Shown{Secrets: func() []kubeletv1beta1.ImagePullSecret { return secrets },
		Account: func() *kubeletv1beta1.ImagePullServiceAccount { return nil }}
}

// may checks whether Pods may use the image with the ID: one without secrets, one with the secret of UID 1.
func (a at) may(r *Records, image, id string, none, one bool) {
	a.Helper()
	for _, pod := range []struct {
		has  string
		want bool
		of   []kubeletv1beta1.ImagePullSecret
	}{{"no secret", none, nil}, {"secret 1", one, []kubeletv1beta1.ImagePullSecret{secret("1", "a")}}} {
		got := r.MayUse(named(image), id, showing(pod.of))
		if got != pod.want {
			a.Errorf("a Pod with %s may use %s (%s): %v, want %v", pod.has, image, id, got, pod.want)
		}
	}
}

func named(image string) reference.Named {
	ref, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		panic(err)
	}
	return reference.TagNameOnly(ref)
}

func withSecret(uid string) Credentials {
	s := secret(uid, "a")
	return Credentials{Secret: &s}
}

// files counts the intents and records.
func (a at) files() (intents, pulled int) {
	a.Helper()
	i, err1 := os.ReadDir(filepath.Join(a.dir, "pulling"))
	p, err2 := os.ReadDir(filepath.Join(a.dir, "pulled"))
	if err := errors.Join(err1, err2); err != nil {
		a.Fatal(err)
	}
	return len(i), len(p)
}

func (a at) has(intents, pulled int) {
	a.Helper()
	if i, p := a.files(); i != intents || p != pulled {
		a.Errorf("there are %d intents and %d records, want %d and %d", i, p, intents, pulled)
	}
}

// The life of a private image: before, during and after its pull, and with the next agent. Another name of the same
// image needs rights of its own, and a pull without credentials opens it to all.
func TestPrivateImage(t *testing.T) {
	a := at{t, t.TempDir()}
	r := a.start()
	a.may(r, "reg.io/p:1", "id", true, true) // the agent has not pulled it
	pull := a.begin(r, "reg.io/p:1", "")
	a.has(1, 0)
	a.may(r, "reg.io/p:1", "id", false, false)
	a.may(r, "reg.io/p@sha256:"+fileOf("")[len("sha256-"):], "id", false, false)
	pull.Succeeded("id", withSecret("1"))
	a.has(0, 1)
	for _, agent := range []*Records{r, a.start()} {
		a.may(agent, "reg.io/p:1", "id", false, true)
		a.may(agent, "reg.io/p:2", "id", false, true)
		a.may(agent, "reg.io/q:1", "id", false, false)
		a.may(agent, "reg.io/p:1", "other", true, true)
	}
	r = a.start()
	a.begin(r, "reg.io/q:1", "id").Succeeded("id", Credentials{})
	a.may(r, "reg.io/q:1", "id", true, true)
	a.may(r, "reg.io/p:1", "id", false, true)
	a.begin(r, "reg.io/p:1", "id").Succeeded("id", Credentials{})
	a.may(r, "reg.io/p:1", "id", true, true)
}

// The records are the same as the kubelet's.
func TestFormOfRecords(t *testing.T) {
	a := at{t, t.TempDir()}
	r := a.start()
	pull := a.begin(r, "p", "")
	var intent kubeletv1beta1.ImagePullIntent
	// The names are the SHA-256 of docker.io/library/p:latest and of id.
	a.read("pulling/sha256-"+sumOfP, &intent)
	if intent.Kind != "ImagePullIntent" || intent.APIVersion != "kubelet.config.k8s.io/v1beta1" ||
		intent.Image != "docker.io/library/p:latest" {
		t.Errorf("the intent is %+v", intent)
	}
	pull.Succeeded("id", withSecret("1"))
	var record kubeletv1beta1.ImagePulledRecord
	a.read("pulled/sha256-"+sumOfID, &record)
	secrets := record.CredentialMapping["docker.io/library/p"].KubernetesSecrets
	if record.Kind != "ImagePulledRecord" || record.APIVersion != "kubelet.config.k8s.io/v1beta1" ||
		record.ImageRef != "id" || record.LastUpdatedTime.IsZero() || len(record.CredentialMapping) != 1 ||
		len(secrets) != 1 || secrets[0] != secret("1", "a") {
		t.Errorf("the record is %+v", record)
	}
}

const (
	sumOfP  = "7f2076b3283c8b44894aa708addd81ecf8414c343f4f4166d6aef231a259d1d6"
	sumOfID = "a56145270ce6b3bebd1dd012b73948677dd618d496488bc608a3cb43ce3547dd"
)

func (a at) read(file string, into any) {
	a.Helper()
	data, err := os.ReadFile(filepath.Join(a.dir, file))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		a.Fatal(err)
	}
}

// A failed pull leaves an earlier image as open as it was, and closes an image that came nevertheless.
func TestFailedPull(t *testing.T) {
	a := at{t, t.TempDir()}
	r := a.start()
	pull := a.begin(r, "reg.io/p:1", "id")
	a.may(r, "reg.io/p:1", "id", true, true) // an earlier image stays open while it is pulled again
	pull.Failed("id")
	a.has(0, 0)
	a.may(r, "reg.io/p:1", "id", true, true)
	a.begin(r, "reg.io/p:1", "").Failed("")
	a.has(0, 0)
	a.begin(r, "reg.io/p:1", "id").Failed("new")
	a.has(0, 1)
	a.may(r, "reg.io/p:1", "new", false, false)
	a.begin(r, "reg.io/p:1", "new").Succeeded("new", withSecret("1"))
	a.may(r, "reg.io/p:1", "new", false, true)
}

// An intent stays until the last of several pulls of an image has ended.
func TestPullsOfOneImage(t *testing.T) {
	a := at{t, t.TempDir()}
	r := a.start()
	first, second := a.begin(r, "p", ""), a.begin(r, "p", "")
	first.Failed("")
	a.has(1, 0)
	a.may(r, "p", "id", false, false)
	second.Succeeded("id", withSecret("1"))
	a.has(0, 1)
}

// An agent that ends during a pull, or does not learn the outcome, opens nothing: neither what the runtime has got,
// under all of its names, nor what it gets later.
func TestPullThatIsCutOff(t *testing.T) {
	image := runtime.Image{ID: "id", Tags: []string{"reg.io/p:1", "docker.io/library/alias:1"}}
	t.Run("with the image there", func(t *testing.T) {
		a := at{t, t.TempDir()}
		a.begin(a.start(), "reg.io/p:1", "")
		r := a.start(image)
		a.has(0, 1)
		a.may(r, "reg.io/p:1", "id", false, false)
		a.may(r, "alias:1", "id", false, false)
		a.may(a.start(image), "reg.io/p:1", "id", false, false)
	})
	t.Run("with the image there by its digest", func(t *testing.T) {
		a := at{t, t.TempDir()}
		byDigest := named("reg.io/p@sha256:" + sumOfP)
		a.begin(a.start(), byDigest.String(), "")
		a.start(runtime.Image{ID: "id", Digests: []string{byDigest.String()}})
		a.has(0, 1)
	})
	t.Run("with the image to come", func(t *testing.T) {
		a := at{t, t.TempDir()}
		a.begin(a.start(), "reg.io/p:1", "")
		r := a.start()
		a.has(1, 0)
		a.may(r, "reg.io/p:1", "id", false, false)
		a.begin(r, "reg.io/p:1", "id").Failed("id") // it has come, and the next pull fails
		a.has(0, 1)
		a.may(r, "reg.io/p:1", "id", false, false)
	})
	t.Run("in the same agent", func(t *testing.T) {
		a := at{t, t.TempDir()}
		r := a.start()
		a.begin(r, "reg.io/p:1", "").Lost()
		a.may(r, "reg.io/p:1", "id", false, false)
		a.begin(r, "reg.io/p:1", "id").Succeeded("id", withSecret("1"))
		a.has(0, 1)
		a.may(r, "reg.io/p:1", "id", false, true)
		a.may(r, "reg.io/p:1", "preloaded", true, true)
	})
	t.Run("and a runtime that does not answer", func(t *testing.T) {
		a := at{t, t.TempDir()}
		a.begin(a.start(), "reg.io/p:1", "")
		r, err := OpenRecords(a.dir, Settings{}, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		down := errors.New("down")
		if err := r.Recover(func() ([]runtime.Image, error) { return nil, down }); !errors.Is(err, down) {
			t.Errorf("recovered with %v", err)
		}
		a.may(r, "reg.io/p:1", "id", false, false)
		a.has(1, 0)
	})
}

// A full disk opens nothing: no pull begins without its intent, and a pulled image stays closed to others.
func TestFullDisk(t *testing.T) {
	a := at{t, t.TempDir()}
	r := a.start()
	arm(t, "nodeagent/image.intend.before", "1*error(no space)")
	if _, err := r.Begin(named("p"), ""); !errors.Is(err, failpoint.ErrInjected) {
		t.Errorf("a pull began with %v", err)
	}
	a.has(0, 0)
	pull := a.begin(r, "p", "")
	arm(t, "nodeagent/image.record.before", "1*error(no space)")
	pull.Succeeded("id", Credentials{})
	a.has(1, 0)
	a.may(r, "p", "id", false, false)
	r = a.start(runtime.Image{ID: "id", Tags: []string{"docker.io/library/p:latest"}})
	a.has(0, 1)
	a.may(r, "p", "id", false, false)
	pull = a.begin(r, "q", "")
	arm(t, "nodeagent/image.record.before", "1*error(no space)")
	pull.Succeeded("q", withSecret("1"))
	a.has(1, 1)
	a.begin(r, "q", "q").Succeeded("q", withSecret("1"))
	a.has(0, 2)
}

func arm(t *testing.T, name, program string) {
	t.Helper()
	if err := failpoint.Arm(name, program); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { failpoint.Disarm(name) })
}

// An unusable record opens nothing, and the next pull replaces it. The remains of an interrupted write are removed.
func TestDamagedRecord(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "half": `{"kind":"ImagePulledRe`,
		"of another image": `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","imageRef":"x",` +
			`"credentialMapping":{"docker.io/library/p":{"nodePodsAccessible":true}}}`,
		"of another version": `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v9","imageRef":"id",` +
			`"credentialMapping":{"docker.io/library/p":{"nodePodsAccessible":true}}}`} {
		t.Run(name, func(t *testing.T) {
			a := at{t, t.TempDir()}
			a.start()
			for _, file := range []string{fileOf("id"), "." + fileOf("id") + "123"} {
				if err := os.WriteFile(filepath.Join(a.dir, "pulled", file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := a.start()
			a.has(0, 1)
			a.may(r, "p", "id", false, false)
			a.begin(r, "p", "id").Succeeded("id", withSecret("1"))
			a.may(r, "p", "id", false, true)
		})
	}
}

// Another secret of the same content is remembered: it opens the image after its content has changed.
func TestSecretIsRemembered(t *testing.T) {
	a := at{t, t.TempDir()}
	r := a.start()
	a.begin(r, "p", "").Succeeded("id", withSecret("0"))
	a.may(r, "p", "id", false, true) // secret 1 has the content of secret 0
	changed := showing([]kubeletv1beta1.ImagePullSecret{secret("1", "changed")})
	if r = a.start(); !r.MayUse(named("p"), "id", changed) {
		t.Error("the secret opened the image before, and no longer does")
	}
}

// Secrets are requested only if they matter.
func TestSecretsAreSpared(t *testing.T) {
	a := at{t, t.TempDir()}
	r := a.start()
	a.begin(r, "public", "").Succeeded("public", Credentials{})
	a.begin(r, "cut", "").Failed("cut")
	for _, id := range []string{"public", "preloaded", "cut"} {
		r.MayUse(named(id), id, Shown{Secrets: func() []kubeletv1beta1.ImagePullSecret {
			t.Errorf("the secrets were asked for to open image %s", id)
			return nil
		}, Account: func() *kubeletv1beta1.ImagePullServiceAccount {
			t.Errorf("the service account was asked for to open image %s", id)
			return nil
		}})
	}
}

// Records of removed images are removed, but not those of images that came after the list was made.
func TestForget(t *testing.T) {
	a := at{t, t.TempDir()}
	r := a.start()
	for _, id := range []string{"there", "gone"} {
		a.begin(r, id, "").Succeeded(id, withSecret("1"))
	}
	r = a.start() // the records of an earlier agent are treated alike
	mark := r.Mark()
	a.begin(r, "late", "").Succeeded("late", withSecret("1"))
	if err := r.Forget([]runtime.Image{{ID: "there"}}, mark); err != nil {
		t.Fatal(err)
	}
	a.has(0, 2)
	a.may(r, "late", "late", false, true)
	a.may(r, "there", "there", false, true)
	a.may(r, "gone", "gone", true, true)
	if err := r.Forget([]runtime.Image{{ID: "there"}}, r.Mark()); err != nil {
		t.Fatal(err)
	}
	a.has(0, 1)
}

// Nil Records keep nothing and open everything.
func TestNoRecords(t *testing.T) {
	var r *Records
	pull, err := r.Begin(named("p"), "")
	if err != nil {
		t.Fatal(err)
	}
	pull.Succeeded("id", withSecret("1"))
	pull.Failed("id")
	pull.Lost()
	at{t, ""}.may(r, "p", "id", true, true)
	if err := errors.Join(r.Recover(nil), r.Forget(nil, r.Mark())); err != nil {
		t.Error(err)
	}
}

// An image that a credential provider opened for a service account is for Pods with that account: not for another one
// of its name, and not for Pods that the providers give nothing. The account of no Pod is one of its own.
func TestAccountsOpenImages(t *testing.T) {
	a := at{t, t.TempDir()}
	r := a.start()
	mine := kubeletv1beta1.ImagePullServiceAccount{UID: "1", Namespace: "ns", Name: "mine"}
	again := kubeletv1beta1.ImagePullServiceAccount{UID: "2", Namespace: "ns", Name: "mine"}
	none := kubeletv1beta1.ImagePullServiceAccount{}
	a.begin(r, "p", "").Succeeded("id", Credentials{Account: &mine})
	a.begin(r, "static", "").Succeeded("static", Credentials{Account: &none})
	for range 2 {
		for _, row := range []struct {
			image   string
			account *kubeletv1beta1.ImagePullServiceAccount
			want    bool
		}{{"p", &mine, true}, {"p", &again, false}, {"p", &none, false}, {"p", nil, false}, {"static", &none, true},
			{"static", &mine, false}, {"static", nil, false}} {
			shows := showing(nil)
			shows.Account = func() *kubeletv1beta1.ImagePullServiceAccount { return row.account }
			id := map[string]string{"p": "id", "static": "static"}[row.image]
			if got := r.MayUse(named(row.image), id, shows); got != row.want {
				t.Errorf("a Pod with account %v may use %s: %v", row.account, row.image, got)
			}
		}
		r = a.start()
	}
	a.begin(r, "p", "id").Succeeded("id", withSecret("1"))
	a.may(r, "p", "id", false, true)
	shows := showing(nil)
	shows.Account = func() *kubeletv1beta1.ImagePullServiceAccount { return &mine }
	if !r.MayUse(named("p"), "id", shows) {
		t.Error("a pull with a Secret closed the image to the account that had opened it")
	}
	a.begin(r, "p", "id").Succeeded("id", Credentials{})
	a.may(r, "p", "id", true, true)
}
